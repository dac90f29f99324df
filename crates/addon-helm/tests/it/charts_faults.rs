//! Whatever goes wrong on the way to the server, every Cluster has one HelmReleaseProxy in the end.

use serde_json::json;
use windlass_api::core::Cluster;
use windlass_api_ext::addons::{HelmChartProxy, HelmReleaseProxy};
use windlass_testkit::faults::{Fault, Faults};

use crate::env::{CHART, Env, Writes};

const CLUSTERS: [&str; 3] = ["c1", "c2", "c3"];

async fn with_clusters() -> Env {
    let env = Env::idle().await;
    for cluster in CLUSTERS {
        env.cluster(cluster).await;
    }
    env
}

async fn versions(env: &Env, version: &str) {
    let right = |all: &[HelmReleaseProxy]| {
        let names: Vec<&str> = all.iter().map(|one| one.spec.cluster_name()).collect();
        names == CLUSTERS && all.iter().all(|one| one.spec.version() == Some(version))
    };
    env.releases(&format!("three at {version}"), right).await;
}

// AD-068: what is planned twice is created once, wherever a process stops.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_dies_between_steps_is_taken_over() {
    let mut env = with_clusters().await;
    for (n, write) in [1, 2, 3, 4].into_iter().enumerate() {
        let version = format!("1.{n}.0");
        let faults = Faults::dying_at_write(write);
        env.run(&faults);
        env.chart(json!({"version": version})).await;
        faults.died().await;
        env.stop().await;
        env.run(&Faults::none());
        versions(&env, &version).await;
        env.stop().await;
    }
    // The same on the way out.
    env.run(&Faults::dying_at_write(2));
    env.delete::<HelmChartProxy>(CHART).await;
    env.releases("one to go", |all| all.len() < CLUSTERS.len()).await;
    env.stop().await;
    env.run(&Faults::none());
    env.served(&[]).await;
    env.chart_is("to be gone", serde_json::Value::is_null).await;
}

// AD-086: conflicts, refusals, requests and answers that get lost.
#[tokio::test(flavor = "multi_thread")]
async fn refusals_and_lost_answers_are_overcome() {
    let mut env = with_clusters().await;
    env.run(&Faults::when(|request| {
        let every = |n: usize| request.is_write() && request.number.is_multiple_of(n);
        match () {
            () if every(2) => Some(Fault::AnswerLost),
            () if every(3) => Some(Fault::Refused(409)),
            () if every(5) => Some(Fault::Lost),
            () => None,
        }
    }));
    env.chart(json!({"version": "1.0.0"})).await;
    versions(&env, "1.0.0").await;
    env.chart(json!({"version": "2.0.0"})).await;
    versions(&env, "2.0.0").await;
    env.merge::<Cluster>("c2", json!({"metadata": {"labels": {"cni": null}}}))
        .await;
    env.served(&["c1", "c3"]).await;
    env.delete::<HelmChartProxy>(CHART).await;
    env.served(&[]).await;
}

// AD-086: one Cluster whose writes all fail keeps no other waiting, and is named.
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_write_is_reported_with_its_cluster() {
    let mut env = with_clusters().await;
    // Creations of one name only: they are recognized by the path of the patches and deletions that follow.
    let taken = windlass_addon_helm::names::release_proxy("tigera-operator", CHART, "c2");
    let spec = json!({"clusterRef": {"name": "other"}, "chartName": "a", "repoURL": "https://a.example"});
    env.apply::<HelmReleaseProxy>(json!({"metadata": {"name": taken}, "spec": spec}))
        .await;
    env.run(&Faults::none());
    env.chart(json!({})).await;
    env.served(&["c1", "c3", "other"]).await;
    let words = ["Cluster c2: HelmReleaseProxy fleet/", "exists already"];
    env.told(
        "HelmReleaseProxySpecsUpToDate",
        "False",
        "HelmReleaseProxyCreationFailed",
        &words,
    )
    .await;
    // AD-134: what is not ours is not touched.
    env.delete::<HelmReleaseProxy>(&taken).await;
    env.served(&CLUSTERS).await;
}

// AD-084, AD-064; T6: a process that restarts compares, and does not write again what exists.
#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_process_writes_only_changes() {
    let mut env = with_clusters().await;
    env.run(&Faults::none());
    env.chart(json!({"valuesTemplate": "labels: {{ .Cluster.metadata.labels | toJson }}\n"}))
        .await;
    env.served(&CLUSTERS).await;
    env.all_ready().await;
    env.told("Ready", "True", "Ready", &[]).await;
    env.stop().await;
    let writes = Writes::default();
    env.run(&writes.faults());
    // A Cluster that it had not seen is served after everything else was looked at.
    env.cluster("new").await;
    env.served(&["c1", "c2", "c3", "new"]).await;
    env.told("Ready", "False", "HelmReleaseProxySpecsUpdating", &["Cluster new"])
        .await;
    let (releases, others) = writes.taken("/helmreleaseproxies");
    assert_eq!(releases, 1, "only the new one was to be written");
    assert!(others <= 3, "{others} writes of the status of one HelmChartProxy");
}
