//! Cases that the recordings do not cover: list-map keys, defaults and rules of invalid schemas, built-in kinds, variables.

use serde_json::{Value, json};
use windlass_schema::{
    Dialect, FieldError, Kind, Patterns, Schema, SchemaError, WithoutRules, default, validate, validate_at,
};

fn crd(schema: &Value) -> Result<Schema, SchemaError> {
    Schema::parse(
        schema,
        Dialect::Crd,
        "spec.validation.openAPIV3Schema",
        &Patterns::default(),
        &mut WithoutRules,
    )
}

fn value(schema: &Value) -> Schema {
    Schema::parse(
        schema,
        Dialect::Value,
        "schema",
        &Patterns::default(),
        &mut WithoutRules,
    )
    .expect("schema")
}

fn refuses(property: &Value, want: &[&str]) {
    let schema = json!({"type": "object", "properties": {"x": property}});
    let errors = crd(&schema).expect_err("refused").0;
    let at = "spec.validation.openAPIV3Schema.properties[x]";
    let have: Vec<String> = errors.iter().map(|e| e.to_string().replace(at, "@")).collect();
    assert_eq!(have, want, "{property}");
}

#[test]
fn lists_and_their_keys_must_fit() {
    let list = |keys: Value, items: Value| json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys, "items": items});
    let item = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    refuses(
        &list(json!([]), item.clone()),
        &["@.x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map"],
    );
    refuses(
        &list(json!(["name"]), item.clone()),
        &[
            "@.items.properties[name].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
        ],
    );
    refuses(
        &list(json!(["id"]), item),
        &["@.x-kubernetes-list-map-keys: Invalid value: [\"id\"]: entries must all be names of item properties"],
    );
    refuses(
        &json!({"type": "string", "x-kubernetes-list-type": "set"}),
        &["@.type: Invalid value: \"string\": must be array if x-kubernetes-list-type is specified"],
    );
    refuses(
        &json!({"type": "array", "uniqueItems": true, "items": {"type": "string"}}),
        &["@.uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic"],
    );
    refuses(
        &json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "string"}}),
        &["@.additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive"],
    );
    refuses(
        &json!({"type": "object", "$ref": "#/x"}),
        &["@.$ref: Forbidden: $ref is not supported"],
    );
}

#[test]
fn defaults_must_be_valid_values() {
    refuses(
        &json!({"type": "string", "maxLength": 1, "default": "ab"}),
        &["@.default: Too long: may not be more than 1 byte"],
    );
    refuses(
        &json!({"type": "string", "default": 1}),
        &["@.default: Invalid value: \"integer\":  in body must be of type string: \"integer\""],
    );
    refuses(
        &json!({"type": "object", "default": {"b": 1}, "properties": {"a": {"type": "string"}}}),
        &["@.default: Invalid value: {\"b\":1}: must not have unknown fields"],
    );
}

#[test]
fn references_are_followed_and_recursion_is_cut() {
    let definitions = json!({
        "io.x.Meta": {"type": "object", "properties": {"n": {"type": "integer"}}},
        "io.x.Tree": {"type": "object", "properties": {"v": {"type": "integer"}, "left": {"$ref": "#/definitions/io.x.Tree"}}},
    });
    let schema = json!({"type": "object", "properties": {
        "meta": {"description": "d", "allOf": [{"$ref": "#/components/schemas/io.x.Meta"}], "default": {}},
        "tree": {"$ref": "#/$defs/io.x.Tree"},
    }});
    let schema = Schema::open_api(&schema, &definitions).expect("schema");
    let mut object = json!({"tree": {"v": "x", "left": {"v": "deeper is not looked at"}}});
    default(&schema, &mut object);
    assert_eq!(object["meta"], json!({}));
    let errors: Vec<String> = validate(&schema, &object, None)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        errors,
        ["tree.v: Invalid value: \"string\": tree.v in body must be of type integer: \"string\""]
    );
    assert!(Schema::open_api(&json!({"$ref": "#/definitions/nope"}), &json!({})).is_err());
}

#[test]
fn variables_are_validated_where_they_stand() {
    let schema = value(&json!({"type": "string", "enum": ["a", "b"]}));
    let errors = validate_at(&schema, "spec.topology.variables[cpu].value", &json!("c"), None);
    assert_eq!(
        errors,
        [FieldError::new(
            "spec.topology.variables[cpu].value",
            Kind::NotSupported,
            Some(json!("c")),
            "supported values: \"a\", \"b\""
        )]
    );
    let unique = value(&json!({"type": "array", "uniqueItems": true, "items": {"type": "string"}}));
    assert_eq!(
        validate_at(&unique, "v", &json!(["a", "a"]), None)[0].to_string(),
        "v: Invalid value: \"\": v in body shouldn't contain duplicates"
    );
    let number = value(&json!({"type": "integer", "minimum": 1}));
    assert_eq!(validate_at(&number, "v", &json!(1), None), []);
    assert_eq!(
        validate_at(&number, "v", &json!(0), None)[0].to_string(),
        "v: Invalid value: 0: v in body should be greater than or equal to 1"
    );
}

#[test]
fn reasons_and_texts_are_those_of_kubernetes() {
    let check = |error: FieldError, reason: &str, text: &str| {
        assert_eq!(error.kind.reason(), reason);
        assert_eq!(error.to_string(), text);
    };
    check(
        FieldError::required("a.b", ""),
        "FieldValueRequired",
        "a.b: Required value",
    );
    check(
        FieldError::forbidden("a", "no"),
        "FieldValueForbidden",
        "a: Forbidden: no",
    );
    check(
        FieldError::duplicate("a[1]", json!({"name": "x"})),
        "FieldValueDuplicate",
        "a[1]: Duplicate value: {\"name\":\"x\"}",
    );
    check(
        FieldError::invalid("a", json!("q\"\n\u{1}"), "bad"),
        "FieldValueInvalid",
        "a: Invalid value: \"q\\\"\\n\\x01\": bad",
    );
    check(
        FieldError::invalid("a", json!(1e21), "big"),
        "FieldValueInvalid",
        "a: Invalid value: 1e+21: big",
    );
}

/// It may have been written when there was no budget: it must stay readable, and its pattern must go on checking.
#[test]
fn a_stored_schema_keeps_a_pattern_beyond_the_budget() {
    let schema = json!({"type": "object", "properties": {"x": {"type": "string", "pattern": r"^\pL{120}$"}}});
    let error = crd(&schema).unwrap_err();
    assert!(
        error.0[0].detail.starts_with("pattern is too large: it costs "),
        "{error}"
    );
    let stored = Schema::stored(&schema);
    assert_eq!(validate(&stored, &json!({"x": "é".repeat(120)}), None), []);
    assert_eq!(validate(&stored, &json!({"x": "é".repeat(119)}), None).len(), 1);
}
