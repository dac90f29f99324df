use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};
use windlass_controller_runtime::Seen;

use super::observe::Observed;
use super::plan::{Plan, plan};
use super::{Phase, Phases};

fn definition(stored: &[&str], older_is_served: bool) -> Value {
    json!({
        "metadata": {"name": "things.g.io", "uid": "u", "generation": 3},
        "spec": {"group": "g.io", "names": {"kind": "Thing"}, "versions": [
            {"name": "v1beta1", "served": older_is_served, "storage": false},
            {"name": "v1", "served": true, "storage": true, "subresources": {"status": {}}},
        ]},
        "status": {"storedVersions": stored},
    })
}

fn object(name: &str, versions: &[&str]) -> ObjectMeta {
    let entries = versions.iter().map(|version| {
        json!({"manager": format!("by-{version}"), "operation": "Apply", "apiVersion": format!("g.io/{version}"),
            "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:a": {}}}})
    });
    let entries: Value = entries.collect();
    let metadata = json!({
        "name": name, "namespace": "ns", "uid": format!("u-{name}"), "resourceVersion": "7", "managedFields": entries,
    });
    serde_json::from_value(metadata).unwrap()
}

fn decide(definition: Value, objects: Vec<ObjectMeta>, skipped: Vec<Phase>) -> Plan {
    let seen = Observed::Due {
        definition: Box::new(Seen::Found(definition)),
        objects: Seen::Found(objects),
    };
    plan(&seen, &Phases::without(skipped))
}

#[test]
fn objects_are_written_until_none_is_stored_in_an_older_version() {
    let check = |stored: &[&str], skipped: Vec<Phase>, expect: bool| {
        let plan = decide(definition(stored, true), vec![object("a", &["v1beta1", "v1"])], skipped);
        let noted = plan.definition.unwrap();
        assert_eq!((noted.is_restored, noted.generation), (expect, 3));
        assert_eq!(
            (noted.gvk.api_version().as_str(), plan.writes.len()),
            ("g.io/v1", usize::from(expect))
        );
        for write in &plan.writes {
            assert_eq!(write.patch, json!({"metadata": {"uid": "u-a", "resourceVersion": "7"}}));
            assert!(write.yields, "any write stores the object in the storage version");
            assert!(write.of_status, "rules for specs do not judge it");
        }
    };
    check(&["v1"], vec![], false);
    check(&["v1beta1"], vec![], true);
    check(&["v1beta1", "v1"], vec![], true);
    check(&["v1beta1", "v1"], vec![Phase::CleanupManagedFields], true);
    check(&["v1beta1", "v1"], vec![Phase::StorageVersionMigration], false);
}

#[test]
fn managed_fields_of_versions_that_are_not_served_go() {
    let objects = || {
        vec![
            object("a", &["v1beta1", "v1"]),
            object("b", &["v1beta1"]),
            object("c", &["v1"]),
        ]
    };
    let plan = decide(definition(&["v1"], false), objects(), vec![]);
    let managers = |at: usize| -> Vec<(String, String)> {
        let entries = plan.writes[at].patch["metadata"]["managedFields"].as_array().unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        entries
            .iter()
            .map(|entry| (text(&entry["manager"]), text(&entry["apiVersion"])))
            .collect()
    };
    let names: Vec<_> = plan.writes.iter().map(|write| write.key.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(managers(0), [("by-v1".to_owned(), "g.io/v1".to_owned())]);
    // An object that no manager is left of keeps the first one, with nothing but its name.
    assert_eq!(managers(1), [("by-v1beta1".to_owned(), "g.io/v1".to_owned())]);
    let kept = &plan.writes[1].patch["metadata"]["managedFields"][0]["fieldsV1"];
    assert_eq!(*kept, json!({"f:metadata": {"f:name": {}}}));
    assert!(plan.writes.iter().all(|write| !write.yields && !write.of_status));
    let skipped = decide(definition(&["v1"], false), objects(), vec![Phase::CleanupManagedFields]);
    assert_eq!(skipped.writes, []);
}

#[test]
fn what_cannot_be_read_is_not_done() {
    let check = |definition: Seen<Value>, objects: Seen<Vec<ObjectMeta>>, expect: Option<&str>| {
        let seen = Observed::Due {
            definition: Box::new(definition),
            objects,
        };
        let plan = plan(&seen, &Phases::default());
        assert_eq!(plan.definition, None);
        let blocked = plan.blocked.map(|blocked| format!("{blocked:?}"));
        match (blocked, expect) {
            (None, None) => {}
            (Some(blocked), Some(part)) => assert!(blocked.contains(part), "{blocked}"),
            (blocked, _) => panic!("{blocked:?}"),
        }
    };
    let nothing = || Seen::Found(Vec::new());
    let failed = || Seen::Failed("timeout".to_owned());
    check(failed(), nothing(), Some("the definition cannot be read: timeout"));
    check(Seen::NotFound, nothing(), None);
    check(
        Seen::Found(definition(&["v1"], true)),
        Seen::Failed("timeout".to_owned()),
        Some("objects of kind Thing"),
    );
    check(
        Seen::Found(definition(&["v1"], true)),
        Seen::NotFound,
        Some("does not serve v1 of Thing"),
    );
}

#[test]
fn phases_are_read_by_name() {
    assert_eq!("CleanupManagedFields".parse(), Ok(Phase::CleanupManagedFields));
    let error = "All".parse::<Phase>().unwrap_err();
    assert_eq!(
        error,
        "\"All\" is no phase of a migration: expected StorageVersionMigration or CleanupManagedFields"
    );
}
