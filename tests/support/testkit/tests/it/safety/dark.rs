//! The API server of a workload cluster cannot be reached for a while.

use windlass_api::core::{Cluster, Machine};
use windlass_testkit::{ClusterOf, Env};

use super::{hosts, running};

/// Cuts the cluster off, and waits until the controllers know it.
async fn cut(env: &Env, cluster: &ClusterOf) {
    env.cloud().disconnect(&cluster.key()).await;
    env.wait_for::<Cluster>(&cluster.key(), "without a connection", |cluster| {
        let mut conditions = cluster.status.iter().flat_map(|status| &status.conditions);
        conditions.any(|condition| condition.type_ == "RemoteConnectionProbe" && condition.status == "False")
    })
    .await;
}

async fn mend(env: &Env, cluster: &ClusterOf) {
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

#[tokio::test]
async fn an_upgrade_replaces_nothing_that_it_cannot_see_and_goes_on_after() {
    let env = Env::start().await;
    let cluster = ClusterOf::new("blind", 1, 2);
    running(&env, &cluster).await;
    let before = hosts(&env).await;
    cut(&env, &cluster).await;
    let upgraded = cluster.clone().version("v1.36.0");
    upgraded.apply(&env).await;
    env.rest().await;
    let during = hosts(&env).await;
    assert!(
        before.iter().all(|host| during.get(host.0) == Some(host.1)),
        "{before:?} became {during:?}"
    );
    mend(&env, &cluster).await;
    upgraded.wait_running(&env).await;
    assert_eq!(env.created("machines"), 6);
    env.delete("Cluster", "blind").await;
    env.wait_gone("blind").await;
    env.stop().await;
}
