//! One chart on many Clusters.

use serde_json::json;
use windlass_api::core::Cluster;
use windlass_api_ext::addons::HelmReleaseProxy;

use crate::env::{Env, Writes};

const MANY: usize = 200;
const RELEASES: &str = "/helmreleaseproxies";

// AD-084, AD-146: as many writes as there is to write, and the status a few times.
#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_clusters_cost_two_hundred_writes() {
    let mut env = Env::idle().await;
    for n in 0..MANY {
        env.cluster(&format!("c{n}")).await;
    }
    let writes = Writes::default();
    env.run(&writes.faults());
    env.chart(json!({"valuesTemplate": "name: {{ .Cluster.metadata.name }}\n"}))
        .await;
    env.releases("all of them", |all| all.len() == MANY).await;
    env.told(
        "HelmReleaseProxySpecsUpToDate",
        "False",
        "HelmReleaseProxySpecsUpdating",
        &["(195 more)"],
    )
    .await;
    env.all_ready().await;
    env.told("Ready", "True", "Ready", &[]).await;
    let (releases, others) = writes.taken(RELEASES);
    assert_eq!(releases, MANY);
    // The finalizer, and a status now and then.
    assert!(others < 60, "{others} writes of one HelmChartProxy");
    // An event about one Cluster writes about one Cluster.
    env.merge::<Cluster>("c7", json!({"metadata": {"labels": {"cni": null}}}))
        .await;
    env.releases("one less", |all| all.len() == MANY - 1).await;
    env.chart_is("one less", |chart| {
        chart["status"]["matchingClusters"]
            .as_array()
            .is_some_and(|all| all.len() == MANY - 1)
    })
    .await;
    let (releases, others) = writes.taken(RELEASES);
    assert_eq!(releases, 1);
    assert!(others <= 3, "{others} writes of one HelmChartProxy");
    env.chart(json!({"valuesTemplate": "name: {{ .Cluster.metadata.name }}\n", "version": "2.0.0"}))
        .await;
    let right = |all: &[HelmReleaseProxy]| all.iter().all(|one| one.spec.version() == Some("2.0.0"));
    env.releases("the new version", right).await;
    let (releases, others) = writes.taken(RELEASES);
    assert_eq!(releases, MANY - 1);
    assert!(others < 20, "{others} writes of one HelmChartProxy");
}

// A rollout in steps: the next Clusters go when those before are ready.
#[tokio::test(flavor = "multi_thread")]
async fn clusters_go_in_steps() {
    let env = Env::start().await;
    for n in 1..=4 {
        env.cluster(&format!("c{n}")).await;
    }
    let rollout = json!({"install": {"stepInit": 1, "stepIncrement": "25%"}});
    env.chart(json!({"rollout": rollout})).await;
    env.served(&["c1"]).await;
    let waits = "3 Clusters wait until those before are ready: c2, c3, c4";
    env.told(
        "HelmReleaseProxiesRolloutCompleted",
        "False",
        "HelmReleaseProxiesRolloutNotComplete",
        &[waits],
    )
    .await;
    env.all_ready().await;
    env.served(&["c1", "c2", "c3"]).await;
    env.all_ready().await;
    env.served(&["c1", "c2", "c3", "c4"]).await;
    env.all_ready().await;
    env.told(
        "HelmReleaseProxiesRolloutCompleted",
        "True",
        "HelmReleaseProxiesRolloutCompleted",
        &[],
    )
    .await;
    env.told("Ready", "True", "Ready", &[]).await;
}
