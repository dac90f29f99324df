//! Deletions and what follows them: garbage collection, namespaces, definitions.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::api::rbac::v1::ClusterRole;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;

use crate::support::{gone, start, status};

async fn make(api: &Api<ConfigMap>, name: &str, owner: Option<&ConfigMap>) -> ConfigMap {
    let mut object: ConfigMap = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
    object.metadata.owner_references = owner.map(|o| {
        vec![OwnerReference {
            api_version: "v1".to_owned(),
            kind: "ConfigMap".to_owned(),
            name: o.metadata.name.clone().unwrap(),
            uid: o.metadata.uid.clone().unwrap(),
            block_owner_deletion: Some(true),
            ..Default::default()
        }]
    });
    api.create(&PostParams::default(), &object).await.unwrap()
}

#[tokio::test]
async fn dependents_go_after_their_owner() {
    let (_server, client) = start().await;
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    let a = make(&api, "a", None).await;
    let b = make(&api, "b", Some(&a)).await;
    make(&api, "c", Some(&b)).await;
    api.delete("a", &DeleteParams::default()).await.unwrap();
    gone(&api, "c").await;
    gone(&api, "b").await;
}

/// A reference to an owner that never existed.
fn stranger(api_version: &str, kind: &str) -> Vec<OwnerReference> {
    vec![OwnerReference {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        name: "x".to_owned(),
        uid: "11111111-2222-3333-4444-555555555555".to_owned(),
        block_owner_deletion: Some(true),
        ..Default::default()
    }]
}

#[tokio::test]
async fn what_may_have_an_owner_elsewhere_stays() {
    let (_server, client) = start().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let roles: Api<ClusterRole> = Api::all(client);
    let owner = make(&maps, "owner", None).await;
    let foreign: ConfigMap = serde_json::from_value(json!({"metadata": {
        "name": "foreign", "ownerReferences": stranger("elsewhere.example.com/v1", "Thing"),
    }}))
    .unwrap();
    maps.create(&PostParams::default(), &foreign).await.unwrap();
    for (name, uid) in [("lives", owner.metadata.uid.as_deref()), ("never-was", None)] {
        let mut owners = stranger("v1", "ConfigMap");
        if let Some(uid) = uid {
            uid.clone_into(&mut owners[0].uid);
        }
        let role: ClusterRole =
            serde_json::from_value(json!({"metadata": {"name": name, "ownerReferences": owners}})).unwrap();
        roles.create(&PostParams::default(), &role).await.unwrap();
    }
    maps.delete("owner", &DeleteParams::foreground()).await.unwrap();
    gone(&maps, "owner").await;
    // The last change is processed last.
    let dangling: ConfigMap =
        serde_json::from_value(json!({"metadata": {"name": "z", "ownerReferences": stranger("v1", "ConfigMap")}}))
            .unwrap();
    maps.create(&PostParams::default(), &dangling).await.unwrap();
    gone(&maps, "z").await;
    maps.get("foreign").await.unwrap();
    roles.get("lives").await.unwrap();
    roles.get("never-was").await.unwrap();
}

#[tokio::test]
async fn a_foreground_deletion_takes_dependents_first() {
    let (_server, client) = start().await;
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    let a = make(&api, "a", None).await;
    make(&api, "b", Some(&a)).await;
    let hold = json!({"metadata": {"finalizers": ["example.com/hold"]}});
    api.patch("b", &PatchParams::default(), &Patch::Merge(&hold))
        .await
        .unwrap();
    assert!(api.delete("a", &DeleteParams::foreground()).await.unwrap().is_left());
    assert!(api.get("a").await.unwrap().metadata.deletion_timestamp.is_some());
    let free = json!({"metadata": {"finalizers": null}});
    api.patch("b", &PatchParams::default(), &Patch::Merge(&free))
        .await
        .unwrap();
    gone(&api, "a").await;
    gone(&api, "b").await;
}

#[tokio::test]
async fn orphans_stay() {
    let (_server, client) = start().await;
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    let a = make(&api, "a", None).await;
    make(&api, "b", Some(&a)).await;
    api.delete("a", &DeleteParams::orphan()).await.unwrap();
    gone(&api, "a").await;
    assert_eq!(api.get("b").await.unwrap().metadata.owner_references, None);
}

#[tokio::test]
async fn a_namespace_takes_everything_along() {
    let (_server, client) = start().await;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace: Namespace = serde_json::from_value(json!({"metadata": {"name": "x"}})).unwrap();
    namespaces.create(&PostParams::default(), &namespace).await.unwrap();
    let api: Api<ConfigMap> = Api::namespaced(client, "x");
    make(&api, "a", None).await;
    let held = make(&api, "b", None).await;
    let hold = json!({"metadata": {"finalizers": ["example.com/hold"]}});
    api.patch("b", &PatchParams::default(), &Patch::Merge(&hold))
        .await
        .unwrap();
    let deleted = namespaces
        .delete("x", &DeleteParams::default())
        .await
        .unwrap()
        .left()
        .unwrap();
    assert_eq!(deleted.status.unwrap().phase.as_deref(), Some("Terminating"));
    gone(&api, "a").await;
    let refused = api
        .create(
            &PostParams::default(),
            &ConfigMap {
                metadata: kube::api::ObjectMeta {
                    name: Some("c".to_owned()),
                    ..Default::default()
                },
                ..held
            },
        )
        .await;
    let refused = status(refused);
    assert_eq!((refused.code, refused.reason.as_str()), (403, "Forbidden"));
    let free = json!({"metadata": {"finalizers": null}});
    api.patch("b", &PatchParams::default(), &Patch::Merge(&free))
        .await
        .unwrap();
    gone(&namespaces, "x").await;
}
