//! What else a rule may look at: objects beside the one that is written.
//!
//! A rule stays a pure function: it asks its [`View`]. The embedded server answers from its store. A webhook server answers from its
//! caches, notes what they do not have, reads that from the API server, and calls the rule again. What could not be read is an
//! [`Unread`]: the write is refused, and may be repeated. A rule never takes it for "there is none".

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

/// Objects that a rule asks for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Read {
    /// One object, in the version that the API server prefers.
    Object {
        /// Its API group.
        group: String,
        /// Its kind.
        kind: String,
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// The Clusters of a ClusterClass, in all namespaces.
    ClustersOf {
        /// The namespace of the class.
        namespace: String,
        /// The name of the class.
        name: String,
        /// Whether a cache that may be behind is not enough.
        exact: bool,
    },
    /// The objects of a kind in a namespace that have all of these labels.
    Labelled {
        /// Their API group.
        group: String,
        /// Their kind.
        kind: String,
        /// Their namespace.
        namespace: String,
        /// The labels.
        labels: BTreeMap<String, String>,
    },
}

/// What could not be read, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// The reason.
    pub why: String,
}

/// The objects of a read; none if there are none.
pub type Found = Vec<Arc<Value>>;

/// Objects beside the one that is written.
pub trait View: Sync {
    /// The objects of a read.
    fn read(&self, read: &Read) -> Result<Found, Unread>;
}

/// An object by its kind and key.
pub fn object(
    view: &dyn View,
    (group, kind): (&str, &str),
    namespace: &str,
    name: &str,
) -> Result<Option<Arc<Value>>, Unread> {
    let read = Read::Object {
        group: group.to_owned(),
        kind: kind.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    };
    Ok(view.read(&read)?.pop())
}

/// The objects of a kind in a namespace that have all of these labels.
pub fn labelled(
    view: &dyn View,
    (group, kind): (&str, &str),
    namespace: &str,
    labels: BTreeMap<String, String>,
) -> Result<Found, Unread> {
    view.read(&Read::Labelled {
        group: group.to_owned(),
        kind: kind.to_owned(),
        namespace: namespace.to_owned(),
        labels,
    })
}

impl fmt::Display for Read {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Object {
                kind, namespace, name, ..
            } => write!(f, "{kind} {namespace}/{name}"),
            Self::ClustersOf { namespace, name, .. } => write!(f, "the Clusters of ClusterClass {namespace}/{name}"),
            Self::Labelled {
                kind,
                namespace,
                labels,
                ..
            } => {
                let labels: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
                write!(f, "{kind} objects in {namespace} with {}", labels.join(","))
            }
        }
    }
}

/// A view of no objects at all.
#[derive(Debug)]
pub struct Nothing;

impl View for Nothing {
    fn read(&self, _: &Read) -> Result<Found, Unread> {
        Ok(Vec::new())
    }
}

/// A view of given objects, for tests and previews.
#[derive(Debug, Default)]
pub struct Objects(pub Vec<Arc<Value>>);

impl View for Objects {
    fn read(&self, read: &Read) -> Result<Found, Unread> {
        Ok(self.0.iter().filter(|object| read.includes(object)).cloned().collect())
    }
}

impl Read {
    /// Whether an object is one that this read asks for.
    pub fn includes(&self, object: &Value) -> bool {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let is_of = |group: &str, kind: &str, namespace: &str| {
            let of = text("/apiVersion").split_once('/').map_or("", |(group, _)| group);
            (of, text("/kind"), text("/metadata/namespace")) == (group, kind, namespace)
        };
        match self {
            Self::Object {
                group,
                kind,
                namespace,
                name,
            } => is_of(group, kind, namespace) && text("/metadata/name") == name,
            Self::ClustersOf { namespace, name, .. } => {
                text("/kind") == "Cluster"
                    && class_of(object).is_some_and(|class| class == (namespace.as_str(), name.as_str()))
            }
            Self::Labelled {
                group,
                kind,
                namespace,
                labels,
            } => {
                let have = &object["metadata"]["labels"];
                is_of(group, kind, namespace) && labels.iter().all(|(key, value)| have[key] == **value)
            }
        }
    }
}

/// Namespace and name of the class of a Cluster; none without a topology.
pub fn class_of(cluster: &Value) -> Option<(&str, &str)> {
    let class = cluster.pointer("/spec/topology/classRef")?;
    let name = class["name"].as_str().filter(|name| !name.is_empty())?;
    let own = cluster["metadata"]["namespace"].as_str().unwrap_or_default();
    let namespace = class["namespace"].as_str().filter(|namespace| !namespace.is_empty());
    Some((namespace.unwrap_or(own), name))
}
