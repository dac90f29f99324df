//! Objects of our kinds are converted for an API server, and its definitions say where.

use std::path::Path;

use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use windlass_api::core::MachineDrainRule;
use windlass_api::crd::crd;
use windlass_api_older::OLDER;
use windlass_testkit::define;
use windlass_webhook::Certificates;

use crate::certificates::write_files;
use crate::support::{Serving, World, until};

const NAME: &str = "machinedrainrules.cluster.x-k8s.io";

/// The definition as a manager installs it before anything converts.
fn definition() -> Value {
    let mut definition = crd::<MachineDrainRule>();
    let older = OLDER.iter().filter(|older| older.kind == "MachineDrainRule");
    for older in older {
        let mut version = (older.definition)();
        version["served"] = false.into();
        definition["spec"]["versions"].as_array_mut().unwrap().push(version);
    }
    definition
}

fn definitions(world: &World) -> Api<DynamicObject> {
    let gvk = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let resource = ApiResource::from_gvk_with_plural(&gvk, "customresourcedefinitions");
    Api::all_with(world.client.clone(), &resource)
}

async fn stored(world: &World) -> Value {
    let found = definitions(world).get(NAME).await.unwrap();
    serde_json::to_value(found).unwrap()
}

fn rules(world: &World, version: &str) -> Api<DynamicObject> {
    let gvk = GroupVersionKind::gvk("cluster.x-k8s.io", version, "MachineDrainRule");
    let resource = ApiResource::from_gvk_with_plural(&gvk, "machinedrainrules");
    Api::default_namespaced_with(world.client.clone(), &resource)
}

/// Whether an object that is written in v1beta1 is read in v1beta2.
async fn is_converted(world: &World, name: &str) -> bool {
    let object = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "MachineDrainRule", "metadata": {"name": name},
        "spec": {"drain": {"behavior": "Drain", "order": 3}},
    });
    let object: DynamicObject = serde_json::from_value(object).unwrap();
    let made = rules(world, "v1beta1").create(&PostParams::default(), &object).await;
    let seen = rules(world, "v1beta2").get(name).await;
    let is_made = made.is_ok_and(|made| made.data["spec"]["drain"]["order"] == 3);
    let is_seen = seen.is_ok_and(|seen| seen.data["spec"]["drain"]["order"] == 3);
    if is_made {
        let deleted = rules(world, "v1beta1").delete(name, &DeleteParams::default()).await;
        deleted.unwrap();
    }
    is_made && is_seen
}

#[tokio::test]
async fn older_versions_are_served_from_the_start_and_drift_is_repaired() {
    let world = World::start().await;
    define(&world.client, &[definition()]).await;
    let serving = Serving::new();
    let webhooks = serving.start(world.client.clone()).await.unwrap();
    let right = stored(&world).await["spec"].clone();
    let client = &right["conversion"]["webhook"]["clientConfig"];
    let address = serving.socket.local_addr().unwrap();
    assert_eq!(client["url"], format!("https://{address}/convert"));
    assert!(
        right["versions"]
            .as_array()
            .unwrap()
            .iter()
            .all(|version| version["served"] == true)
    );
    until("objects are converted", || is_converted(&world, "a")).await;

    let none = json!({"spec": {"conversion": {"strategy": "None", "webhook": null}}});
    let changed = definitions(&world)
        .patch(NAME, &PatchParams::default(), &Patch::Merge(&none))
        .await;
    changed.unwrap();
    until("the conversion is back", async || stored(&world).await["spec"] == right).await;
    let mut closed = right["versions"].clone();
    closed[1]["served"] = false.into();
    let closed = json!({"spec": {"versions": closed}});
    let changed = definitions(&world)
        .patch(NAME, &PatchParams::default(), &Patch::Merge(&closed))
        .await;
    changed.unwrap();
    until("the older version is served again", async || {
        stored(&world).await["spec"] == right
    })
    .await;
    until("objects are converted again", || is_converted(&world, "b")).await;
    webhooks.shutdown().await;
}

#[tokio::test]
async fn definitions_trust_a_new_authority_before_it_is_used() {
    let world = World::start().await;
    define(&world.client, &[definition()]).await;
    let folder = tempfile::tempdir().unwrap();
    let path: &Path = folder.path();
    write_files(path, &["127.0.0.1"]);
    let serving = Serving {
        certificates: Certificates::Folder(path.to_owned()),
        ..Serving::new()
    };
    let webhooks = serving.start(world.client.clone()).await.unwrap();
    until("objects are converted", || is_converted(&world, "a")).await;
    let bundle = async || stored(&world).await["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"].clone();
    let before = bundle().await;
    write_files(path, &["127.0.0.1"]);
    until("the definition has the new authority", async || {
        bundle().await != before
    })
    .await;
    until("objects are converted with the new certificate", || {
        is_converted(&world, "b")
    })
    .await;
    webhooks.shutdown().await;
}
