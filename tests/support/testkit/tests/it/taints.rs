//! Taints of Machines on their Nodes.

use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};
use windlass_api::core::Machine;
use windlass_testkit::wait::until;
use windlass_testkit::{CLASS, ClusterOf, Env};

use crate::life::workload;

const KEPT: &str = "example.com/dedicated";
const ONCE: &str = "example.com/start";
const FOREIGN: &str = "example.com/by-a-user";

/// The taints of the workers.
async fn workers(env: &Env, replicas: usize, taints: &Value) {
    let mut workers = json!({"class": "default-worker", "name": "md-0", "replicas": replicas});
    if !taints.is_null() {
        workers["taints"] = taints.clone();
    }
    let patch = json!({"spec": {"topology": {"workers": {"machineDeployments": [workers]}}}});
    env.merge("Cluster", "tainted", &patch).await;
}

/// The keys of a Node's taints, sorted.
fn keys(node: &Node) -> Vec<String> {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    let mut keys: Vec<String> = taints.into_iter().flatten().map(|taint| taint.key.clone()).collect();
    keys.sort();
    keys
}

async fn has(nodes: &Api<Node>, name: &str, want: &[&str]) -> Node {
    let is_so = |all: &[Node]| {
        all.iter()
            .any(|node| node.metadata.name.as_deref() == Some(name) && keys(node) == want)
    };
    let found = until(nodes.clone(), None, is_so).await;
    assert!(
        found.is_some(),
        "the taints of {name} are never {want:?}: {:?}",
        nodes.get(name).await
    );
    nodes.get(name).await.unwrap()
}

/// What a user does to the taints of a Node.
async fn set(nodes: &Api<Node>, name: &str, keys: &[&str]) {
    let taints: Vec<Value> = keys
        .iter()
        .map(|key| json!({"key": key, "effect": "NoSchedule"}))
        .collect();
    let patch = Patch::Merge(json!({"spec": {"taints": taints}}));
    nodes.patch(name, &PatchParams::default(), &patch).await.unwrap();
}

#[tokio::test]
async fn taints_reach_nodes_in_place_and_others_stay() {
    let env = Env::start().await;
    env.apply_yaml(CLASS).await;
    let cluster = ClusterOf::new("tainted", 1, 1);
    cluster.apply(&env).await;
    cluster.wait_running(&env).await;
    let nodes: Api<Node> = Api::all(workload(&env, &cluster).await);
    let names = async |control_plane: bool| -> Vec<String> {
        let all = env.list::<Machine>().await;
        let machines = cluster.machines(&all, control_plane);
        let node = |machine: &&Machine| Some(machine.status.as_ref()?.node_ref.as_ref()?.name.clone());
        machines.iter().filter_map(node).collect()
    };
    let (first, control_plane) = (names(false).await[0].clone(), names(true).await[0].clone());
    has(&nodes, &first, &[]).await;
    has(&nodes, &control_plane, &["node-role.kubernetes.io/control-plane"]).await;
    let taints = json!([
        {"key": KEPT, "value": "gpu", "effect": "NoSchedule", "propagation": "Always"},
        {"key": ONCE, "effect": "NoSchedule", "propagation": "OnInitialization"},
    ]);
    workers(&env, 1, &taints).await;
    let node = has(&nodes, &first, &[KEPT]).await;
    let annotations = node.metadata.annotations.unwrap_or_default();
    assert_eq!(
        annotations
            .get("cluster.x-k8s.io/taints-from-machine")
            .map(String::as_str),
        Some("example.com/dedicated:NoSchedule")
    );
    assert_eq!(names(false).await, [first.as_str()], "no Machine is replaced");
    // A user takes the taint away and adds another one: the first comes back, with its value.
    set(&nodes, &first, &[FOREIGN]).await;
    let node = has(&nodes, &first, &[FOREIGN, KEPT]).await;
    let spec = node.spec.unwrap();
    let taint = spec.taints.iter().flatten().find(|taint| taint.key == KEPT);
    assert_eq!(taint.and_then(|taint| taint.value.as_deref()), Some("gpu"));
    // A new Node gets both. The one of the initialization does not come back.
    workers(&env, 2, &taints).await;
    cluster.clone().workers(2).wait_running(&env).await;
    let second = names(false).await.into_iter().find(|name| *name != first).unwrap();
    has(&nodes, &second, &[KEPT, ONCE]).await;
    set(&nodes, &second, &[]).await;
    has(&nodes, &second, &[KEPT]).await;
    env.rest().await;
    assert_eq!(keys(&nodes.get(&second).await.unwrap()), [KEPT]);
    // What leaves the Machine leaves the Node.
    workers(&env, 2, &Value::Null).await;
    has(&nodes, &second, &[]).await;
    has(&nodes, &first, &[FOREIGN]).await;
    has(&nodes, &control_plane, &["node-role.kubernetes.io/control-plane"]).await;
    env.rest().await;
    env.stop().await;
}
