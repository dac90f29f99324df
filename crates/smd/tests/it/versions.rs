//! Managers of other versions, changed schemas, scales, and the takeover by kubectl: small cases.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};
use windlass_schema::Schema;
use windlass_smd::{
    ApplyError, ManagedFields, Operation, Request, Scope, Versions, apply, object_managers, scale_managers, update,
};

fn schema(atomic: bool) -> Schema {
    let kind = if atomic { "atomic" } else { "granular" };
    let list = if atomic { "atomic" } else { "set" };
    let spec = json!({"type": "object", "properties": {
        "m": {"type": "object", "x-kubernetes-map-type": kind, "additionalProperties": {"type": "string"}},
        "l": {"type": "array", "x-kubernetes-list-type": list, "items": {"type": "string"}},
        "n": {"type": "integer"},
    }});
    Schema::open_api(&json!({"type": "object", "properties": {"spec": spec}}), &Value::Null).expect("schema")
}

fn request<'a>(schema: &'a Schema, live: Option<&'a Value>, manager: &'a str) -> Request<'a> {
    Request {
        schema: Some(schema),
        versions: Versions::ALIKE,
        live,
        manager,
        api_version: "g/v1",
        subresource: "",
        scope: Scope::ALL,
        now: Timestamp::UNIX_EPOCH,
    }
}

fn object(spec: &Value) -> Value {
    json!({"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "k"}, "spec": spec})
}

fn fields(object: &Value, manager: &str) -> Value {
    let managers = ManagedFields::of(object).expect("managers");
    let entry = managers.entries.iter().find(|entry| entry.manager == manager);
    entry.map_or(Value::Null, |entry| entry.fields.to_value())
}

fn conflicts(outcome: Result<windlass_smd::Applied, ApplyError>) -> Vec<String> {
    match outcome {
        Err(ApplyError::Conflicts(found)) => found
            .listed
            .into_iter()
            .map(|c| format!("{} {}", c.manager, c.path))
            .collect(),
        other => unreachable!("{other:?}"),
    }
}

#[test]
fn managers_of_a_version_that_is_gone_are_forgotten() {
    let schema = schema(false);
    let (first, second) = (object(&json!({"n": 1})), object(&json!({"n": 2})));
    let live = apply(
        &Request {
            api_version: "g/v0",
            ..request(&schema, None, "a")
        },
        &first,
        false,
    )
    .expect("apply")
    .object;
    let gone = |_: &str| None;
    let after = apply(
        &Request {
            versions: Versions::of(&gone),
            ..request(&schema, Some(&live), "b")
        },
        &second,
        false,
    )
    .expect("no conflict")
    .object;
    assert_eq!(fields(&after, "a"), Value::Null);
    // As long as the version is served, its manager stays.
    let there = |_: &str| Some(Arc::new(self::schema(false)));
    let refused = conflicts(apply(
        &Request {
            versions: Versions::of(&there),
            ..request(&schema, Some(&live), "b")
        },
        &second,
        false,
    ));
    assert_eq!(refused, ["\"a\" .spec.n"]);
}

/// In v2, the field `n` is called `number`.
fn renamed(object: &Value, api_version: &str) -> Value {
    let mut out = object.clone();
    out["apiVersion"] = json!(api_version);
    let (is, was) = if api_version == "g/v2" {
        ("number", "n")
    } else {
        ("n", "number")
    };
    if let Some(spec) = out.get_mut("spec").and_then(Value::as_object_mut)
        && let Some(value) = spec.remove(was)
    {
        spec.insert(is.to_owned(), value);
    }
    out
}

#[allow(clippy::unnecessary_wraps, reason = "converters may fail")]
fn converter(object: &Value, api_version: &str) -> Option<Value> {
    Some(renamed(object, api_version))
}

fn schema_of_v2() -> Schema {
    let spec = json!({"type": "object", "properties": {
        "m": {"type": "object", "additionalProperties": {"type": "string"}},
        "number": {"type": "integer"},
    }});
    Schema::open_api(&json!({"type": "object", "properties": {"spec": spec}}), &Value::Null).expect("schema")
}

#[test]
fn managers_of_another_version_own_fields_as_they_are_called_there() {
    let (first, second) = (schema(false), schema_of_v2());
    let lookup = |version: &str| {
        Some(Arc::new(if version == "g/v2" {
            schema_of_v2()
        } else {
            schema(false)
        }))
    };
    let versions = Versions::of(&lookup).converting(&converter);
    let in_v2 = |spec: Value| json!({"apiVersion": "g/v2", "kind": "K", "metadata": {"name": "k"}, "spec": spec});
    let config = object(&json!({"n": 1, "m": {"a": "1"}}));
    let live = apply(
        &Request {
            versions,
            ..request(&first, None, "a")
        },
        &config,
        false,
    )
    .expect("apply")
    .object;
    let seen = renamed(&live, "g/v2");
    let by_b = Request {
        api_version: "g/v2",
        versions,
        ..request(&second, Some(&seen), "b")
    };
    // What another manager set to the same value is no conflict, and stays its own.
    let shared = apply(&by_b, &in_v2(json!({"number": 1})), false)
        .expect("no conflict")
        .object;
    assert_eq!(fields(&shared, "a"), json!({"f:spec": {"f:m": {"f:a": {}}, "f:n": {}}}));
    assert_eq!(fields(&shared, "b"), json!({"f:spec": {"f:number": {}}}));
    // A change is a conflict with the field in the other version, and takes it over by force.
    let changed = in_v2(json!({"number": 2}));
    assert_eq!(conflicts(apply(&by_b, &changed, false)), ["\"a\" .spec.n"]);
    let taken = apply(&by_b, &changed, true).expect("by force").object;
    assert_eq!(fields(&taken, "a"), json!({"f:spec": {"f:m": {"f:a": {}}}}));
    // A field that is applied no more stays as long as a manager of the other version has it.
    let by_b = Request {
        live: Some(&shared),
        ..by_b
    };
    let left = apply(&by_b, &in_v2(json!({"m": {"b": "2"}})), false)
        .expect("apply")
        .object;
    assert_eq!(left["spec"], json!({"number": 1, "m": {"a": "1", "b": "2"}}));
    // An apply that changes nothing is none.
    assert!(
        !apply(&by_b, &in_v2(json!({"number": 1})), false)
            .expect("apply")
            .changed
    );
}

#[test]
fn what_a_manager_applied_in_another_version_goes_when_it_is_left_out() {
    let (first, second) = (schema(false), schema_of_v2());
    let lookup = |version: &str| {
        Some(Arc::new(if version == "g/v2" {
            schema_of_v2()
        } else {
            schema(false)
        }))
    };
    let versions = Versions::of(&lookup).converting(&converter);
    let in_v2 = |spec: Value| json!({"apiVersion": "g/v2", "kind": "K", "metadata": {"name": "k"}, "spec": spec});
    let before = |manager: &str, live: Option<&Value>, spec: &Value| {
        let request = Request {
            versions,
            ..request(&first, live, manager)
        };
        apply(&request, &object(spec), false).expect("apply").object
    };
    let check = |other: Option<Value>, config: Value, expect: Value| {
        let mut live = before("a", None, &json!({"n": 1, "m": {"a": "1"}}));
        if let Some(other) = other {
            live = before("b", Some(&live), &other);
        }
        let seen = renamed(&live, "g/v2");
        let request = Request {
            versions,
            api_version: "g/v2",
            ..request(&second, Some(&seen), "a")
        };
        let after = apply(&request, &in_v2(config), false).expect("apply").object;
        assert_eq!(after["spec"], expect);
    };
    // The manifest of the same manager is now one of the other version.
    check(None, json!({"m": {"a": "1"}}), json!({"m": {"a": "1"}}));
    check(None, json!({"number": 1}), json!({"number": 1}));
    // What another manager has stays.
    check(
        Some(json!({"n": 1})),
        json!({"m": {"a": "1"}}),
        json!({"number": 1, "m": {"a": "1"}}),
    );
    check(
        Some(json!({"m": {"b": "2"}})),
        json!({"number": 1}),
        json!({"number": 1, "m": {"b": "2"}}),
    );
}

#[test]
fn many_managers_of_another_version_cost_no_more_conversions() {
    let (first, second) = (schema(false), schema_of_v2());
    let lookup = |version: &str| {
        Some(Arc::new(if version == "g/v2" {
            schema_of_v2()
        } else {
            schema(false)
        }))
    };
    let count = std::cell::Cell::new(0);
    let counting = |object: &Value, version: &str| {
        count.set(count.get() + 1);
        converter(object, version)
    };
    let versions = Versions::of(&lookup).converting(&counting);
    let conversions = |others: usize| {
        let own: serde_json::Map<String, Value> = (0..30).map(|at| (format!("k{at}"), json!("v"))).collect();
        let mine =
            json!({"apiVersion": "g/v2", "kind": "K", "metadata": {"name": "k"}, "spec": {"number": 1, "m": own}});
        let by = |manager, live| Request {
            versions,
            api_version: "g/v2",
            ..request(&second, live, manager)
        };
        let mut live = apply(&by("a", None), &mine, false).expect("apply").object;
        for other in 0..others {
            let manager = format!("other-{other}");
            let seen = renamed(&live, "g/v1");
            let request = Request {
                versions,
                ..request(&first, Some(&seen), &manager)
            };
            let after = apply(&request, &object(&json!({"n": 1})), false).expect("apply").object;
            live = renamed(&after, "g/v2");
        }
        count.set(0);
        let left = json!({"apiVersion": "g/v2", "kind": "K", "metadata": {"name": "k"}, "spec": {"m": {"k0": "v"}}});
        let after = apply(&by("a", Some(&live)), &left, false).expect("apply").object;
        assert_eq!(after["spec"], json!({"number": 1, "m": {"k0": "v"}}));
        count.get()
    };
    assert_eq!(conversions(20), conversions(1));
}

#[test]
fn what_became_one_value_is_owned_as_one() {
    let spec = json!({"m": {"k": "v"}, "l": ["x"]});
    let config = object(&spec);
    let live = apply(&request(&schema(false), None, "a"), &config, false)
        .expect("apply")
        .object;
    let schema = schema(true);
    let other = object(&json!({"n": 1}));
    let after = apply(&request(&schema, Some(&live), "b"), &other, false)
        .expect("apply")
        .object;
    assert_eq!(fields(&after, "a"), json!({"f:spec": {"f:l": {}, "f:m": {}}}));
    let mut updated = live.clone();
    updated["spec"]["n"] = json!(3);
    update(&request(&schema, Some(&live), "u"), &mut updated);
    assert_eq!(fields(&updated, "a"), json!({"f:spec": {"f:l": {}, "f:m": {}}}));
}

#[test]
fn the_replicas_change_hands_through_the_scale() {
    let entry = |manager: &str, operation: &str, version: &str, fields: Value| {
        json!({"manager": manager, "operation": operation, "apiVersion": version, "time": "2026-01-01T00:00:00Z",
               "fieldsType": "FieldsV1", "fieldsV1": fields})
    };
    let both = json!({"f:spec": {"f:replicas": {}, "f:paused": {}}});
    let parent = ManagedFields::from_value(&json!([entry("a", "Apply", "apps/v1", both)])).expect("managers");
    let path = ["spec", "replicas"];
    let scale = scale_managers(&parent, &path);
    assert_eq!(scale.entries[0].api_version, "autoscaling/v1");
    assert_eq!(
        scale.entries[0].fields.to_value(),
        json!({"f:spec": {"f:replicas": {}}})
    );
    assert_eq!(object_managers(&parent, &scale, &path, "apps/v1"), parent);

    let mut taken = entry("b", "Update", "autoscaling/v1", json!({"f:spec": {"f:replicas": {}}}));
    taken["subresource"] = json!("scale");
    let scale = ManagedFields::from_value(&json!([taken])).expect("managers");
    let after = object_managers(&parent, &scale, &path, "apps/v1");
    let b = after.get("b", Operation::Update, "scale").expect("b");
    assert_eq!((b.api_version.as_str(), b.time), ("apps/v1", None));
    let a = after.get("a", Operation::Apply, "").expect("a");
    assert_eq!(a.fields.to_value(), json!({"f:spec": {"f:paused": {}}}));
}

#[test]
fn kubectl_takes_over_unchanged_fields_of_client_side_apply() {
    const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
    let schema = schema(false);
    let last = object(&json!({"n": 1, "m": {"k": "v"}}));
    let mut live = last.clone();
    live["metadata"]["annotations"] = json!({ANNOTATION: last.to_string()});
    update(&request(&schema, None, "kubectl-client-side-apply"), &mut live);
    let config = object(&json!({"n": 2, "m": {"k": "<v>"}}));
    assert_eq!(
        conflicts(apply(&request(&schema, Some(&live), "another"), &config, false)).len(),
        2
    );
    let after = apply(&request(&schema, Some(&live), "kubectl"), &config, false)
        .expect("taken over")
        .object;
    assert_eq!(after["spec"], config["spec"]);
    assert_eq!(
        after["metadata"]["annotations"][ANNOTATION],
        "{\"apiVersion\":\"g/v1\",\"kind\":\"K\",\"metadata\":{\"name\":\"k\"},\"spec\":{\"m\":{\"k\":\"\\u003cv\\u003e\"},\"n\":2}}\n"
    );
    // Fields that another manager has changed meanwhile are conflicts.
    live["spec"]["n"] = json!(7);
    let refused = conflicts(apply(&request(&schema, Some(&live), "kubectl"), &config, false));
    assert_eq!(refused, ["\"kubectl-client-side-apply\" using g/v1 .spec.n"]);
}

#[test]
fn schema_violations_have_the_error_texts_of_kubernetes() {
    let schema = schema(false);
    let check = |spec: Value, want: &str| {
        let config = object(&spec);
        let error = apply(&request(&schema, None, "a"), &config, false)
            .expect_err("refused")
            .to_string();
        assert_eq!(
            error,
            format!("failed to create typed patch object (/k; g/v1, Kind=K): {want}")
        );
    };
    check(json!({"x": 1}), ".spec.x: field not declared in schema");
    check(
        json!({"n": "1"}),
        ".spec.n: expected numeric (int or float), got string",
    );
    check(json!({"m": ["a"]}), ".spec.m: expected map, got &{[a]}");
    check(
        json!({"m": {"k": {"a": 1}}}),
        ".spec.m.k: expected string, got &value.valueUnstructured{Value:map[string]interface {}{\"a\":1}}",
    );
    check(
        json!({"l": [1], "n": {}}),
        "errors:\n  .spec.l[=1]: expected string, got &value.valueUnstructured{Value:1}\n  .spec.n: expected numeric (int or float), got map[string]interface {}",
    );
}
