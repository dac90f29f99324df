//! Between the form in which an object is stored and the one a version serves.

use bytes::Bytes;
use serde_json::{Map, Value};
use windlass_store::{Draft, Record};

use crate::error::ApiError;
use crate::object::{decode, draft};
use crate::resource::Resource;

/// How every stored object begins.
const START: &[u8] = b"{\"apiVersion\":\"";

/// Fields of core events and their names in events.k8s.io.
const EVENT_FIELDS: &[(&str, &str)] = &[
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

fn rename(object: &mut Map<String, Value>, pairs: impl Iterator<Item = (&'static str, &'static str)>) {
    for (from, to) in pairs {
        if let Some(value) = object.remove(from) {
            object.insert(to.to_owned(), value);
        }
    }
}

/// Brings an object of the served version into the stored form.
pub(crate) fn to_storage(resource: &Resource, object: &mut Value) {
    let Some(map) = object.as_object_mut() else {
        return;
    };
    if resource.converts() {
        rename(map, EVENT_FIELDS.iter().map(|(core, new)| (*new, *core)));
    }
    map.insert("apiVersion".into(), resource.storage_api_version.clone().into());
}

/// Encodes an object of the served version for the store.
pub(crate) fn stored_form(resource: &Resource, object: &Value) -> Draft {
    let version = object.get("apiVersion").and_then(Value::as_str);
    if !resource.converts() && version == Some(resource.storage_api_version.as_str()) {
        return draft(object);
    }
    let mut stored = object.clone();
    to_storage(resource, &mut stored);
    draft(&stored)
}

/// Brings a stored object into the form of the served version.
pub(crate) fn from_storage(resource: &Resource, object: &mut Value) {
    let Some(map) = object.as_object_mut() else {
        return;
    };
    if resource.converts() {
        rename(map, EVENT_FIELDS.iter().copied());
    }
    map.insert("apiVersion".into(), resource.api_version().into());
}

/// Decodes a stored object into the form of the served version.
pub(crate) fn served(resource: &Resource, record: &Record) -> Result<Value, ApiError> {
    let mut object = decode(record)?;
    from_storage(resource, &mut object);
    Ok(object)
}

/// Whether a stored object is in a version already, and where the version ends in its encoding.
fn version_in(value: &[u8], wanted: &str) -> (bool, usize) {
    let rest = value.get(START.len()..).unwrap_or_default();
    if rest.starts_with(wanted.as_bytes()) && rest.get(wanted.len()) == Some(&b'"') {
        return (true, START.len() + wanted.len());
    }
    let end = rest.iter().position(|b| *b == b'"').unwrap_or(0);
    (false, START.len() + end)
}

/// The encoding of a stored object in the served version: usually the stored bytes themselves.
pub(crate) fn served_bytes(resource: &Resource, record: &Record) -> Result<Bytes, ApiError> {
    let wanted = resource.api_version();
    if !resource.converts() && version_in(&record.value, &wanted).0 {
        return Ok(record.value.clone());
    }
    let mut out = Vec::with_capacity(record.value.len() + wanted.len());
    put_served(resource, &wanted, record, &mut out)?;
    Ok(out.into())
}

/// The same at the end of what is being written; `wanted` is the apiVersion of the resource.
pub(crate) fn put_served(
    resource: &Resource,
    wanted: &str,
    record: &Record,
    out: &mut Vec<u8>,
) -> Result<(), ApiError> {
    if resource.converts() {
        let object = served(resource, record)?;
        return serde_json::to_writer(out, &object).map_err(ApiError::internal);
    }
    let (is_wanted, end) = version_in(&record.value, wanted);
    if is_wanted {
        out.extend_from_slice(&record.value);
    } else {
        out.extend_from_slice(START);
        out.extend_from_slice(wanted.as_bytes());
        out.extend_from_slice(record.value.get(end..).unwrap_or_default());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_found_where_objects_begin() {
        let check = |value: &str, wanted: &str, is_wanted: bool, rest: &str| {
            let (is, end) = version_in(value.as_bytes(), wanted);
            assert_eq!((is, &value[end..]), (is_wanted, rest));
        };
        check(r#"{"apiVersion":"a/v1","kind":"A"}"#, "a/v1", true, r#"","kind":"A"}"#);
        check(
            r#"{"apiVersion":"a/v1","kind":"A"}"#,
            "a/v1beta1",
            false,
            r#"","kind":"A"}"#,
        );
        check(
            r#"{"apiVersion":"a/v1beta1","kind":"A"}"#,
            "a/v1",
            false,
            r#"","kind":"A"}"#,
        );
    }
}
