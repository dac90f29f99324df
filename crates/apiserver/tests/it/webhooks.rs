//! Validating webhooks: the reviews that they receive, and the effect of their responses.

use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use windlass_apiserver::{ApiServer, UserInfo};

use crate::hookserver::{HookServer, Say, forget, hook, validating};
use crate::support::{install, start, status, widget, widget_crd, widgets};

/// A server with widgets, and webhooks with these responses.
async fn world(answer: impl Fn(&str, &Value) -> Say + Send + Sync + 'static) -> (ApiServer, Client, HookServer) {
    let (server, client) = start().await;
    install(&client, &widget_crd()).await;
    (server, client, HookServer::start(answer).await)
}

/// Refuses an object without the annotation `keep`, as invalid.
fn keeps(_: &str, request: &Value) -> Say {
    let has = |object: &str| request[object]["metadata"]["annotations"].get("keep").is_some();
    if has("object") || !has("oldObject") {
        return Say::yes();
    }
    Say::Review(json!({"allowed": false, "status": {
        "code": 422, "reason": "Invalid", "message": "Widget.example.com \"a\" is invalid: it may not be taken away",
        "details": {"group": "example.com", "kind": "Widget", "name": "a", "causes": [
            {"reason": "FieldValueForbidden", "message": "Forbidden: it may not be taken away", "field": "metadata.annotations[keep]"},
        ]},
    }}))
}

#[tokio::test]
async fn a_webhook_refuses_updates_with_its_own_status_however_they_are_made() {
    let (_server, client, hooks) = world(keeps).await;
    validating(
        &client,
        "keepers",
        json!([hook("keep.example.com", hooks.config("/keep"), json!({}))]),
    )
    .await;
    let api = widgets(&client, "v1");
    let mut object = widget("a", json!({"size": 1}));
    object.metadata.annotations = Some([("keep".to_owned(), String::new())].into());
    let apply = PatchParams::apply("me").force();
    api.patch("a", &apply, &Patch::Apply(&object)).await.unwrap();
    hooks.take();

    let check = |refused: kube::core::Status| {
        assert_eq!((refused.code, refused.reason.as_str()), (422, "Invalid"));
        assert_eq!(
            refused.message,
            "admission webhook \"keep.example.com\" denied the request: Widget.example.com \"a\" is invalid: it may not be taken away"
        );
        let details = refused.details.unwrap();
        assert_eq!((details.kind.as_str(), details.name.as_str()), ("Widget", "a"));
        assert_eq!(details.causes[0].field, "metadata.annotations[keep]");
        assert_eq!(hooks.only()["operation"], "UPDATE");
    };
    let merge = json!({"metadata": {"annotations": {"keep": null}}});
    check(status(
        api.patch("a", &PatchParams::default(), &Patch::Merge(&merge)).await,
    ));
    let steps = json!([{"op": "remove", "path": "/metadata/annotations/keep"}]).to_string();
    let request = http::Request::patch("/apis/example.com/v1/namespaces/default/widgets/a")
        .header("content-type", "application/json-patch+json")
        .body(steps.into_bytes())
        .unwrap();
    check(status(client.request::<Value>(request).await));
    check(status(
        api.patch("a", &apply, &Patch::Apply(widget("a", json!({"size": 1}))))
            .await,
    ));
    let mut stored = api.get("a").await.unwrap();
    stored.metadata.annotations = None;
    check(status(api.replace("a", &PostParams::default(), &stored).await));

    // An allowed object is written.
    let fine = json!({"spec": {"size": 2}});
    let now = api
        .patch("a", &PatchParams::default(), &Patch::Merge(&fine))
        .await
        .unwrap();
    assert_eq!(
        (&now.data["spec"]["size"], now.annotations().contains_key("keep")),
        (&json!(2), true)
    );
}

#[tokio::test]
async fn a_review_holds_everything_about_the_request() {
    let (server, _, hooks) = world(|_, _| Say::yes()).await;
    let mut user = UserInfo::new("ann", &["builders"]);
    user.uid = "u-1".to_owned();
    user.extra.insert("floor".to_owned(), vec!["2".to_owned()]);
    let client = Client::new(server.client_service(user), "default");
    validating(
        &client,
        "all",
        json!([hook(
            "all.example.com",
            hooks.config("/x"),
            json!({"timeoutSeconds": 7})
        )]),
    )
    .await;
    let api = widgets(&client, "v1");
    let made = api
        .create(&PostParams::default(), &widget("a", json!({"size": 1})))
        .await
        .unwrap();
    let review = hooks.take().remove(0);
    assert_eq!(
        (&review["apiVersion"], &review["kind"]),
        (&json!("admission.k8s.io/v1"), &json!("AdmissionReview"))
    );
    let request = &review["request"];
    let kind = json!({"group": "example.com", "version": "v1", "kind": "Widget"});
    let resource = json!({"group": "example.com", "version": "v1", "resource": "widgets"});
    for (key, want) in [
        ("kind", kind.clone()),
        ("requestKind", kind),
        ("resource", resource.clone()),
        ("requestResource", resource),
        ("name", json!("a")),
        ("namespace", json!("default")),
        ("operation", json!("CREATE")),
        ("oldObject", json!(null)),
        ("dryRun", json!(false)),
        (
            "options",
            json!({"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"}),
        ),
        (
            "userInfo",
            json!({"username": "ann", "uid": "u-1", "groups": ["builders", "system:authenticated"], "extra": {"floor": ["2"]}}),
        ),
    ] {
        assert_eq!(request[key], want, "{key}");
    }
    assert!(request.get("subResource").is_none());
    assert!(!request["uid"].as_str().unwrap().is_empty());
    let object = &request["object"];
    assert_eq!(object["spec"], json!({"size": 1, "color": "red", "replicas": 1}));
    assert_eq!(object["metadata"]["uid"], json!(made.metadata.uid));

    // Dry runs are marked as such, and store nothing.
    let dry = PatchParams {
        dry_run: true,
        field_manager: Some("me".to_owned()),
        ..PatchParams::default()
    };
    api.patch("a", &dry, &Patch::Merge(json!({"spec": {"size": 3}})))
        .await
        .unwrap();
    let request = hooks.only();
    assert_eq!(
        (&request["operation"], &request["dryRun"]),
        (&json!("UPDATE"), &json!(true))
    );
    assert_eq!(
        request["options"],
        json!({"kind": "UpdateOptions", "apiVersion": "meta.k8s.io/v1", "fieldManager": "me", "dryRun": ["All"]})
    );
    assert_eq!(
        (
            &request["oldObject"]["spec"]["size"],
            &request["object"]["spec"]["size"]
        ),
        (&json!(1), &json!(3))
    );

    // So are writes to subresources.
    api.patch_status(
        "a",
        &PatchParams::default(),
        &Patch::Merge(json!({"status": {"phase": "x"}})),
    )
    .await
    .unwrap();
    assert!(hooks.take().is_empty(), "the rule does not name the status");
}

#[tokio::test]
async fn deletions_are_asked_about_and_refused() {
    let (_server, client, hooks) = world(|_, request| {
        if request["oldObject"]["spec"]["size"] == 2 {
            Say::no("too big to go")
        } else {
            Say::yes()
        }
    })
    .await;
    let rules = json!({"rules": [{"operations": ["DELETE"], "apiGroups": ["example.com"], "apiVersions": ["*"], "resources": ["widgets"]}]});
    validating(
        &client,
        "stay",
        json!([hook("stay.example.com", hooks.config("/"), rules)]),
    )
    .await;
    let api = widgets(&client, "v1");
    for (name, size) in [("a", 1), ("b", 2), ("c", 1)] {
        api.create(&PostParams::default(), &widget(name, json!({"size": size})))
            .await
            .unwrap();
    }
    assert!(hooks.take().is_empty());
    api.delete("a", &DeleteParams::default().grace_period(3)).await.unwrap();
    let request = hooks.only();
    assert_eq!(request["object"], json!(null));
    assert_eq!(
        (&request["name"], &request["oldObject"]["metadata"]["name"]),
        (&json!("a"), &json!("a"))
    );
    assert_eq!(
        (&request["options"]["kind"], &request["options"]["gracePeriodSeconds"]),
        (&json!("DeleteOptions"), &json!(3))
    );
    let refused = status(api.delete("b", &DeleteParams::default()).await);
    assert_eq!(
        (refused.code, refused.reason.as_str(), refused.message.as_str()),
        (
            400,
            "",
            "admission webhook \"stay.example.com\" denied the request: too big to go"
        )
    );
    hooks.take();
    let refused = status(
        api.delete_collection(&DeleteParams::default(), &ListParams::default())
            .await,
    );
    assert_eq!(refused.code, 400);
    assert!(
        hooks
            .take()
            .iter()
            .all(|review| review["request"]["operation"] == "DELETE")
    );
    assert!(api.get("b").await.is_ok());
    forget(&client, "stay").await;
    api.delete("b", &DeleteParams::default()).await.unwrap();
}
