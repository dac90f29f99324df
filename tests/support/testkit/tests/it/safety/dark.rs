//! The API server of a workload cluster cannot be reached for a while.

use std::time::Duration;

use windlass_api::core::{Cluster, Machine};
use windlass_testkit::rest::HELD_BACK;
use windlass_testkit::{ClusterOf, Env};

use super::phases::{Phase, staying};
use super::{hosts, running};

/// Cuts the cluster off, and waits until the controllers know it.
pub(super) async fn cut(env: &Env, cluster: &ClusterOf) {
    env.cloud().disconnect(&cluster.key()).await;
    env.wait_for::<Cluster>(&cluster.key(), "without a connection", |cluster| {
        let mut conditions = cluster.status.iter().flat_map(|status| &status.conditions);
        conditions.any(|condition| condition.type_ == "RemoteConnectionProbe" && condition.status == "False")
    })
    .await;
}

pub(super) async fn mend(env: &Env, cluster: &ClusterOf) {
    env.cloud().reconnect(&cluster.key()).await.unwrap();
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
    cut(&env, &cluster).await;
    let machines = env.list::<Machine>().await;
    let worker = cluster.machines(&machines, false)[0].metadata.name.clone().unwrap();
    env.delete("Machine", &worker).await;
    env.rest().await;
    let left = hosts(&env).await;
    assert!(left.contains_key(&worker), "it was deleted undrained");
    assert!(
        env.cloud().machines(&cluster.key()).contains_key(&worker),
        "its host was deleted undrained"
    );
    mend(&env, &cluster).await;
    cluster.wait_running(&env).await;
    assert!(!hosts(&env).await.contains_key(&worker));
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
    cut(&env, &underway.cluster).await;
    let before = staying(&env).await;
    env.rest_for(outage()).await;
    let during = staying(&env).await;
    assert!(
        before.iter().all(|name| during.contains(name)),
        "{phase:?}: {before:?} became {during:?}"
    );
    mend(&env, &underway.cluster).await;
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
