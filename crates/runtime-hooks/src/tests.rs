//! Texts as Cluster API v1.14 writes and reads them.

use std::collections::BTreeSet;

use k8s_openapi::ByteString;
use serde_json::{Value, json};

use crate::in_place::{CanUpdateMachineResponse, Patch};
use crate::lifecycle::{BeforeClusterDeleteResponse, BeforeClusterUpgradeRequest, UpgradeStep};
use crate::topology::{GeneratePatchesRequest, GeneratePatchesResponse, JSON_PATCH};
use crate::{API_VERSION, CATALOG, Message, Request as _, Response as _, Status, openapi, path};

fn written(message: &impl Message) -> Value {
    serde_json::from_slice(&message.encode().unwrap()).unwrap()
}

#[test]
fn requests_have_the_fields_of_v1_14() {
    let mut request = BeforeClusterUpgradeRequest {
        from_kubernetes_version: "v1.34.0".to_owned(),
        to_kubernetes_version: "v1.35.0".to_owned(),
        ..BeforeClusterUpgradeRequest::default()
    };
    request.cluster.metadata.name = Some("c".to_owned());
    let version = "v1.35.0".to_owned();
    request.control_plane_upgrades = vec![UpgradeStep { version }];
    let expect = json!({
        "apiVersion": API_VERSION, "kind": "BeforeClusterUpgradeRequest",
        "cluster": {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "c"}, "spec": {}},
        "fromKubernetesVersion": "v1.34.0", "toKubernetesVersion": "v1.35.0",
        "controlPlaneUpgrades": [{"version": "v1.35.0"}],
    });
    assert_eq!(written(&request), expect);
    let settings = [("a".to_owned(), "b".to_owned())].into();
    let with: Value = serde_json::from_slice(&request.encode_with(settings).unwrap()).unwrap();
    assert_eq!(with["settings"], json!({"a": "b"}));
    let patches = written(&GeneratePatchesRequest::default());
    assert_eq!(patches["items"], json!([]), "a list that is always there");
}

#[test]
fn answers_of_other_languages_are_read() {
    let read = |text: Value| BeforeClusterDeleteResponse::decode(text.to_string().as_bytes());
    let answer = read(json!({"status": "Success", "message": null, "retryAfterSeconds": 7, "more": {}})).unwrap();
    assert_eq!((answer.status(), answer.retry_after_seconds()), (&Status::Success, 7));
    let echoed = read(json!({"kind": "BeforeClusterDeleteRequest", "status": "Failure"})).unwrap();
    assert_eq!(echoed.status, Status::Failure, "kinds do not matter");
    assert_eq!(read(json!({})).unwrap().status, Status::Missing);
    for bad in [
        json!([]),
        json!("x"),
        json!({"retryAfterSeconds": "7"}),
        json!({"status": 1}),
    ] {
        let why = read(bad).unwrap_err().to_string();
        assert!(why.starts_with("this is no BeforeClusterDeleteResponse: "), "{why}");
    }
    assert!(BeforeClusterDeleteResponse::decode(b"<html>").is_err());
}

#[test]
fn patches_are_base64() {
    let patch = || ByteString(b"[]".to_vec());
    let answer = json!({"status": "Success", "items": [{"uid": "1", "patchType": JSON_PATCH, "patch": "W10="}]});
    let answer = GeneratePatchesResponse::decode(answer.to_string().as_bytes()).unwrap();
    assert_eq!(answer.items[0].patch, patch());
    let can = CanUpdateMachineResponse {
        machine_patch: Some(Patch {
            patch_type: JSON_PATCH.to_owned(),
            patch: patch(),
        }),
        ..CanUpdateMachineResponse::success()
    };
    let expect = json!({
        "apiVersion": API_VERSION, "kind": "CanUpdateMachineResponse", "status": "Success",
        "machinePatch": {"patchType": "JSONPatch", "patch": "W10="},
    });
    assert_eq!(written(&can), expect);
}

#[test]
fn every_hook_has_a_path_and_a_description() {
    let names: BTreeSet<&str> = CATALOG.iter().map(|hook| hook.name).collect();
    assert_eq!(names.len(), CATALOG.len(), "each hook is listed once");
    assert_eq!(CATALOG.len(), 16);
    let document = openapi::document();
    let paths = document["paths"].as_object().unwrap();
    assert_eq!(paths.len(), CATALOG.len() + 1, "and Discovery");
    for hook in CATALOG {
        let operation = &paths[&path(hook.name, "{name}")]["post"];
        assert_eq!(operation["tags"], json!([hook.tag]));
        let schemas = &document["components"]["schemas"];
        let response = &schemas[format!("{}Response", hook.name)];
        let required = response["required"].as_array().unwrap();
        assert!(required.contains(&json!("status")), "{}: {required:?}", hook.name);
        assert!(schemas[format!("{}Request", hook.name)]["properties"]["settings"].is_object());
    }
    let upgrade = &document["components"]["schemas"]["BeforeClusterUpgradeRequest"];
    assert_eq!(
        upgrade["required"],
        json!(["cluster", "fromKubernetesVersion", "toKubernetesVersion"])
    );
}
