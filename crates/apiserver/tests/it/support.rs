//! Servers and clients for tests.

use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DynamicObject, PostParams, WatchEvent, WatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use windlass_apiserver::{ApiServer, Options, UserInfo};
use windlass_store::{Limits, Store};

pub(crate) async fn server() -> ApiServer {
    ApiServer::start(Options::new(Store::memory(Limits::default())))
        .await
        .unwrap()
}

pub(crate) fn client(server: &ApiServer) -> Client {
    Client::new(server.client_service(UserInfo::admin("test")), "default")
}

pub(crate) async fn start() -> (ApiServer, Client) {
    let server = server().await;
    let client = client(&server);
    (server, client)
}

/// The status of an error.
pub(crate) fn status<T: std::fmt::Debug>(result: kube::Result<T>) -> kube::core::Status {
    match result {
        Err(kube::Error::Api(status)) => *status,
        other => panic!("expected an API error, got {other:?}"),
    }
}

/// Waits until no object has the name.
pub(crate) async fn gone<K>(api: &Api<K>, name: &str)
where
    K: kube::Resource + Clone + std::fmt::Debug + serde::de::DeserializeOwned + Send + 'static,
{
    let wait = async {
        loop {
            let fields = format!("metadata.name={name}");
            let list = api
                .list(&kube::api::ListParams::default().fields(&fields))
                .await
                .unwrap();
            if list.items.is_empty() {
                return;
            }
            let version = list.metadata.resource_version.unwrap();
            let params = WatchParams::default().fields(&fields).timeout(20);
            let mut events = api.watch(&params, &version).await.unwrap().boxed();
            while let Some(event) = events.next().await {
                if matches!(event, Ok(WatchEvent::Deleted(_))) {
                    return;
                }
            }
        }
    };
    tokio::time::timeout(Duration::from_mins(1), wait)
        .await
        .expect("it should go");
}

pub(crate) fn widget_crd() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"], "categories": ["toys"]},
            "versions": [
                {"name": "v1", "served": true, "storage": true,
                 "schema": {"openAPIV3Schema": {
                    "type": "object", "required": ["spec"],
                    "properties": {
                        "spec": {"type": "object", "required": ["size"], "properties": {
                            "size": {"type": "integer", "minimum": 1, "description": "How big it is."},
                            "color": {"type": "string", "default": "red", "enum": ["red", "blue"]},
                            "replicas": {"type": "integer", "default": 1},
                            "parts": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                                "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "count": {"type": "integer"}}}},
                        }},
                        "status": {"type": "object", "properties": {
                            "replicas": {"type": "integer"}, "selector": {"type": "string"}, "phase": {"type": "string"},
                        }},
                    }}},
                 "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector"}},
                 "selectableFields": [{"jsonPath": ".spec.color"}],
                 "additionalPrinterColumns": [
                    {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
                    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                 ]},
                {"name": "v1alpha1", "served": true, "storage": false,
                 "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}},
            ],
        },
    })
}

pub(crate) async fn install(client: &Client, crd: &Value) {
    let crd: CustomResourceDefinition = serde_json::from_value(crd.clone()).unwrap();
    Api::<CustomResourceDefinition>::all(client.clone())
        .create(&PostParams::default(), &crd)
        .await
        .unwrap();
}

pub(crate) fn widgets(client: &Client, version: &str) -> Api<DynamicObject> {
    let resource = ApiResource {
        group: "example.com".to_owned(),
        version: version.to_owned(),
        api_version: format!("example.com/{version}"),
        kind: "Widget".to_owned(),
        plural: "widgets".to_owned(),
    };
    Api::namespaced_with(client.clone(), "default", &resource)
}

pub(crate) fn widget(name: &str, spec: Value) -> DynamicObject {
    serde_json::from_value(json!({
        "apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec,
    }))
    .unwrap()
}
