//! Identities of objects.

use std::fmt;

use serde::Serialize;
use serde_json::Value;
use windlass_controller_runtime::{GroupKind, ObjectKey};

pub(crate) use windlass_topology::model::text;

/// An object, whatever its version.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Id {
    /// Kind.
    pub kind: String,
    /// API group.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Namespace.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl Id {
    /// The identity of an object.
    pub(crate) fn of(object: &Value) -> Self {
        let (group, _) = text(object, "/apiVersion").split_once('/').unwrap_or_default();
        Self {
            kind: text(object, "/kind").to_owned(),
            group: group.to_owned(),
            namespace: text(object, "/metadata/namespace").to_owned(),
            name: text(object, "/metadata/name").to_owned(),
        }
    }

    pub(crate) fn group_kind(&self) -> GroupKind {
        GroupKind::new(self.group.as_str(), self.kind.as_str())
    }

    pub(crate) fn key(&self) -> ObjectKey {
        ObjectKey::new(self.namespace.as_str(), self.name.as_str())
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.name)
    }
}

/// The Cluster of an object, by its label; a Cluster is its own.
pub(crate) fn cluster_of(object: &Value) -> Option<ObjectKey> {
    let namespace = text(object, "/metadata/namespace");
    let is_cluster = text(object, "/kind") == "Cluster" && text(object, "/apiVersion").starts_with("cluster.x-k8s.io/");
    let name = if is_cluster {
        text(object, "/metadata/name")
    } else {
        let labels = object.pointer("/metadata/labels")?;
        labels.get(windlass_api::labels::CLUSTER_NAME)?.as_str()?
    };
    Some(ObjectKey::new(namespace, name))
}
