//! Reading and writing the parts of an object that every kind has, and encoding it for the store.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use windlass_store::{Draft, Header, OwnerLink, Record};

use crate::error::ApiError;

/// The text of a top-level field.
pub(crate) fn text<'a>(object: &'a Value, key: &str) -> &'a str {
    object.get(key).and_then(Value::as_str).unwrap_or("")
}

/// The text of a metadata field.
pub(crate) fn meta<'a>(object: &'a Value, key: &str) -> &'a str {
    object
        .get("metadata")
        .and_then(|m| m.get(key))
        .and_then(Value::as_str)
        .unwrap_or("")
}

/// The metadata, made if missing.
pub(crate) fn meta_mut(object: &mut Value) -> &mut Map<String, Value> {
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    let map = object.as_object_mut();
    let slot = match map {
        Some(map) => map.entry("metadata").or_insert_with(|| Value::Object(Map::new())),
        None => unreachable!("made an object above"),
    };
    if !slot.is_object() {
        *slot = Value::Object(Map::new());
    }
    match slot {
        Value::Object(map) => map,
        _ => unreachable!("made an object above"),
    }
}

/// Sets or, with `None`, removes a metadata field.
pub(crate) fn set_meta(object: &mut Value, key: &str, value: Option<Value>) {
    let meta = meta_mut(object);
    match value {
        Some(value) => {
            meta.insert(key.to_owned(), value);
        }
        None => {
            meta.remove(key);
        }
    }
}

/// A metadata field.
pub(crate) fn meta_value<'a>(object: &'a Value, key: &str) -> Option<&'a Value> {
    object.get("metadata")?.get(key).filter(|v| !v.is_null())
}

/// The finalizers.
pub(crate) fn finalizers(object: &Value) -> Vec<&str> {
    strings(meta_value(object, "finalizers"))
}

/// Texts of a list.
pub(crate) fn strings(value: Option<&Value>) -> Vec<&str> {
    value
        .and_then(Value::as_array)
        .map(|a| a.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default()
}

/// Whether deletion was asked for.
pub(crate) fn is_deleting(object: &Value) -> bool {
    meta_value(object, "deletionTimestamp").is_some()
}

/// The generation, 0 when there is none.
pub(crate) fn generation(object: &Value) -> i64 {
    meta_value(object, "generation").and_then(Value::as_i64).unwrap_or(0)
}

/// Decodes a stored object.
pub(crate) fn decode(record: &Record) -> Result<Value, ApiError> {
    serde_json::from_slice(&record.value).map_err(|error| unreadable(record, &error))
}

/// The metadata of a stored object, as it is encoded.
pub(crate) fn raw_metadata(record: &Record) -> Result<&RawValue, ApiError> {
    #[derive(Deserialize)]
    struct Shallow<'a> {
        #[serde(borrow)]
        metadata: &'a RawValue,
    }
    let found: Result<Shallow<'_>, _> = serde_json::from_slice(&record.value);
    found
        .map(|object| object.metadata)
        .map_err(|error| unreadable(record, &error))
}

fn unreadable(record: &Record, error: &serde_json::Error) -> ApiError {
    ApiError::internal(format!("stored object {:?} is unreadable: {error}", record.key))
}

fn header(object: &Value) -> Header {
    let labels = meta_value(object, "labels").and_then(Value::as_object);
    let owners = meta_value(object, "ownerReferences").and_then(Value::as_array);
    Header {
        uid: meta(object, "uid").into(),
        labels: labels
            .map(|l| {
                l.iter()
                    .filter_map(|(k, v)| Some((k.as_str().into(), v.as_str()?.into())))
                    .collect()
            })
            .unwrap_or_default(),
        owners: owners
            .map(|o| {
                o.iter()
                    .map(|r| OwnerLink {
                        uid: text(r, "uid").into(),
                        blocks: r.get("blockOwnerDeletion") == Some(&Value::Bool(true)),
                    })
                    .collect()
            })
            .unwrap_or_default(),
        finalizers: finalizers(object).into_iter().map(Into::into).collect(),
        deleting: is_deleting(object),
    }
}

/// Encodes an object for the store: apiVersion first, then the rest in order, with a gap for the revision.
pub(crate) fn draft(object: &Value) -> Draft {
    let mut out = Vec::with_capacity(1024);
    out.extend_from_slice(b"{\"apiVersion\":");
    put(&mut out, object.get("apiVersion").unwrap_or(&Value::Null));
    let mut rv_at = 0;
    let empty = Map::new();
    for (key, value) in object.as_object().unwrap_or(&empty) {
        match key.as_str() {
            "apiVersion" => {}
            "metadata" => {
                out.extend_from_slice(b",\"metadata\":");
                rv_at = put_metadata(&mut out, value.as_object().unwrap_or(&empty));
            }
            _ => {
                out.push(b',');
                put_key(&mut out, key);
                put(&mut out, value);
            }
        }
    }
    out.push(b'}');
    Draft {
        header: header(object),
        value: out,
        rv_at: u32::try_from(rv_at).unwrap_or(u32::MAX),
    }
}

fn put_metadata(out: &mut Vec<u8>, metadata: &Map<String, Value>) -> usize {
    const RV: &str = "resourceVersion";
    let mut rv_at = 0;
    let mut first = true;
    let mut separate = |out: &mut Vec<u8>| {
        out.push(if first { b'{' } else { b',' });
        first = false;
    };
    let mut gap = |out: &mut Vec<u8>, separate: &mut dyn FnMut(&mut Vec<u8>)| {
        separate(out);
        out.extend_from_slice(b"\"resourceVersion\":\"");
        rv_at = out.len();
        out.push(b'"');
    };
    let mut done = false;
    for (key, value) in metadata {
        if !done && key.as_str() >= RV {
            gap(out, &mut separate);
            done = true;
        }
        if key != RV {
            separate(out);
            put_key(out, key);
            put(out, value);
        }
    }
    if !done {
        gap(out, &mut separate);
    }
    out.push(b'}');
    rv_at
}

fn put_key(out: &mut Vec<u8>, key: &str) {
    // Writing JSON to memory cannot fail.
    let _ = serde_json::to_writer(&mut *out, key);
    out.push(b':');
}

fn put(out: &mut Vec<u8>, value: &Value) {
    let _ = serde_json::to_writer(out, value);
}

/// A timestamp as Kubernetes writes it: whole seconds, UTC.
pub(crate) fn seconds(time: jiff::Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(object: &Value, want: &str) {
        let draft = draft(object);
        let at = draft.rv_at as usize;
        let mut bytes = draft.value.clone();
        bytes.splice(at..at, b"42".iter().copied());
        assert_eq!(String::from_utf8(bytes).unwrap(), want);
    }

    #[test]
    fn encodes_with_a_gap_for_the_revision() {
        check(
            &json!({"kind": "A", "apiVersion": "v1", "Z": 1, "metadata": {"name": "n", "uid": "u"}}),
            r#"{"apiVersion":"v1","Z":1,"kind":"A","metadata":{"name":"n","resourceVersion":"42","uid":"u"}}"#,
        );
        check(
            &json!({"apiVersion": "v1", "metadata": {"name": "n", "resourceVersion": "9"}}),
            r#"{"apiVersion":"v1","metadata":{"name":"n","resourceVersion":"42"}}"#,
        );
        check(
            &json!({"apiVersion": "v1", "metadata": {}}),
            r#"{"apiVersion":"v1","metadata":{"resourceVersion":"42"}}"#,
        );
    }
}
