//! Ownership of the replicas in the scale subresource, where they are `spec.replicas` with a separate apiVersion.

use std::collections::{BTreeMap, HashMap};

use crate::field_set::{Elem, FieldSet};
use crate::managed::{Entry, Identity, ManagedFields, Operation, last_of_each};

/// The apiVersion of scales.
const VERSION: &str = "autoscaling/v1";

/// The owners of an object's replicas (at `path`), as managers of its scale.
pub fn scale_managers(object: &ManagedFields, path: &[&str]) -> ManagedFields {
    let path = elems(path);
    let owners = object.entries.iter().filter(|entry| entry.fields.contains(&path));
    let entries = owners.map(|entry| Entry {
        api_version: VERSION.to_owned(),
        fields: FieldSet::of(&[&["spec", "replicas"]]),
        ..entry.clone()
    });
    ManagedFields {
        entries: entries.collect(),
    }
}

/// The field owners of an object after a write to its scale.
///
/// As in Kubernetes, a manager that owns the replicas by a write of the scale has no time.
pub fn object_managers(
    object: &ManagedFields,
    scale: &ManagedFields,
    path: &[&str],
    api_version: &str,
) -> ManagedFields {
    let path = elems(path);
    let mut replicas = FieldSet::new();
    replicas.insert(path.iter().cloned());
    let owners = scale.entries.iter().filter(|entry| !entry.fields.is_empty());
    let mut owners: BTreeMap<usize, &Entry> = owners.enumerate().collect();
    let appliers: HashMap<Identity<'_>, usize> = owners
        .iter()
        .filter(|(_, owner)| owner.operation == Operation::Apply)
        .map(|(at, owner)| (owner.identity(), *at))
        .collect();
    let mut out = ManagedFields::default();
    for entry in &object.entries {
        let mut entry = entry.clone();
        if entry.fields.contains(&path) {
            // Updaters are identified by version: those of the scale are never those of the object.
            let same = appliers.get(&entry.identity());
            if same.and_then(|at| owners.remove(at)).is_none() {
                entry.fields.remove(&replicas);
            }
        }
        if !entry.fields.is_empty() {
            out.entries.push(entry);
        }
    }
    let mut places: HashMap<Identity<'_>, usize> = HashMap::new();
    for (at, entry) in out.entries.iter().enumerate() {
        places.entry(entry.identity()).or_insert(at);
    }
    let mut added = Vec::new();
    let mut extended = Vec::new();
    for owner in owners.into_values() {
        let entry = Entry {
            api_version: api_version.to_owned(),
            time: None,
            fields: replicas.clone(),
            ..owner.clone()
        };
        match places.get(&entry.identity()) {
            Some(at) => extended.push(*at),
            None => added.push(entry),
        }
    }
    for at in extended {
        out.entries[at].fields.extend(&replicas);
    }
    out.entries.extend(last_of_each(added));
    out.sort();
    out
}

fn elems(path: &[&str]) -> Vec<Elem> {
    path.iter().map(|name| Elem::field(name)).collect()
}
