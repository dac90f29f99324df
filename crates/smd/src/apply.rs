//! Server-side apply.

use std::borrow::Cow;

use serde_json::{Map, Value};
use windlass_meta::budget::{CONFLICT_BYTES, CONFLICTS};

use crate::error::{ApplyError, Conflict, Conflicts};
use crate::field_set::FieldSet;
use crate::last_applied;
use crate::managed::{Entry, ManagedFields, Operation};
use crate::ownership::{self, Changes, Views};
use crate::request::Request;
use crate::typed::{self, View};

/// How many fields are weighed one by one against managers of other versions. Of more, none is removed.
const WEIGHED: usize = 64;

/// The result of an apply.
#[derive(Debug, Clone, PartialEq)]
pub struct Applied {
    /// The new object with its managedFields. The caller must still prune, default and validate it, and restore the parts that
    /// the request cannot change.
    pub object: Value,
    /// Whether it differs from the live object, managedFields included. If not, no write is needed.
    pub changed: bool,
}

/// Applies a configuration; with `force`, also to fields of other managers.
///
/// The returned object shares nothing with the live one. If nothing changes, it is equal to it, including the times in
/// managedFields. The caller prunes, defaults and validates it, and restores what the request cannot change.
pub fn apply(request: &Request<'_>, applied: &Value, force: bool) -> Result<Applied, ApplyError> {
    let nothing = Value::Object(Map::new());
    let live = request.live.unwrap_or(&nothing);
    let before = ManagedFields::of(live)?;
    let metadata = applied.get("metadata");
    if metadata
        .and_then(|m| m.get("managedFields"))
        .is_some_and(|v| !v.is_null())
    {
        return Err(ApplyError::ManagedFieldsSet);
    }
    check(request, applied)?;
    let mut views = Views::new(request.schema, request.api_version, request.versions);
    let mut managers = before.clone();
    if managers.entries.is_empty() && request.live.is_some() {
        adopt(request, live, &mut managers);
    }
    ownership::reconcile(&mut views, &mut managers);

    let view = View::root(request.schema);
    // Both sides keep managedFields to the end: an applied configuration has none, so they stay equal.
    let mut merged = live.clone();
    typed::merge(view, &mut merged, applied).map_err(|error| match error {
        ApplyError::Invalid(why) => ApplyError::Invalid(format!("failed to merge config: {why}")),
        other => other,
    })?;
    let mut set = typed::field_set(view, applied);
    request.scope.restrict(&mut set);
    let last = take(&mut managers, request);
    if let Some(last) = &last {
        if views.differs(&last.api_version) {
            drop_left_out_there(&views, &mut merged, last, &set, &managers);
        } else {
            drop_left_out(&views, &mut merged, last, &set, &managers);
        }
    }
    take_over(request, force, &mut views, live, &merged, &mut managers)?;
    ownership::strip_server_fields(&mut set);
    let mut object_changed = merged != *live;
    if request.manager == last_applied::MANAGER {
        let changed_before = object_changed;
        last_applied::refresh(&mut merged, applied);
        object_changed = changed_before || merged != *live;
        own(request, &mut managers, set, last, changed_before);
    } else {
        own(request, &mut managers, set, last, object_changed);
    }
    managers.sort();
    if !object_changed && managers == before && request.live.is_some() {
        return Ok(Applied {
            object: merged,
            changed: false,
        });
    }
    managers.write(&mut merged);
    Ok(Applied {
        object: merged,
        changed: true,
    })
}

/// Refuses a configuration that does not match its schema.
fn check(request: &Request<'_>, applied: &Value) -> Result<(), ApplyError> {
    let problems = typed::problems(View::root(request.schema), applied);
    if problems.is_empty() {
        return Ok(());
    }
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    let metadata = |name: &str| text(applied.get("metadata").and_then(|m| m.get(name)));
    let api_version = text(applied.get("apiVersion"));
    let slash = if api_version.contains('/') { "" } else { "/" };
    Err(ApplyError::Invalid(format!(
        "failed to create typed patch object ({}/{}; {slash}{api_version}, Kind={}): {}",
        metadata("namespace"),
        metadata("name"),
        text(applied.get("kind")),
        typed::words(&problems)
    )))
}

/// Assigns the fields of an untracked object to a separate manager at the first apply.
fn adopt(request: &Request<'_>, live: &Value, managers: &mut ManagedFields) {
    let update = Request {
        live: None,
        manager: "before-first-apply",
        ..*request
    };
    ownership::record(&update, live, managers);
}

/// Removes the entry of the applying manager and returns it.
fn take(managers: &mut ManagedFields, request: &Request<'_>) -> Option<Entry> {
    let place = managers.entries.iter().position(|entry| {
        entry.is_same_manager(
            request.manager,
            Operation::Apply,
            request.api_version,
            request.subresource,
        )
    })?;
    Some(managers.entries.remove(place))
}

/// Removes changed fields from other managers, or reports conflicts with them.
fn take_over(
    request: &Request<'_>,
    force: bool,
    views: &mut Views<'_>,
    live: &Value,
    merged: &Value,
    managers: &mut ManagedFields,
) -> Result<(), ApplyError> {
    let mut changes = Changes::new(live, merged, request.scope);
    if !force {
        let conflicts = conflicts(&mut changes, views, managers);
        if !conflicts.is_empty() {
            let yielding = (request.manager == last_applied::MANAGER)
                .then(|| last_applied::unchanged(View::root(request.schema), live, request.api_version))
                .flatten()
                .unwrap_or_default();
            let remaining = conflicts.into_iter().filter_map(|(entry, mut fields)| {
                fields.remove(&yielding);
                (!fields.is_empty()).then_some((entry, fields))
            });
            refuse(remaining)?;
        }
    }
    for entry in &mut managers.entries {
        if let Some(change) = changes.of(views, &entry.api_version) {
            entry.fields.remove(&change.taken);
            entry.fields.remove(&change.removed);
        }
    }
    Ok(())
}

fn conflicts<'m>(
    changes: &mut Changes<'_>,
    views: &mut Views<'_>,
    managers: &'m ManagedFields,
) -> Vec<(&'m Entry, FieldSet)> {
    let mut out = Vec::new();
    for entry in &managers.entries {
        if let Some(change) = changes.of(views, &entry.api_version) {
            let fields = entry.fields.intersection(&change.taken);
            if !fields.is_empty() {
                out.push((entry, fields));
            }
        }
    }
    out
}

fn refuse<'m>(conflicts: impl Iterator<Item = (&'m Entry, FieldSet)>) -> Result<(), ApplyError> {
    let mut all: Vec<(&Entry, FieldSet)> = conflicts.collect();
    all.sort_by(|(a, _), (b, _)| {
        (&a.manager, a.operation, &a.api_version, &a.subresource).cmp(&(
            &b.manager,
            b.operation,
            &b.api_version,
            &b.subresource,
        ))
    });
    let count: usize = all.iter().map(|(_, fields)| fields.len()).sum();
    if count == 0 {
        return Ok(());
    }
    let mut listed = Vec::new();
    let mut bytes = 0;
    for (entry, fields) in all {
        let manager = entry.display();
        for path in fields.paths(CONFLICTS - listed.len()) {
            bytes += manager.len() + path.len();
            // The first one always is there.
            if bytes > CONFLICT_BYTES && !listed.is_empty() {
                break;
            }
            let manager = manager.clone();
            listed.push(Conflict { manager, path });
        }
    }
    let left_out = count - listed.len();
    Err(ApplyError::Conflicts(Conflicts { listed, left_out }))
}

/// Records the manager's fields.
fn own(request: &Request<'_>, managers: &mut ManagedFields, fields: FieldSet, last: Option<Entry>, changed: bool) {
    if fields.is_empty() {
        return;
    }
    // As in Kubernetes, a change of ownership alone does not change the time, and a new entry then has none.
    let time = if changed {
        Some(request.now)
    } else {
        last.and_then(|last| last.time)
    };
    managers.entries.push(Entry {
        manager: request.manager.to_owned(),
        operation: Operation::Apply,
        api_version: request.api_version.to_owned(),
        subresource: request.subresource.to_owned(),
        time,
        fields,
    });
}

/// Removes fields that the manager owned before and no longer applies, unless another manager owns them.
fn drop_left_out(views: &Views<'_>, merged: &mut Value, last: &Entry, set: &FieldSet, managers: &ManagedFields) {
    let (view, last) = (views.of(&last.api_version), &last.fields);
    if last.is_subset(set) {
        return;
    }
    let mut managed = set.clone();
    for entry in &managers.entries {
        managed.extend(&entry.fields);
    }
    if last.is_subset(&managed) {
        return;
    }
    let last = typed::with_named(view, last);
    let managed = typed::with_named(view, &managed);
    let all = typed::with_named(view, &typed::field_set(view, merged));

    // First removes everything that the manager owned, with everything below; then restores what any manager owns.
    let mut without = merged.clone();
    typed::remove(view, &mut without, &last);
    let mut gone = all.clone();
    gone.remove(&typed::with_named(view, &typed::field_set(view, &without)));
    gone.remove(&managed);

    // Unowned fields that the manager did not own either are restored as well, if their parents still exist: for example a
    // defaulted sibling of a removed field.
    let mut without = merged.clone();
    typed::remove(view, &mut without, &gone);
    let mut gone = all;
    gone.remove(&typed::with_named(view, &typed::field_set(view, &without)));
    let gone = gone.intersection(&last);
    let mut without = merged.clone();
    typed::remove(view, &mut without, &gone);
    if !views.would_lose(managers, merged, &without) {
        *merged = without;
        return;
    }
    // A manager of another version owns, in its version, what one of the fields is there. The others go.
    if gone.len() > WEIGHED {
        return;
    }
    for field in gone.singles() {
        let mut without = merged.clone();
        typed::remove(view, &mut without, &field);
        if !views.would_lose(managers, merged, &without) {
            *merged = without;
        }
    }
}

/// [`drop_left_out`] for a manager that applied in another version before: its fields are called otherwise there. They are removed in that
/// version, and what is gone then in the version of the request is removed here, unless a manager of this version owns it.
fn drop_left_out_there(views: &Views<'_>, merged: &mut Value, last: &Entry, set: &FieldSet, managers: &ManagedFields) {
    let Some(there) = views.converted(merged, &last.api_version).map(Cow::into_owned) else {
        return;
    };
    let view = views.of(&last.api_version);
    let owned = |api_version: &str| {
        let entries = managers.entries.iter().filter(|entry| entry.api_version == api_version);
        let mut all = FieldSet::new();
        entries.for_each(|entry| all.extend(&entry.fields));
        all
    };
    let fields = |view: View<'_>, object: &Value| typed::with_named(view, &typed::field_set(view, object));
    let last_fields = typed::with_named(view, &last.fields);
    let all = fields(view, &there);
    let mut without = there.clone();
    typed::remove(view, &mut without, &last_fields);
    let mut gone = all;
    gone.remove(&fields(view, &without));
    gone.remove(&typed::with_named(view, &owned(&last.api_version)));
    // What the manager did not own either stays, if it can.
    let gone = gone.intersection(&last_fields);
    if gone.is_empty() {
        return;
    }
    let mut without = there;
    typed::remove(view, &mut without, &gone);
    let Some(back) = views.back(&without) else {
        return;
    };
    let view = views.of(views.of_request());
    let mut managed = set.clone();
    managed.extend(&owned(views.of_request()));
    let mut gone = fields(view, merged);
    gone.remove(&fields(view, &back));
    gone.remove(&typed::with_named(view, &managed));
    let mut without = merged.clone();
    typed::remove(view, &mut without, &gone);
    if !views.would_lose(managers, merged, &without) {
        *merged = without;
    }
}
