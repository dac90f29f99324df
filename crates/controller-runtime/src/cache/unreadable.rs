//! Objects that exist, and of which neither the present version can be decoded nor an earlier one is known. They must not count as missing:
//! their owners would replace them.

use std::collections::BTreeMap;

use super::events::Name;
use crate::object::ObjectKey;

/// The objects, each with its cluster.
#[derive(Default)]
pub(super) struct Unreadable(BTreeMap<ObjectKey, Option<ObjectKey>>);

impl Unreadable {
    /// Adds an object. A Cluster is its own cluster; other objects have a label.
    pub(super) fn add(&mut self, name: &Name, is_cluster: bool) {
        let namespace = name.key.namespace.as_str();
        let labelled = name.cluster.as_ref().map(|cluster| ObjectKey::new(namespace, cluster));
        let cluster = if is_cluster { Some(name.key.clone()) } else { labelled };
        self.0.insert(name.key.clone(), cluster);
    }

    /// Forgets an object that was decoded or deleted.
    pub(super) fn remove(&mut self, key: &ObjectKey) {
        self.0.remove(key);
    }

    /// An object of a cluster, if there is one.
    pub(super) fn of(&self, cluster: &ObjectKey) -> Option<&ObjectKey> {
        let mut all = self.0.iter();
        all.find(|(_, of)| of.as_ref() == Some(cluster)).map(|(key, _)| key)
    }
}
