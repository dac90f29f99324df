//! Webhooks that change objects.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use parking_lot::Mutex;
use serde_json::{Value, json};
use windlass_apiserver::{AdmissionHook, AdmissionRequest, ApiError, ApiServer, Options};
use windlass_store::{Limits, Store};

use crate::hookserver::{HookServer, Say, hook, mutating, validating};
use crate::support::{client, install, start, status, widget, widget_crd, widgets};

fn sets(path: &str, value: Value) -> Say {
    Say::patch(json!([{"op": "add", "path": path, "value": value}]))
}

#[tokio::test]
async fn webhooks_change_objects_one_after_the_other_and_others_judge_the_result() {
    let (_server, client) = start().await;
    install(&client, &widget_crd()).await;
    let hooks = HookServer::start(|path, request| match path {
        "/blue" => sets("/spec/color", json!("blue")),
        "/bigger" => sets(
            "/spec/size",
            (request["object"]["spec"]["size"].as_i64().unwrap() + 1).into(),
        ),
        "/unknown" => sets("/spec/nothing", json!(1)),
        _ => Say::yes(),
    })
    .await;
    let one = |name: &str| {
        hook(
            &format!("{name}.example.com"),
            hooks.config(&format!("/{name}")),
            json!({}),
        )
    };
    validating(&client, "a-last", json!([one("judge")])).await;
    mutating(&client, "z", json!([one("unknown")])).await;
    mutating(&client, "m", json!([one("bigger"), one("blue")])).await;
    let api = widgets(&client, "v1");
    let made = api
        .create(&PostParams::default(), &widget("a", json!({"size": 1})))
        .await
        .unwrap();
    // Unknown fields are dropped, and defaults are applied.
    assert_eq!(made.data["spec"], json!({"size": 2, "color": "blue", "replicas": 1}));
    assert_eq!(made.metadata.generation, Some(1));
    assert_eq!(
        hooks.paths(),
        [
            "/bigger?timeout=10s",
            "/blue?timeout=10s",
            "/unknown?timeout=10s",
            "/judge?timeout=10s"
        ]
    );
    let requests = hooks.requests();
    assert_eq!(requests[1]["object"]["spec"]["size"], 2);
    assert_eq!(requests[3]["object"]["spec"], made.data["spec"]);
    hooks.take();

    // Changes by webhooks count as changes, and have no owner.
    let patch = json!({"metadata": {"labels": {"a": "b"}}});
    let params = PatchParams {
        field_manager: Some("me".to_owned()),
        ..PatchParams::default()
    };
    let now = api.patch("a", &params, &Patch::Merge(&patch)).await.unwrap();
    assert_eq!(
        (&now.data["spec"]["size"], now.metadata.generation),
        (&json!(3), Some(2))
    );
    let mine = now
        .managed_fields()
        .iter()
        .find(|f| f.manager.as_deref() == Some("me"))
        .unwrap();
    assert_eq!(
        serde_json::to_value(&mine.fields_v1).unwrap(),
        json!({"f:metadata": {"f:labels": {".": {}, "f:a": {}}}})
    );
    let applied = api
        .patch(
            "b",
            &PatchParams::apply("me"),
            &Patch::Apply(widget("b", json!({"size": 5}))),
        )
        .await
        .unwrap();
    assert_eq!(applied.data["spec"]["size"], 6);
}

#[tokio::test]
async fn what_a_webhook_makes_must_be_valid() {
    let (_server, client) = start().await;
    install(&client, &widget_crd()).await;
    let hooks = HookServer::start(|_, request| match request["name"].as_str().unwrap() {
        "green" => sets("/spec/color", json!("green")),
        "missing" => Say::patch(json!([{"op": "remove", "path": "/spec/parts"}])),
        "kind" => sets("/kind", json!("Gadget")),
        "version" => sets("/apiVersion", json!("example.com/v9")),
        "metadata" => sets("/metadata/labels", json!(7)),
        "nothing" => sets("", json!(null)),
        "other" => Say::patch(json!({"spec": 1})),
        "bad" => Say::Review(json!({"allowed": true, "patchType": "JSONPatch", "patch": "e30"})),
        "uid" => sets("/metadata/uid", json!("mine")),
        _ => Say::patch(json!([])),
    })
    .await;
    mutating(
        &client,
        "m",
        json!([hook("m.example.com", hooks.config("/"), json!({}))]),
    )
    .await;
    let api = widgets(&client, "v1");
    let refused = async |name: &str| {
        status(
            api.create(&PostParams::default(), &widget(name, json!({"size": 1})))
                .await,
        )
    };
    let invalid = refused("green").await;
    assert_eq!((invalid.code, invalid.reason.as_str()), (422, "Invalid"));
    for name in ["missing", "version", "metadata", "nothing"] {
        let broken = refused(name).await;
        assert_eq!(
            (broken.code, broken.reason.as_str()),
            (500, "InternalError"),
            "{name}: {}",
            broken.message
        );
    }
    assert!(
        refused("version")
            .await
            .message
            .contains("the patch of admission webhook \"m.example.com\" breaks the object")
    );
    let other = refused("kind").await;
    assert_eq!((other.code, other.reason.as_str()), (422, "Invalid"));
    assert!(other.message.ends_with("must be Widget"), "{}", other.message);
    for name in ["other", "bad"] {
        let broken = refused(name).await;
        assert_eq!(broken.code, 500);
        assert!(
            broken.message.contains("failed calling webhook \"m.example.com\": "),
            "{}",
            broken.message
        );
    }
    // The server sets the uid.
    let made = api
        .create(&PostParams::default(), &widget("uid", json!({"size": 1})))
        .await
        .unwrap();
    assert_ne!(made.uid().unwrap(), "mine");
    assert!(
        api.create(&PostParams::default(), &widget("fine", json!({"size": 1})))
            .await
            .is_ok()
    );
}

/// Adds a step to the text in `data.steps`, if its last step differs.
fn step(request: &Value, letter: &str) -> Say {
    let steps = request["object"]["data"]["steps"].as_str().unwrap_or("");
    if steps.ends_with(letter) || steps.len() > 8 {
        return Say::yes();
    }
    sets("/data/steps", format!("{steps}{letter}").into())
}

#[tokio::test]
async fn who_wants_it_sees_once_more_what_others_have_changed() {
    let (_server, client) = start().await;
    let hooks = HookServer::start(|path, request| step(request, &path[1..])).await;
    let one = |name: &str, policy: &str| {
        hook(
            &format!("{name}.example.com"),
            hooks.config(&format!("/{name}")),
            json!({"reinvocationPolicy": policy, "rules": [
                {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]},
            ]}),
        )
    };
    mutating(
        &client,
        "m",
        json!([one("a", "IfNeeded"), one("b", "Never"), one("c", "IfNeeded")]),
    )
    .await;
    let api: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let object: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "x"}, "data": {"k": "v"}})).unwrap();
    let made = api.create(&PostParams::default(), &object).await.unwrap();
    // c has changed the object after a saw it; no webhook changed it after c, until a was called again.
    assert_eq!(made.data.unwrap()["steps"], "abcac");
    assert_eq!(hooks.requests().len(), 5);
}

/// A hook that refuses marked objects, and records what it sees.
struct Inside(Mutex<Vec<String>>);

impl AdmissionHook for Inside {
    fn complete(
        &self,
        request: &AdmissionRequest<'_>,
        object: &mut Value,
        _: &mut Vec<String>,
    ) -> Result<bool, ApiError> {
        let is_new = request.kind == "ConfigMap" && object["data"]["inside"] != "yes";
        if is_new {
            self.0.lock().push(object["data"].to_string());
            object["data"]["inside"] = json!("yes");
        }
        Ok(is_new)
    }

    fn check(&self, request: &AdmissionRequest<'_>, object: &Value, _: &mut Vec<String>) -> Result<(), ApiError> {
        if request.kind != "ConfigMap" {
            return Ok(());
        }
        self.0.lock().push(object["data"].to_string());
        if object["data"]["forbidden"].is_string() {
            return Err(ApiError::forbidden("", "configmaps", request.name, "no"));
        }
        Ok(())
    }
}

#[tokio::test]
async fn hooks_within_the_process_see_what_webhooks_have_changed() {
    let inside = Arc::new(Inside(Mutex::default()));
    let mut options = Options::new(Store::memory(Limits::default()));
    options.admission = vec![inside.clone()];
    let server = ApiServer::start(options).await.unwrap();
    let client = client(&server);
    let hooks = HookServer::start(|_, _| sets("/data/forbidden", json!("x"))).await;
    let rules = json!({"rules": [{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}]});
    mutating(&client, "m", json!([hook("m.example.com", hooks.config("/"), rules)])).await;
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    let object: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "x"}, "data": {"k": "v"}})).unwrap();
    let refused = status(api.create(&PostParams::default(), &object).await);
    assert_eq!(refused.code, 403);
    let seen = [r#"{"k":"v"}"#, r#"{"forbidden":"x","inside":"yes","k":"v"}"#];
    assert_eq!(*inside.0.lock(), seen);
}

#[tokio::test]
async fn parts_of_objects_are_changed_as_parts() {
    let (_server, client) = start().await;
    let hooks = HookServer::start(|_, request| match request["subResource"].as_str().unwrap_or("") {
        "scale" => sets("/spec/replicas", json!(7)),
        "status" => Say::patch(json!([
            {"op": "add", "path": "/status/observedGeneration", "value": 5},
            {"op": "add", "path": "/spec/replicas", "value": 9},
        ])),
        _ => Say::yes(),
    })
    .await;
    let rules = json!({"rules": [{"operations": ["UPDATE"], "apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments/*"]}]});
    mutating(
        &client,
        "m",
        json!([hook("m.example.com", hooks.config("/"), rules.clone())]),
    )
    .await;
    let api: Api<Deployment> = Api::default_namespaced(client);
    let object: Deployment = serde_json::from_value(json!({"metadata": {"name": "d"}, "spec": {
        "replicas": 1, "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
    }}))
    .unwrap();
    api.create(&PostParams::default(), &object).await.unwrap();
    assert!(hooks.take().is_empty());
    let scale = api
        .patch_scale(
            "d",
            &PatchParams::default(),
            &Patch::Merge(json!({"spec": {"replicas": 3}})),
        )
        .await
        .unwrap();
    assert_eq!(scale.spec.unwrap().replicas, Some(7));
    let request = hooks.only();
    assert_eq!(
        request["kind"],
        json!({"group": "autoscaling", "version": "v1", "kind": "Scale"})
    );
    assert_eq!(
        (
            &request["resource"]["resource"],
            &request["subResource"],
            &request["requestSubResource"]
        ),
        (&json!("deployments"), &json!("scale"), &json!("scale"))
    );
    assert_eq!(
        (&request["oldObject"]["spec"], &request["object"]["spec"]),
        (&json!({"replicas": 1}), &json!({"replicas": 3}))
    );
    let stored = api.get("d").await.unwrap();
    assert_eq!((stored.spec.replicas, stored.metadata.generation), (Some(7), Some(2)));
    // A webhook for the status cannot change the rest of an object.
    let stored = api
        .patch_status(
            "d",
            &PatchParams::default(),
            &Patch::Merge(json!({"status": {"replicas": 2}})),
        )
        .await
        .unwrap();
    assert_eq!(hooks.only()["subResource"], "status");
    let (spec, now) = (stored.spec, stored.status.unwrap());
    assert_eq!(
        (spec.replicas, now.replicas, now.observed_generation),
        (Some(7), Some(2), Some(5))
    );
}

#[tokio::test]
async fn a_deletion_cannot_be_changed_but_refused() {
    let (_server, client) = start().await;
    install(&client, &widget_crd()).await;
    let hooks = HookServer::start(|_, request| match request["name"].as_str().unwrap() {
        "a" => sets("/spec/size", json!(2)),
        "b" => Say::no("stay"),
        _ => Say::yes(),
    })
    .await;
    let api = widgets(&client, "v1");
    for name in ["a", "b", "c"] {
        api.create(&PostParams::default(), &widget(name, json!({"size": 1})))
            .await
            .unwrap();
    }
    mutating(
        &client,
        "m",
        json!([hook("m.example.com", hooks.config("/"), json!({}))]),
    )
    .await;
    let refused = status(api.delete("a", &DeleteParams::default()).await);
    assert_eq!(refused.code, 500);
    assert!(refused.message.ends_with(
        "admission webhook \"m.example.com\" attempted to modify the object, which is not supported for this operation"
    ));
    assert_eq!(status(api.delete("b", &DeleteParams::default()).await).code, 400);
    api.delete("c", &DeleteParams::default()).await.unwrap();
}
