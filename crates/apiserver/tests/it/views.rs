//! Other forms of responses: tables, metadata, discovery, OpenAPI, the other form of events.

use k8s_openapi::api::core::v1::{ConfigMap, Event as CoreEvent};
use k8s_openapi::api::events::v1::Event;
use kube::api::{ListParams, PartialObjectMeta, PostParams};
use kube::discovery::Discovery;
use kube::{Api, Client};
use serde_json::{Value, json};
use tower::Service as _;

use crate::support::{install, start, widget, widget_crd, widgets};

async fn get(client: &Client, path: &str, accept: &str) -> Value {
    let request = http::Request::get(path)
        .header("accept", accept)
        .body(Vec::new())
        .unwrap();
    client.request(request).await.unwrap()
}

#[tokio::test]
async fn tables_have_the_columns_of_the_definition() {
    let (_server, client) = start().await;
    install(&client, &widget_crd()).await;
    widgets(&client, "v1")
        .create(&PostParams::default(), &widget("a", json!({"size": 7})))
        .await
        .unwrap();
    let path = "/apis/example.com/v1/namespaces/default/widgets";
    let table = get(
        &client,
        path,
        "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
    )
    .await;
    assert_eq!(table["kind"], "Table");
    let names: Vec<&str> = table["columnDefinitions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["Name", "Size", "Age"]);
    assert_eq!(table["rows"][0]["cells"][0], "a");
    assert_eq!(table["rows"][0]["cells"][1], 7);
    assert_eq!(table["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    // An unknown form falls back to JSON.
    let list = get(&client, path, "application/vnd.kubernetes.protobuf,application/json").await;
    assert_eq!(list["kind"], "WidgetList");
}

#[tokio::test]
async fn metadata_alone_can_be_had() {
    let (_server, client) = start().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let map: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "a"}, "data": {"k": "v"}})).unwrap();
    maps.create(&PostParams::default(), &map).await.unwrap();
    let api: Api<PartialObjectMeta<ConfigMap>> = Api::default_namespaced(client);
    let list = api.list(&ListParams::default()).await.unwrap();
    assert_eq!(list.items[0].metadata.name.as_deref(), Some("a"));
}

#[tokio::test]
async fn discovery_names_every_kind() {
    let (_server, client) = start().await;
    install(&client, &widget_crd()).await;
    for discovery in [
        Discovery::new(client.clone()).run().await.unwrap(),
        Discovery::new(client.clone()).run_aggregated().await.unwrap(),
    ] {
        let group = discovery.groups().find(|g| g.name() == "example.com").unwrap();
        assert_eq!(group.preferred_version_or_latest(), "v1");
        let (resource, capabilities) = group.recommended_kind("Widget").unwrap();
        assert_eq!(resource.plural, "widgets");
        assert_eq!(capabilities.subresources.len(), 2);
        assert!(discovery.groups().any(|g| g.name() == "apps"));
    }
}

#[tokio::test]
async fn open_api_documents_hold_all_they_refer_to() {
    let (_server, client) = start().await;
    install(&client, &widget_crd()).await;
    let index = get(&client, "/openapi/v3", "application/json").await;
    let paths = index["paths"].as_object().unwrap();
    assert!(paths.contains_key("api/v1") && paths.contains_key("apis/example.com/v1"));
    for entry in paths.values() {
        let url = entry["serverRelativeURL"].as_str().unwrap();
        let document = get(&client, url, "application/json").await;
        let schemas = document["components"]["schemas"].as_object().unwrap();
        for reference in document.to_string().split("#/components/schemas/").skip(1) {
            let name = reference.split('"').next().unwrap();
            assert!(schemas.contains_key(name), "{name} in {url}");
        }
    }
}

#[tokio::test]
async fn both_event_groups_show_the_same_events() {
    let (_server, client) = start().await;
    let new: Api<Event> = Api::default_namespaced(client.clone());
    let event: Event = serde_json::from_value(json!({
        "metadata": {"name": "e"}, "eventTime": "2026-01-01T00:00:00.000000Z", "reason": "Because", "note": "words", "type": "Normal",
        "action": "Acting", "reportingController": "c", "reportingInstance": "i",
        "regarding": {"kind": "ConfigMap", "name": "a", "namespace": "default"},
    }))
    .unwrap();
    new.create(&PostParams::default(), &event).await.unwrap();
    let core: Api<CoreEvent> = Api::default_namespaced(client);
    let seen = core
        .list(&ListParams::default().fields("involvedObject.name=a,reason=Because"))
        .await
        .unwrap();
    assert_eq!(seen.items[0].message.as_deref(), Some("words"));
    assert_eq!(new.get("e").await.unwrap().note.as_deref(), Some("words"));
}

#[tokio::test]
async fn events_go_an_hour_after_they_were_last_written() {
    let (server, client) = start().await;
    let core: Api<CoreEvent> = Api::default_namespaced(client);
    for name in ["old", "fresh"] {
        let event: CoreEvent =
            serde_json::from_value(json!({"metadata": {"name": name}, "involvedObject": {}})).unwrap();
        core.create(&PostParams::default(), &event).await.unwrap();
    }
    // The task must have seen both before the clock advances.
    tokio::task::yield_now().await;
    tokio::time::pause();
    tokio::time::advance(std::time::Duration::from_mins(30)).await;
    let patch = json!({"count": 2});
    core.patch(
        "fresh",
        &kube::api::PatchParams::default(),
        &kube::api::Patch::Merge(&patch),
    )
    .await
    .unwrap();
    tokio::task::yield_now().await;
    tokio::time::advance(std::time::Duration::from_mins(31)).await;
    while server.store().count("events") > 1 {
        tokio::task::yield_now().await;
    }
    assert!(core.get("fresh").await.is_ok());
}

#[tokio::test]
async fn old_clients_get_one_document_in_protobuf() {
    let (server, client) = start().await;
    install(&client, &widget_crd()).await;
    let document = get(&client, "/openapi/v2", "application/json").await;
    let definitions = document["definitions"].as_object().unwrap();
    for reference in document.to_string().split("#/definitions/").skip(1) {
        let name = reference.split('"').next().unwrap();
        assert!(definitions.contains_key(name), "{name}");
    }
    assert!(!document.to_string().contains("#/components/"));
    let spec = &definitions["com.example.v1.Widget"]["properties"]["spec"];
    assert_eq!(spec["required"], json!(["size"]));
    // Fields that the server accepts without a schema, the client must accept, too.
    assert!(definitions["com.example.v1alpha1.Widget"].get("properties").is_none());

    let request = http::Request::get("/openapi/v2")
        .header("accept", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf")
        .body(kube::client::Body::empty())
        .unwrap();
    let mut service = server.client_service(windlass_apiserver::UserInfo::admin("test"));
    let answer = service.call(request).await.unwrap();
    let media = answer.headers()["content-type"].to_str().unwrap();
    // Go's parser accepts no `@` in a media type.
    assert_eq!(media, "application/com.github.proto-openapi.spec.v2.v1.0+protobuf");
    let bytes = http_body_util::BodyExt::collect(answer.into_body())
        .await
        .unwrap()
        .to_bytes();
    assert!(bytes.starts_with(b"\x0a\x032.0"));
}

#[tokio::test]
async fn reviews_tell_who_asks_and_what_they_may() {
    let (_server, client) = start().await;
    let ask = async |kind: &str, plural: &str, user: &str| {
        let group = if kind == "SelfSubjectReview" {
            "authentication"
        } else {
            "authorization"
        };
        let mut request = http::Request::post(format!("/apis/{group}.k8s.io/v1/{plural}"));
        if !user.is_empty() {
            request = request.header("impersonate-user", user);
        }
        let body = json!({"apiVersion": format!("{group}.k8s.io/v1"), "kind": kind, "spec": {"namespace": "default"}});
        let request = request.body(serde_json::to_vec(&body).unwrap()).unwrap();
        client.request::<Value>(request).await.unwrap()
    };
    let me = ask("SelfSubjectReview", "selfsubjectreviews", "").await;
    assert_eq!(me["status"]["userInfo"]["username"], "test");
    let bob = ask("SelfSubjectReview", "selfsubjectreviews", "bob").await;
    assert_eq!(
        bob["status"]["userInfo"],
        json!({"username": "bob", "groups": ["system:authenticated"]})
    );
    let rules = ask("SelfSubjectRulesReview", "selfsubjectrulesreviews", "").await;
    assert_eq!(rules["status"]["resourceRules"][0]["verbs"], json!(["*"]));
}

#[tokio::test]
async fn pods_without_containers_say_so() {
    let (_server, client) = start().await;
    let log = async |name: &str| {
        let path = format!("/api/v1/namespaces/default/pods/{name}/log");
        let request = http::Request::get(path).body(Vec::new()).unwrap();
        crate::support::status(client.request_text(request).await)
    };
    assert_eq!(log("a").await.reason, "NotFound");
    let pod = json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "a", "image": "a"}]}});
    let pods: Api<k8s_openapi::api::core::v1::Pod> = Api::default_namespaced(client.clone());
    let pod = serde_json::from_value(pod).unwrap();
    pods.create(&PostParams::default(), &pod).await.unwrap();
    assert!(log("a").await.message.contains("runs no containers"));
}
