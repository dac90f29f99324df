//! Reads that several controllers need: provider objects through the caches, at the version and understood by the contract that
//! the provider's CRD declares.

use std::ops::Deref;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use windlass_api::core::{Cluster, ContractVersionedObjectReference};
use windlass_api::meta::MetaExt as _;
use windlass_contract::{ContractVersion, control_plane as contract};
use windlass_controller_runtime::{Cx, Dynamic, ObjectKey, Seen};

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

/// An object serves one Cluster or one Machine: what another one of the same `kind` as its reader owns is neither taken from it nor
/// believed.
pub(crate) fn unless_taken(found: Seen<Referenced>, kind: &str, reader: &ObjectMeta) -> Seen<Referenced> {
    unless_owned(found, kind, reader, |other| is_peer(other, kind))
}

/// The same for a reader that has to become the controller: an object has one, of whatever kind.
pub(crate) fn unless_foreign(found: Seen<Referenced>, kind: &str, reader: &ObjectMeta) -> Seen<Referenced> {
    unless_owned(found, kind, reader, |other| {
        is_peer(other, kind) || other.controller == Some(true)
    })
}

/// Whether an owner is an object of Cluster API of this kind.
fn is_peer(owner: &OwnerReference, kind: &str) -> bool {
    owner.kind == kind && owner.api_version.starts_with("cluster.x-k8s.io/")
}

fn unless_owned(
    found: Seen<Referenced>,
    kind: &str,
    reader: &ObjectMeta,
    counts: impl Fn(&OwnerReference) -> bool,
) -> Seen<Referenced> {
    let Seen::Found(object) = &found else { return found };
    let is_reader = |other: &OwnerReference| is_peer(other, kind) && Some(&other.name) == reader.name.as_ref();
    let mut owners = object.metadata().owner_references.iter().flatten();
    let other = owners.find(|other| counts(other) && !is_reader(other));
    match other {
        None => found,
        // It is not for its reader to delete.
        Some(_) if reader.deletion_timestamp.is_some() => Seen::NotFound,
        Some(other) if is_peer(other, kind) => Seen::Failed(format!(
            "{} {} belongs to {kind} {}: refer to another object",
            object.kind(),
            object.name(),
            other.name
        )),
        Some(other) => Seen::Failed(format!(
            "{} {} is controlled by {} {}, and an object has one controller: set controller to false in that owner reference, \
             so that the {kind} can become it",
            object.kind(),
            object.name(),
            other.kind,
            other.name
        )),
    }
}

/// How many finalizers of an object a message names before it counts the rest.
const NAMED: usize = 3;

/// That a deletion waits for an object, and what holds the object when it has been asked to go.
pub(crate) fn waits_for(object: &Dynamic) -> String {
    let waits = format!("Waiting for {} {} to be deleted", object.kind(), object.name());
    let mut holding: Vec<&str> = object
        .metadata()
        .finalizers
        .iter()
        .flatten()
        .map(String::as_str)
        .collect();
    if !object.is_deleting() || holding.is_empty() {
        return waits;
    }
    holding.sort_unstable();
    let noun = if holding.len() == 1 { "finalizer" } else { "finalizers" };
    format!(
        "{waits}, it is held by {noun} {}",
        windlass_conditions::listed(&holding, NAMED)
    )
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
    let read = referenced(cx, cluster.metadata.namespace(), reference).await;
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
        Self::by(ContractVersion::V1Beta2, value)
    }

    /// An object of a test.
    pub(crate) fn by(contract: ContractVersion, value: serde_json::Value) -> Self {
        Self {
            object: Arc::new(Dynamic::new(value).unwrap()),
            contract,
        }
    }
}
