//! Checks of the variables that a class defines.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_cel::Validator;
use windlass_gocompat::quote::quoted;
use windlass_meta::beginning;
use windlass_objects::names::{check_annotations, check_labels};
use windlass_schema::{FieldError, FieldErrors, Patterns, Reviewing, Schema};

use super::BUILTIN;
use super::check::{BUDGET, LONGEST_NAME, below, validated};
use super::keywords::{known, wrong_types};
use crate::model::VariableClass;

/// Checks the inline variables of a class: names, schemas, and that defaults, examples and values of enumerations fit their schema.
pub fn check_class(variables: &[VariableClass]) -> Vec<FieldError> {
    check_variables(variables, INLINE)
}

/// The path of the variables of a class.
const INLINE: &str = "spec.variables";

/// Checks variables as [`check_class`] does. `list` is their path.
pub fn check_variables(variables: &[VariableClass], list: &str) -> Vec<FieldError> {
    let mut errors = FieldErrors::new();
    let mut budgets = Budgets {
        rules: BUDGET,
        patterns: Patterns::default(),
        paths: PATHS_BYTES,
    };
    let mut seen = BTreeSet::new();
    for variable in variables {
        if errors.is_full() {
            break;
        }
        let name = variable.name.as_str();
        // It is part of the path of each level of the schema.
        let at = path_in(list, name);
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
        let (raw, at) = (
            &variable.schema.open_api_v3_schema,
            format!("{at}.schema.openAPIV3Schema"),
        );
        if !budgets.has_room_for_paths(raw, at.len()) {
            let detail = "the names of properties are too long for their number: all paths to them must not have more than 16 MiB";
            errors.push(FieldError::invalid(at, Value::Null, detail));
            continue;
        }
        let wrong = wrong_types(raw, &at);
        if wrong.is_empty() {
            schema(&known(raw), &at, &mut budgets, &mut errors);
        }
        errors.extend(wrong);
    }
    errors.into_vec()
}

/// The path of a variable in the errors of a class.
pub fn path_of(name: &str) -> String {
    path_in(INLINE, name)
}

fn path_in(list: &str, name: &str) -> String {
    format!("{list}[{}]", beginning(name, LONGEST_NAME))
}

/// What the schemas of all variables of a class may cost together.
struct Budgets {
    rules: Option<u64>,
    patterns: Patterns,
    /// The bytes of the paths of all levels.
    paths: usize,
}

/// The most bytes of the paths of all levels of all schemas. Each is written when its level is checked, and again in each error.
const PATHS_BYTES: usize = 16 << 20;

impl Budgets {
    /// Charges the paths of all levels of a schema, of which the first has `length` bytes. False if they are more than is left.
    fn has_room_for_paths(&mut self, raw: &Value, length: usize) -> bool {
        let Some(left) = self.paths.checked_sub(length) else {
            return false;
        };
        self.paths = left;
        // Any keyword may have schemas below it, and properties have them one level further down.
        match raw {
            Value::Object(map) => map
                .iter()
                .all(|(name, below)| self.has_room_for_paths(below, length + name.len() + 2)),
            Value::Array(list) => list.iter().all(|below| self.has_room_for_paths(below, length + 8)),
            _ => true,
        }
    }
}

fn schema(raw: &Value, at: &str, budgets: &mut Budgets, errors: &mut FieldErrors) {
    let how = Reviewing {
        at,
        resource: false,
        status: false,
        known: false,
        patterns: &budgets.patterns,
    };
    let found = windlass_cel::review(raw, &how);
    if found.is_empty() {
        samples(raw, at, budgets, errors);
    }
    errors.extend(found);
    metadata(raw, at, errors);
}

/// Checks the example and the values of the enumeration of each level. As in v1.14, only the rules of a level that has some itself are run.
fn samples(raw: &Value, at: &str, budgets: &mut Budgets, errors: &mut FieldErrors) {
    let mut samples = samples_of(raw, at).peekable();
    if samples.peek().is_some()
        && let Ok(validator) = Validator::value_within(raw, &budgets.patterns)
    {
        let has_rules = raw["x-kubernetes-validations"]
            .as_array()
            .is_some_and(|rules| !rules.is_empty());
        for (at, value) in samples {
            if errors.is_full() {
                return;
            }
            let found = if has_rules {
                validated(&validator, value, None, &mut budgets.rules)
            } else {
                windlass_schema::validate_at(validator.schema(), "", value, None)
            };
            errors.extend(placed(found, &at));
        }
    }
    alternatives(raw, at, &budgets.patterns, errors);
    levels_below(raw, at, &mut |raw, at| self::samples(raw, at, budgets, errors));
}

/// Checks the same below `allOf`, `anyOf`, `oneOf` and `not`, where schemas need no type and have no rules.
fn alternatives(raw: &Value, at: &str, patterns: &Patterns, errors: &mut FieldErrors) {
    let mut check = |raw: &Value, at: &str| {
        let mut samples = samples_of(raw, at).peekable();
        if samples.peek().is_some()
            && let Ok(schema) = Schema::open_api_within(raw, &Value::Null, patterns)
        {
            for (at, value) in samples {
                if errors.is_full() {
                    return;
                }
                errors.extend(placed(windlass_schema::validate_at(&schema, "", value, None), &at));
            }
        }
        alternatives(raw, at, patterns, errors);
        levels_below(raw, at, &mut |raw, at| alternatives(raw, at, patterns, errors));
    };
    for part in ["allOf", "anyOf", "oneOf"] {
        for (index, raw) in raw[part].as_array().into_iter().flatten().enumerate() {
            check(raw, &format!("{at}.{part}[{index}]"));
        }
    }
    if raw["not"].is_object() {
        check(&raw["not"], &format!("{at}.not"));
    }
}

fn placed(errors: Vec<FieldError>, at: &str) -> impl Iterator<Item = FieldError> {
    errors.into_iter().map(move |mut error| {
        error.path = below(at, &error.path);
        error
    })
}

/// The example and the values of the enumeration of one level, with their paths. There may be many, so one is made at a time.
fn samples_of<'a>(raw: &'a Value, at: &str) -> impl Iterator<Item = (String, &'a Value)> {
    let example = raw.get("example").map(|value| (format!("{at}.example"), value));
    let listed = raw.get("enum").and_then(Value::as_array).into_iter().flatten();
    let listed = listed
        .enumerate()
        .map(move |(index, value)| (format!("{at}.enum[{index}]"), value));
    example.into_iter().chain(listed).filter(|(_, value)| !value.is_null())
}

/// Checks labels and annotations that a schema carries.
fn metadata(raw: &Value, at: &str, errors: &mut FieldErrors) {
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

#[cfg(test)]
mod tests {
    use serde_json::json;
    use windlass_schema::MOST_ERRORS;

    use super::*;

    fn patterns(schemas: impl IntoIterator<Item = Value>) -> Vec<FieldError> {
        let variables = schemas.into_iter().enumerate();
        let variables = variables.map(|(n, s)| json!({"name": format!("v{n}"), "schema": {"openAPIV3Schema": s}}));
        check_class(&serde_json::from_value::<Vec<_>>(variables.collect()).unwrap())
    }

    #[test]
    fn the_values_of_an_enumeration_give_a_bounded_number_of_errors() {
        let schema = json!({"type": "string", "enum": vec![1; 2 * MOST_ERRORS]});
        assert_eq!(patterns([schema]).len(), MOST_ERRORS);
    }

    #[test]
    fn the_patterns_of_all_variables_share_one_budget() {
        let expensive = json!({"type": "string", "pattern": "(\\pL{100}){10}N"});
        let errors = patterns(std::iter::repeat_n(expensive, 100));
        assert_eq!(errors.len(), 100);
        let (path, detail) = (&errors[0].path, &errors[0].detail);
        assert_eq!(path, "spec.variables[v0].schema.openAPIV3Schema.pattern");
        assert!(detail.starts_with("pattern is too large: it costs "), "{detail}");
        let allowed = |n: usize| json!({"type": "string", "pattern": format!("^\\pL{{20}}{n}$"), "example": "x"});
        let errors = patterns((0..20).map(allowed));
        let refused = errors
            .iter()
            .filter(|error| error.path.ends_with("openAPIV3Schema.pattern"));
        assert!((1..20).contains(&refused.count()), "{errors:?}");
        assert!(
            errors
                .iter()
                .any(|error| error.detail.contains("all patterns together")),
            "{errors:?}"
        );
    }

    #[test]
    fn the_patterns_of_rules_belong_to_the_same_budget() {
        let rule = |n: usize| json!({"rule": format!("self.matches('(\\\\pL{{100}}){{10}}{n}')")});
        let schema = json!({"type": "string", "maxLength": 9, "x-kubernetes-validations": [rule(1), rule(2)]});
        let errors = patterns([schema]);
        assert_eq!(errors.len(), 2, "{errors:?}");
        for error in errors {
            assert!(error.path.ends_with("].rule"), "{error}");
            assert!(
                error.detail.starts_with("compilation failed: pattern is too large"),
                "{error}"
            );
        }
    }

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
