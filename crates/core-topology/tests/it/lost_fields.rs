//! An API server or a tool for backups drops `managedFields`: what the topology no longer has still goes.

use serde_json::{Value, json};

use crate::env::Env;

const CONTROL_PLANE: &str = "vsphere-prod-cluster-template-kcp";

fn arguments(arguments: &Value) -> Value {
    let config = json!({"clusterConfiguration": {"apiServer": {"extraArgs": arguments}}});
    json!({"spec": {"template": {"spec": {"kubeadmConfigSpec": config}}}})
}

fn no_arguments() -> Value {
    json!({"spec": {"template": {"spec": {"kubeadmConfigSpec": {"clusterConfiguration": null}}}}})
}

fn labels(labels: &Value) -> Value {
    json!({"spec": {"topology": {"controlPlane": {"metadata": {"labels": labels}}}}})
}

fn arguments_of(control_plane: &Value) -> Vec<&str> {
    let config = &control_plane["spec"]["kubeadmConfigSpec"]["clusterConfiguration"];
    let arguments = config["apiServer"]["extraArgs"].as_array().into_iter().flatten();
    arguments.filter_map(|argument| argument["name"].as_str()).collect()
}

/// Waits until the control plane is as it should be.
async fn control_plane(env: &Env, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    env.wait(what, async || {
        let mut all = env.generated("KubeadmControlPlane").await;
        all.pop().filter(|control_plane| is_so(control_plane))
    })
    .await
}

/// A topology whose control plane has an argument and a label.
async fn with_argument_and_label(env: &Env) -> String {
    env.apply_example().await;
    env.merge(
        "KubeadmControlPlaneTemplate",
        CONTROL_PLANE,
        arguments(&json!([{"name": "v", "value": "4"}])),
    )
    .await;
    env.merge("Cluster", "foo", labels(&json!({"team": "a"}))).await;
    let made = control_plane(env, "the argument and the label", |control_plane| {
        arguments_of(control_plane) == ["v"] && control_plane["metadata"]["labels"]["team"] == "a"
    })
    .await;
    made["metadata"]["name"].as_str().unwrap().to_owned()
}

async fn lose(env: &Env, name: &str) {
    env.merge(
        "KubeadmControlPlane",
        name,
        json!({"metadata": {"managedFields": [{}]}}),
    )
    .await;
}

fn managers(object: &Value) -> Vec<&str> {
    let entries = object["metadata"]["managedFields"].as_array().into_iter().flatten();
    entries.filter_map(|entry| entry["manager"].as_str()).collect()
}

#[tokio::test]
async fn field_managers_that_were_lost_are_restored() {
    let env = Env::start_unadmitted().await;
    let name = with_argument_and_label(&env).await;
    lose(&env, &name).await;
    control_plane(&env, "its field managers", |control_plane| {
        managers(control_plane) == ["capi-topology"]
    })
    .await;
    env.merge("KubeadmControlPlaneTemplate", CONTROL_PLANE, no_arguments())
        .await;
    env.merge("Cluster", "foo", labels(&json!(null))).await;
    control_plane(&env, "without argument and label", |control_plane| {
        arguments_of(control_plane).is_empty() && control_plane["metadata"]["labels"]["team"].is_null()
    })
    .await;
    env.stop().await;
}

// No controller saw whose field it was.
#[tokio::test]
async fn an_argument_goes_although_the_managers_were_lost_while_no_controller_ran() {
    let mut env = Env::start_unadmitted().await;
    let name = with_argument_and_label(&env).await;
    env.restart_after(async |env| {
        lose(env, &name).await;
        env.merge(
            "KubeadmControlPlaneTemplate",
            CONTROL_PLANE,
            arguments(&json!([{"name": "a", "value": "b"}])),
        )
        .await;
    })
    .await;
    control_plane(&env, "only the new argument", |control_plane| {
        arguments_of(control_plane) == ["a"]
    })
    .await;
    env.stop().await;
}
