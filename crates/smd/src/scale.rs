//! Ownership of the replicas in the scale subresource, where they are `spec.replicas` with a separate apiVersion.

use crate::field_set::{Elem, FieldSet};
use crate::managed::{Entry, ManagedFields, Operation};

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
    let mut owners: Vec<&Entry> = scale.entries.iter().filter(|entry| !entry.fields.is_empty()).collect();
    let mut out = ManagedFields::default();
    for entry in &object.entries {
        let mut entry = entry.clone();
        if entry.fields.contains(&path) {
            // Updaters are identified by version: those of the scale are never those of the object.
            let same = owners
                .iter()
                .position(|owner| entry.operation == Operation::Apply && owner.is_same(&entry));
            match same {
                Some(at) => {
                    owners.remove(at);
                }
                None => entry.fields.remove(&replicas),
            }
        }
        if !entry.fields.is_empty() {
            out.entries.push(entry);
        }
    }
    for owner in owners {
        let entry = Entry {
            api_version: api_version.to_owned(),
            time: None,
            fields: replicas.clone(),
            ..owner.clone()
        };
        match out.entries.iter_mut().find(|other| other.is_same(&entry)) {
            Some(other) => other.fields.extend(&entry.fields),
            None => out.entries.push(entry),
        }
    }
    out.sort();
    out
}

fn elems(path: &[&str]) -> Vec<Elem> {
    path.iter().map(|name| Elem::field(name)).collect()
}
