//! What to do about the objects of a definition: pure.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{FieldsV1, ManagedFieldsEntry, ObjectMeta};
use serde_json::{Value, json};
use windlass_controller_runtime::{Blocked, Gvk, Note, ObjectKey, Seen, key_of};

use super::observe::{Definition, Observed};
use super::{Phase, Phases};

/// The decision about one definition.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Plan {
    /// The definition, if there is something to do.
    pub(crate) definition: Option<Migrated>,
    /// The writes of its objects.
    pub(crate) writes: Vec<Write>,
    /// Why.
    pub(crate) notes: Vec<Note>,
    /// The obstacle.
    pub(crate) blocked: Option<Blocked>,
}

/// What is noted on a definition once all its objects are written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Migrated {
    pub(crate) name: String,
    pub(crate) uid: String,
    /// The kind of its objects, in the storage version.
    pub(crate) gvk: Gvk,
    /// Whether its status says that all objects are stored in the storage version.
    pub(crate) is_restored: bool,
    /// The generation for which that holds.
    pub(crate) generation: i64,
}

/// A write of an object that is still what was read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Write {
    pub(crate) key: ObjectKey,
    pub(crate) patch: Value,
    /// Whether another write of the object meanwhile has the same effect.
    pub(crate) yields: bool,
    /// Whether the write goes to the status. Rules for specs, which an object from before them may not obey, do not judge it then.
    pub(crate) of_status: bool,
}

impl windlass_controller_runtime::Plan for Plan {
    fn notes(&self) -> &[Note] {
        &self.notes
    }

    fn blocked(&self) -> Option<Blocked> {
        self.blocked.clone()
    }
}

/// Decides.
pub(crate) fn plan(seen: &Observed, phases: &Phases) -> Plan {
    let Observed::Due { definition, objects } = seen else {
        return Plan::default();
    };
    let blocked = |why: String| Plan {
        blocked: Some(Blocked::failed("CannotMigrate", why)),
        ..Plan::default()
    };
    let definition = match &**definition {
        Seen::Found(found) => Definition::of(found),
        // It is gone, and its objects with it.
        Seen::NotFound => return Plan::default(),
        Seen::Failed(why) => return blocked(format!("the definition cannot be read: {why}")),
    };
    let Some(definition) = definition else {
        return blocked("the definition has no storage version".to_owned());
    };
    let (kind, version) = (&definition.gvk.kind, &definition.gvk.version);
    let objects = match objects {
        Seen::Found(objects) => objects,
        Seen::NotFound => return blocked(format!("the API server does not serve {version} of {kind}")),
        Seen::Failed(why) => return blocked(format!("objects of kind {kind} cannot be read: {why}")),
    };
    let restores = definition.is_mixed() && phases.has(Phase::StorageVersionMigration);
    let mut plan = Plan::default();
    for object in objects {
        let mended = phases
            .has(Phase::CleanupManagedFields)
            .then(|| mended(object, &definition))
            .flatten();
        let (yields, managed_fields) = match mended {
            Some(entries) => (false, Some(entries)),
            None if restores => (true, None),
            None => continue,
        };
        let mut metadata = json!({"uid": object.uid, "resourceVersion": object.resource_version});
        if let Some(entries) = managed_fields {
            metadata["managedFields"] = json!(entries);
        }
        plan.writes.push(Write {
            key: key_of(object),
            patch: json!({ "metadata": metadata }),
            yields,
            of_status: yields && definition.has_status,
        });
    }
    if restores {
        let stored = definition.stored.join(", ");
        let count = objects.len();
        plan.notes.push(Note::new(format!(
            "objects of kind {kind} may be stored in {stored}: all {count} are written, so that they are stored in {version}"
        )));
    }
    let cleaned = plan.writes.iter().filter(|write| !write.yields).count();
    if cleaned > 0 {
        plan.notes.push(Note::new(format!(
            "{cleaned} objects of kind {kind} have managed fields of versions that are not served: these go"
        )));
    }
    plan.definition = Some(Migrated {
        name: definition.name,
        uid: definition.uid,
        gvk: definition.gvk,
        is_restored: restores,
        generation: definition.generation,
    });
    plan
}

/// The managed fields without those of versions that are not served; none if all are served. Without any, the next apply would find an object
/// that no client manages, and give its fields to a manager of the server's choice. So one entry stays, with a field that the next write of
/// the same manager gives up.
fn mended(object: &ObjectMeta, definition: &Definition) -> Option<Vec<ManagedFieldsEntry>> {
    let before = object.managed_fields.as_deref().unwrap_or_default();
    let is_served = |entry: &&ManagedFieldsEntry| {
        let version = entry.api_version.as_ref();
        version.is_some_and(|version| definition.served.contains(version))
    };
    let mut after: Vec<ManagedFieldsEntry> = before.iter().filter(is_served).cloned().collect();
    if after.len() == before.len() {
        return None;
    }
    if let (true, Some(first)) = (after.is_empty(), before.first()) {
        after.push(ManagedFieldsEntry {
            api_version: Some(definition.gvk.api_version()),
            fields_v1: Some(FieldsV1(json!({"f:metadata": {"f:name": {}}}))),
            fields_type: Some("FieldsV1".to_owned()),
            subresource: None,
            ..first.clone()
        });
    }
    Some(after)
}
