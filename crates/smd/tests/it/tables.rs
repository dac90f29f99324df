//! Texts, times, scopes, managers: small cases.

use jiff::Timestamp;
use serde_json::{Value, json};
use windlass_smd::{
    Applied, ApplyError, FieldSet, ListKeys, ManagedFields, Operation, Request, Scope, Versions, apply, differs,
    differs_with, update,
};

use crate::vectors::schema;

fn time(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).expect("time")
}

fn request<'a>(live: Option<&'a Value>, manager: &'a str, second: i64) -> Request<'a> {
    Request {
        schema: None,
        versions: Versions::ALIKE,
        live,
        manager,
        api_version: "apps/v1",
        subresource: "",
        scope: Scope::ALL,
        now: time(second),
    }
}

fn updated(live: Option<&Value>, mut object: Value, manager: &str, scope: Scope, second: i64) -> Value {
    let subresource = if scope == Scope::STATUS { "status" } else { "" };
    let request = Request {
        subresource,
        scope,
        ..request(live, manager, second)
    };
    update(&request, &mut object);
    object
}

fn fields(object: &Value, manager: &str, operation: Operation, subresource: &str) -> Value {
    ManagedFields::of(object)
        .expect("managers")
        .get(manager, operation, subresource)
        .map_or(Value::Null, |entry| entry.fields.to_value())
}

fn created() -> Value {
    let object = json!({"apiVersion": "apps/v1", "kind": "D", "metadata": {"name": "d", "uid": "u"}, "spec": {"replicas": 1, "paused": true}});
    updated(None, object, "kubectl", Scope::MAIN, 0)
}

#[test]
fn a_create_belongs_to_its_creator_but_names_do_not() {
    let object = created();
    assert_eq!(
        object["metadata"]["managedFields"],
        json!([{
            "manager": "kubectl", "operation": "Update", "apiVersion": "apps/v1", "time": "2023-11-14T22:13:20Z",
            "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {".": {}, "f:replicas": {}, "f:paused": {}}},
        }])
    );
}

#[test]
fn conflicts_name_manager_version_and_field() {
    let live = created();
    let one = json!({"apiVersion": "apps/v1", "kind": "D", "metadata": {"name": "d"}, "spec": {"replicas": 2}});
    let error = apply(&request(Some(&live), "me", 1), &one, false).expect_err("conflict");
    assert_eq!(
        error.to_string(),
        "Apply failed with 1 conflict: conflict with \"kubectl\" using apps/v1: .spec.replicas"
    );
    let two = json!({"spec": {"replicas": 2, "paused": false}});
    let error = apply(&request(Some(&live), "me", 1), &two, false).expect_err("conflicts");
    assert_eq!(
        error.to_string(),
        "Apply failed with 2 conflicts: conflicts with \"kubectl\" using apps/v1:\n- .spec.paused\n- .spec.replicas"
    );
    let ApplyError::Conflicts(conflicts) = error else {
        unreachable!()
    };
    assert_eq!(conflicts.listed[0].message(), "conflict with \"kubectl\" using apps/v1");
    assert_eq!(conflicts.listed[0].path, ".spec.paused");
}

#[test]
fn force_takes_fields_and_the_same_value_is_shared() {
    let live = created();
    let config = json!({"metadata": {"name": "d"}, "spec": {"replicas": 2, "paused": true}});
    let forced = apply(&request(Some(&live), "me", 1), &config, true).expect("forced");
    assert_eq!(
        fields(&forced.object, "kubectl", Operation::Update, ""),
        json!({"f:spec": {".": {}, "f:paused": {}}})
    );
    assert_eq!(
        fields(&forced.object, "me", Operation::Apply, ""),
        json!({"f:spec": {".": {}, "f:replicas": {}, "f:paused": {}}})
    );
    assert_eq!(forced.object["spec"], json!({"replicas": 2, "paused": true}));
}

#[test]
fn times_move_only_when_something_changes() {
    let config = json!({"metadata": {"name": "d"}, "spec": {"replicas": 2}});
    let first = apply(&request(None, "me", 0), &config, false).expect("create").object;
    let Applied { object, changed } = apply(&request(Some(&first), "me", 60), &config, false).expect("again");
    assert!(!changed);
    assert_eq!(object, first);
    let other = json!({"metadata": {"name": "d"}, "spec": {"replicas": 3}});
    let second = apply(&request(Some(&first), "me", 60), &other, false)
        .expect("other")
        .object;
    assert_eq!(second["metadata"]["managedFields"][0]["time"], "2023-11-14T22:14:20Z");
    let shared = apply(&request(Some(&second), "you", 120), &other, false).expect("shared");
    assert!(shared.changed);
    let times = |object: &Value| -> Vec<(String, bool)> {
        let managers = ManagedFields::of(object).expect("managers").entries;
        managers.into_iter().map(|e| (e.manager, e.time.is_some())).collect()
    };
    assert_eq!(
        times(&shared.object),
        [("you".to_owned(), false), ("me".to_owned(), true)]
    );
    let again = apply(&request(Some(&shared.object), "you", 180), &other, false).expect("again");
    assert!(!again.changed);
}

#[test]
fn a_manager_that_owns_nothing_is_forgotten() {
    let config = json!({"metadata": {"name": "d"}, "spec": {"replicas": 2}});
    let live = apply(&request(None, "me", 0), &config, false).expect("create").object;
    let nothing = json!({"metadata": {"name": "d"}});
    let after = apply(&request(Some(&live), "me", 1), &nothing, false)
        .expect("give up")
        .object;
    assert_eq!(after, json!({"metadata": {"name": "d"}}));
}

#[test]
fn status_and_spec_have_owners_of_their_own() {
    let live = created();
    let mut object = live.clone();
    object["spec"]["replicas"] = json!(9);
    object["status"] = json!({"ready": 1});
    let through_status = updated(Some(&live), object.clone(), "controller", Scope::STATUS, 1);
    assert_eq!(
        fields(&through_status, "controller", Operation::Update, "status"),
        json!({"f:status": {".": {}, "f:ready": {}}})
    );
    let through_main = updated(Some(&live), object, "controller", Scope::MAIN, 1);
    assert_eq!(
        fields(&through_main, "controller", Operation::Update, ""),
        json!({"f:spec": {"f:replicas": {}}})
    );
}

#[test]
fn applying_status_leaves_the_rest_alone() {
    let live = created();
    let config =
        json!({"metadata": {"name": "d", "labels": {"a": "b"}}, "spec": {"replicas": 7}, "status": {"ready": 1}});
    let status = Request {
        subresource: "status",
        scope: Scope::CUSTOM_STATUS,
        ..request(Some(&live), "me", 1)
    };
    let after = apply(&status, &config, false).expect("status").object;
    assert_eq!(after["status"], json!({"ready": 1}));
    assert_eq!(
        fields(&after, "me", Operation::Apply, "status"),
        json!({"f:status": {".": {}, "f:ready": {}}})
    );
    let status = Request {
        manager: "you",
        live: Some(&after),
        ..status
    };
    let error = apply(&status, &json!({"status": {"ready": 2}}), false).expect_err("conflict");
    assert_eq!(
        error.to_string(),
        "Apply failed with 1 conflict: conflict with \"me\" with subresource \"status\": .status.ready"
    );
}

#[test]
fn objects_without_owners_get_one_with_the_first_apply() {
    let live = json!({"metadata": {"name": "d", "uid": "u"}, "spec": {"replicas": 1}});
    let config = json!({"metadata": {"name": "d"}, "spec": {"paused": true}});
    let after = apply(&request(Some(&live), "me", 1), &config, false)
        .expect("apply")
        .object;
    assert_eq!(
        fields(&after, "before-first-apply", Operation::Update, ""),
        json!({"f:spec": {".": {}, "f:replicas": {}}})
    );
    let untouched = updated(
        Some(&live),
        json!({"metadata": {"name": "d", "uid": "u"}, "spec": {"replicas": 2}}),
        "x",
        Scope::ALL,
        1,
    );
    assert_eq!(untouched["metadata"].get("managedFields"), None);
}

#[test]
fn managed_fields_can_be_given_up_but_not_applied() {
    let live = created();
    let mut object = live.clone();
    object["metadata"]["managedFields"] = json!([{}]);
    let after = updated(Some(&live), object, "x", Scope::ALL, 1);
    assert_eq!(after["metadata"].get("managedFields"), None);
    let config = json!({"metadata": {"managedFields": []}});
    assert_eq!(
        apply(&request(Some(&live), "me", 1), &config, false),
        Err(ApplyError::ManagedFieldsSet)
    );
}

#[test]
fn too_many_updaters_are_put_together() {
    let mut live = created();
    for n in 1..15 {
        let mut object = live.clone();
        object["spec"][format!("f{n}")] = json!(n);
        live = updated(Some(&live), object, &format!("m{n:02}"), Scope::ALL, n);
    }
    let managers = ManagedFields::of(&live).expect("managers").entries;
    let names: Vec<&str> = managers.iter().map(|e| e.manager.as_str()).collect();
    assert_eq!(names.len(), 10);
    assert!(names.contains(&"ancient-changes"), "{names:?}");
    assert!(names.contains(&"m14"), "{names:?}");
}

#[test]
fn keys_that_make_no_sense_are_refused() {
    let schema = schema();
    let check = |spec: Value, want: &str| {
        let config = json!({"metadata": {}, "spec": spec});
        let request = Request {
            schema: Some(&schema),
            ..request(None, "me", 0)
        };
        let error = apply(&request, &config, false).expect_err("refused");
        assert_eq!(
            error.to_string(),
            format!("failed to create typed patch object (/; /, Kind=): {want}")
        );
    };
    check(json!({"s": ["a", "a"]}), ".spec.s: duplicate entries for key [=\"a\"]");
    check(
        json!({"l": [{"name": "a"}, {"name": "a"}]}),
        ".spec.l: duplicate entries for key [name=\"a\"]",
    );
    check(
        json!({"l": [{"v": 1}]}),
        ".spec.l: element 0: associative list with keys has an element that omits all key fields [\"name\"] (and doesn't have default values for any key fields)",
    );
}

#[test]
fn owner_references_and_finalizers_merge_by_item() {
    let one =
        json!({"metadata": {"finalizers": ["a"], "ownerReferences": [{"uid": "1", "name": "x", "controller": true}]}});
    let two = json!({"metadata": {"finalizers": ["b"], "ownerReferences": [{"uid": "2", "name": "y"}]}});
    let live = apply(&request(None, "one", 0), &one, false).expect("one").object;
    let live = apply(&request(Some(&live), "two", 1), &two, false).expect("two").object;
    assert_eq!(live["metadata"]["finalizers"], json!(["a", "b"]));
    assert_eq!(
        fields(&live, "two", Operation::Apply, ""),
        json!({"f:metadata": {"f:finalizers": {"v:\"b\"": {}}, "f:ownerReferences": {"k:{\"uid\":\"2\"}": {}}}})
    );
}

#[test]
fn elements_are_canonical() {
    let check = |text: Value, want: Value| {
        assert_eq!(FieldSet::from_value(&text).expect("set").to_value(), want);
    };
    check(
        json!({"k:{\"b\":1.0,\"a\":\"x\"}": {}}),
        json!({"k:{\"a\":\"x\",\"b\":1}": {}}),
    );
    check(json!({"f:a": {".": {}}}), json!({"f:a": {}}));
    check(json!({"v:\"a b\"": {}, "i:3": {}}), json!({"v:\"a b\"": {}, "i:3": {}}));
    check(json!({"v:\"a<b\"": {}}), json!({"v:\"a\\u003cb\"": {}}));
    check(json!({"v:\"a\\u003cb\"": {}}), json!({"v:\"a\\u003cb\"": {}}));
    // Another version may have written elements that are unknown here.
    check(json!({"x:a": {}, "f:b": {}}), json!({"f:b": {}}));
    assert!(FieldSet::from_value(&json!({"xyz": {}})).is_err());
    assert!(FieldSet::from_value(&json!({"f:a": 1})).is_err());
}

#[test]
fn differences_are_found_where_they_are() {
    let check = |want: Value, have: Value, path: Option<&str>| {
        assert_eq!(differs(&want, &have).as_deref(), path, "{want} {have}");
    };
    check(json!({"a": {"b": 1}}), json!({"a": {"b": 1, "c": 2}}), None);
    check(json!({"a": {"b": 1}}), json!({"a": {"b": 2}}), Some("a.b"));
    check(json!({"a": null}), json!({}), None);
    check(json!({"a": [1]}), json!({"a": [1, 2]}), Some("a"));
    check(json!({"a": [{"b": 1}]}), json!({"a": [{"b": 1, "c": 2}]}), Some("a[0]"));
    check(
        json!({"status": {"conditions": [{"type": "R", "status": "True"}]}}),
        json!({"status": {"conditions": [{"type": "X"}, {"type": "R", "status": "True", "reason": "Y"}]}}),
        None,
    );
    check(
        json!({"status": {"conditions": [{"type": "R", "status": "True"}]}}),
        json!({"status": {"conditions": [{"type": "R", "status": "False"}]}}),
        Some("status.conditions[type=\"R\"].status"),
    );
    check(
        json!({"metadata": {"finalizers": ["a"]}}),
        json!({"metadata": {"finalizers": ["b", "a"]}}),
        None,
    );
    check(
        json!({"metadata": {"ownerReferences": [{"uid": "1", "name": "n"}]}}),
        json!({"metadata": {"ownerReferences": [{"uid": "2"}, {"uid": "1", "name": "n"}]}}),
        None,
    );
    let lists = [("spec.variables", ListKeys::Map(&["name"]))];
    let (want, have) = (
        json!({"spec": {"variables": [{"name": "b"}]}}),
        json!({"spec": {"variables": [{"name": "a"}, {"name": "b"}]}}),
    );
    assert_eq!(differs_with(&lists, &want, &have), None);
    assert_eq!(differs(&want, &have).as_deref(), Some("spec.variables"));
}
