//! Good and bad classes, and changes of classes.
#![allow(clippy::semicolon_if_nothing_returned, reason = "one change a closure")]

use serde_json::{Value, json};

use super::*;
use crate::testing::World;

fn class() -> Value {
    World::in_memory().class
}

fn fields(errors: &[Error]) -> Vec<&str> {
    errors.iter().map(|e| e.field.as_str()).collect()
}

fn refuses(change: &dyn Fn(&mut Value), expect: &[&str]) {
    let mut class = class();
    change(&mut class);
    assert_eq!(fields(&check_class(&class)), expect);
}

// Admission does not call this yet, so nothing here proves a row of the requirements.
#[test]
fn bad_classes_are_refused_field_by_field() {
    assert_eq!(check_class(&class()), []);
    let at = "spec.infrastructure.templateRef";
    refuses(
        &|c| c["spec"]["infrastructure"]["templateRef"]["kind"] = "DevCluster".into(),
        &[&format!("{at}.kind")],
    );
    refuses(
        &|c| c["spec"]["infrastructure"]["templateRef"]["apiVersion"] = "v1".into(),
        &[&format!("{at}.apiVersion")],
    );
    refuses(
        &|c| c["spec"]["infrastructure"]["naming"] = json!({"template": "A_{{ .random }}"}),
        &["spec.infrastructure.naming.template"],
    );
    refuses(
        &|c| {
            drop(
                c["spec"]["controlPlane"]
                    .as_object_mut()
                    .unwrap()
                    .remove("machineInfrastructure"),
            )
        },
        &["spec.controlPlane.healthCheck"],
    );
    refuses(
        &|c| {
            let workers = c["spec"]["workers"]["machineDeployments"].as_array_mut().unwrap();
            workers.push(workers[0].clone());
        },
        &["spec.workers.machineDeployments[1].class"],
    );
    refuses(
        &|c| c["spec"]["kubernetesVersions"] = json!(["v1.34.0", "v1.36.0", "v1.35.0"]),
        &["spec.kubernetesVersions[1]", "spec.kubernetesVersions[2]"],
    );
    let patch = |operation: Value, places: Value| {
        json!([{"name": "p", "definitions": [{
            "selector": {"apiVersion": "a/v1", "kind": "X", "matchResources": places}, "jsonPatches": [operation],
        }]}])
    };
    let good = json!({"controlPlane": true});
    let op = "spec.patches[0].definitions[0].jsonPatches[0]";
    // The second example of the proposal: an undefined variable, and quotes that belong to the text.
    let undefined = json!({"op": "replace", "path": "/spec/template/spec/x", "valueFrom": {"variable": "machineType"}});
    refuses(
        &|c| c["spec"]["patches"] = patch(undefined.clone(), good.clone()),
        &[&format!("{op}.valueFrom.variable")],
    );
    let quoted = json!({"op": "replace", "path": "\u{201c}/spec/template/spec/x\u{201d}", "value": 1});
    refuses(
        &|c| c["spec"]["patches"] = patch(quoted.clone(), good.clone()),
        &[&format!("{op}.path")],
    );
    let fine = json!({"op": "add", "path": "/spec/template/spec/x", "value": 1});
    refuses(
        &|c| c["spec"]["patches"] = patch(fine.clone(), json!({})),
        &["spec.patches[0].definitions[0].selector.matchResources"],
    );
    refuses(
        &|c| c["spec"]["patches"] = json!([{"name": "inline"}]),
        &["spec.patches[0].name", "spec.patches[0]"],
    );
    refuses(
        &|c| {
            c["spec"]["patches"] = patch(fine.clone(), good.clone());
            c["spec"]["patches"][0]["enabledIf"] = "{{ if }".into();
        },
        &["spec.patches[0].enabledIf"],
    );
}

#[test]
fn class_updates_keep_what_clusters_use() {
    let cluster = World::in_memory().cluster;
    let check = |change: &dyn Fn(&mut Value), expect: &[&str]| {
        let mut new = class();
        change(&mut new);
        let errors = check_class_update(&class(), &new, &[cluster.clone(), json!({"spec": {"topology": {}}})]);
        assert_eq!(fields(&errors), expect);
    };
    check(
        &|c| c["spec"]["infrastructure"]["templateRef"]["name"] = "other".into(),
        &[],
    );
    check(
        &|c| c["spec"]["infrastructure"]["templateRef"]["kind"] = "AzureClusterTemplate".into(),
        &["spec.infrastructure.templateRef"],
    );
    check(
        &|c| {
            drop(
                c["spec"]["controlPlane"]
                    .as_object_mut()
                    .unwrap()
                    .remove("machineInfrastructure"),
            )
        },
        &["spec.controlPlane.machineInfrastructure"],
    );
    check(
        &|c| c["spec"]["workers"]["machineDeployments"][0]["bootstrap"]["templateRef"]["kind"] = "OtherTemplate".into(),
        &[],
    );
    check(
        &|c| {
            c["spec"]["workers"]["machineDeployments"][0]["infrastructure"]["templateRef"]["kind"] =
                "OtherTemplate".into()
        },
        &["spec.workers.machineDeployments[0].infrastructure.templateRef"],
    );
    check(
        &|c| c["spec"]["workers"]["machineDeployments"][0]["class"] = "renamed".into(),
        &["spec.workers.machineDeployments"],
    );
}

#[test]
fn rebases_need_the_used_worker_classes() {
    let cluster = World::in_memory().cluster;
    let mut new = class();
    assert_eq!(check_rebase(&cluster, &class(), &new), []);
    new["spec"]["workers"] = json!({});
    assert_eq!(
        fields(&check_rebase(&cluster, &class(), &new)),
        ["spec.topology.workers.machineDeployments[0].class"]
    );
}
