//! Reads the templates of an object that is being deleted, and what else uses templates. The only reader.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass_api::core::{MachineDeployment, MachineSet, MachineSpec};
use windlass_api::kind::ApiKind as _;
use windlass_controller_runtime::{Cx, Dynamic, GroupKind, ObjectKey, RuntimeError, Seen};

use super::TemplateUser;
use super::facts::{TemplateId, templates};

/// What was read.
#[derive(Debug)]
pub(crate) struct Observed<K> {
    pub(super) object: Arc<K>,
    /// What matters for its deletion; empty before.
    pub(super) deletion: Deletion,
}

/// What matters for the deletion of an object.
#[derive(Debug, Default)]
pub(super) struct Deletion {
    /// Specs of all MachineDeployments and MachineSets of the Cluster that are not being deleted.
    pub(super) staying: Vec<MachineSpec>,
    /// The templates of the object.
    pub(super) templates: BTreeMap<TemplateId, Seen<Arc<Dynamic>>>,
}

pub(super) async fn observe<K: TemplateUser>(cx: &Cx, object: Arc<K>) -> Observed<K> {
    let deletion = if object.meta().deletion_timestamp.is_some() {
        deletion(cx, object.meta(), object.machine()).await
    } else {
        Deletion::default()
    };
    Observed { object, deletion }
}

async fn deletion(cx: &Cx, meta: &ObjectMeta, going: &MachineSpec) -> Deletion {
    let namespace = meta.namespace.as_deref().unwrap_or_default();
    let mut found = BTreeMap::new();
    for (kind, name) in templates(going) {
        let template = template(cx, &kind, &ObjectKey::new(namespace, name.as_str())).await;
        found.insert((kind, name), template);
    }
    Deletion {
        staying: staying(cx, namespace, &going.cluster_name),
        templates: found,
    }
}

async fn template(cx: &Cx, kind: &GroupKind, key: &ObjectKey) -> Seen<Arc<Dynamic>> {
    match cx.dynamic(kind).await {
        Ok(cache) => cache.get(key).into(),
        // Objects go with the definition of their kind.
        Err(RuntimeError::UnknownKind { .. }) => Seen::NotFound,
        Err(error) => Seen::Failed(error.to_string()),
    }
}

fn staying(cx: &Cx, namespace: &str, cluster: &str) -> Vec<MachineSpec> {
    let deployments = cx.cache::<MachineDeployment>().by_cluster(namespace, cluster);
    let sets = cx.cache::<MachineSet>().by_cluster(namespace, cluster);
    let deployments = deployments
        .iter()
        .filter(|d| !d.is_deleting())
        .map(|d| &d.spec.template.spec);
    let sets = sets.iter().filter(|s| !s.is_deleting()).map(|s| &s.spec.template.spec);
    deployments.chain(sets).cloned().collect()
}
