//! What the recorded cases do not reach: rules of bad schemas, levels of a schema, conditions for rules to be evaluated.

use serde_json::{Value, json};
use windlass_cel::Validator;

fn refuses(property: &Value, want: &[&str]) {
    let schema = json!({"type": "object", "properties": {"x": property}});
    let errors = Validator::crd(&schema).expect_err("refused").0;
    let at = "spec.validation.openAPIV3Schema.properties[x]";
    let have: Vec<String> = errors.iter().map(|e| e.to_string().replace(at, "@")).collect();
    assert_eq!(have, want, "{property}");
}

#[test]
fn rules_that_do_not_compile_are_refused_where_they_stand() {
    let schema = json!({"type": "object", "properties": {"x": {"type": "string", "x-kubernetes-validations": [{"rule": "self =="}]}}});
    let errors = Validator::crd(&schema).expect_err("refused").0;
    assert_eq!(errors.len(), 1);
    assert_eq!(
        errors[0].path,
        "spec.validation.openAPIV3Schema.properties[x].x-kubernetes-validations[0].rule"
    );
    refuses(
        &json!({"type": "string", "x-kubernetes-validations": [{"message": "x"}]}),
        &["@.x-kubernetes-validations[0].rule: Required value: rule is not specified"],
    );
    refuses(
        &json!({"type": "string", "x-kubernetes-validations": [{"rule": "true", "reason": "No"}]}),
        &[
            "@.x-kubernetes-validations[0].reason: Unsupported value: \"No\": supported values: \"FieldValueDuplicate\", \"FieldValueForbidden\", \"FieldValueInvalid\", \"FieldValueRequired\"",
        ],
    );
}

#[test]
fn each_level_has_its_own_rules() {
    let no = |name: &str| json!([{"rule": "false", "message": name}]);
    let text = |name: &str| json!({"type": "string", "x-kubernetes-validations": no(name)});
    let schema = json!({"type": "object", "x-kubernetes-validations": no("root"), "properties": {
        "plain": {"type": "string"},
        "text": text("field"),
        "list": {"type": "array", "maxItems": 3, "items": text("item")},
        "map": {"type": "object", "maxProperties": 3, "additionalProperties": text("value")},
        "deep": {"type": "object", "properties": {"text": text("deep")}},
    }});
    let validator = Validator::crd(&schema).expect("schema");
    let check = |object: Value, want: &[&str]| {
        let found: Vec<String> = validator
            .validate(&object, None)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(found, want, "{object}");
    };
    let root = "<nil>: Invalid value: root";
    check(json!({"plain": "a"}), &[root]);
    check(
        json!({"text": "a", "list": ["b"], "map": {"k": "c"}, "deep": {"text": "d"}}),
        &[
            root,
            "deep.text: Invalid value: \"d\": deep",
            "list[0]: Invalid value: \"b\": item",
            "map[k]: Invalid value: \"c\": value",
            "text: Invalid value: \"a\": field",
        ],
    );
}

#[test]
fn a_default_has_to_obey_the_rules_of_its_level() {
    let rule = json!([{"rule": "self != 'a'", "message": "not a"}]);
    refuses(
        &json!({"type": "string", "default": "a", "maxLength": 3, "x-kubernetes-validations": rule}),
        &["@.default: Invalid value: \"a\": not a"],
    );
}

#[test]
fn a_value_of_the_wrong_shape_is_not_shown_to_rules() {
    let schema = json!({"type": "object", "properties": {"x": {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 1"}]}}});
    let validator = Validator::crd(&schema).expect("schema");
    let found: Vec<String> = validator
        .validate(&json!({"x": "a"}), None)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        found,
        [
            "x: Invalid value: \"string\": x in body must be of type integer: \"string\"",
            "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation",
        ]
    );
    let found = validator.validate(&json!({"x": 1}), None);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].to_string(), "x: Invalid value: 1: failed rule: self > 1");
}
