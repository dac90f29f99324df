//! `cargo xtask conversions FILE`: compares our conversions with those that Cluster API's webhooks made of the same objects.
//!
//! `FILE` is gzipped, with a JSON object in each line: `in`, `out` or `error`, `from`, `to`. The order of fields inside of the annotation
//! with the hub form is of no consequence, so it is compared as JSON.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use flate2::read::GzDecoder;
use serde_json::Value;
use windlass_api_older::{DATA, OLDER, References, convert};
use windlass_manager::registry::kinds::{KINDS, KindEntry};
use windlass_meta::GroupKind;

/// The result: the text to print, and whether all are equal.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The report.
    pub(crate) text: String,
    /// Whether every conversion is as recorded.
    pub(crate) good: bool,
}

/// Kinds of the recording that are not served: containers as machines.
const SKIPPED: [&str; 4] = [
    "DockerCluster",
    "DockerClusterTemplate",
    "DockerMachine",
    "DockerMachineTemplate",
];

/// The server of the recording had all kinds in v1beta2.
struct Hubs;

impl References for Hubs {
    fn api_version(&self, kind: &GroupKind) -> Result<String, String> {
        Ok(format!("{}/v1beta2", kind.group))
    }
}

fn is_empty(value: &Value) -> bool {
    value.as_object().is_some_and(serde_json::Map::is_empty)
}

/// Drops the divisors of resource fields that Go writes as 0 where there is none.
fn drop_divisors(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if fields.get("divisor").is_some_and(|divisor| divisor == "0") {
                fields.remove("divisor");
            }
            fields.values_mut().for_each(drop_divisors);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_divisors),
        _ => {}
    }
}

/// Drops empty objects that the schema of the hub refuses (`minProperties: 1`): Go writes a structure without values as nothing, and no
/// server has such an object.
fn drop_empty(object: &mut Value, schema: &Value) {
    match object {
        Value::Object(fields) => {
            let properties = &schema["properties"];
            fields.retain(|name, value| {
                let field = properties.get(name).unwrap_or(&schema["additionalProperties"]);
                let was_empty = is_empty(value);
                drop_empty(value, field);
                let is_refused = field["minProperties"].as_u64().is_some_and(|least| least > 0);
                // What has only such objects is without values, too.
                !(is_empty(value) && (is_refused || !was_empty))
            });
        }
        Value::Array(items) => items.iter_mut().for_each(|item| drop_empty(item, &schema["items"])),
        _ => {}
    }
}

/// The object with the annotation of the hub form as JSON, without its names: those of a hub form between two older versions are not recorded.
fn comparable(mut object: Value, hub: Option<&Value>) -> Value {
    if let Some(data) = object.pointer_mut(&format!("/metadata/annotations/{}", DATA.replace('/', "~1")))
        && let Some(mut inner) = data.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok())
    {
        if let Some(schema) = hub {
            drop_empty(&mut inner, schema);
        }
        if let Some(fields) = inner.as_object_mut() {
            for name in ["apiVersion", "kind"] {
                fields.remove(name);
            }
        }
        *data = inner;
    }
    drop_divisors(&mut object);
    object
}

/// The first differences of two values.
fn differences(path: &str, ours: &Value, theirs: &Value, out: &mut Vec<String>) {
    match (ours, theirs) {
        (Value::Object(a), Value::Object(b)) => {
            let mut names: Vec<&String> = a.keys().chain(b.keys()).collect();
            names.sort();
            names.dedup();
            for name in names {
                let of = |map: &serde_json::Map<String, Value>| map.get(name).cloned().unwrap_or(Value::Null);
                differences(&format!("{path}.{name}"), &of(a), &of(b), out);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                differences(&format!("{path}[{index}]"), a, b, out);
            }
        }
        _ if ours != theirs => out.push(format!("{path}: ours {ours}, recorded {theirs}")),
        _ => {}
    }
}

/// The schemas of the hub versions, by kind.
fn hub_schemas() -> BTreeMap<String, Value> {
    let schema = |crd: &Value| {
        let versions = crd["spec"]["versions"].as_array()?;
        let hub = versions.iter().find(|version| version["storage"] == true)?;
        Some(hub["schema"]["openAPIV3Schema"].clone())
    };
    let of = |entry: &KindEntry| Some((entry.kind.to_owned(), schema(&(entry.crd)())?));
    let known = KINDS
        .iter()
        .filter(|entry| OLDER.iter().any(|older| older.kind == entry.kind));
    known.filter_map(of).collect()
}

/// Compares all lines of `file`, except for those of kinds that are not served.
pub(crate) fn run(file: &Path) -> Result<Outcome, String> {
    let schemas = hub_schemas();
    let wrong = |error: String| format!("{}: {error}", file.display());
    let opened = File::open(file).map_err(|error| wrong(error.to_string()))?;
    let (mut equal, mut bad, mut left) = (0, 0, 0);
    let mut text = String::new();
    for (number, line) in BufReader::new(GzDecoder::new(opened)).lines().enumerate() {
        let line = line.map_err(|error| wrong(error.to_string()))?;
        let row: Value = serde_json::from_str(&line).map_err(|error| wrong(error.to_string()))?;
        let field = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
        let (group, kind, to) = (field("group"), field("kind"), field("to"));
        if SKIPPED.contains(&kind.as_str()) {
            left += 1;
            continue;
        }
        if !OLDER.iter().any(|older| older.kind == kind && older.group == group) {
            return Err(wrong(format!(
                "line {}: no older version of {kind} in {group}",
                number + 1
            )));
        }
        let mut object = row["in"].clone();
        let schema = schemas.get(&kind);
        if let Some(schema) = schema
            && field("from") == "v1beta2"
        {
            drop_empty(&mut object, schema);
        }
        let bytes = serde_json::to_vec(&object).map_err(|error| wrong(error.to_string()))?;
        let ours = convert(&bytes, &format!("{group}/{to}"), &Hubs);
        let mut found = Vec::new();
        match (ours, row.get("out")) {
            (Ok(bytes), Some(theirs)) => {
                let ours: Value = serde_json::from_slice(&bytes).map_err(|error| wrong(error.to_string()))?;
                differences(
                    "",
                    &comparable(ours, schema),
                    &comparable(theirs.clone(), schema),
                    &mut found,
                );
            }
            (Ok(_), None) => found.push(format!("converted, recorded error {}", row["error"])),
            (Err(error), Some(_)) => found.push(format!("error {error}")),
            (Err(_), None) => {}
        }
        if found.is_empty() {
            equal += 1;
        } else {
            bad += 1;
            let _ = writeln!(text, "line {} {kind} {} -> {to}:", number + 1, field("from"));
            for difference in found {
                let _ = writeln!(text, "  {difference}");
            }
        }
    }
    let _ = writeln!(
        text,
        "{equal} conversions equal, {bad} different, {left} of kinds that Windlass does not have"
    );
    Ok(Outcome {
        text,
        good: bad == 0 && equal > 0,
    })
}
