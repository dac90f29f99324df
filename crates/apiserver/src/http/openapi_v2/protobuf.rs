//! The protobuf form of an OpenAPI v2 document. Extensions and values of any type are encoded in it as YAML, and JSON is YAML.

use serde_json::{Map, Value};

/// A message under construction.
#[derive(Default)]
struct Message(Vec<u8>);

const VARINT: u64 = 0;
const FIXED: u64 = 1;
const BYTES: u64 = 2;

impl Message {
    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number.to_le_bytes()[0] | 0x80);
            number >>= 7;
        }
        self.0.push(number.to_le_bytes()[0]);
    }

    fn tag(&mut self, field: u64, kind: u64) {
        self.varint(field << 3 | kind);
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.tag(field, BYTES);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn text(&mut self, field: u64, text: &str) {
        self.bytes(field, text.as_bytes());
    }

    fn boolean(&mut self, field: u64, value: bool) {
        self.tag(field, VARINT);
        self.varint(u64::from(value));
    }

    fn inner(&mut self, field: u64, message: &Self) {
        self.bytes(field, &message.0);
    }

    /// Writes a name and a message, the form of map entries.
    fn named(&mut self, field: u64, name: &str, value: &Self) {
        let mut entry = Self::default();
        entry.text(1, name);
        entry.inner(2, value);
        self.inner(field, &entry);
    }

    /// Writes all keys that begin with `x-`.
    fn extensions(&mut self, field: u64, object: &Map<String, Value>) {
        for (key, value) in object.iter().filter(|(key, _)| key.starts_with("x-")) {
            self.named(field, key, &any(value));
        }
    }
}

fn any(value: &Value) -> Message {
    let mut out = Message::default();
    out.text(2, &value.to_string());
    out
}

fn wrap(field: u64, message: &Message) -> Message {
    let mut out = Message::default();
    out.inner(field, message);
    out
}

fn entries<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = (&'a String, &'a Value)> + use<'a> {
    value.get(key).and_then(Value::as_object).into_iter().flatten()
}

/// Encodes a document.
pub(super) fn encode(document: &Value) -> Vec<u8> {
    let mut out = Message::default();
    out.text(1, document["swagger"].as_str().unwrap_or("2.0"));
    let mut info = Message::default();
    info.text(1, document["info"]["title"].as_str().unwrap_or(""));
    info.text(2, document["info"]["version"].as_str().unwrap_or(""));
    out.inner(2, &info);
    let mut paths = Message::default();
    for (path, item) in entries(document, "paths") {
        paths.named(2, path, &path_item(item));
    }
    out.inner(8, &paths);
    let mut definitions = Message::default();
    for (name, definition) in entries(document, "definitions") {
        definitions.named(1, name, &schema(definition));
    }
    out.inner(9, &definitions);
    out.0
}

fn path_item(item: &Value) -> Message {
    let mut out = Message::default();
    for (field, method) in [(2, "get"), (3, "put"), (4, "post"), (5, "delete"), (8, "patch")] {
        if let Some(Value::Object(found)) = item.get(method) {
            out.inner(field, &operation(found));
        }
    }
    out
}

fn operation(operation: &Map<String, Value>) -> Message {
    let mut out = Message::default();
    for parameter in operation
        .get("parameters")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let mut query = Message::default();
        for (field, key) in [(2, "in"), (4, "name"), (6, "type")] {
            query.text(field, parameter[key].as_str().unwrap_or(""));
        }
        query.boolean(20, parameter["uniqueItems"] == Value::Bool(true));
        // A query parameter is nested in two choices: non-body parameter, and parameter.
        out.inner(8, &wrap(1, &wrap(2, &wrap(3, &query))));
    }
    let mut responses = Message::default();
    for (code, answer) in operation
        .get("responses")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        let mut response = Message::default();
        response.text(1, answer["description"].as_str().unwrap_or(""));
        response.inner(2, &wrap(1, &schema(&answer["schema"])));
        responses.named(1, code, &wrap(1, &response));
    }
    out.inner(9, &responses);
    out.extensions(13, operation);
    out
}

fn schema(schema: &Value) -> Message {
    let mut out = Message::default();
    let Value::Object(map) = schema else {
        return out;
    };
    for (key, value) in map {
        keyword(&mut out, key, value);
    }
    out.extensions(31, map);
    out
}

fn keyword(out: &mut Message, key: &str, value: &Value) {
    match (key, value) {
        ("$ref", Value::String(text)) => out.text(1, text),
        ("format", Value::String(text)) => out.text(2, text),
        ("title", Value::String(text)) => out.text(3, text),
        ("description", Value::String(text)) => out.text(4, text),
        ("pattern", Value::String(text)) => out.text(13, text),
        ("default", value) => out.inner(5, &any(value)),
        ("type", Value::String(text)) => {
            let mut kind = Message::default();
            kind.text(1, text);
            out.inner(22, &kind);
        }
        ("items", value) => out.inner(23, &wrap(1, &self::schema(value))),
        ("properties", Value::Object(properties)) => {
            let mut all = Message::default();
            for (name, property) in properties {
                all.named(1, name, &self::schema(property));
            }
            out.inner(25, &all);
        }
        ("additionalProperties", Value::Bool(allowed)) => {
            let mut item = Message::default();
            item.boolean(2, *allowed);
            out.inner(21, &item);
        }
        ("additionalProperties", value) => out.inner(21, &wrap(1, &self::schema(value))),
        ("required", Value::Array(names)) => {
            for name in names.iter().filter_map(Value::as_str) {
                out.text(19, name);
            }
        }
        ("enum", Value::Array(values)) => {
            for value in values {
                out.inner(20, &any(value));
            }
        }
        (_, Value::Bool(flag)) => {
            if let Some(field) = match key {
                "exclusiveMaximum" => Some(8),
                "exclusiveMinimum" => Some(10),
                "uniqueItems" => Some(16),
                _ => None,
            } {
                out.boolean(field, *flag);
            }
        }
        (_, Value::Number(_)) => number(out, key, value),
        _ => {}
    }
}

fn number(out: &mut Message, key: &str, value: &Value) {
    let double = match key {
        "multipleOf" => Some(6),
        "maximum" => Some(7),
        "minimum" => Some(9),
        _ => None,
    };
    if let (Some(field), Some(number)) = (double, value.as_f64()) {
        out.tag(field, FIXED);
        out.0.extend_from_slice(&number.to_le_bytes());
    }
    let whole = match key {
        "maxLength" => Some(11),
        "minLength" => Some(12),
        "maxItems" => Some(14),
        "minItems" => Some(15),
        "maxProperties" => Some(17),
        "minProperties" => Some(18),
        _ => None,
    };
    if let (Some(field), Some(number)) = (whole, value.as_u64()) {
        out.tag(field, VARINT);
        out.varint(number);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn operations_are_written_by_method() {
        let check = |method: &str, expect: &[u8]| assert_eq!(path_item(&json!({method: {}})).0, expect, "{method}");
        check("get", b"\x12\x02\x4a\0");
        check("put", b"\x1a\x02\x4a\0");
        check("post", b"\x22\x02\x4a\0");
        check("delete", b"\x2a\x02\x4a\0");
        check("patch", b"\x42\x02\x4a\0");
        let query = json!({"parameters": [{"name": "n", "in": "query", "type": "string", "uniqueItems": true}]});
        let Value::Object(query) = query else { unreachable!() };
        let expect = b"\x42\x1b\x0a\x19\x12\x17\x1a\x15\x12\x05query\x22\x01n\x32\x06string\xa0\x01\x01\x4a\0";
        assert_eq!(operation(&query).0, expect);
    }

    #[test]
    fn schemas_are_written_field_by_field() {
        let check = |value: Value, expect: &[u8]| assert_eq!(schema(&value).0, expect, "{value}");
        check(json!({"format": "x"}), b"\x12\x01x");
        check(json!({"type": "y"}), b"\xb2\x01\x03\x0a\x01y");
        check(json!({"minLength": 300}), b"\x60\xac\x02");
        check(json!({"minimum": 1}), b"\x49\0\0\0\0\0\0\xf0\x3f");
        check(json!({"items": {"format": "x"}}), b"\xba\x01\x05\x0a\x03\x12\x01x");
        check(
            json!({"properties": {"p": {"format": "x"}}}),
            b"\xca\x01\x0a\x0a\x08\x0a\x01p\x12\x03\x12\x01x",
        );
        check(json!({"additionalProperties": true}), b"\xaa\x01\x02\x10\x01");
        check(json!({"x-y": 1}), b"\xfa\x01\x0a\x0a\x03x-y\x12\x03\x12\x011");
        check(json!({"unknown": "z"}), b"");
    }
}
