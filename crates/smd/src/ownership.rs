//! Who owns what after an update, and what apply and update share.

use jiff::Timestamp;
use serde_json::Value;
use windlass_schema::Schema;

use crate::field_set::FieldSet;
use crate::managed::{Entry, ManagedFields, Operation};
use crate::typed::{self, Comparison, View};

/// Which part of an object a request can change: nothing else is owned through it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scope {
    /// All of it: kinds without a status subresource.
    #[default]
    All,
    /// All but `status`: the main resource of kinds with a status subresource.
    Main,
    /// Only `status`: the status subresource.
    Status,
}

impl Scope {
    /// Whether a top-level field is in scope.
    pub fn covers(self, field: &str) -> bool {
        match self {
            Self::All => true,
            Self::Main => field != "status",
            Self::Status => field == "status",
        }
    }

    pub(crate) fn restrict(self, set: &mut FieldSet) {
        if self != Self::All {
            set.nodes
                .retain(|elem, _| elem.name().is_some_and(|name| self.covers(name)));
        }
    }

    pub(crate) fn restrict_comparison(self, comparison: &mut Comparison) {
        for set in [&mut comparison.added, &mut comparison.modified, &mut comparison.removed] {
            self.restrict(set);
        }
    }
}

/// An update or patch (anything but server-side apply) that has been carried out.
#[derive(Debug, Clone, Copy)]
pub struct Update<'a> {
    /// The schema of the kind, if there is one.
    pub schema: Option<&'a Schema>,
    /// The object before; `None` for a create.
    pub live: Option<&'a Value>,
    /// Who updates.
    pub manager: &'a str,
    /// The API version of the request.
    pub api_version: &'a str,
    /// The subresource of the request; empty for the main resource.
    pub subresource: &'a str,
    /// What the request can change.
    pub scope: Scope,
    /// The time of the request.
    pub now: Timestamp,
}

/// Works out the ownership of fields after an update, and writes it into `object`.
///
/// What was added or changed goes to the manager; what was removed leaves all sets. If `object` brings its own
/// managedFields they are taken (an empty list, or a list of one empty entry, starts over); otherwise those of the live object.
/// Entries that nothing happens to are left as they are, byte for byte.
pub fn update(request: &Update<'_>, object: &mut Value) {
    let Some(mut managers) = managers_before(request, object) else {
        strip_managed_fields(object);
        return;
    };
    strip_managed_fields(object);
    let uid = request
        .live
        .and_then(|live| live.get("metadata"))
        .and_then(|m| m.get("uid"));
    if managers.entries.is_empty() && uid.is_some() {
        // Ownership was given up; it starts again with the first apply.
        return;
    }
    record(request, object, &mut managers);
    managers.cap();
    managers.sort();
    managers.write(object);
}

fn managers_before(request: &Update<'_>, object: &Value) -> Option<ManagedFields> {
    let live = || {
        request.live.map_or_else(
            || Some(ManagedFields::default()),
            |live| ManagedFields::of(live).ok().or_else(|| Some(ManagedFields::default())),
        )
    };
    if !request.subresource.is_empty() {
        return live();
    }
    match object.get("metadata").and_then(|m| m.get("managedFields")) {
        None | Some(Value::Null) => live(),
        Some(Value::Array(list)) if list.is_empty() => Some(ManagedFields::default()),
        Some(Value::Array(list)) if list.len() == 1 && list[0].as_object().is_some_and(serde_json::Map::is_empty) => {
            Some(ManagedFields::default())
        }
        Some(list) => match ManagedFields::from_value(list) {
            Ok(managers) => Some(managers),
            Err(_) => live(),
        },
    }
}

pub(crate) fn strip_managed_fields(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
}

/// Gives the manager of an update what changed between the live object and `object`.
pub(crate) fn record(request: &Update<'_>, object: &Value, managers: &mut ManagedFields) {
    let view = View::root(request.schema);
    let empty = Value::Object(serde_json::Map::new());
    let mut comparison = typed::compare(view, request.live.unwrap_or(&empty), object);
    request.scope.restrict_comparison(&mut comparison);
    let mut taken = comparison.added;
    taken.extend(&comparison.modified);
    for entry in &mut managers.entries {
        entry.fields.remove(&taken);
        entry.fields.remove(&comparison.removed);
    }
    strip_server_fields(&mut taken);
    if !taken.is_empty() {
        give(managers, request, Operation::Update, taken);
    }
    managers.entries.retain(|entry| !entry.fields.is_empty());
}

fn give(managers: &mut ManagedFields, request: &Update<'_>, operation: Operation, fields: FieldSet) {
    let found = managers
        .entries
        .iter_mut()
        .find(|entry| entry.is_same_manager(request.manager, operation, request.api_version, request.subresource));
    match found {
        Some(entry) => {
            entry.fields.extend(&fields);
            entry.time = Some(request.now);
        }
        None => managers.entries.push(Entry {
            manager: request.manager.to_owned(),
            operation,
            api_version: request.api_version.to_owned(),
            subresource: request.subresource.to_owned(),
            time: Some(request.now),
            fields,
        }),
    }
}

/// Takes out the fields that belong to the server or name the object, which nobody owns.
pub(crate) fn strip_server_fields(set: &mut FieldSet) {
    use std::sync::LazyLock;
    static STRIPPED: LazyLock<FieldSet> = LazyLock::new(|| {
        FieldSet::of(&[
            &["apiVersion"],
            &["kind"],
            &["metadata"],
            &["metadata", "name"],
            &["metadata", "namespace"],
            &["metadata", "creationTimestamp"],
            &["metadata", "selfLink"],
            &["metadata", "uid"],
            &["metadata", "clusterName"],
            &["metadata", "generation"],
            &["metadata", "managedFields"],
            &["metadata", "resourceVersion"],
        ])
    });
    set.remove(&STRIPPED);
}
