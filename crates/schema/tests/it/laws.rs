//! Properties that hold for any value.

use proptest::prelude::*;
use serde_json::{Value, json};
use windlass_schema::{Dialect, Patterns, Schema, WithoutRules, default, prune, unknown_fields, validate};

fn schema() -> Schema {
    let string = json!({"type": "string", "maxLength": 2});
    let leaf = json!({"type": "object", "properties": {
        "a": {"type": "string", "default": "x"}, "b": string, "n": {"type": "string", "nullable": true},
    }});
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "default": {}, "properties": {
        "a": leaf,
        "b": {"type": "array", "items": leaf},
        "c": {"type": "object", "additionalProperties": leaf},
        "k": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"a": leaf}},
        "d": {"type": "object", "default": {"b": "y"}, "properties": {"a": {"type": "integer", "default": 3}, "b": string}},
    }}}});
    Schema::parse(&schema, Dialect::Crd, "schema", &Patterns::default(), &mut WithoutRules).expect("schema")
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..3i64).prop_map(Value::from),
        "[xyz]{0,3}".prop_map(Value::from)
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[abcdkn]", inner, 0..4).prop_map(|m| json!(m)),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn pruning_twice_is_pruning_once(spec in value()) {
        let schema = schema();
        let mut object = json!({"apiVersion": "v1", "kind": "T", "metadata": {"x": 1}, "spec": spec, "other": 1});
        prune(&schema, &mut object);
        prop_assert_eq!(unknown_fields(&schema, &object), Vec::<String>::new());
        let once = object.clone();
        prune(&schema, &mut object);
        prop_assert_eq!(object, once);
    }

    #[test]
    fn pruning_changes_only_what_has_unknown_fields(spec in value()) {
        let schema = schema();
        let mut object = json!({"spec": spec});
        let before = object.clone();
        let unknown = unknown_fields(&schema, &object);
        prune(&schema, &mut object);
        prop_assert_eq!(unknown.is_empty(), object == before);
    }

    #[test]
    fn defaulting_twice_is_defaulting_once(spec in value()) {
        let schema = schema();
        let mut object = json!({"spec": spec});
        default(&schema, &mut object);
        let once = object.clone();
        default(&schema, &mut object);
        prop_assert_eq!(object, once);
    }

    #[test]
    fn what_did_not_change_is_tolerated(spec in value()) {
        let schema = schema();
        let object = json!({"spec": spec});
        prop_assert_eq!(validate(&schema, &object, Some(&object)), vec![]);
    }
}
