//! Fields that the server sets.

use serde_json::json;

use super::*;

fn resource(kind: &str) -> std::sync::Arc<Resource> {
    std::sync::Arc::clone(crate::builtin::resources().iter().find(|r| r.kind == kind).unwrap())
}

fn fresh() -> Fresh {
    Fresh {
        now: "2026-01-02T03:04:05.6Z".parse().unwrap(),
        uid: "u".to_owned(),
        suffix: "abcde".to_owned(),
    }
}

#[test]
fn creation_sets_what_is_the_servers() {
    let mut object = json!({"metadata": {"generateName": "web-", "generation": 7, "deletionTimestamp": "x", "selfLink": "/x", "labels": {}},
        "spec": {}, "status": {"replicas": 3}});
    let resource = resource("Deployment");
    check_place(&resource, &mut object, "default", None).unwrap();
    for_create(&resource, &mut object, &fresh()).unwrap();
    assert_eq!(
        object,
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"generateName": "web-", "name": "web-abcde",
            "namespace": "default", "uid": "u", "creationTimestamp": "2026-01-02T03:04:05Z", "generation": 1}, "spec": {}})
    );
}

#[test]
fn only_spec_changes_count_generations() {
    let check = |new: Value, part, want: i64| {
        let old =
            json!({"metadata": {"name": "n", "generation": 1}, "spec": {"replicas": 1}, "status": {"replicas": 1}});
        let mut new = new;
        for_update(&resource("Deployment"), &old, &mut new, part);
        assert_eq!(generation(&new), want);
        new
    };
    check(
        json!({"metadata": {"name": "n", "labels": {"a": "b"}, "generation": 9}, "spec": {"replicas": 1}}),
        Part::Main,
        1,
    );
    check(
        json!({"metadata": {"name": "n"}, "spec": {"replicas": 2}}),
        Part::Main,
        2,
    );
    let out = check(
        json!({"metadata": {"name": "n"}, "spec": {"replicas": 2}, "status": {"replicas": 2}}),
        Part::Status,
        1,
    );
    assert_eq!(out["spec"]["replicas"], 1);
    assert_eq!(out["status"]["replicas"], 2);
    let out = check(
        json!({"metadata": {"name": "n"}, "spec": {"replicas": 1}, "status": {"replicas": 2}}),
        Part::Main,
        1,
    );
    assert_eq!(out["status"]["replicas"], 1);
}

#[test]
fn another_uid_is_complained_about() {
    let old = json!({"metadata": {"name": "n", "uid": "a"}});
    let mut new = json!({"metadata": {"name": "n", "uid": "b"}});
    for_update(&resource("Secret"), &old, &mut new, Part::Main);
    let errors = immutable_errors(&old, &new);
    assert_eq!(
        errors[0].to_string(),
        "metadata.uid: Invalid value: \"b\": field is immutable"
    );
}

#[test]
fn nothing_new_may_hold_back_a_deletion() {
    let old = json!({"metadata": {"name": "n", "deletionTimestamp": "x", "finalizers": ["a", "b"]}});
    let new = json!({"metadata": {"name": "n", "deletionTimestamp": "x", "finalizers": ["b", "c"]}});
    let errors = immutable_errors(&old, &new);
    assert_eq!(
        errors[0].to_string(),
        r#"metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"c"}"#
    );
}

#[test]
fn times_of_managers_are_no_difference() {
    let a = json!({"metadata": {"resourceVersion": "1", "managedFields": [{"manager": "m", "time": "1"}]}});
    let b = json!({"metadata": {"resourceVersion": "2", "managedFields": [{"manager": "m", "time": "2"}]}});
    let c = json!({"metadata": {"managedFields": [{"manager": "n", "time": "2"}]}});
    assert!(!differs(&a, &b));
    assert!(differs(&a, &c));
}
