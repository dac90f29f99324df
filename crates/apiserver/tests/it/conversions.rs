//! Versions whose objects are converted in the process of the server.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::StreamExt as _;
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams,
};
use kube::{Api, Client};
use serde_json::{Value, json};
use windlass_apiserver::{
    AdmissionHook, AdmissionRequest, ApiError, ApiServer, Converter, Definitions, Options, UserInfo,
};
use windlass_store::{Limits, Store};

use crate::support::{client, install, status};

/// In v1beta1, `size` is called `length`, and `refersTo` names the version that the definition of its kind says.
#[derive(Debug, Default)]
struct Renaming {
    converted: AtomicUsize,
}

impl Converter for Renaming {
    fn knows(&self, kind: &str, from: &str, to: &str) -> bool {
        let is_known = |version: &str| matches!(version, "example.com/v1" | "example.com/v1beta1");
        kind == "Gadget" && is_known(from) && is_known(to)
    }

    fn convert(&self, object: &[u8], wanted: &str, definitions: &dyn Definitions) -> Result<Vec<u8>, String> {
        self.converted.fetch_add(1, Ordering::SeqCst);
        let mut object: Value = serde_json::from_slice(object).map_err(|error| error.to_string())?;
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let (was, is) = if wanted == "example.com/v1" {
            ("length", "size")
        } else {
            ("size", "length")
        };
        if let Some(spec) = object["spec"].as_object_mut() {
            if let Some(value) = spec.remove(was) {
                if value == 13 {
                    return Err(format!(
                        "Gadget {name} cannot be converted to {wanted}: spec.{was}: is 13"
                    ));
                }
                spec.insert(is.to_owned(), value);
            }
            spec.remove("refersTo");
            if wanted == "example.com/v1beta1" {
                let found = definitions.definition("example.com", "Gadget").ok_or("no definition")?;
                let label = found.labels.get("contract").map_or("none", String::as_str);
                spec.insert(
                    "refersTo".to_owned(),
                    format!("{label}: {}", found.serves("v1beta1")).into(),
                );
            }
        }
        object["apiVersion"] = wanted.into();
        // The apiVersion is first.
        let rest = object.to_string();
        Ok(rest.into_bytes())
    }
}

/// Refuses what is too large, in the storage version, and completes colours.
struct Limit;

impl AdmissionHook for Limit {
    fn complete(
        &self,
        request: &AdmissionRequest<'_>,
        object: &mut Value,
        _: &mut Vec<String>,
    ) -> Result<bool, ApiError> {
        if request.kind != "Gadget" || object["spec"].get("color").is_some() {
            return Ok(false);
        }
        assert_eq!(
            (request.version, &object["apiVersion"]),
            ("v1", &json!("example.com/v1"))
        );
        object["spec"]["color"] = "blue".into();
        Ok(true)
    }

    fn check(&self, request: &AdmissionRequest<'_>, object: &Value, _: &mut Vec<String>) -> Result<(), ApiError> {
        if request.kind == "Gadget" && object["spec"]["size"].as_i64() > Some(100) {
            return Err(ApiError::new(403, "Forbidden", "spec.size: is too large".to_owned()));
        }
        Ok(())
    }
}

fn gadget_crd(strategy: Value) -> Value {
    let version = |name: &str, size: &str, is_stored: bool| {
        json!({
            "name": name, "served": true, "storage": is_stored, "deprecated": !is_stored,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "spec": {"type": "object", "properties": {
                    size: {"type": "integer"}, "color": {"type": "string"}, "refersTo": {"type": "string"},
                    "replicas": {"type": "integer", "default": if is_stored { 1 } else { 2 }},
                }},
                "status": {"type": "object", "properties": {"phase": {"type": "string"}, "replicas": {"type": "integer"}}},
            }}},
            "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}},
            "selectableFields": [{"jsonPath": format!(".spec.{size}")}],
            "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": format!(".spec.{size}")}],
        })
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "gadgets.example.com", "labels": {"contract": "first"}},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "gadgets", "kind": "Gadget"},
            "versions": [version("v1beta1", "length", false), version("v1", "size", true)],
            "conversion": strategy,
        },
    })
}

async fn start_with(options: impl FnOnce(&mut Options)) -> (ApiServer, Client, Arc<Renaming>) {
    let converter = Arc::new(Renaming::default());
    let mut all = Options::new(Store::memory(Limits::default()));
    all.converter = Some(Arc::<Renaming>::clone(&converter));
    options(&mut all);
    let server = ApiServer::start(all).await.unwrap();
    let client = client(&server);
    install(&client, &gadget_crd(json!({"strategy": "None"}))).await;
    (server, client, converter)
}

async fn start() -> (ApiServer, Client, Arc<Renaming>) {
    start_with(|_| {}).await
}

fn gadgets(client: &Client, version: &str) -> Api<DynamicObject> {
    let resource = ApiResource {
        group: "example.com".to_owned(),
        version: version.to_owned(),
        api_version: format!("example.com/{version}"),
        kind: "Gadget".to_owned(),
        plural: "gadgets".to_owned(),
    };
    Api::namespaced_with(client.clone(), "default", &resource)
}

fn gadget(version: &str, name: &str, spec: Value) -> DynamicObject {
    let object = json!({
        "apiVersion": format!("example.com/{version}"), "kind": "Gadget", "metadata": {"name": name}, "spec": spec,
    });
    serde_json::from_value(object).unwrap()
}

fn spec(object: &DynamicObject) -> &Value {
    &object.data["spec"]
}

async fn raw(client: &Client, path: &str, accept: &str) -> Value {
    let request = http::Request::get(path)
        .header("accept", accept)
        .body(Vec::new())
        .unwrap();
    client.request(request).await.unwrap()
}

#[tokio::test]
async fn objects_are_converted_in_every_verb() {
    let (_server, client, _) = start().await;
    let (older, newer) = (gadgets(&client, "v1beta1"), gadgets(&client, "v1"));
    let params = PostParams::default();
    let made = older
        .create(&params, &gadget("v1beta1", "a", json!({"length": 3})))
        .await
        .unwrap();
    let expect = json!({"length": 3, "replicas": 2, "refersTo": "first: true"});
    assert_eq!(spec(&made), &expect);
    assert_eq!(spec(&newer.get("a").await.unwrap()), &json!({"size": 3, "replicas": 2}));
    newer
        .create(&params, &gadget("v1", "b", json!({"size": 4})))
        .await
        .unwrap();
    let listed = older.list(&ListParams::default()).await.unwrap();
    let lengths: Vec<_> = listed
        .items
        .iter()
        .map(|item| item.data["spec"]["length"].as_i64())
        .collect();
    assert_eq!(lengths, [Some(3), Some(4)]);
    assert!(
        listed
            .items
            .iter()
            .all(|item| item.types.as_ref().unwrap().api_version == "example.com/v1beta1")
    );
    // Field selectors know the fields of their version.
    let found = older
        .list(&ListParams::default().fields("spec.length=4"))
        .await
        .unwrap();
    assert_eq!(found.items.len(), 1);
    // Patches, and an update.
    let patch = Patch::Merge(json!({"spec": {"length": 5}}));
    let patched = older.patch("b", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(spec(&patched)["length"], 5);
    let operations = json!([{"op": "replace", "path": "/spec/length", "value": 6}]);
    let request = http::Request::patch("/apis/example.com/v1beta1/namespaces/default/gadgets/b")
        .header("content-type", "application/json-patch+json")
        .body(operations.to_string().into_bytes());
    let mut patched: DynamicObject = client.request(request.unwrap()).await.unwrap();
    assert_eq!(spec(&newer.get("b").await.unwrap())["size"], 6);
    patched.data["spec"]["length"] = json!(7);
    let replaced = older.replace("b", &params, &patched).await.unwrap();
    assert_eq!(spec(&replaced)["length"], 7);
    // A dry run answers as the write would, and stores nothing.
    let dry = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let mut dried = replaced.clone();
    dried.data["spec"]["length"] = json!(8);
    assert_eq!(spec(&older.replace("b", &dry, &dried).await.unwrap())["length"], 8);
    assert_eq!(spec(&newer.get("b").await.unwrap())["size"], 7);
    // Subresources.
    let patch = Patch::Merge(json!({"status": {"phase": "Done", "replicas": 1}}));
    let patched = older.patch_status("b", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(
        (&patched.data["status"]["phase"], &spec(&patched)["length"]),
        (&json!("Done"), &json!(7))
    );
    let patch = Patch::Merge(json!({"spec": {"replicas": 9}}));
    older.patch_scale("b", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(spec(&newer.get("b").await.unwrap()), &json!({"size": 7, "replicas": 9}));
    // An unknown field is one of the requested version.
    let create = |validation: &str| {
        let object = json!({"apiVersion": "example.com/v1beta1", "kind": "Gadget", "metadata": {"name": "c"}, "spec": {"size": 1}});
        let path = format!("/apis/example.com/v1beta1/namespaces/default/gadgets?fieldValidation={validation}");
        let request = http::Request::post(path).header("content-type", "application/json");
        client.request::<Value>(request.body(object.to_string().into_bytes()).unwrap())
    };
    let refused = status(create("Strict").await);
    assert!(
        refused.message.contains("unknown field \"spec.size\""),
        "{}",
        refused.message
    );
    assert_eq!(create("Warn").await.unwrap()["spec"].get("length"), None);
    older.delete("c", &DeleteParams::default()).await.unwrap();
    let mode = DeleteParams::default();
    older
        .delete_collection(&mode, &ListParams::default().fields("spec.length=7"))
        .await
        .unwrap();
    let left = newer.list(&ListParams::default()).await.unwrap();
    assert_eq!(left.items.len(), 1);
}

#[tokio::test]
async fn lists_of_pages_convert_only_what_they_have() {
    let (_server, client, converter) = start().await;
    let (older, newer) = (gadgets(&client, "v1beta1"), gadgets(&client, "v1"));
    for at in 0..20 {
        let object = gadget("v1", &format!("g{at:02}"), json!({"size": at + 20}));
        newer.create(&PostParams::default(), &object).await.unwrap();
    }
    let before = converter.converted.load(Ordering::SeqCst);
    assert_eq!(before, 0, "the storage version is never converted");
    let mut params = ListParams::default().limit(8);
    let mut names = Vec::new();
    loop {
        let page = older.list(&params).await.unwrap();
        assert!(page.items.iter().all(|item| item.data["spec"]["length"].is_i64()));
        names.extend(page.items.into_iter().filter_map(|item| item.metadata.name));
        match page.metadata.continue_ {
            Some(token) if !token.is_empty() => params = params.continue_token(&token),
            _ => break,
        }
    }
    assert_eq!((names.len(), converter.converted.load(Ordering::SeqCst)), (20, 20));
    let path = "/apis/example.com/v1beta1/namespaces/default/gadgets?limit=1";
    let table = raw(&client, path, "application/json;as=Table;v=v1;g=meta.k8s.io").await;
    assert_eq!(table["rows"][0]["cells"][1], 20);
    newer.list(&ListParams::default()).await.unwrap();
    assert_eq!(converter.converted.load(Ordering::SeqCst), 21);
}

#[tokio::test]
async fn watches_share_the_conversion_of_a_change() {
    let (_server, client, converter) = start().await;
    let (older, newer) = (gadgets(&client, "v1beta1"), gadgets(&client, "v1"));
    newer
        .create(&PostParams::default(), &gadget("v1", "a", json!({"size": 1})))
        .await
        .unwrap();
    let mut watches = Vec::new();
    for _ in 0..10 {
        let mut events = older
            .watch(&WatchParams::default().timeout(60), "0")
            .await
            .unwrap()
            .boxed();
        let first = events.next().await.unwrap().unwrap();
        assert!(
            matches!(&first, WatchEvent::Added(object) if spec(object)["length"] == 1),
            "{first:?}"
        );
        watches.push(events);
    }
    let before = converter.converted.load(Ordering::SeqCst);
    let patch = Patch::Merge(json!({"spec": {"size": 2}}));
    let patched = newer.patch("a", &PatchParams::default(), &patch).await.unwrap();
    for events in &mut watches {
        let next = tokio::time::timeout(Duration::from_mins(1), events.next())
            .await
            .unwrap();
        let WatchEvent::Modified(object) = next.unwrap().unwrap() else {
            panic!("a modified object")
        };
        assert_eq!(
            (spec(&object)["length"].as_i64(), &object.metadata.resource_version),
            (Some(2), &patched.metadata.resource_version)
        );
    }
    assert_eq!(converter.converted.load(Ordering::SeqCst), before + 1);
    newer.delete("a", &DeleteParams::default()).await.unwrap();
    for events in &mut watches {
        let next = tokio::time::timeout(Duration::from_mins(1), events.next())
            .await
            .unwrap();
        assert!(matches!(next.unwrap().unwrap(), WatchEvent::Deleted(object) if spec(&object)["length"] == 2));
    }
}

#[tokio::test]
async fn an_object_that_cannot_be_converted_is_named() {
    let (_server, client, _) = start().await;
    let (older, newer) = (gadgets(&client, "v1beta1"), gadgets(&client, "v1"));
    newer
        .create(&PostParams::default(), &gadget("v1", "bad", json!({"size": 13})))
        .await
        .unwrap();
    let why = "conversion webhook for example.com/v1, Kind=Gadget failed: Gadget bad cannot be converted to example.com/v1beta1: \
               spec.size: is 13";
    let refused = status(older.get("bad").await);
    assert_eq!((refused.code, refused.message.as_str()), (500, why));
    assert_eq!(status(older.list(&ListParams::default()).await).message, why);
    let worse = gadget("v1beta1", "worse", json!({"length": 13}));
    let refused = status(older.create(&PostParams::default(), &worse).await);
    assert!(
        refused
            .message
            .contains("Gadget worse cannot be converted to example.com/v1: spec.length"),
        "{refused:?}"
    );
    assert_eq!(newer.list(&ListParams::default()).await.unwrap().items.len(), 1);
}

#[tokio::test]
async fn admission_sees_the_storage_version() {
    let (_server, client, _) = start_with(|options| options.admission.push(Arc::new(Limit))).await;
    let (older, newer) = (gadgets(&client, "v1beta1"), gadgets(&client, "v1"));
    let params = PostParams::default();
    let made = older
        .create(&params, &gadget("v1beta1", "a", json!({"length": 3})))
        .await
        .unwrap();
    assert_eq!(spec(&made)["color"], "blue");
    assert_eq!(
        spec(&newer.get("a").await.unwrap()),
        &json!({"size": 3, "replicas": 2, "color": "blue"})
    );
    let patch = Patch::Merge(json!({"spec": {"length": 101}}));
    let refused = status(older.patch("a", &PatchParams::default(), &patch).await);
    assert_eq!(
        (refused.code, refused.message.as_str()),
        (403, "spec.size: is too large")
    );
}

#[tokio::test]
async fn appliers_of_two_versions_share_an_object() {
    let (_server, client, _) = start().await;
    let (older, newer) = (gadgets(&client, "v1beta1"), gadgets(&client, "v1"));
    let by = |manager: &str| PatchParams::apply(manager);
    let config = |version: &str, spec: Value| Patch::Apply(gadget(version, "a", spec));
    newer
        .patch("a", &by("ours"), &config("v1", json!({"size": 3})))
        .await
        .unwrap();
    let theirs = config("v1beta1", json!({"color": "red", "length": 3}));
    let applied = older.patch("a", &by("theirs"), &theirs).await.unwrap();
    let managers = |object: &DynamicObject| -> Vec<(String, String)> {
        let all = object.metadata.managed_fields.iter().flatten();
        all.map(|entry| (entry.manager.clone().unwrap(), entry.api_version.clone().unwrap()))
            .collect()
    };
    let both =
        [("ours", "example.com/v1"), ("theirs", "example.com/v1beta1")].map(|(a, b)| (a.to_owned(), b.to_owned()));
    assert_eq!(managers(&applied), both);
    // What changes nothing writes nothing, in either version.
    let again = older.patch("a", &by("theirs"), &theirs).await.unwrap();
    assert_eq!(again.metadata.resource_version, applied.metadata.resource_version);
    let again = newer
        .patch("a", &by("ours"), &config("v1", json!({"size": 3})))
        .await
        .unwrap();
    assert_eq!(again.metadata.resource_version, applied.metadata.resource_version);
    // What one of them changes is a conflict with the field of the other one.
    let refused = status(newer.patch("a", &by("ours"), &config("v1", json!({"size": 4}))).await);
    assert_eq!(refused.code, 409);
    assert!(refused.message.contains("\"theirs\""), "{}", refused.message);
    // What the first one applies no more stays the other one's.
    let left = newer
        .patch("a", &by("ours"), &config("v1", json!({"replicas": 5})))
        .await
        .unwrap();
    assert_eq!(spec(&left), &json!({"size": 3, "color": "red", "replicas": 5}));
    assert_eq!(managers(&left), both);
}

#[tokio::test]
async fn a_changed_label_of_a_definition_counts_at_once_and_ends_no_watch() {
    let (_server, client, _) = start().await;
    let (older, newer) = (gadgets(&client, "v1beta1"), gadgets(&client, "v1"));
    newer
        .create(&PostParams::default(), &gadget("v1", "a", json!({})))
        .await
        .unwrap();
    let mut events = older
        .watch(&WatchParams::default().timeout(60), "0")
        .await
        .unwrap()
        .boxed();
    events.next().await.unwrap().unwrap();
    let resource = ApiResource::from_gvk_with_plural(
        &kube::api::GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
        "customresourcedefinitions",
    );
    let definitions: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let patch = Patch::Merge(json!({"metadata": {"labels": {"contract": "second"}}}));
    definitions
        .patch("gadgets.example.com", &PatchParams::default(), &patch)
        .await
        .unwrap();
    assert_eq!(spec(&older.get("a").await.unwrap())["refersTo"], "second: true");
    newer
        .patch(
            "a",
            &PatchParams::default(),
            &Patch::Merge(json!({"spec": {"size": 2}})),
        )
        .await
        .unwrap();
    let next = tokio::time::timeout(Duration::from_mins(1), events.next())
        .await
        .unwrap();
    assert!(
        matches!(next.unwrap().unwrap(), WatchEvent::Modified(object) if spec(&object)["refersTo"] == "second: true")
    );
}

/// What a client does to store objects in another version: it writes them as they are.
#[tokio::test]
async fn a_write_that_changes_nothing_stores_an_object_in_the_storage_version() {
    let (_server, client, _) = start().await;
    let (older, newer) = (gadgets(&client, "v1beta1"), gadgets(&client, "v1"));
    let resource = ApiResource::from_gvk_with_plural(
        &kube::api::GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
        "customresourcedefinitions",
    );
    let definitions: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let store_in = async |version: &str| {
        let mut definition = definitions.get("gadgets.example.com").await.unwrap();
        for one in definition.data["spec"]["versions"].as_array_mut().unwrap() {
            one["storage"] = (one["name"] == version).into();
        }
        definitions
            .replace("gadgets.example.com", &PostParams::default(), &definition)
            .await
            .unwrap();
    };
    store_in("v1beta1").await;
    older
        .create(&PostParams::default(), &gadget("v1beta1", "a", json!({"length": 3})))
        .await
        .unwrap();
    store_in("v1").await;
    let before = newer.get("a").await.unwrap();
    assert_eq!(spec(&before)["size"], 3);
    let nothing = Patch::Merge(json!({"metadata": {"uid": before.metadata.uid}}));
    let after = newer.patch("a", &PatchParams::default(), &nothing).await.unwrap();
    assert_ne!(after.metadata.resource_version, before.metadata.resource_version);
    assert_eq!(
        (spec(&after), after.metadata.generation),
        (spec(&before), before.metadata.generation)
    );
    let again = newer.patch("a", &PatchParams::default(), &nothing).await.unwrap();
    assert_eq!(again.metadata.resource_version, after.metadata.resource_version);
}

#[tokio::test]
async fn a_definition_with_a_webhook_keeps_it() {
    let converter = Arc::new(Renaming::default());
    let mut options = Options::new(Store::memory(Limits::default()));
    options.converter = Some(Arc::<Renaming>::clone(&converter));
    let server = ApiServer::start(options).await.unwrap();
    let client = Client::new(server.client_service(UserInfo::admin("test")), "default");
    let webhook = json!({
        "strategy": "Webhook",
        "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://127.0.0.1:1/convert"}},
    });
    install(&client, &gadget_crd(webhook)).await;
    let older = gadgets(&client, "v1beta1");
    let object = gadget("v1beta1", "a", json!({"length": 3}));
    let refused = status(older.create(&PostParams::default(), &object).await);
    assert!(
        refused.message.contains("https://127.0.0.1:1/convert"),
        "{}",
        refused.message
    );
    assert_eq!(converter.converted.load(Ordering::SeqCst), 0);
}
