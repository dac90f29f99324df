//! Checks of the variables that a class defines.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_cel::Validator;
use windlass_gocompat::quote::quoted;
use windlass_objects::names::{check_annotations, check_labels};
use windlass_schema::{FieldError, Reviewing};

use super::BUILTIN;
use super::check::{BUDGET, below, validated};
use crate::model::VariableClass;

/// Checks the inline variables of a class: names, schemas, and that defaults, examples and values of enumerations fit their schema.
pub fn check_class(variables: &[VariableClass]) -> Vec<FieldError> {
    let (mut errors, mut left) = (Vec::new(), BUDGET);
    let mut seen = BTreeSet::new();
    for variable in variables {
        let (name, at) = (variable.name.as_str(), format!("spec.variables[{}]", variable.name));
        let field = format!("{at}.name");
        let mut refuse = |detail: String| errors.push(FieldError::invalid(field.clone(), name.into(), detail));
        if !seen.insert(name) {
            refuse(format!(
                "variable name must be unique. Variable with name {} is defined more than once",
                quoted(name)
            ));
        }
        if name == BUILTIN {
            refuse(format!("{} is a reserved variable name", quoted(name)));
        }
        if name.contains('.') {
            refuse("variable name cannot contain \".\"".to_owned());
        }
        if name.is_empty() {
            errors.push(FieldError::required(field, "variable name must be defined"));
        }
        schema(
            &known(&variable.schema.open_api_v3_schema),
            &format!("{at}.schema.openAPIV3Schema"),
            &mut left,
            &mut errors,
        );
    }
    errors
}

fn schema(raw: &Value, at: &str, left: &mut Option<u64>, errors: &mut Vec<FieldError>) {
    let how = Reviewing {
        at,
        resource: false,
        status: false,
        known: false,
    };
    let found = windlass_cel::review(raw, &how);
    if found.is_empty() {
        samples(raw, at, left, errors);
    }
    errors.extend(found);
    metadata(raw, at, errors);
}

/// Checks the example and the values of the enumeration of each level.
fn samples(raw: &Value, at: &str, left: &mut Option<u64>, errors: &mut Vec<FieldError>) {
    let example = raw.get("example").map(|value| (format!("{at}.example"), value));
    let listed = raw.get("enum").and_then(Value::as_array).into_iter().flatten();
    let listed = listed
        .enumerate()
        .map(|(index, value)| (format!("{at}.enum[{index}]"), value));
    let samples = example.into_iter().chain(listed);
    let mut samples = samples.filter(|(_, value)| !value.is_null()).peekable();
    if samples.peek().is_some()
        && let Ok(validator) = Validator::value(raw)
    {
        for (at, value) in samples {
            let found = validated(&validator, value, None, left).into_iter();
            errors.extend(found.map(|mut error| {
                error.path = below(&at, &error.path);
                error
            }));
        }
    }
    levels_below(raw, at, &mut |raw, at| self::samples(raw, at, left, errors));
}

/// Checks labels and annotations that a schema carries.
fn metadata(raw: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let carried = &raw["x-metadata"];
    check_labels(&carried["labels"], &format!("{at}.x-metadata.labels"), errors);
    check_annotations(&carried["annotations"], &format!("{at}.x-metadata.annotations"), errors);
    levels_below(raw, at, &mut |raw, at| metadata(raw, at, errors));
}

/// Visits the schemas directly below one.
fn levels_below(raw: &Value, at: &str, visit: &mut dyn FnMut(&Value, &str)) {
    for part in ["additionalProperties", "items"] {
        if raw[part].is_object() {
            visit(&raw[part], &format!("{at}.{part}"));
        }
    }
    for (name, property) in raw["properties"].as_object().into_iter().flatten() {
        visit(property, &format!("{at}.properties[{name}]"));
    }
}

/// The keywords of a variable's schema. Others have no effect (Cluster API v1.14, `JSONSchemaProps`).
const KEYWORDS: [&str; 30] = [
    "additionalProperties",
    "allOf",
    "anyOf",
    "default",
    "description",
    "enum",
    "example",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "not",
    "oneOf",
    "pattern",
    "properties",
    "required",
    "type",
    "uniqueItems",
    "x-kubernetes-int-or-string",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
    "x-metadata",
];

/// A schema with the keywords that variables have. The CRD keeps what stands below the first level as it is.
pub(super) fn known(schema: &Value) -> Value {
    let Some(map) = schema.as_object() else {
        return schema.clone();
    };
    let all = |list: &Value| list.as_array().map(|list| list.iter().map(known).collect::<Value>());
    let mut out = serde_json::Map::new();
    for (name, value) in map.iter().filter(|(name, _)| KEYWORDS.contains(&name.as_str())) {
        let value = match name.as_str() {
            "x-kubernetes-preserve-unknown-fields" if *value != true => continue,
            "additionalProperties" | "items" | "not" => known(value),
            "allOf" | "anyOf" | "oneOf" => all(value).unwrap_or_else(|| value.clone()),
            "properties" => match value.as_object() {
                Some(map) => map.iter().map(|(name, value)| (name.clone(), known(value))).collect(),
                None => value.clone(),
            },
            _ => value.clone(),
        };
        out.insert(name.clone(), value);
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    // TO-073, TO-077, TO-081
    #[test]
    fn bad_definitions_are_refused() {
        let count = |list: Value| check_class(&serde_json::from_value::<Vec<_>>(list).unwrap()).len();
        let schema = |s: Value| json!({"openAPIV3Schema": s});
        let string = || schema(json!({"type": "string"}));
        assert_eq!(count(json!([{"name": "a", "required": true, "schema": string()}])), 0);
        for name in ["", "builtin", "a.b"] {
            assert_eq!(count(json!([{"name": name, "schema": string()}])), 1, "{name}");
        }
        assert_eq!(
            count(json!([{"name": "a", "schema": string()}, {"name": "a", "schema": string()}])),
            1
        );
        assert_eq!(
            count(json!([{"name": "a", "schema": schema(json!({"type": "date"}))}])),
            1
        );
        let wrong = schema(json!({"type": "integer", "default": "x"}));
        assert!(count(json!([{"name": "a", "schema": wrong}])) >= 1);
    }
}
