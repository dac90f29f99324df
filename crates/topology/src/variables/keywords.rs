//! The keywords of a variable's schema, and the form that each of them has.
//!
//! The CRD of ClusterClasses knows only the first level of a schema: what stands below can be anything. Cluster API reads all levels as
//! `JSONSchemaProps` of v1.14. It refuses keywords of another form, and drops what it does not know.

use serde_json::{Map, Value};
use windlass_schema::FieldError;

/// The form of a keyword's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Any,
    List,
    Text,
    Texts,
    Whole,
    Flag,
    Schema,
    Schemas,
    Properties,
    Rules,
    Metadata,
}

/// The keywords. Others have no effect.
const KEYWORDS: [(&str, Form); 30] = [
    ("additionalProperties", Form::Schema),
    ("allOf", Form::Schemas),
    ("anyOf", Form::Schemas),
    ("default", Form::Any),
    ("description", Form::Text),
    ("enum", Form::List),
    ("example", Form::Any),
    ("exclusiveMaximum", Form::Flag),
    ("exclusiveMinimum", Form::Flag),
    ("format", Form::Text),
    ("items", Form::Schema),
    ("maxItems", Form::Whole),
    ("maxLength", Form::Whole),
    ("maxProperties", Form::Whole),
    ("maximum", Form::Whole),
    ("minItems", Form::Whole),
    ("minLength", Form::Whole),
    ("minProperties", Form::Whole),
    ("minimum", Form::Whole),
    ("not", Form::Schema),
    ("oneOf", Form::Schemas),
    ("pattern", Form::Text),
    ("properties", Form::Properties),
    ("required", Form::Texts),
    ("type", Form::Text),
    ("uniqueItems", Form::Flag),
    ("x-kubernetes-int-or-string", Form::Flag),
    ("x-kubernetes-preserve-unknown-fields", Form::Flag),
    ("x-kubernetes-validations", Form::Rules),
    ("x-metadata", Form::Metadata),
];

/// The fields of a rule, all of them texts.
const OF_RULES: [&str; 5] = ["fieldPath", "message", "messageExpression", "reason", "rule"];

fn form(keyword: &str) -> Option<Form> {
    KEYWORDS
        .iter()
        .find(|(name, _)| *name == keyword)
        .map(|(_, form)| *form)
}

impl Form {
    /// What a value of this form is, for messages.
    fn words(self) -> &'static str {
        match self {
            Self::Any => "a value",
            Self::List => "a list",
            Self::Text => "a string",
            Self::Texts => "a list of strings",
            Self::Whole => "a whole number",
            Self::Flag => "true or false",
            Self::Schema => "a schema",
            Self::Schemas => "a list of schemas",
            Self::Properties => "a map of schemas",
            Self::Rules => "a list of rules",
            Self::Metadata => "a map with labels and annotations, whose values are strings",
        }
    }

    /// Whether a value has this form, but for what is wrong within schemas of it. Null is what is not set.
    fn is_of(self, value: &Value) -> bool {
        let list_of = |is_item: &dyn Fn(&Value) -> bool| value.as_array().is_some_and(|list| list.iter().all(is_item));
        let is_schema = |value: &Value| value.is_object() || value.is_null();
        match self {
            _ if value.is_null() => true,
            Self::Any => true,
            Self::List => value.is_array(),
            Self::Text => value.is_string(),
            Self::Texts => list_of(&Value::is_string),
            Self::Whole => value.is_i64(),
            Self::Flag => value.is_boolean(),
            Self::Schema => value.is_object(),
            Self::Schemas => list_of(&is_schema),
            Self::Properties => value.as_object().is_some_and(|map| map.values().all(is_schema)),
            Self::Rules => list_of(&|rule| {
                let fields = OF_RULES.iter().filter_map(|field| rule.get(field));
                is_schema(rule) && fields.into_iter().all(|field| Self::Text.is_of(field))
            }),
            Self::Metadata => {
                let maps = ["labels", "annotations"].into_iter().filter_map(|part| value.get(part));
                let is_good = |map: &Value| match map {
                    Value::Null => true,
                    Value::Object(map) => map.values().all(Value::is_string),
                    _ => false,
                };
                value.is_object() && maps.into_iter().all(is_good)
            }
        }
    }
}

/// The keywords that have another form than they need, at all levels.
pub(super) fn wrong_types(schema: &Value, at: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if schema.is_object() || schema.is_null() {
        level(schema, at, &mut errors);
    } else {
        errors.push(wrong(at.to_owned(), schema, Form::Schema));
    }
    errors
}

fn wrong(path: String, value: &Value, form: Form) -> FieldError {
    FieldError::invalid(path, value.clone(), format!("must be {}", form.words()))
}

fn level(schema: &Value, at: &str, errors: &mut Vec<FieldError>) {
    for (name, value) in schema.as_object().into_iter().flatten() {
        let Some(form) = form(name) else { continue };
        let path = format!("{at}.{name}");
        // What is wrong with one of several is said of that one.
        match (form, value) {
            (Form::Schema, Value::Object(_)) => level(value, &path, errors),
            (Form::Schemas, Value::Array(list)) => {
                for (index, schema) in list.iter().enumerate() {
                    errors.extend(wrong_types(schema, &format!("{path}[{index}]")));
                }
            }
            (Form::Properties, Value::Object(map)) => {
                for (name, schema) in map {
                    errors.extend(wrong_types(schema, &format!("{path}[{name}]")));
                }
            }
            _ if form.is_of(value) => {}
            _ => errors.push(wrong(path, value, form)),
        }
    }
}

/// A schema as Cluster API reads it: with the keywords that variables have.
pub(super) fn known(schema: &Value) -> Value {
    let map = match schema {
        Value::Object(map) => map,
        // What is there, and empty.
        Value::Null => return Value::Object(Map::new()),
        _ => return schema.clone(),
    };
    let mut out = Map::new();
    for (name, value) in map {
        let form = match form(name) {
            Some(form) if !value.is_null() => form,
            _ => continue,
        };
        let value = match (form, value) {
            (Form::Flag, Value::Bool(false)) if name == "x-kubernetes-preserve-unknown-fields" => continue,
            // Null is what is not there, so a list of nothing else allows everything.
            (Form::List, Value::Array(list)) => {
                let listed: Vec<Value> = list.iter().filter(|value| !value.is_null()).cloned().collect();
                if listed.is_empty() && !list.is_empty() {
                    continue;
                }
                listed.into()
            }
            (Form::Schema, _) => known(value),
            (Form::Schemas, Value::Array(list)) => list.iter().map(known).collect(),
            (Form::Properties, Value::Object(map)) => {
                map.iter().map(|(name, schema)| (name.clone(), known(schema))).collect()
            }
            (Form::Rules, Value::Array(list)) => list.iter().map(known_rule).collect(),
            _ => value.clone(),
        };
        out.insert(name.clone(), value);
    }
    out.into()
}

fn known_rule(rule: &Value) -> Value {
    let fields = OF_RULES
        .iter()
        .filter_map(|field| Some(((*field).to_owned(), rule.get(field)?.clone())));
    fields.filter(|(_, value)| !value.is_null()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    // TO-073
    #[test]
    fn keywords_of_another_form_are_named() {
        let check = |schema: Value, expect: &[&str]| {
            let found: Vec<String> = wrong_types(&schema, "s").into_iter().map(|error| error.path).collect();
            assert_eq!(found, expect, "{schema}");
        };
        check(json!({"type": "string", "maxLength": 2, "other": []}), &[]);
        check(json!(null), &[]);
        check(json!("x"), &["s"]);
        check(
            json!({"properties": {"a": null, "b": "x", "c": {"maxLength": "2", "enum": "abc", "minimum": 1.5}}}),
            &[
                "s.properties[b]",
                "s.properties[c].enum",
                "s.properties[c].maxLength",
                "s.properties[c].minimum",
            ],
        );
        check(
            json!({"items": 5, "not": "x", "required": [1]}),
            &["s.items", "s.not", "s.required"],
        );
        check(
            json!({"allOf": [null, 1, {"pattern": 1}]}),
            &["s.allOf[1]", "s.allOf[2].pattern"],
        );
        check(
            json!({"additionalProperties": true, "items": {"exclusiveMinimum": 3}}),
            &["s.additionalProperties", "s.items.exclusiveMinimum"],
        );
        let rules = json!({"x-kubernetes-validations": [{"rule": "true", "optionalOldSelf": 1}]});
        check(rules, &[]);
        let rules = json!({"x-kubernetes-validations": {"rule": "true"}, "x-metadata": {"labels": {"a": 1}}});
        check(rules, &["s.x-kubernetes-validations", "s.x-metadata"]);
    }

    #[test]
    fn what_is_not_known_is_dropped_at_all_levels() {
        let rule = json!({"rule": "true", "optionalOldSelf": true});
        let schema = json!({
            "type": "object", "title": "x", "maxLength": null,
            "properties": {"a": null, "b": {"nullable": true, "x-kubernetes-validations": [rule]}},
        });
        let expected = json!({
            "type": "object",
            "properties": {"a": {}, "b": {"x-kubernetes-validations": [{"rule": "true"}]}},
        });
        assert_eq!(known(&schema), expected);
    }
}
