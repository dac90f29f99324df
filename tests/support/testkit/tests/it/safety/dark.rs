//! The API server of a workload cluster cannot be reached for a while.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, ListParams, Patch, PatchParams};
use serde_json::json;
use windlass_api::core::{Cluster, Machine};
use windlass_testkit::rest::HELD_BACK;
use windlass_testkit::{ClusterOf, Env};

use super::drain::{HOLD, put};
use super::phases::{Phase, staying};
use super::{hosts, running};
use crate::life::workload;

/// Cuts the cluster off, and waits until the controllers know it.
pub(super) async fn cut(env: &Env, cluster: &ClusterOf) {
    env.cloud().disconnect(&cluster.key()).await;
    is_known(env, cluster).await;
}

/// Waits until the controllers know that the connection is lost, which takes them almost a minute.
async fn is_known(env: &Env, cluster: &ClusterOf) {
    env.wait_for::<Cluster>(&cluster.key(), "without a connection", |cluster| {
        let mut conditions = cluster.status.iter().flat_map(|status| &status.conditions);
        conditions.any(|condition| condition.type_ == "RemoteConnectionProbe" && condition.status == "False")
    })
    .await;
}

pub(super) async fn mend(env: &Env, cluster: &ClusterOf) {
    env.cloud().reconnect(&cluster.key()).await.unwrap();
}

/// Runs a Pod on each Node that has to be evicted and does not end before [`vacate`]: until then, no Node is drained.
pub(super) async fn occupy(env: &Env, cluster: &ClusterOf) {
    let client = workload(env, cluster).await;
    let (nodes, pods): (Api<Node>, Api<Pod>) = (Api::all(client.clone()), Api::default_namespaced(client));
    for node in nodes.list(&ListParams::default()).await.unwrap() {
        let node = node.metadata.name.unwrap();
        let pod = json!({
            "metadata": {"name": format!("on-{node}"), "finalizers": [HOLD]},
            "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i"}]},
        });
        put(&pods, pod, Some(json!({"phase": "Running"}))).await;
    }
}

/// Lets these Pods end when they are evicted.
pub(super) async fn vacate(env: &Env, cluster: &ClusterOf) {
    let pods: Api<Pod> = Api::default_namespaced(workload(env, cluster).await);
    let ends = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    for pod in pods.list(&ListParams::default()).await.unwrap() {
        let name = pod.metadata.name.unwrap();
        pods.patch(&name, &PatchParams::default(), &ends).await.unwrap();
    }
}

/// Asserts that Machines with Nodes that cannot be drained are there, as their hosts are.
async fn are_there(env: &Env, cluster: &ClusterOf, machines: &[String], when: &str) {
    let (left, cloud) = (hosts(env).await, env.cloud().machines(&cluster.key()));
    for machine in machines {
        assert!(left.contains_key(machine), "{when}: {machine} went undrained");
        assert!(
            cloud.contains_key(machine),
            "{when}: the host of {machine} went undrained"
        );
    }
}

#[tokio::test]
async fn a_cluster_at_rest_is_left_alone_and_recovers() {
    let env = Env::start().await;
    let cluster = ClusterOf::new("rest", 1, 2);
    running(&env, &cluster).await;
    let before = hosts(&env).await;
    cut(&env, &cluster).await;
    env.rest().await;
    assert_eq!(hosts(&env).await, before);
    mend(&env, &cluster).await;
    cluster.wait_running(&env).await;
    assert_eq!(hosts(&env).await, before);
    assert_eq!(env.created("machines"), 3);
    env.stop().await;
}

#[tokio::test]
async fn a_machine_is_not_removed_while_its_node_cannot_be_drained() {
    let env = Env::start().await;
    let cluster = ClusterOf::new("drain", 1, 2);
    running(&env, &cluster).await;
    occupy(&env, &cluster).await;
    let machines = env.list::<Machine>().await;
    let name = |machine: &&Machine| machine.metadata.name.clone().unwrap();
    let workers: Vec<String> = cluster.machines(&machines, false).iter().map(name).collect();
    // The controllers still take the connection for a good one.
    env.cloud().disconnect(&cluster.key()).await;
    env.delete("Machine", &workers[0]).await;
    is_known(&env, &cluster).await;
    are_there(&env, &cluster, &workers, "before the loss was known").await;
    env.delete("Machine", &workers[1]).await;
    env.rest().await;
    are_there(&env, &cluster, &workers, "after the loss was known").await;
    mend(&env, &cluster).await;
    vacate(&env, &cluster).await;
    cluster.wait_running(&env).await;
    let left = hosts(&env).await;
    assert!(workers.iter().all(|worker| !left.contains_key(worker)));
    env.stop().await;
}

/// How long a cluster stays cut off: some seconds, or longer (`WINDLASS_OUTAGE`, in seconds).
fn outage() -> Duration {
    let given = std::env::var("WINDLASS_OUTAGE").ok();
    let seconds = given.map(|text| {
        text.parse()
            .unwrap_or_else(|_| panic!("WINDLASS_OUTAGE is {text}: a number"))
    });
    seconds.map_or(HELD_BACK, Duration::from_secs)
}

/// The connection is lost in the middle of an operation: what was not on its way then stays, and all goes on after.
async fn in_the_middle_of(phase: Phase) {
    let env = Env::start().await;
    let underway = phase.begin(&env).await;
    let cluster = &underway.cluster;
    occupy(&env, cluster).await;
    let with_host = hosts(&env).await;
    let mut present = staying(&env).await;
    present.retain(|machine| with_host.get(machine).is_some_and(|host| !host.is_empty()));
    env.cloud().disconnect(&cluster.key()).await;
    is_known(&env, cluster).await;
    are_there(
        &env,
        cluster,
        &present,
        &format!("{phase:?}, before the loss was known"),
    )
    .await;
    let before = staying(&env).await;
    env.rest_for(outage()).await;
    are_there(&env, cluster, &present, &format!("{phase:?}, after the loss was known")).await;
    let during = staying(&env).await;
    assert!(
        before.iter().all(|name| during.contains(name)),
        "{phase:?}: {before:?} became {during:?}"
    );
    mend(&env, cluster).await;
    vacate(&env, cluster).await;
    underway.finish(&env).await;
    env.delete("Cluster", &underway.cluster.name).await;
    env.wait_gone(&underway.cluster.name).await;
    env.stop().await;
}

/// All at once: a connection counts as lost after almost a minute.
#[tokio::test]
async fn operations_wait_and_go_on() {
    let phases = [Phase::Creation, Phase::Scaling, Phase::Upgrade, Phase::Remediation];
    futures::future::join_all(phases.map(in_the_middle_of)).await;
}

#[tokio::test]
async fn a_cluster_that_cannot_be_reached_can_be_deleted() {
    let env = Env::start().await;
    let underway = Phase::Deletion.begin(&env).await;
    // The nodes end with their cluster: nothing has to be drained.
    env.cloud().disconnect(&underway.cluster.key()).await;
    underway.finish(&env).await;
    assert!(env.cloud().machines(&underway.cluster.key()).is_empty());
    env.stop().await;
}
