//! Values to try the patches of a class with: those that the schemas of its variables name, and made-up ones.

use serde_json::{Map, Value, json};
use windlass_cel::Validator;

/// A value for a variable.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Example {
    /// The value.
    pub(super) value: Value,
    /// Whether it is made up: nothing in the schema says that it means anything.
    pub(super) is_made_up: bool,
}

/// The most values of an enumeration that are tried.
const MOST_VALUES: usize = 12;
/// The levels of a schema for which values are made.
const LEVELS: usize = 12;

/// Texts for schemas with a pattern or a format.
const TEXTS: [&str; 14] = [
    "example",
    "a",
    "1",
    "v1.36.0",
    "1.36.0",
    "10.0.0.1",
    "10.0.0.0/16",
    "fd00::1",
    "https://example.com",
    "example.com",
    "10s",
    "1Gi",
    "user@example.com",
    "2026-01-02T03:04:05Z",
];

/// Examples of a schema, the best first: its example, its default, the values of its enumeration, and a made-up one. All fit the schema.
pub(super) fn examples(schema: &Value) -> Vec<Example> {
    let Ok(validator) = Validator::value(schema) else {
        return Vec::new();
    };
    let mut found: Vec<Example> = Vec::new();
    for example in candidates(schema, 0) {
        let mut value = example.value.clone();
        windlass_schema::default_keeping_nulls(validator.schema(), &mut value);
        let fits = validator.validate_at("", &value, None).is_empty();
        if fits && found.iter().all(|other| other.value != example.value) {
            found.push(example);
        }
    }
    found
}

fn clean(value: &Value) -> Example {
    Example {
        value: value.clone(),
        is_made_up: false,
    }
}

fn made_up(value: impl Into<Value>) -> Example {
    Example {
        value: value.into(),
        is_made_up: true,
    }
}

fn candidates(schema: &Value, level: usize) -> Vec<Example> {
    let named = ["example", "default"].into_iter().filter_map(|name| schema.get(name));
    let listed = schema["enum"].as_array().into_iter().flatten().take(MOST_VALUES);
    let mut out: Vec<Example> = named
        .chain(listed)
        .filter(|value| !value.is_null())
        .map(clean)
        .collect();
    if level >= LEVELS {
        return out;
    }
    match schema["type"].as_str() {
        Some("boolean") => out.extend([true, false].map(|value| clean(&value.into()))),
        Some("integer" | "number") if schema["enum"].is_null() => out.extend(numbers(schema)),
        Some("string") if schema["enum"].is_null() => out.extend(texts(schema)),
        Some("array") => {
            let item = candidates(&schema["items"], level + 1).into_iter().next();
            let least = schema["minItems"].as_u64().unwrap_or(0).clamp(1, 8);
            if let Some(item) = item {
                let value = (0..least).map(|_| item.value.clone()).collect::<Vec<_>>();
                out.push(Example {
                    value: value.into(),
                    ..item
                });
            }
        }
        Some("object") => out.extend(objects(schema, level)),
        _ if schema["x-kubernetes-int-or-string"] == true => out.push(made_up(1)),
        _ => {}
    }
    out
}

fn numbers(schema: &Value) -> impl Iterator<Item = Example> {
    let bound = |name: &str| schema[name].as_i64();
    let exclusive = |name: &str| i64::from(schema[name] == true);
    let least = bound("minimum").map(|least| least.saturating_add(exclusive("exclusiveMinimum")));
    let most = bound("maximum").map(|most| most.saturating_sub(exclusive("exclusiveMaximum")));
    [least, most, Some(1), Some(0)].into_iter().flatten().map(made_up)
}

fn texts(schema: &Value) -> impl Iterator<Item = Example> {
    let least = usize::try_from(schema["minLength"].as_u64().unwrap_or(0))
        .unwrap_or(0)
        .min(256);
    let long = "example-".repeat(least / 8 + 1)[..least].to_owned();
    TEXTS.iter().map(|text| (*text).to_owned()).chain([long]).map(made_up)
}

/// An object with all of its fields; if that is not allowed, one with those that it must have.
fn objects(schema: &Value, level: usize) -> Vec<Example> {
    let empty = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&empty);
    let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
    let with = |wanted: &dyn Fn(&str) -> bool| {
        let (mut fields, mut is_made_up) = (Map::new(), false);
        for (name, schema) in properties.iter().filter(|(name, _)| wanted(name)) {
            if let Some(example) = best(schema, level + 1) {
                is_made_up |= example.is_made_up;
                fields.insert(name.clone(), example.value);
            }
        }
        let value = fields.into();
        Example { value, is_made_up }
    };
    let full = with(&|_| true);
    let fits = Validator::value(schema).is_ok_and(|validator| validator.validate_at("", &full.value, None).is_empty());
    let mut out = vec![full];
    if !fits {
        out.push(with(&|name| required.iter().any(|other| other == name)));
    }
    if let Some(values) = schema.get("additionalProperties").filter(|schema| schema.is_object())
        && let Some(example) = best(values, level + 1)
    {
        out.insert(0, made_up(json!({"example": example.value})));
    }
    out
}

/// The best example of a level that fits it.
fn best(schema: &Value, level: usize) -> Option<Example> {
    let validator = Validator::value(schema).ok()?;
    let fits = |example: &Example| validator.validate_at("", &example.value, None).is_empty();
    candidates(schema, level).into_iter().find(fits)
}

/// Whether a value counts as false in a condition of a Go template.
pub(super) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) => false,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_come_from_the_schema_before_they_are_made_up() {
        let check = |schema: Value, expect: &[(Value, bool)]| {
            let found: Vec<(Value, bool)> = examples(&schema).into_iter().map(|e| (e.value, e.is_made_up)).collect();
            assert_eq!(&found[..expect.len().min(found.len())], expect, "{schema}");
        };
        check(
            json!({"type": "string", "default": "a", "example": "b"}),
            &[(json!("b"), false), (json!("a"), false), (json!("example"), true)],
        );
        check(
            json!({"type": "string", "enum": ["x", "y"]}),
            &[(json!("x"), false), (json!("y"), false)],
        );
        check(
            json!({"type": "boolean"}),
            &[(json!(true), false), (json!(false), false)],
        );
        check(
            json!({"type": "string", "pattern": "^v1\\."}),
            &[(json!("v1.36.0"), true)],
        );
        check(
            json!({"type": "string", "minLength": 30}),
            &[(json!("example-example-example-exampl"), true)],
        );
        check(
            json!({"type": "integer", "minimum": 3, "exclusiveMinimum": true}),
            &[(json!(4), true)],
        );
        check(
            json!({"type": "array", "items": {"type": "string", "default": "a"}}),
            &[(json!(["a"]), false)],
        );
        check(
            json!({"type": "object", "required": ["a"], "properties": {
                "a": {"type": "integer"}, "b": {"type": "string", "example": "x"},
            }}),
            &[(json!({"a": 1, "b": "x"}), true)],
        );
        check(
            json!({"type": "object", "required": ["a"], "maxProperties": 1, "properties": {
                "a": {"type": "integer"}, "b": {"type": "string"},
            }}),
            &[(json!({"a": 1}), true)],
        );
        check(
            json!({"type": "object", "additionalProperties": {"type": "boolean"}}),
            &[(json!({"example": true}), true)],
        );
        check(json!({"x-kubernetes-preserve-unknown-fields": true}), &[]);
        assert_eq!(examples(&json!({"type": "string", "pattern": "^impossible$"})), []);
    }
}
