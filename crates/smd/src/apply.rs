//! Server-side apply.

use jiff::Timestamp;
use serde_json::{Map, Value};
use windlass_schema::Schema;

use crate::error::{ApplyError, Conflict, Conflicts};
use crate::field_set::FieldSet;
use crate::managed::{Entry, ManagedFields, Operation};
use crate::ownership::{self, Scope, Update};
use crate::typed::{self, Emptied, View};

/// A server-side apply request.
#[derive(Debug, Clone, Copy)]
pub struct Apply<'a> {
    /// The schema of the kind, if there is one.
    pub schema: Option<&'a Schema>,
    /// The object as it is, with its managedFields; `None` if it does not exist.
    pub live: Option<&'a Value>,
    /// The applied configuration.
    pub applied: &'a Value,
    /// Who applies.
    pub manager: &'a str,
    /// The API version of the request.
    pub api_version: &'a str,
    /// The subresource of the request; empty for the main resource.
    pub subresource: &'a str,
    /// What the request can change.
    pub scope: Scope,
    /// Whether to take fields from other managers.
    pub force: bool,
    /// The time of the request.
    pub now: Timestamp,
}

/// What an apply leads to.
#[derive(Debug, Clone, PartialEq)]
pub struct Applied {
    /// The new object with its managedFields: not yet pruned, defaulted, validated.
    pub object: Value,
    /// Whether it differs from the live one, managedFields included. If not, nothing need be written.
    pub changed: bool,
}

/// Applies a configuration.
///
/// The object given back shares nothing with the live one; where nothing changes it is equal to it, managedFields with their
/// times included. The caller prunes, defaults and validates it.
pub fn apply(request: &Apply<'_>) -> Result<Applied, ApplyError> {
    let view = View::root(request.schema);
    if request
        .applied
        .get("metadata")
        .and_then(|m| m.get("managedFields"))
        .is_some_and(|v| !v.is_null())
    {
        return Err(ApplyError::ManagedFieldsSet);
    }
    typed::check(view, request.applied)?;
    let nothing = Value::Object(Map::new());
    let live = request.live.unwrap_or(&nothing);
    let mut managers = ManagedFields::of(live)?;
    let before = managers.clone();
    if managers.entries.is_empty() && request.live.is_some() {
        adopt(request, live, &mut managers);
    }

    // Both sides keep managedFields to the end: an applied configuration has none, so they stay equal.
    let mut merged = live.clone();
    merge_in_scope(view, request, &mut merged)?;
    let mut set = in_scope_set(view, request);
    let last = take(&mut managers, request);
    if let Some(last) = &last {
        drop_left_out(view, &mut merged, &last.fields, &set, &managers);
    }

    let mut comparison = typed::compare(view, live, &merged);
    request.scope.restrict_comparison(&mut comparison);
    let mut changed = comparison.added;
    changed.extend(&comparison.modified);
    if !request.force {
        check_conflicts(&managers, &changed)?;
    }
    for entry in &mut managers.entries {
        entry.fields.remove(&changed);
        entry.fields.remove(&comparison.removed);
    }
    ownership::strip_server_fields(&mut set);
    let object_changed = merged != *live;
    if !set.is_empty() {
        // As in Kubernetes, ownership alone does not move the time, and has none if it is new.
        let time = if object_changed {
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
            fields: set,
        });
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

/// Fields of objects that were never tracked belong to a manager of their own from the first apply on.
fn adopt(request: &Apply<'_>, live: &Value, managers: &mut ManagedFields) {
    let update = Update {
        schema: request.schema,
        live: None,
        manager: "before-first-apply",
        api_version: request.api_version,
        subresource: request.subresource,
        scope: request.scope,
        now: request.now,
    };
    ownership::record(&update, live, managers);
}

fn merge_in_scope(view: View<'_>, request: &Apply<'_>, merged: &mut Value) -> Result<(), ApplyError> {
    if request.scope == Scope::All {
        return typed::merge(view, merged, request.applied);
    }
    let Value::Object(fields) = request.applied else {
        return Ok(());
    };
    let Value::Object(target) = merged else {
        return Ok(());
    };
    for (name, child) in fields {
        if request.scope.covers(name) {
            let there = target.entry(name.clone()).or_insert(Value::Null);
            typed::merge(view.field(name), there, child)?;
        }
    }
    Ok(())
}

fn in_scope_set(view: View<'_>, request: &Apply<'_>) -> FieldSet {
    let mut set = typed::field_set(view, request.applied);
    request.scope.restrict(&mut set);
    set
}

/// Takes out the entry of the applying manager.
fn take(managers: &mut ManagedFields, request: &Apply<'_>) -> Option<Entry> {
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

/// Removes what the manager owned before and now leaves out, unless somebody else owns it.
fn drop_left_out(view: View<'_>, merged: &mut Value, last: &FieldSet, set: &FieldSet, managers: &ManagedFields) {
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

    // First everything the manager owned goes, with all below; then whatever somebody owns comes back.
    let mut without = merged.clone();
    typed::remove(view, &mut without, &last, Emptied::Null);
    let mut gone = all.clone();
    gone.remove(&typed::with_named(view, &typed::field_set(view, &without)));
    gone.remove(&managed);

    // What nobody owns but the manager did not own either comes back too, where its surroundings still stand.
    let mut without = merged.clone();
    typed::remove(view, &mut without, &gone, Emptied::Null);
    let mut gone = all;
    gone.remove(&typed::with_named(view, &typed::field_set(view, &without)));
    typed::remove(view, merged, &gone.intersection(&last), Emptied::Stays);
}

fn check_conflicts(managers: &ManagedFields, changed: &FieldSet) -> Result<(), ApplyError> {
    let mut conflicts = Vec::new();
    for entry in &managers.entries {
        let manager = entry.display();
        let fields = entry.fields.intersection(changed);
        conflicts.extend(fields.paths().into_iter().map(|path| Conflict {
            manager: manager.clone(),
            path,
        }));
    }
    if conflicts.is_empty() {
        return Ok(());
    }
    conflicts.sort_by(|a, b| a.manager.cmp(&b.manager));
    Err(ApplyError::Conflicts(Conflicts(conflicts)))
}
