//! Reads that several controllers need: provider objects through the caches, and what their contract says.

use std::sync::Arc;

use windlass_api::core::{Cluster, ContractVersionedObjectReference};
use windlass_contract::control_plane as contract;
use windlass_kit::{Cx, Dynamic, GroupKind, ObjectKey, Seen};

use crate::shared::machines::namespace;
use crate::shared::preflight::ControlPlaneFacts;

/// The object of a reference.
pub(crate) async fn referenced(
    cx: &Cx,
    namespace: &str,
    reference: &ContractVersionedObjectReference,
) -> Seen<Arc<Dynamic>> {
    let kind = GroupKind::new(reference.api_group.as_str(), reference.kind.as_str());
    cx.dynamic_get(&kind, &ObjectKey::new(namespace, reference.name.as_str()))
        .await
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
