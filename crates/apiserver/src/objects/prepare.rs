//! Fields that the server sets in a written object. Pure: time and names are parameters.

use std::collections::HashMap;

use serde_json::{Map, Value};
use windlass_schema::{FieldError, FieldErrors};

use crate::codec::go_wording::{json_type, unregistered};
use crate::error::ApiError;
use crate::objects::fresh::Fresh;
use crate::objects::resource::Resource;
use windlass_builtin_kinds::Special;
use windlass_objects::Part;
use windlass_objects::metadata::{generation, is_deleting, meta, meta_mut, meta_value, seconds, set_meta, text};

/// The error if the namespaces of object and path differ.
pub(crate) const OTHER_NAMESPACE: &str =
    "the namespace of the provided object does not match the namespace sent on the request";

/// Checks that kind and namespace of the object match the path; fills in the namespace.
pub(crate) fn check_place(
    resource: &Resource,
    object: &mut Value,
    namespace: &str,
    name: Option<&str>,
) -> Result<(), ApiError> {
    if !object.is_object() {
        return Err(ApiError::bad_request("the object must be a JSON object"));
    }
    if let Some(odd) = object.get("metadata").filter(|m| !m.is_object() && !m.is_null()) {
        let kind = &resource.kind;
        return Err(ApiError::bad_request(format!(
            "{kind} in version \"{}\" cannot be handled as a {kind}: json: cannot unmarshal {} into Go struct field {kind}.metadata of type v1.ObjectMeta",
            resource.version,
            json_type(odd),
        )));
    }
    let want = resource.api_version();
    let (version, kind) = (text(object, "apiVersion"), text(object, "kind"));
    if version != want && (resource.is_custom() || is_other_version(resource, object)) {
        return Err(ApiError::bad_request(format!(
            "the API version in the data ({version}) does not match the expected API version ({want})"
        )));
    }
    if resource.is_custom() {
        if kind != resource.kind {
            return Err(other_kind(resource, object));
        }
    } else if let Some(why) = foreign(resource, object) {
        let kind = if kind.is_empty() { &resource.kind } else { kind };
        let version = version
            .rsplit('/')
            .next()
            .filter(|v| !v.is_empty())
            .unwrap_or(&resource.version);
        return Err(ApiError::bad_request(format!(
            "{kind} in version \"{version}\" cannot be handled as a {}: {why}",
            resource.kind
        )));
    }
    if let Some(map) = object.as_object_mut() {
        map.insert("apiVersion".into(), want.into());
        map.insert("kind".into(), resource.kind.clone().into());
    }
    let have = meta(object, "namespace");
    if resource.namespaced {
        if !have.is_empty() && have != namespace {
            return Err(ApiError::bad_request(OTHER_NAMESPACE));
        }
        set_meta(object, "namespace", Some(namespace.into()));
    } else {
        // The namespace of a cluster-scoped object is dropped, as in Kubernetes.
        set_meta(object, "namespace", None);
    }
    if let Some(name) = name {
        if meta(object, "name").is_empty() {
            set_meta(object, "name", Some(name.into()));
        }
        check_name(object, name)?;
    }
    tidy_metadata(object);
    Ok(())
}

/// The error for a custom object of another kind than its resource's.
pub(crate) fn other_kind(resource: &Resource, object: &Value) -> ApiError {
    let kind = text(object, "kind");
    let why = FieldError::invalid("kind", kind.into(), format!("must be {}", resource.kind));
    ApiError::invalid(&resource.group, kind, meta(object, "name"), &[why])
}

/// Whether an object is of the kind of a built-in resource, in another version.
fn is_other_version(resource: &Resource, object: &Value) -> bool {
    let (version, kind) = (text(object, "apiVersion"), text(object, "kind"));
    kind == resource.kind
        && crate::builtin::resources()
            .iter()
            .any(|r| r.storage == resource.storage && r.api_version() == version)
}

/// The error for an object of another kind than the built-in resource's.
pub(crate) fn foreign(resource: &Resource, object: &Value) -> Option<String> {
    if resource.is_custom() {
        return None;
    }
    let want = resource.api_version();
    let (version, kind) = (text(object, "apiVersion"), text(object, "kind"));
    let version = if version.is_empty() { want } else { version };
    let kind = if kind.is_empty() { &resource.kind } else { kind };
    if version == want && kind == resource.kind {
        return None;
    }
    let known = crate::builtin::resources()
        .iter()
        .find(|r| r.kind == kind && r.api_version() == version);
    Some(match known {
        Some(other) => format!(
            "converting ({}.{}) to ({}.{}): unknown conversion",
            other.version,
            other.kind,
            resource.internal_package(),
            resource.kind
        ),
        None => unregistered(kind, version),
    })
}

/// Checks that the name of the object matches the path.
pub(crate) fn check_name(object: &Value, name: &str) -> Result<(), ApiError> {
    let have = meta(object, "name");
    if have.is_empty() {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({name} based on URL) was undeterminable: name must be provided"
        )));
    }
    if have != name {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({have}) does not match the name on the URL ({name})"
        )));
    }
    Ok(())
}

/// Drops fields of the metadata that Kubernetes does not write: null, empty texts, lists and maps.
pub(crate) fn tidy_metadata(object: &mut Value) {
    let meta = meta_mut(object);
    meta.remove("selfLink");
    meta.retain(|key, v| match v {
        // An empty list asks the server to reset the managers.
        _ if key == "managedFields" => true,
        Value::Null => false,
        Value::String(s) => !s.is_empty(),
        Value::Array(a) => !a.is_empty(),
        Value::Object(o) => !o.is_empty(),
        _ => true,
    });
}

/// Completes a new object.
pub(crate) fn for_create(resource: &Resource, object: &mut Value, fresh: &Fresh) -> Result<(), ApiError> {
    if !matches!(meta(object, "resourceVersion"), "" | "0") {
        return Err(ApiError::new(
            500,
            "",
            "resourceVersion should not be set on objects to be created",
        ));
    }
    if meta(object, "name").is_empty() {
        let prefix = meta(object, "generateName");
        if !prefix.is_empty() {
            const MAX_PREFIX: usize = 58;
            let end = prefix.floor_char_boundary(MAX_PREFIX);
            let name = format!("{}{}", &prefix[..end], fresh.suffix);
            set_meta(object, "name", Some(name.into()));
        }
    }
    set_meta(object, "uid", Some(fresh.uid.clone().into()));
    set_meta(object, "creationTimestamp", Some(seconds(fresh.now).into()));
    set_meta(object, "deletionTimestamp", None);
    set_meta(object, "deletionGracePeriodSeconds", None);
    set_meta(object, "resourceVersion", None);
    if resource.generation {
        set_meta(object, "generation", Some(1.into()));
    }
    let keeps_status = matches!(resource.special, Special::Crd);
    if keeps_status {
        crate::crds::initial(object);
    }
    if resource.status
        && !keeps_status
        && let Some(map) = object.as_object_mut()
    {
        // The kubelet creates a node together with its first status.
        if resource.kind != "Node" {
            map.remove("status");
        }
    }
    Ok(())
}

/// Completes a changed object from the stored one.
pub(crate) fn for_update(resource: &Resource, old: &Value, new: &mut Value, part: Part) {
    match part {
        Part::Main | Part::Scale => {
            if resource.status {
                copy_field(old, new, "status");
            }
            match resource.special {
                // The finalizers of a namespace change only through its own subresource.
                Special::Namespace => keep_hold(old, new),
                Special::Crd => crate::crds::note_storage_version(new),
                _ => {}
            }
            crate::builtin::on_update(resource, old, new, part);
        }
        Part::Status if resource.is_custom() => {
            let status = new.get("status").cloned();
            let fields = meta_value(new, "managedFields").cloned();
            *new = old.clone();
            put_field(new, "status", status);
            set_meta(new, "managedFields", fields);
        }
        Part::Status => {
            keep_all_but(old, new, &["status"]);
            if resource.kind == "Deployment" {
                set_meta(new, "labels", meta_value(old, "labels").cloned());
            }
        }
        Part::Binding => {}
        Part::Containers => {
            let wanted = new.pointer("/spec/ephemeralContainers").cloned();
            keep_all_but(old, new, &[]);
            if let Some(spec) = new.get_mut("spec") {
                put_field(spec, "ephemeralContainers", wanted);
            }
        }
        Part::Finalize => {
            let wanted = new.pointer("/spec/finalizers").cloned();
            let mut spec = old.get("spec").cloned().unwrap_or_else(|| Value::Object(Map::new()));
            put_field(
                &mut spec,
                "finalizers",
                wanted.filter(|v| v.as_array().is_some_and(|a| !a.is_empty())),
            );
            keep_all_but(old, new, &[]);
            put_field(new, "spec", Some(spec));
        }
    }
    for key in ["creationTimestamp", "generation"] {
        set_meta(new, key, meta_value(old, key).cloned());
    }
    for key in ["uid", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        // Differences are reported during validation, but a client may omit these fields.
        let stays = key == "deletionTimestamp" || meta_value(new, key).is_none();
        if stays && meta_value(old, key).is_some() {
            set_meta(new, key, meta_value(old, key).cloned());
        }
    }
    tidy_metadata(new);
    if matches!(part, Part::Main | Part::Scale | Part::Containers | Part::Binding)
        && bumps_generation(resource, old, new)
    {
        set_meta(new, "generation", Some((generation(old) + 1).into()));
    }
}

fn keep_hold(old: &Value, new: &mut Value) {
    let Some(held) = old.pointer("/spec/finalizers").cloned() else {
        return;
    };
    if !new.get("spec").is_some_and(Value::is_object) {
        put_field(new, "spec", Some(Value::Object(Map::new())));
    }
    if let Some(spec) = new.get_mut("spec") {
        put_field(spec, "finalizers", Some(held));
    }
}

fn copy_field(from: &Value, to: &mut Value, key: &str) {
    put_field(to, key, from.get(key).cloned());
}

fn put_field(object: &mut Value, key: &str, value: Option<Value>) {
    if let Some(map) = object.as_object_mut() {
        match value {
            Some(value) => {
                map.insert(key.to_owned(), value);
            }
            None => {
                map.remove(key);
            }
        }
    }
}

fn keep_all_but(old: &Value, new: &mut Value, keys: &[&str]) {
    let Some(map) = new.as_object_mut() else {
        return;
    };
    map.retain(|k, _| k == "metadata" || k == "kind" || k == "apiVersion" || keys.contains(&k.as_str()));
    for (key, value) in old.as_object().into_iter().flatten() {
        if key != "metadata" && !keys.contains(&key.as_str()) {
            map.insert(key.clone(), value.clone());
        }
    }
}

fn bumps_generation(resource: &Resource, old: &Value, new: &Value) -> bool {
    if !resource.generation {
        return false;
    }
    let counts = |key: &str| !(matches!(key, "metadata" | "apiVersion" | "kind") || key == "status" && resource.status);
    let empty = Map::new();
    let (old, new) = (old.as_object().unwrap_or(&empty), new.as_object().unwrap_or(&empty));
    old.iter()
        .filter(|(k, _)| counts(k))
        .any(|(k, v)| new.get(k) != Some(v))
        || new.keys().any(|k| counts(k) && !old.contains_key(k))
}

/// Errors of metadata fields that an update must not change.
pub(crate) fn immutable_errors(old: &Value, new: &Value) -> FieldErrors {
    let mut errors = FieldErrors::new();
    for key in [
        "name",
        "namespace",
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ] {
        let (was, is) = (meta_value(old, key), meta_value(new, key));
        if was != is {
            errors.push(FieldError::invalid(
                format!("metadata.{key}"),
                is.cloned().unwrap_or(Value::Null),
                "field is immutable",
            ));
        }
    }
    if is_deleting(old)
        && let Some(added) = windlass_objects::owners::added(old, new)
    {
        let words = format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{added}}}"
        );
        errors.push(FieldError::forbidden("metadata.finalizers", words));
    }
    errors
}

/// Whether two objects differ in more than their resourceVersion and the times of their managers.
pub(crate) fn differs(old: &Value, new: &Value) -> bool {
    let empty = Map::new();
    let (a, b) = (old.as_object().unwrap_or(&empty), new.as_object().unwrap_or(&empty));
    if a.len() != b.len() {
        return true;
    }
    a.iter().any(|(key, was)| match b.get(key) {
        None => true,
        Some(is) if key == "metadata" => metadata_differs(was, is),
        Some(is) => was != is,
    })
}

fn metadata_differs(old: &Value, new: &Value) -> bool {
    let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else {
        return old != new;
    };
    let is_same = |key: &String, was: &Value, is: &Value| match (key.as_str(), was, is) {
        // Managers are sorted by their times, so a time that changes also moves its entry.
        ("managedFields", Value::Array(was), Value::Array(is)) => is_reordered(was, is),
        _ => was == is,
    };
    !same(old, new, "resourceVersion", is_same)
}

/// Whether two lists have the same managers, in any order and with any times. The writer chooses how many there are.
fn is_reordered(was: &[Value], is: &[Value]) -> bool {
    let moved: (Vec<&Value>, Vec<&Value>) = was.iter().zip(is).filter(|(a, b)| !same_but(a, b, "time")).unzip();
    let timeless = |entry: &&Value| {
        let mut entry = (*entry).clone();
        if let Some(entry) = entry.as_object_mut() {
            entry.remove("time");
        }
        entry
    };
    let mut left: HashMap<Value, usize> = HashMap::new();
    for entry in moved.0.iter().map(timeless) {
        *left.entry(entry).or_default() += 1;
    }
    was.len() == is.len()
        && moved.1.iter().map(timeless).all(|entry| match left.get_mut(&entry) {
            Some(count) if *count > 0 => {
                *count -= 1;
                true
            }
            _ => false,
        })
}

/// Whether two maps are equal except for one key.
fn same_but(a: &Value, b: &Value, key: &str) -> bool {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => same(a, b, key, |_, a, b| a == b),
        _ => a == b,
    }
}

fn same(
    a: &Map<String, Value>,
    b: &Map<String, Value>,
    without: &str,
    equal: impl Fn(&String, &Value, &Value) -> bool,
) -> bool {
    let (mut a, mut b) = (
        a.iter().filter(|(k, _)| *k != without),
        b.iter().filter(|(k, _)| *k != without),
    );
    loop {
        match (a.next(), b.next()) {
            (None, None) => return true,
            (Some((key, was)), Some((other, is))) if key == other && equal(key, was, is) => {}
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests;
