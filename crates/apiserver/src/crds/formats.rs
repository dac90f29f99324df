//! Warnings about unknown formats in schemas. Pure.

use serde_json::Value;

use super::versions;
use windlass_objects::metadata::text;

/// The formats of texts that are validated, without dashes.
const TEXTS: [&str; 24] = [
    "bsonobjectid",
    "byte",
    "cidr",
    "creditcard",
    "date",
    "datetime",
    "duration",
    "email",
    "hexcolor",
    "hostname",
    "ipv4",
    "ipv6",
    "isbn",
    "isbn10",
    "isbn13",
    "mac",
    "password",
    "rgbcolor",
    "ssn",
    "uri",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
];

/// Warnings about formats that are not validated and that the old definition did not have.
pub(crate) fn warnings(crd: &Value, old: Option<&Value>) -> Vec<String> {
    let known = old.map(unknown).unwrap_or_default();
    unknown(crd)
        .into_iter()
        .filter(|format| !known.contains(format))
        .map(|format| format!("unrecognized format {}", Value::from(format)))
        .collect()
}

/// The formats that are not validated. Formats that all versions share are listed once.
fn unknown(crd: &Value) -> Vec<&str> {
    let mut out = Vec::new();
    let all = versions(crd);
    let first = all.first().and_then(|v| v.get("schema"));
    let same = all.iter().all(|v| v.get("schema") == first);
    for version in all.iter().take(if same { 1 } else { all.len() }) {
        if let Some(schema) = version.pointer("/schema/openAPIV3Schema") {
            look(schema, &mut out);
        }
    }
    out
}

fn look<'a>(schema: &'a Value, out: &mut Vec<&'a str>) {
    let Value::Object(map) = schema else { return };
    let format = text(schema, "format");
    let fine = match text(schema, "type") {
        "" | "string" => TEXTS.contains(&format.replace('-', "").as_str()),
        "integer" => matches!(format, "int32" | "int64"),
        "number" => matches!(format, "float" | "double"),
        _ => false,
    };
    if !format.is_empty() && !fine {
        out.push(format);
    }
    for name in ["items", "not", "additionalProperties"] {
        if let Some(below) = map.get(name) {
            look(below, out);
        }
    }
    for name in ["allOf", "anyOf", "oneOf"] {
        for below in map.get(name).and_then(Value::as_array).into_iter().flatten() {
            look(below, out);
        }
    }
    for below in map
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(_, below)| below)
    {
        look(below, out);
    }
}
