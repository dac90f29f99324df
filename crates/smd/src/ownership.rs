//! Field ownership after an update, and code that apply and update share.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};
use windlass_schema::Schema;

use crate::field_set::FieldSet;
use crate::managed::{Entry, ManagedFields, Operation};
use crate::request::Request;
use crate::scope::{Scope, Versions};
use crate::typed::{self, Comparison, View};

/// Computes the ownership of fields after an update or patch (anything but server-side apply), and writes it to `object`.
///
/// Added or changed fields go to the manager; removed fields leave all sets. If `object` has managedFields, they are used (an
/// empty list, or a list with one empty entry, resets them); otherwise those of the live object.
pub fn update(request: &Request<'_>, object: &mut Value) {
    let mut managers = managers_before(request, object);
    strip_managed_fields(object);
    let uid = request
        .live
        .and_then(|live| live.get("metadata"))
        .and_then(|m| m.get("uid"));
    if managers.entries.is_empty() && uid.is_some() {
        // Ownership was reset; the next apply starts it again.
        return;
    }
    record(request, object, &mut managers);
    managers.cap();
    managers.sort();
    managers.write(object);
}

fn managers_before(request: &Request<'_>, object: &Value) -> ManagedFields {
    let live = || {
        request
            .live
            .and_then(|live| ManagedFields::of(live).ok())
            .unwrap_or_default()
    };
    if !request.subresource.is_empty() {
        return live();
    }
    match object.get("metadata").and_then(|m| m.get("managedFields")) {
        None | Some(Value::Null) => live(),
        Some(Value::Array(list)) if list.is_empty() => ManagedFields::default(),
        Some(Value::Array(list)) if list.len() == 1 && list[0].as_object().is_some_and(serde_json::Map::is_empty) => {
            ManagedFields::default()
        }
        Some(list) => ManagedFields::from_value(list)
            .ok()
            .filter(|managers| !managers.entries.is_empty())
            .unwrap_or_else(live),
    }
}

pub(crate) fn strip_managed_fields(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
}

/// Gives the manager of an update the fields that changed between the live object and `object`.
pub(crate) fn record(request: &Request<'_>, object: &Value, managers: &mut ManagedFields) {
    let empty = Value::Object(serde_json::Map::new());
    let mut views = Views::new(request.schema, request.api_version, request.versions);
    reconcile(&mut views, managers);
    let mut changes = Changes::new(request.live.unwrap_or(&empty), object, request.scope);
    for entry in &mut managers.entries {
        if let Some(change) = changes.of(&mut views, &entry.api_version) {
            entry.fields.remove(&change.taken);
            entry.fields.remove(&change.removed);
        }
    }
    let mut taken = changes
        .of(&mut views, request.api_version)
        .map(|change| change.taken.clone())
        .unwrap_or_default();
    strip_server_fields(&mut taken);
    if !taken.is_empty() {
        give(managers, request, Operation::Update, taken);
    }
    managers.entries.retain(|entry| !entry.fields.is_empty());
}

fn give(managers: &mut ManagedFields, request: &Request<'_>, operation: Operation, fields: FieldSet) {
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

/// The schemas of all versions in which managers wrote, each looked up once.
pub(crate) struct Views<'a> {
    schema: Option<&'a Schema>,
    api_version: &'a str,
    versions: Versions<'a>,
    others: Vec<(String, Option<Arc<Schema>>)>,
}

impl<'a> Views<'a> {
    pub(crate) fn new(schema: Option<&'a Schema>, api_version: &'a str, versions: Versions<'a>) -> Self {
        Self {
            schema,
            api_version,
            versions,
            others: Vec::new(),
        }
    }

    /// The version of the request.
    pub(crate) fn of_request(&self) -> &'a str {
        self.api_version
    }

    /// An object of another version in the request's one; `None` if it cannot be converted.
    pub(crate) fn back(&self, object: &Value) -> Option<Value> {
        self.versions.converted(object, self.api_version).map(Cow::into_owned)
    }

    /// An object of the request's version in another one; `None` if it cannot be converted.
    pub(crate) fn converted<'v>(&self, object: &'v Value, api_version: &str) -> Option<Cow<'v, Value>> {
        if api_version == self.api_version || object.as_object().is_none_or(Map::is_empty) {
            return Some(Cow::Borrowed(object));
        }
        self.versions.converted(object, api_version)
    }

    /// Whether objects have other fields in another version.
    pub(crate) fn differs(&self, api_version: &str) -> bool {
        self.versions.converts() && api_version != self.api_version
    }

    /// Whether managers of other versions own, in their versions, what two objects of the request's version differ in: fields of the first
    /// one that are not in the second one. They do if an object cannot be converted.
    pub(crate) fn would_lose(&self, managers: &ManagedFields, whole: &Value, cut: &Value) -> bool {
        // Any number of managers may have applied in the same version. The objects are converted to it once.
        let mut owned: BTreeMap<&str, FieldSet> = BTreeMap::new();
        for entry in managers.entries.iter().filter(|entry| self.differs(&entry.api_version)) {
            owned.entry(&entry.api_version).or_default().extend(&entry.fields);
        }
        owned.into_iter().any(|(version, owned)| {
            let (Some(whole), Some(cut)) = (self.converted(whole, version), self.converted(cut, version)) else {
                return true;
            };
            let view = self.of(version);
            let mut gone = typed::with_named(view, &typed::field_set(view, &whole));
            gone.remove(&typed::with_named(view, &typed::field_set(view, &cut)));
            !gone.intersection(&owned).is_empty()
        })
    }

    /// Whether a version is served.
    fn knows(&mut self, api_version: &str) -> bool {
        if api_version == self.api_version || self.others.iter().any(|(version, _)| version == api_version) {
            return true;
        }
        match self.versions.get(api_version) {
            Ok(schema) => {
                self.others.push((api_version.to_owned(), schema));
                true
            }
            Err(_) => false,
        }
    }

    pub(crate) fn of(&self, api_version: &str) -> View<'_> {
        let other = self.others.iter().find(|(version, _)| version == api_version);
        match other.and_then(|(_, schema)| schema.as_deref()) {
            Some(schema) => View::root(Some(schema)),
            None => View::root(self.schema),
        }
    }
}

/// Drops managers of versions that are no longer served, and adapts the other sets to the current schemas.
pub(crate) fn reconcile(views: &mut Views<'_>, managers: &mut ManagedFields) {
    managers.entries.retain(|entry| views.knows(&entry.api_version));
    for entry in &mut managers.entries {
        typed::reconcile(views.of(&entry.api_version), &mut entry.fields);
    }
}

/// The change of a request in one version.
pub(crate) struct Change {
    /// Added or modified.
    pub(crate) taken: FieldSet,
    pub(crate) removed: FieldSet,
}

/// The changes of a request, by version.
pub(crate) struct Changes<'a> {
    old: &'a Value,
    new: &'a Value,
    scope: Scope,
    known: Vec<(String, Change)>,
}

impl<'a> Changes<'a> {
    pub(crate) fn new(old: &'a Value, new: &'a Value, scope: Scope) -> Self {
        Self {
            old,
            new,
            scope,
            known: Vec::new(),
        }
    }

    pub(crate) fn of(&mut self, views: &mut Views<'_>, api_version: &str) -> Option<&Change> {
        let at = self.known.iter().position(|(version, _)| version == api_version);
        let at = if let Some(at) = at {
            at
        } else {
            if !views.knows(api_version) {
                return None;
            }
            let (old, new) = if views.differs(api_version) && self.old == self.new {
                (Cow::Borrowed(self.old), Cow::Borrowed(self.new))
            } else {
                (
                    views.converted(self.old, api_version)?,
                    views.converted(self.new, api_version)?,
                )
            };
            let mut comparison = typed::compare(views.of(api_version), &old, &new);
            self.scope.restrict_comparison(&mut comparison);
            let Comparison {
                added: mut taken,
                modified,
                removed,
            } = comparison;
            taken.extend(&modified);
            self.known.push((api_version.to_owned(), Change { taken, removed }));
            self.known.len() - 1
        };
        self.known.get(at).map(|(_, change)| change)
    }
}

/// Removes the fields that the server owns, or that name the object. No manager owns them.
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
