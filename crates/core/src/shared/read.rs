//! Reads that several controllers need: provider objects through the caches, at the version and understood by the contract that
//! the provider's CRD declares.

use std::ops::Deref;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass_api::core::{Cluster, ContractVersionedObjectReference};
use windlass_contract::{ContractVersion, control_plane as contract};
use windlass_kit::{Cx, Dynamic, ObjectKey, Seen, owner};

use crate::shared::machines::namespace;
use crate::shared::preflight::ControlPlaneFacts;

/// A referenced object and the contract it follows.
#[derive(Clone, Debug)]
pub(crate) struct Referenced {
    object: Arc<Dynamic>,
    /// The contract.
    pub(crate) contract: ContractVersion,
}

impl Deref for Referenced {
    type Target = Dynamic;

    fn deref(&self) -> &Dynamic {
        &self.object
    }
}

/// The object of a reference, and its contract.
pub(crate) async fn referenced(
    cx: &Cx,
    namespace: &str,
    reference: &ContractVersionedObjectReference,
) -> Seen<Referenced> {
    match cx.dynamic(&windlass_contract::group_kind_of(reference)).await {
        Ok(cache) => {
            let contract = cache.contract();
            let object = cache.get(&ObjectKey::new(namespace, &reference.name));
            object.map(|object| Referenced { object, contract }).into()
        }
        Err(error) => Seen::Failed(error.to_string()),
    }
}

/// An object serves one Cluster or one Machine: what another one of the same `kind` as its reader controls is neither taken
/// from it nor believed.
pub(crate) fn unless_taken(found: Seen<Referenced>, kind: &str, reader: &ObjectMeta) -> Seen<Referenced> {
    let Seen::Found(object) = &found else { return found };
    let other = owner::controller_of(object.metadata())
        .filter(|other| other.kind == kind && Some(&other.name) != reader.name.as_ref());
    match other {
        None => found,
        // It is not for its reader to delete.
        Some(_) if reader.deletion_timestamp.is_some() => Seen::NotFound,
        Some(other) => Seen::Failed(format!(
            "{} {} belongs to {kind} {}: refer to another object",
            object.kind(),
            object.name(),
            other.name
        )),
    }
}

/// The object of a reference, where its contract does not matter: a template, or the clone of one.
pub(crate) async fn object(
    cx: &Cx,
    namespace: &str,
    reference: &ContractVersionedObjectReference,
) -> Seen<Arc<Dynamic>> {
    referenced(cx, namespace, reference).await.map(|found| found.object)
}

/// The control plane of a Cluster; `None` when the Cluster names none.
pub(crate) async fn control_plane(cx: &Cx, cluster: &Cluster) -> Option<Seen<ControlPlaneFacts>> {
    let reference = cluster.spec.control_plane_ref.as_ref()?;
    let read = referenced(cx, namespace(&cluster.metadata), reference).await;
    Some(read.map(|object| control_plane_facts(&object)))
}

/// What the preflight checks want to know of a control plane.
pub(crate) fn control_plane_facts(object: &Dynamic) -> ControlPlaneFacts {
    let own = |text: Option<&str>| text.map(str::to_owned);
    ControlPlaneFacts {
        kind: object.kind().to_owned(),
        namespace: object.metadata().namespace.clone().unwrap_or_default(),
        name: object.name().to_owned(),
        spec_version: own(contract::version(object.value())),
        status_version: own(contract::status_version(object.value())),
        upgrading: contract::is_upgrading(object.value()),
    }
}

#[cfg(test)]
impl Referenced {
    /// An object of a test, by the current contract.
    pub(crate) fn of(value: serde_json::Value) -> Self {
        Self {
            object: Arc::new(Dynamic::new(value).unwrap()),
            contract: ContractVersion::V1Beta2,
        }
    }
}
