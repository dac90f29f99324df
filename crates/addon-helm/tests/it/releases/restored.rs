//! Objects that come back from a backup, in any order, while the releases on the clusters are as they were.

use serde_json::{Value, json};
use windlass_addon_helm::names;
use windlass_testkit::Workload;
use windlass_testkit::faults::Faults;

use super::env::{Env, NAMESPACE, condition};

/// The HelmReleaseProxy of these tests.
fn proxy() -> String {
    names::release_proxy("web", "web", "c1")
}

/// A chart on a Cluster, whose release has a generated name.
async fn installed(strategy: &str) -> (Env, Workload) {
    let env = Env::whole().await;
    let workload = env.cluster("c1").await;
    let labels = json!({"metadata": {"labels": {"web": "yes"}}});
    env.merge("Cluster", "c1", &labels).await;
    env.apply(&json!({
        "apiVersion": "addons.cluster.x-k8s.io/v1alpha1", "kind": "HelmChartProxy",
        "metadata": {"name": "web", "namespace": NAMESPACE},
        "spec": {
            "clusterSelector": {"matchLabels": {"web": "yes"}}, "reconcileStrategy": strategy,
            "chartName": "web", "repoURL": "https://charts.example.com", "version": "1.0.0", "namespace": "apps",
        },
    }))
    .await;
    env.deployed(&proxy(), 1).await;
    (env, workload)
}

/// Takes an object away without a trace. Returns it as a backup has it.
async fn take(env: &Env, kind: &str, name: &str) -> Value {
    let mut object = env.get(kind, name).await;
    env.merge(kind, name, &json!({"metadata": {"finalizers": null}})).await;
    if env.get(kind, name).await != Value::Null {
        env.delete(kind, name).await;
    }
    env.wait(kind, name, "gone", Value::is_null).await;
    let metadata = object["metadata"].as_object_mut().unwrap();
    for field in [
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "managedFields",
        "ownerReferences",
    ] {
        metadata.remove(field);
    }
    object
}

#[tokio::test]
async fn a_release_that_is_restored_before_its_cluster_stays_as_it_is() {
    for strategy in ["Continuous", "InstallOnce"] {
        let (mut env, _workload) = installed(strategy).await;
        env.stop_operating().await;
        let release = take(&env, "HelmReleaseProxy", &proxy()).await;
        let chart = take(&env, "HelmChartProxy", "web").await;
        let cluster = take(&env, "Cluster", "c1").await;
        env.operate(&Faults::none());
        let restored = env.apply(&release).await;
        env.apply(&chart).await;
        env.wait("HelmChartProxy", "web", "the missing Cluster is named", |chart| {
            let told = condition(chart, "HelmReleaseProxySpecsUpToDate");
            let message = told["message"].as_str().unwrap_or_default();
            told["status"] == "False" && message.contains("Cluster c1: it does not exist")
        })
        .await;
        env.apply(&cluster).await;
        env.status("Cluster", "c1", &cluster["status"]).await;
        let now = env.deployed(&proxy(), 1).await;
        assert_eq!(now["metadata"]["uid"], restored["metadata"]["uid"]);
        assert_eq!(now["spec"]["releaseName"], release["spec"]["releaseName"]);
        assert_eq!(
            env.helm.calls(),
            ["install apps/web 1.0.0"].map(|call| named(call, &release))
        );
        // The end of a Cluster that was there is the end of its releases.
        env.wait("HelmReleaseProxy", &proxy(), "the Cluster is recorded", |object| {
            let annotations = &object["metadata"]["annotations"];
            annotations["helmreleaseproxy.addons.cluster.x-k8s.io/cluster-seen"] == object["metadata"]["uid"]
        })
        .await;
        env.delete("Cluster", "c1").await;
        env.gone(&proxy()).await;
    }
}

#[tokio::test]
async fn a_release_whose_object_is_lost_keeps_its_name() {
    let (mut env, _workload) = installed("Continuous").await;
    env.stop_operating().await;
    let lost = take(&env, "HelmReleaseProxy", &proxy()).await;
    // A generated name ends with its second.
    let name = lost["spec"]["releaseName"].as_str().unwrap();
    let second: i64 = name.rsplit('-').next().unwrap().parse().unwrap();
    env.until("the next second has come", async || {
        jiff::Timestamp::now().as_second() > second
    })
    .await;
    env.operate(&Faults::none());
    let new = env.deployed(&proxy(), 1).await;
    assert_eq!(new["spec"]["releaseName"], lost["spec"]["releaseName"]);
    assert_eq!(
        env.helm.calls(),
        ["install apps/web 1.0.0"].map(|call| named(call, &lost))
    );
}

/// A call about a release with a generated name.
fn named(call: &str, release: &Value) -> String {
    let name = release["spec"]["releaseName"].as_str().unwrap();
    call.replace("apps/web", &format!("apps/{name}"))
}
