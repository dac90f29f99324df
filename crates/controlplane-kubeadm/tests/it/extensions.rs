//! Extensions of the Runtime SDK wake the control planes whose rollout may wait for one.

use std::time::Duration;

use kube::Api;
use kube::api::PostParams;
use serde_json::json;
use windlass_api::runtime::ExtensionConfig;

use crate::guards::{change, says};
use crate::server::World;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_extension_wakes_a_control_plane_that_rolls_out() {
    let world = World::start_unadmitted(1, json!({})).await;
    world.settled(1, "v1.35.0").await;
    // A rollout that cannot go on. Its attempts come ever later.
    change(&world, json!({ "version": "v1.34.9" })).await;
    says(&world, "RollingOut", "older than v1.35.0").await;
    let attempts = || world.kit.metrics().reconciles("kubeadmcontrolplane", "error");
    let another = async |within: Duration| {
        let seen = attempts();
        let changed = async {
            while attempts() == seen {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(within, changed).await.is_ok()
    };
    while another(Duration::from_secs(3)).await {}
    let object = json!({
        "metadata": { "name": "guard" },
        "spec": { "clientConfig": { "url": "https://127.0.0.1:1" }, "namespaceSelector": { "matchLabels": { "a": "b" } } },
    });
    let object: ExtensionConfig = serde_json::from_value(object).unwrap();
    let woken = async {
        let all: Api<ExtensionConfig> = Api::all(world.server.client("test"));
        all.create(&PostParams::default(), &object).await.unwrap();
    };
    let (another, ()) = tokio::join!(another(Duration::from_secs(2)), woken);
    assert!(another, "the extension wakes it");
}
