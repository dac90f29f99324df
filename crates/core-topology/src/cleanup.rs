//! Which templates may go when a MachineDeployment or MachineSet of a topology goes. Pure but for what takes a `cx`.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass_api::core::{ContractVersionedObjectReference as Reference, MachineDeployment, MachineSet, MachineSpec};
use windlass_api::kind::ApiKind as _;
use windlass_kit::{Cx, GroupKind, KitError, Object, ObjectKey, ReconcileError, WriteError};

/// A template, by kind and name; all are in one namespace.
pub(crate) type TemplateId = (GroupKind, String);

/// The templates that Machines of this spec are made from.
pub(crate) fn templates(spec: &MachineSpec) -> BTreeSet<TemplateId> {
    [spec.bootstrap.config_ref.as_ref(), Some(&spec.infrastructure_ref)]
        .into_iter()
        .flatten()
        .filter(|r| is_template(r))
        .map(|r| (r.group_kind(), r.name.clone()))
        .collect()
}

fn is_template(reference: &Reference) -> bool {
    reference.kind.ends_with("Template") && !reference.name.is_empty()
}

/// The templates of what goes that nobody who stays uses.
pub(crate) fn unused<'a>(going: &MachineSpec, staying: impl IntoIterator<Item = &'a MachineSpec>) -> Vec<TemplateId> {
    let used: BTreeSet<TemplateId> = staying.into_iter().flat_map(templates).collect();
    templates(going).difference(&used).cloned().collect()
}

/// The specs of all MachineDeployments and MachineSets of a Cluster that stay.
pub(crate) fn users(cx: &Cx, meta: &ObjectMeta, cluster: &str) -> Vec<MachineSpec> {
    let namespace = meta.namespace.as_deref().unwrap_or_default();
    let deployments = cx.cache::<MachineDeployment>().by_cluster(namespace, cluster);
    let sets = cx.cache::<MachineSet>().by_cluster(namespace, cluster);
    let deployments = deployments
        .iter()
        .filter(|d| !d.is_deleting())
        .map(|d| &d.spec.template.spec);
    let sets = sets.iter().filter(|s| !s.is_deleting()).map(|s| &s.spec.template.spec);
    deployments.chain(sets).cloned().collect()
}

/// Does what was decided.
pub(crate) async fn apply<K: Object>(cx: &Cx, object: &K, manager: &str, finalizer: &str, plan: &Plan) -> Done {
    let written = |result: Result<(), WriteError>| result.map_err(|e| e.to_string());
    Done::of(match plan {
        Plan::Nothing => Ok(()),
        Plan::Finalize => written(cx.writer().ensure_finalizer(manager, object, finalizer).await.map(drop)),
        Plan::CleanUp(templates) => {
            let namespace = object.meta().namespace.as_deref().unwrap_or_default();
            match delete(cx, namespace, templates).await {
                Ok(()) => written(cx.writer().remove_finalizer(manager, object, finalizer).await),
                failed => failed,
            }
        }
    })
}

/// Deletes templates; those that are gone already, or whose kind is gone, count as deleted.
pub(crate) async fn delete(cx: &Cx, namespace: &str, templates: &[TemplateId]) -> Result<(), String> {
    for (kind, name) in templates {
        let cache = match cx.dynamic(kind).await {
            Ok(cache) => cache,
            Err(KitError::UnknownKind { .. }) => continue,
            Err(error) => return Err(error.to_string()),
        };
        let Some(found) = cache.get(&ObjectKey::new(namespace, name.as_str())) else {
            continue;
        };
        // Only what this controller made; a user's own template stays.
        if found.label(windlass_api::labels::TOPOLOGY_OWNED).is_none() {
            continue;
        }
        cx.writer()
            .delete_value(&found)
            .await
            .map_err(|e: WriteError| e.to_string())?;
        tracing::info!(kind = kind.kind, name, "deleted an unused template");
    }
    Ok(())
}

/// What became of a clean-up.
#[derive(Debug, Default)]
pub(crate) struct Done {
    pub(crate) failure: Option<ReconcileError>,
}

impl Done {
    pub(crate) fn of(result: Result<(), String>) -> Self {
        let failure = result.err().map(|why| ReconcileError::new("Cleanup", why));
        Self { failure }
    }
}

/// What is to be done about an object of a topology.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Plan {
    /// Nothing: it is not of a topology, or all is as it should be.
    Nothing,
    /// The finalizer is missing.
    Finalize,
    /// It is being deleted: these templates go, then the finalizer.
    CleanUp(Vec<TemplateId>),
}

/// Decides; `staying` are the specs of all users of templates that are not being deleted.
pub(crate) fn plan<'a>(
    meta: &ObjectMeta,
    finalizer: &str,
    going: &MachineSpec,
    staying: impl IntoIterator<Item = &'a MachineSpec>,
) -> Plan {
    let owned = meta
        .labels
        .as_ref()
        .is_some_and(|l| l.contains_key(windlass_api::labels::TOPOLOGY_OWNED));
    let has = meta.finalizers.iter().flatten().any(|f| f == finalizer);
    match (meta.deletion_timestamp.is_some(), has) {
        (false, false) if owned => Plan::Finalize,
        (true, true) => Plan::CleanUp(unused(going, staying)),
        _ => Plan::Nothing,
    }
}

impl windlass_kit::Done for Done {
    fn failed(&self) -> Option<&ReconcileError> {
        self.failure.as_ref()
    }
}

impl windlass_kit::Plan for Plan {}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;

    fn spec(bootstrap: &str, infrastructure: &str) -> MachineSpec {
        let reference = |kind: &str, name: &str| Reference {
            api_group: "g".to_owned(),
            kind: kind.to_owned(),
            name: name.to_owned(),
        };
        let mut spec = MachineSpec {
            infrastructure_ref: reference("DevMachineTemplate", infrastructure),
            ..MachineSpec::default()
        };
        spec.bootstrap.config_ref = Some(reference("KubeadmConfigTemplate", bootstrap));
        spec
    }

    // TO-300, TO-315
    #[test]
    fn templates_go_when_nobody_uses_them_any_more() {
        let names = |plan: Plan| match plan {
            Plan::CleanUp(list) => list.into_iter().map(|(_, name)| name).collect::<Vec<_>>(),
            other => panic!("{other:?}"),
        };
        let meta = ObjectMeta {
            deletion_timestamp: Some(Time(jiff::Timestamp::UNIX_EPOCH)),
            finalizers: Some(vec!["f".to_owned()]),
            ..ObjectMeta::default()
        };
        assert_eq!(names(plan(&meta, "f", &spec("b1", "i1"), [])), ["i1", "b1"]);
        assert_eq!(names(plan(&meta, "f", &spec("b1", "i1"), [&spec("b1", "i2")])), ["i1"]);
        assert!(names(plan(&meta, "f", &spec("b1", "i1"), [&spec("b1", "i1")])).is_empty());
    }

    #[test]
    fn only_objects_of_a_topology_get_the_finalizer() {
        let mut meta = ObjectMeta::default();
        assert_eq!(plan(&meta, "f", &spec("b", "i"), []), Plan::Nothing);
        meta.labels = Some([(windlass_api::labels::TOPOLOGY_OWNED.to_owned(), String::new())].into());
        assert_eq!(plan(&meta, "f", &spec("b", "i"), []), Plan::Finalize);
    }
}
