//! Definitions and their objects.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, ValidationDirective};
use serde_json::json;

use crate::support::{gone, install, start, status, widget, widget_crd, widgets};

#[tokio::test]
async fn a_definition_is_established_and_served_at_once() {
    let (_server, client) = start().await;
    install(&client, &widget_crd()).await;
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let crd = crds.get("widgets.example.com").await.unwrap();
    let crd_status = crd.status.unwrap();
    let conditions = crd_status.conditions.unwrap();
    assert!(
        conditions
            .iter()
            .any(|c| c.type_ == "Established" && c.status == "True")
    );
    assert_eq!(crd_status.stored_versions.unwrap(), ["v1"]);
    let api = widgets(&client, "v1");
    let made = api
        .create(
            &PostParams::default(),
            &widget("a", json!({"size": 1, "unknown": true})),
        )
        .await
        .unwrap();
    assert_eq!(made.data["spec"], json!({"size": 1, "color": "red", "replicas": 1}));
    assert_eq!(made.metadata.generation, Some(1));
    // The other version shows the same object.
    let old = widgets(&client, "v1alpha1").get("a").await.unwrap();
    assert_eq!(old.types.unwrap().api_version, "example.com/v1alpha1");
    let red = api.list(&ListParams::default().fields("spec.color=red")).await.unwrap();
    assert_eq!(red.items.len(), 1);
}

#[tokio::test]
async fn invalid_objects_are_refused_with_causes() {
    let (_server, client) = start().await;
    install(&client, &widget_crd()).await;
    let api = widgets(&client, "v1");
    let refused = status(
        api.create(
            &PostParams::default(),
            &widget("a", json!({"size": 0, "color": "green"})),
        )
        .await,
    );
    assert_eq!((refused.code, refused.reason.as_str()), (422, "Invalid"));
    let details = refused.details.unwrap();
    let mut fields: Vec<_> = details
        .causes
        .iter()
        .map(|c| (c.field.as_str(), c.reason.as_str()))
        .collect();
    fields.sort_unstable();
    assert_eq!(
        fields,
        [
            ("spec.color", "FieldValueNotSupported"),
            ("spec.size", "FieldValueInvalid")
        ]
    );
    let strict = PatchParams {
        field_validation: Some(ValidationDirective::Strict),
        ..PatchParams::apply("me")
    };
    let refused = status(
        api.patch("a", &strict, &Patch::Apply(widget("a", json!({"size": 1, "sise": 2}))))
            .await,
    );
    let why = "failed to create typed patch object (/a; example.com/v1, Kind=Widget): .spec.sise: field not declared in schema";
    assert_eq!((refused.code, refused.message.as_str()), (500, why));
    let no_version = status(
        api.replace("b", &PostParams::default(), &widget("b", json!({"size": 1})))
            .await,
    );
    assert_eq!(no_version.code, 404);
}

#[tokio::test]
async fn status_is_written_apart() {
    let (_server, client) = start().await;
    install(&client, &widget_crd()).await;
    let api = widgets(&client, "v1");
    api.create(&PostParams::default(), &widget("a", json!({"size": 1})))
        .await
        .unwrap();
    let patch = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a", "labels": {"x": "y"}}, "status": {"phase": "Fine"}});
    let after = api
        .patch_status("a", &PatchParams::apply("ctl").force(), &Patch::Apply(&patch))
        .await
        .unwrap();
    assert_eq!(after.data["status"]["phase"], "Fine");
    assert_eq!(after.metadata.generation, Some(1));
    assert_eq!(after.metadata.labels, None);
    let again = api
        .patch_status("a", &PatchParams::apply("ctl").force(), &Patch::Apply(&patch))
        .await
        .unwrap();
    assert_eq!(again.metadata.resource_version, after.metadata.resource_version);
    let patch = json!({"spec": {"size": 2}, "status": {"phase": "Bad"}});
    let after = api
        .patch("a", &PatchParams::default(), &Patch::Merge(&patch))
        .await
        .unwrap();
    assert_eq!(after.data["status"]["phase"], "Fine");
    assert_eq!(after.metadata.generation, Some(2));
    let scale = api.get_scale("a").await.unwrap();
    assert_eq!(scale.spec.unwrap().replicas, Some(1));
}

#[tokio::test]
async fn a_definition_takes_its_objects_along() {
    let (_server, client) = start().await;
    install(&client, &widget_crd()).await;
    let api = widgets(&client, "v1");
    for name in ["a", "b"] {
        api.create(&PostParams::default(), &widget(name, json!({"size": 1})))
            .await
            .unwrap();
    }
    let patch = json!({"metadata": {"finalizers": ["example.com/hold"]}});
    api.patch("a", &PatchParams::default(), &Patch::Merge(&patch))
        .await
        .unwrap();
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    assert!(
        crds.delete("widgets.example.com", &DeleteParams::default())
            .await
            .unwrap()
            .is_left()
    );
    gone(&api, "b").await;
    let refused = status(
        api.create(&PostParams::default(), &widget("c", json!({"size": 1})))
            .await,
    );
    assert_eq!(refused.code, 403);
    let patch = json!({"metadata": {"finalizers": null}});
    api.patch("a", &PatchParams::default(), &Patch::Merge(&patch))
        .await
        .unwrap();
    gone(&crds, "widgets.example.com").await;
    assert_eq!(status(api.get("a").await).message, "404 page not found");
    // The definition can be created again, without objects.
    install(&client, &widget_crd()).await;
    assert!(api.list(&ListParams::default()).await.unwrap().items.is_empty());
}

#[tokio::test]
async fn broken_definitions_are_refused() {
    let (_server, client) = start().await;
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let mut crd = widget_crd();
    crd["metadata"]["name"] = "gadgets.example.com".into();
    let crd: CustomResourceDefinition = serde_json::from_value(crd).unwrap();
    let refused = status(crds.create(&PostParams::default(), &crd).await);
    assert_eq!(refused.code, 422);
    assert!(
        refused.message.contains("must be spec.names.plural+\".\"+spec.group"),
        "{}",
        refused.message
    );
}
