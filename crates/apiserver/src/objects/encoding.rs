//! Encodes objects for the store, and decodes stored objects.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use windlass_objects::metadata::{finalizers, is_deleting, meta, meta_value, text};
use windlass_store::{Draft, Header, OwnerLink, Record};

use crate::error::ApiError;

/// Decodes a stored object.
pub(crate) fn decode(record: &Record) -> Result<Value, ApiError> {
    serde_json::from_slice(&record.value).map_err(|error| unreadable(record, &error))
}

/// The encoded metadata of a stored object.
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

/// Encodes an object for the store: apiVersion first, then the other fields in order, with a gap for the revision.
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

/// Where the digits of the revision begin in an encoded object.
pub(crate) fn revision_at(value: &[u8]) -> Option<usize> {
    let mut at = 0;
    let mut depth = 0_usize;
    let mut in_metadata = false;
    while let Some(byte) = value.get(at) {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                let start = at + 1;
                let end = end_of_text(value, start)?;
                let is_name = value.get(end + 1) == Some(&b':');
                match (depth, &value[start..end]) {
                    (1, name) if is_name => in_metadata = name == b"metadata",
                    (2, b"resourceVersion") if is_name && in_metadata => return Some(end + 3),
                    _ => {}
                }
                at = end;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Where the quote is that ends a text.
fn end_of_text(value: &[u8], start: usize) -> Option<usize> {
    let mut at = start;
    loop {
        at += memchr::memchr2(b'"', b'\\', value.get(at..)?)?;
        if value[at] == b'"' {
            return Some(at);
        }
        at += 2;
    }
}

fn put_key(out: &mut Vec<u8>, key: &str) {
    // Writing JSON to memory cannot fail.
    let _ = serde_json::to_writer(&mut *out, key);
    out.push(b':');
}

fn put(out: &mut Vec<u8>, value: &Value) {
    let _ = serde_json::to_writer(out, value);
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

    #[test]
    fn the_revision_is_found_in_the_metadata_only() {
        let check = |text: &str, rest: Option<&str>| {
            let found = revision_at(text.as_bytes());
            assert_eq!(found.map(|at| &text[at..]), rest, "{text}");
        };
        check(
            r#"{"a":{"resourceVersion":"1"},"metadata":{"annotations":{"resourceVersion":"2","x":"\"resourceVersion\":\"3"},"resourceVersion":"4"}}"#,
            Some(r#"4"}}"#),
        );
        check(
            r#"{"metadata":{"name":"resourceVersion"},"spec":{"resourceVersion":"1"}}"#,
            None,
        );
        check(r#"{"metadata":{"name":"\"#, None);
        check("", None);
    }
}
