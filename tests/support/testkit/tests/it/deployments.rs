//! The replacement for the Deployment controller and kubelets.

use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;
use windlass_testkit::{Deployments, Fate, Objects, Server, Which};

fn deployment(name: &str, replicas: i32, image: &str) -> Deployment {
    serde_json::from_value(json!({
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"a": name}},
            "template": {"metadata": {"labels": {"a": name}}, "spec": {"containers": [{"name": "c", "image": image}]}},
        },
    }))
    .unwrap()
}

/// Waits until a Deployment has this many available replicas of its current generation, and this reason of its progress.
async fn wait(objects: &Objects, name: &str, available: i32, reason: &str) {
    let key = windlass_controller_runtime::ObjectKey::new("default", name);
    let is_so = |deployment: &Deployment| {
        let Some(status) = &deployment.status else {
            return false;
        };
        status.observed_generation == deployment.metadata.generation
            && status.available_replicas.unwrap_or_default() == available
            && status
                .conditions
                .iter()
                .flatten()
                .any(|c| c.reason.as_deref() == Some(reason))
    };
    objects.wait_for(&key, reason, is_so).await;
}

#[tokio::test]
async fn deployments_run_are_held_back_or_fail_as_configured() {
    let server = Server::start().await;
    let objects = Objects::new(server.client("test"));
    let api: Api<Deployment> = objects.api();
    let create = async |deployment: Deployment| {
        api.create(&PostParams::default(), &deployment).await.unwrap();
    };
    create(deployment("before", 1, "i:v1")).await;
    let runs = Deployments::run(server.client("kubelet"));
    runs.let_them(Which::named("default", "held"), Fate::IsHeld);
    runs.let_them(Which::all().with_image(":v2"), Fate::Fails);
    create(deployment("held", 2, "i:v1")).await;
    create(deployment("after", 3, "i:v1")).await;
    wait(&objects, "before", 1, "NewReplicaSetAvailable").await;
    wait(&objects, "after", 3, "NewReplicaSetAvailable").await;
    wait(&objects, "held", 0, "ReplicaSetUpdated").await;

    let fails = json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "i:v2"}]}}}});
    let patch = async |name: &str, patch: serde_json::Value| {
        api.patch(name, &PatchParams::default(), &Patch::Strategic(&patch))
            .await
            .unwrap();
    };
    patch("before", fails).await;
    wait(&objects, "before", 0, "ProgressDeadlineExceeded").await;
    patch("after", json!({"spec": {"replicas": 0}})).await;
    wait(&objects, "after", 0, "NewReplicaSetAvailable").await;

    // A Deployment that is created again is held as well.
    api.delete("held", &DeleteParams::background()).await.unwrap();
    objects
        .wait_all("held is gone", |all: &[Deployment]| all.len() == 2)
        .await;
    create(deployment("held", 2, "i:v1")).await;
    wait(&objects, "held", 0, "ReplicaSetUpdated").await;
    runs.let_them(Which::all(), Fate::Runs);
    wait(&objects, "held", 2, "NewReplicaSetAvailable").await;
    wait(&objects, "before", 1, "NewReplicaSetAvailable").await;
    drop(runs);
    server.stop().await;
}
