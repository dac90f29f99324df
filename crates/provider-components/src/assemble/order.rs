//! The order in which objects are applied, and the objects that outlive their provider.

use std::collections::BTreeSet;

use serde_json::Value;

use super::DEFINITIONS;
use crate::object::{group, is, kind, text};

/// The stage in which an object is applied. Removal has the opposite order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// The Namespace, before everything in it.
    Namespace,
    /// Definitions, before objects of their kinds and before controllers that watch these.
    Definitions,
    /// Service accounts, roles, bindings.
    Access,
    /// Objects that workloads depend on: Secrets, ConfigMaps, Services.
    Settings,
    /// Objects of cert-manager, before objects that get a CA bundle.
    Certificates,
    /// Webhook configurations and quotas: from here on, writes depend on the provider.
    Webhooks,
    /// Workloads.
    Workloads,
    /// Objects of the provider's own kinds: its webhooks may have to run first.
    Own,
}

impl Stage {
    /// The stage of an object of a provider that defines kinds of `own` groups.
    pub fn of(object: &Value, own: &BTreeSet<String>) -> Self {
        match (group(object), kind(object)) {
            ("", "Namespace") => Self::Namespace,
            (DEFINITIONS, "CustomResourceDefinition") => Self::Definitions,
            ("rbac.authorization.k8s.io", _) | ("", "ServiceAccount") => Self::Access,
            ("cert-manager.io", _) => Self::Certificates,
            ("admissionregistration.k8s.io", _) => Self::Webhooks,
            ("apps" | "batch", _) | ("", "Pod") => Self::Workloads,
            (group, _) if own.contains(group) => Self::Own,
            _ => Self::Settings,
        }
    }
}

/// The groups of the kinds that the objects define.
fn own_groups(objects: &[Value]) -> BTreeSet<String> {
    objects
        .iter()
        .filter(|object| is(object, DEFINITIONS, "CustomResourceDefinition"))
        .map(|definition| text(definition, &["spec", "group"]).to_owned())
        .collect()
}

/// The objects in the order in which they are applied; the order within a stage is kept.
pub fn in_order(objects: Vec<Value>) -> Vec<(Stage, Value)> {
    let own = own_groups(&objects);
    let mut staged: Vec<_> = objects
        .into_iter()
        .map(|object| (Stage::of(&object, &own), object))
        .collect();
    staged.sort_by_key(|(stage, _)| *stage);
    staged
}

/// The objects of a provider, by their treatment when it is removed.
#[derive(Debug, Default)]
pub struct Parts {
    /// The Namespace, which belongs to the users.
    pub namespace: Option<Value>,
    /// Definitions, which stay as long as objects of their kinds exist.
    pub definitions: Vec<Value>,
    /// Other cluster-scoped objects.
    pub cluster: Vec<Value>,
    /// Objects in the namespace of the provider.
    pub namespaced: Vec<Value>,
}

/// Splits objects that have been moved to their namespace.
pub fn split(objects: Vec<Value>) -> Parts {
    let mut parts = Parts::default();
    for object in objects {
        if is(&object, "", "Namespace") {
            parts.namespace = Some(object);
        } else if is(&object, DEFINITIONS, "CustomResourceDefinition") {
            parts.definitions.push(object);
        } else if crate::object::namespace(&object).is_empty() {
            parts.cluster.push(object);
        } else {
            parts.namespaced.push(object);
        }
    }
    parts
}
