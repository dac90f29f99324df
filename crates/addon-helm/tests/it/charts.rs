//! Which Clusters have a chart.

use serde_json::{Value, json};
use windlass_api::core::Cluster;
use windlass_api_ext::addons::{HelmChartProxy, HelmReleaseProxy};

use crate::env::{CHART, Env, control_plane, name};

/// A finalizer in place of the one that uninstalls.
const HOLD: &str = "test.example/hold";

async fn hold(env: &Env, release: &HelmReleaseProxy, is_held: bool) {
    let finalizers = if is_held { json!([HOLD]) } else { json!(null) };
    env.merge::<HelmReleaseProxy>(name(release), json!({"metadata": {"finalizers": finalizers}}))
        .await;
}

async fn label(env: &Env, cluster: &str, value: Value) {
    env.merge::<Cluster>(cluster, json!({"metadata": {"labels": {"cni": value}}}))
        .await;
}

// AD-052, AD-081, AD-083, AD-085, AD-087, AD-105, AD-106, AD-161; T1, T2, T9, T15
#[tokio::test(flavor = "multi_thread")]
async fn the_label_of_a_cluster_decides() {
    let env = Env::start().await;
    let metadata = json!({"name": "foreign", "namespace": "elsewhere", "labels": {"cni": "calico"}});
    let elsewhere = json!({"metadata": metadata, "spec": {"controlPlaneRef": control_plane()}});
    env.apply::<Cluster>(elsewhere).await;
    env.chart(json!({})).await;
    env.told("Ready", "True", "Ready", &[]).await;
    let chart = env
        .chart_is("an empty list", |chart| {
            chart["status"]["matchingClusters"] == json!([])
        })
        .await;
    assert_eq!(
        chart["metadata"]["finalizers"],
        json!(["helmchartproxy.addons.cluster.x-k8s.io"])
    );
    env.cluster("c1").await;
    env.cluster("c2").await;
    let releases = env.served(&["c1", "c2"]).await;
    // AD-069, AD-137, AD-139
    let release = serde_json::to_value(&releases[0]).unwrap();
    assert_eq!(release["metadata"]["labels"]["cluster.x-k8s.io/cluster-name"], "c1");
    assert_eq!(release["metadata"]["ownerReferences"][0]["controller"], true);
    assert_eq!(release["metadata"]["ownerReferences"][0]["name"], CHART);
    assert_eq!(release["spec"]["clusterRef"]["namespace"], "fleet");
    assert_eq!(release["spec"]["namespace"], "default");
    env.told(
        "HelmReleaseProxySpecsUpToDate",
        "False",
        "HelmReleaseProxySpecsUpdating",
        &["Clusters c1, c2"],
    )
    .await;
    env.all_ready().await;
    env.told("Ready", "True", "Ready", &[]).await;
    label(&env, "c1", json!(null)).await;
    env.served(&["c2"]).await;
    let matching = |chart: &Value| {
        chart["status"]["matchingClusters"]
            .as_array()
            .is_some_and(|all| all.len() == 1)
    };
    let chart = env.chart_is("one Cluster", matching).await;
    assert_eq!(chart["status"]["matchingClusters"][0]["name"], "c2");
    label(&env, "c1", json!("calico")).await;
    env.served(&["c1", "c2"]).await;
    env.delete::<Cluster>("c2").await;
    env.served(&["c1"]).await;
}

// AD-087: changes during a downtime are found from the objects that were left behind.
#[tokio::test(flavor = "multi_thread")]
async fn a_label_that_went_meanwhile_is_noticed() {
    let mut env = Env::start().await;
    env.cluster("c1").await;
    env.chart(json!({})).await;
    env.served(&["c1"]).await;
    env.stop().await;
    label(&env, "c1", json!(null)).await;
    env.run(&windlass_testkit::faults::Faults::none());
    env.served(&[]).await;
}

// AD-053: nothing is uninstalled because of a typing error, without any webhook.
#[tokio::test(flavor = "multi_thread")]
async fn a_bad_selector_uninstalls_nothing() {
    let env = Env::start_unadmitted().await;
    env.cluster("c1").await;
    env.chart(json!({})).await;
    let before = env.served(&["c1"]).await;
    let bad = json!({"matchExpressions": [{"key": "cni", "operator": "Near"}]});
    env.chart(json!({"clusterSelector": bad})).await;
    let field = "spec.clusterSelector.matchExpressions[0].operator";
    env.told(
        "HelmReleaseProxySpecsUpToDate",
        "False",
        "ClusterSelectionFailed",
        &[field],
    )
    .await;
    assert_eq!(env.served(&["c1"]).await[0].metadata.uid, before[0].metadata.uid);
}

// AD-090; T8
#[tokio::test(flavor = "multi_thread")]
async fn another_namespace_waits_for_the_old_release_to_go() {
    let env = Env::start().await;
    env.cluster("c1").await;
    env.chart(json!({})).await;
    let old = env.served(&["c1"]).await.remove(0);
    hold(&env, &old, true).await;
    env.chart(json!({"namespace": "kube-system"})).await;
    env.told(
        "HelmReleaseProxySpecsUpToDate",
        "False",
        "HelmReleaseProxyReinstalling",
        &["Cluster c1"],
    )
    .await;
    let still = env.served(&["c1"]).await.remove(0);
    assert_eq!(
        (still.metadata.uid.as_ref(), still.spec.release_namespace()),
        (old.metadata.uid.as_ref(), "default")
    );
    hold(&env, &old, false).await;
    let is_new = |all: &[HelmReleaseProxy]| all.len() == 1 && all[0].spec.release_namespace() == "kube-system";
    let new = env.releases("the new one", is_new).await.remove(0);
    assert_ne!(new.metadata.uid, old.metadata.uid);
}

// AD-091; T10
#[tokio::test(flavor = "multi_thread")]
async fn a_chart_goes_after_its_releases() {
    let env = Env::start().await;
    for cluster in ["c1", "c2"] {
        env.cluster(cluster).await;
    }
    env.chart(json!({})).await;
    let releases = env.served(&["c1", "c2"]).await;
    hold(&env, &releases[1], true).await;
    env.delete::<HelmChartProxy>(CHART).await;
    env.served(&["c2"]).await;
    env.told("HelmReleaseProxySpecsUpToDate", "False", "Deleting", &["Cluster c2"])
        .await;
    hold(&env, &releases[1], false).await;
    env.served(&[]).await;
    env.chart_is("to be gone", Value::is_null).await;
}

// AD-048, AD-066, AD-137; T11
#[tokio::test(flavor = "multi_thread")]
async fn hands_off_what_the_chart_decides() {
    let env = Env::start().await;
    env.cluster("c1").await;
    env.chart(json!({"valuesTemplate": "a: 1\n"})).await;
    let release = env.served(&["c1"]).await.remove(0);
    let mine = json!({"spec": {"values": "b: 2\n", "version": "9.9.9"}, "metadata": {"labels": null}});
    env.merge::<HelmReleaseProxy>(name(&release), mine).await;
    let right = |all: &[HelmReleaseProxy]| {
        let spec = all.first().map(|one| &one.spec);
        let labels = all.first().and_then(|one| one.metadata.labels.as_ref());
        spec.is_some_and(|spec| spec.values.as_deref() == Some("a: 1\n") && spec.version.is_none())
            && labels.is_some_and(|labels| labels.len() == 2)
    };
    env.releases("what the chart says", right).await;
    // AD-078: a name that was made up is its release's.
    env.merge::<HelmReleaseProxy>(name(&release), json!({"spec": {"releaseName": "made-up"}}))
        .await;
    env.chart(json!({"valuesTemplate": "a: 2\n"})).await;
    let right = |all: &[HelmReleaseProxy]| {
        all.first()
            .is_some_and(|one| one.spec.values.as_deref() == Some("a: 2\n"))
    };
    let after = env.releases("the new values", right).await.remove(0);
    assert_eq!(
        (after.spec.release_name(), &after.metadata.uid),
        (Some("made-up"), &release.metadata.uid)
    );
    env.delete::<HelmReleaseProxy>(name(&release)).await;
    env.releases("another one", |all| {
        all.len() == 1 && all[0].metadata.uid != release.metadata.uid
    })
    .await;
}

// AD-092
#[tokio::test(flavor = "multi_thread")]
async fn what_is_paused_catches_up_later() {
    let env = Env::start().await;
    for cluster in ["c1", "c2"] {
        env.cluster(cluster).await;
    }
    env.merge::<Cluster>("c1", json!({"spec": {"paused": true}})).await;
    env.chart(json!({"version": "1.0.0"})).await;
    env.told(
        "HelmReleaseProxySpecsUpToDate",
        "False",
        "HelmReleaseProxySpecsUpdating",
        &["Cluster c1: nothing happens while it is paused"],
    )
    .await;
    env.served(&["c2"]).await;
    env.merge::<Cluster>("c1", json!({"spec": {"paused": false}})).await;
    env.served(&["c1", "c2"]).await;
    env.merge::<HelmChartProxy>(
        CHART,
        json!({"metadata": {"annotations": {"cluster.x-k8s.io/paused": ""}}}),
    )
    .await;
    env.told("Paused", "True", "Paused", &[]).await;
    env.chart(json!({"version": "2.0.0"})).await;
    env.cluster("c3").await;
    // The generation is seen, and nothing is done about it.
    env.told("Paused", "True", "Paused", &[]).await;
    let releases = env.served(&["c1", "c2"]).await;
    assert!(releases.iter().all(|release| release.spec.version() == Some("1.0.0")));
    env.merge::<HelmChartProxy>(CHART, json!({"metadata": {"annotations": null}}))
        .await;
    let right = |all: &[HelmReleaseProxy]| all.len() == 3 && all.iter().all(|one| one.spec.version() == Some("2.0.0"));
    env.releases("three at the new version", right).await;
}

// AD-094: a name that no label can hold works where no webhook refuses it.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_name_works_all_the_same() {
    let env = Env::start_unadmitted().await;
    env.cluster("c1").await;
    let spec = json!({"clusterSelector": {}, "chartName": "calico", "repoURL": "https://charts.example"});
    env.apply::<HelmChartProxy>(json!({"metadata": {"name": "x".repeat(80)}, "spec": spec}))
        .await;
    let release = env.served(&["c1"]).await.remove(0);
    let label = &release.metadata.labels.unwrap()["helmreleaseproxy.addons.cluster.x-k8s.io/helmchartproxy-name"];
    assert!(label.starts_with("hash_"), "{label}");
}

// AD-107: two charts on one Cluster have a release each.
#[tokio::test(flavor = "multi_thread")]
async fn two_charts_have_a_release_each() {
    let env = Env::start().await;
    env.cluster("c1").await;
    env.chart(json!({})).await;
    let spec = json!({"clusterSelector": {}, "chartName": "tigera-operator", "repoURL": "https://charts.example"});
    env.apply::<HelmChartProxy>(json!({"metadata": {"name": "second"}, "spec": spec}))
        .await;
    let releases = env.served(&["c1", "c1"]).await;
    assert_ne!(name(&releases[0]), name(&releases[1]));
}
