//! Between the form in which an object is stored and the one a version serves.

use bytes::Bytes;
use serde_json::{Map, Value};
use windlass_store::Record;

use crate::error::ApiError;
use crate::object::decode;
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

/// The encoding of a stored object in the served version: usually the stored bytes themselves.
pub(crate) fn served_bytes(resource: &Resource, record: &Record) -> Result<Bytes, ApiError> {
    if resource.converts() {
        let object = served(resource, record)?;
        return serde_json::to_vec(&object).map(Bytes::from).map_err(ApiError::internal);
    }
    let want = resource.api_version();
    let value = &record.value;
    let rest = value.get(START.len()..).unwrap_or_default();
    if rest.starts_with(want.as_bytes()) && rest.get(want.len()) == Some(&b'"') {
        return Ok(value.clone());
    }
    let end = rest.iter().position(|b| *b == b'"').unwrap_or(0);
    let mut out = Vec::with_capacity(value.len() + want.len());
    out.extend_from_slice(START);
    out.extend_from_slice(want.as_bytes());
    out.extend_from_slice(&rest[end..]);
    Ok(out.into())
}
