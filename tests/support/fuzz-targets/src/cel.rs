//! A CEL rule and a value, separated by a zero byte: the rule is compiled with a definition, then evaluated on the value.

use serde_json::{Value, json};
use windlass_cel::Validator;

/// Runs the target on one input; a panic is a bug in what it calls.
pub fn run(data: &[u8]) {
    let mut parts = data.splitn(2, |b| *b == 0);
    let Some(Ok(rule)) = parts.next().map(std::str::from_utf8) else {
        return;
    };
    let value = parts
        .next()
        .and_then(|text| serde_json::from_slice::<Value>(text).ok())
        .unwrap_or(json!({"a": 1, "t": "text", "l": [1, 2], "m": {"k": "v"}}));
    let schema = json!({"type": "object", "properties": {"spec": {
        "type": "object",
        "x-kubernetes-validations": [{"rule": rule, "message": "no"}],
        "properties": {
            "a": {"type": "integer"}, "t": {"type": "string", "maxLength": 20},
            "l": {"type": "array", "maxItems": 5, "items": {"type": "integer"}},
            "m": {"type": "object", "maxProperties": 5, "additionalProperties": {"type": "string", "maxLength": 9}},
        },
    }}});
    if let Ok(validator) = Validator::crd(&schema) {
        let object = json!({"spec": value});
        let _ = validator.validate(&object, None);
        let _ = validator.validate(&object, Some(&object));
    }
}
