//! Both controllers together: from the declaration of a user to the releases on the clusters.

use serde_json::{Value, json};
use windlass_addon_helm::names;
use windlass_helm::{Status, values};
use windlass_testkit::Workload;

use super::env::{Env, NAMESPACE, web};
use super::fake::Stored;

/// Applies the HelmChartProxy of these tests, for all Clusters with `web=yes`.
async fn chart(env: &Env, template: &str, version: &str) {
    let spec = json!({
        "clusterSelector": {"matchLabels": {"web": "yes"}},
        "chartName": "web", "repoURL": "https://charts.example.com", "version": version,
        "releaseName": "web", "namespace": "apps", "valuesTemplate": template,
    });
    env.apply(&json!({
        "apiVersion": "addons.cluster.x-k8s.io/v1alpha1", "kind": "HelmChartProxy",
        "metadata": {"name": "web", "namespace": NAMESPACE}, "spec": spec,
    }))
    .await;
}

/// The name of the HelmReleaseProxy for a Cluster.
fn proxy(cluster: &str) -> String {
    names::release_proxy("web", "web", cluster)
}

async fn label(env: &Env, cluster: &str, value: Option<&str>) {
    env.merge("Cluster", cluster, &json!({"metadata": {"labels": {"web": value}}}))
        .await;
}

async fn network(env: &Env, cluster: &str, range: &str) {
    let spec = json!({"clusterNetwork": {"pods": {"cidrBlocks": [range]}}});
    env.merge("Cluster", cluster, &json!({ "spec": spec })).await;
}

/// A reachable Cluster that is chosen.
async fn cluster(env: &Env, name: &str, range: &str) -> Workload {
    let workload = env.cluster(name).await;
    network(env, name, range).await;
    label(env, name, Some("yes")).await;
    workload
}

/// The values that a release has on its cluster.
async fn has(workload: &Workload, revision: u32, text: &str) {
    let newest = web(workload).newest().await.unwrap();
    assert_eq!(
        (newest.revision, newest.status, newest.values),
        (revision, Status::Deployed, values::parse(text).unwrap())
    );
}

const PODS: &str = "pods: {{ index .Cluster.spec.clusterNetwork.pods.cidrBlocks 0 }}\n";

// AD-006, AD-012, AD-030, AD-061, AD-067, AD-080, AD-162; T4: an edit of the declaration, or of a field of the Cluster that the
// template uses, leads to one new revision with the values that follow from it. No other action is needed.
#[tokio::test]
async fn releases_follow_the_declaration_and_the_fields_that_it_uses() {
    let env = Env::whole().await;
    let workload = cluster(&env, "c1", "10.1.0.0/16").await;
    chart(&env, "replicas: 1\n", "1.0.0").await;
    env.deployed(&proxy("c1"), 1).await;
    has(&workload, 1, "replicas: 1").await;
    chart(&env, PODS, "1.0.0").await;
    let object = env.deployed(&proxy("c1"), 2).await;
    assert_eq!(object["spec"]["values"], "pods: 10.1.0.0/16\n");
    has(&workload, 2, "pods: 10.1.0.0/16").await;
    network(&env, "c1", "10.9.0.0/16").await;
    let object = env.deployed(&proxy("c1"), 3).await;
    assert_eq!(object["spec"]["values"], "pods: 10.9.0.0/16\n");
    has(&workload, 3, "pods: 10.9.0.0/16").await;
    env.delete("HelmChartProxy", "web").await;
    env.gone(&proxy("c1")).await;
    assert!(web(&workload).newest().await.is_none());
    let calls = [
        "install apps/web 1.0.0",
        "upgrade apps/web 1.0.0",
        "upgrade apps/web 1.0.0",
        "uninstall apps/web",
    ];
    assert_eq!(env.helm.calls(), calls);
}

// AD-148: the version of the Cluster plays no part, whatever it becomes; what changes values is what the template uses.
#[tokio::test]
async fn another_version_of_kubernetes_starts_nothing_by_itself() {
    // The class is not there.
    let env = Env::whole_unadmitted().await;
    let workload = cluster(&env, "c1", "10.1.0.0/16").await;
    let version = async |version: &str| {
        let topology = json!({"classRef": {"name": "any"}, "version": version});
        env.merge("Cluster", "c1", &json!({"spec": {"topology": topology}}))
            .await;
    };
    version("v1.34.0").await;
    chart(&env, PODS, "1.0.0").await;
    let before = env.deployed(&proxy("c1"), 1).await;
    for newer in ["v1.35.0", "v1.36.0"] {
        let looks = env.looks_of("helmchartproxy");
        version(newer).await;
        env.until("the change was looked at", async || {
            env.looks_of("helmchartproxy") > looks
        })
        .await;
    }
    let after = env.get("HelmReleaseProxy", &proxy("c1")).await;
    assert_eq!(before["spec"], after["spec"]);
    // What comes next is the second call, so nothing came in between.
    chart(&env, "version: {{ .Cluster.spec.topology.version }}\n", "1.0.0").await;
    env.deployed(&proxy("c1"), 2).await;
    has(&workload, 2, "version: v1.36.0").await;
    assert_eq!(env.helm.calls(), ["install apps/web 1.0.0", "upgrade apps/web 1.0.0"]);
}

// AD-007: the HelmChartProxy is the only declaration. Manual changes of a HelmReleaseProxy or of a release are reverted.
#[tokio::test]
async fn the_declaration_is_the_only_truth() {
    let env = Env::whole().await;
    let workload = cluster(&env, "c1", "10.1.0.0/16").await;
    chart(&env, "replicas: 1\n", "1.0.0").await;
    let first = env.deployed(&proxy("c1"), 1).await;
    let release = web(&workload);
    let mut changed = release.newest().await.unwrap();
    changed.revision = 2;
    changed.values = values::parse("replicas: 9").unwrap();
    release.store(&changed).await;
    env.deployed(&proxy("c1"), 3).await;
    has(&workload, 3, "replicas: 1").await;
    // It may be put back before anything comes of it, or after.
    let mine = json!({"spec": {"values": "replicas: 7\n"}});
    env.merge("HelmReleaseProxy", &proxy("c1"), &mine).await;
    env.wait("HelmReleaseProxy", &proxy("c1"), "what was declared", |object| {
        object["spec"] == first["spec"] && object["metadata"]["generation"] != first["metadata"]["generation"]
    })
    .await;
    env.until("so is the release", async || {
        let newest = release.newest().await.unwrap();
        newest.status == Status::Deployed && newest.values == values::parse("replicas: 1").unwrap()
    })
    .await;
}

// AD-032, AD-136; T9: labels decide where the add-on is, and there are as many HelmReleaseProxies as releases of ours, whatever else is
// on the clusters.
#[tokio::test]
async fn labels_decide_and_the_inventory_counts_what_is_ours() {
    let env = Env::whole().await;
    let workloads = [
        cluster(&env, "c1", "10.1.0.0/16").await,
        cluster(&env, "c2", "10.2.0.0/16").await,
        env.cluster("c3").await,
    ];
    // Releases of a user, on a Cluster that is chosen and on one that is not.
    let foreign = Stored {
        revision: 1,
        status: Status::Deployed,
        chart: "other".to_owned(),
        version: "9.0.0".to_owned(),
        values: serde_json::Map::new(),
        labels: [].into(),
        since: jiff::Timestamp::UNIX_EPOCH,
        description: "by hand".to_owned(),
    };
    for workload in &workloads[1..] {
        let place = super::fake::Place::new(workload.client(), "apps", "by-hand");
        place.make_namespace().await;
        place.store(&foreign).await;
    }
    chart(&env, PODS, "1.0.0").await;
    let check = async |expect: [bool; 3]| {
        for (n, (workload, is_there)) in workloads.iter().zip(expect).enumerate() {
            let name = proxy(&format!("c{}", n + 1));
            if is_there {
                env.deployed(&name, 1).await;
            } else {
                env.gone(&name).await;
            }
            assert_eq!(web(workload).newest().await.is_some(), is_there, "{name}");
        }
        let inventory = env.list("HelmReleaseProxy").await;
        assert_eq!(inventory.len(), expect.iter().filter(|is_there| **is_there).count());
    };
    check([true, true, false]).await;
    label(&env, "c1", None).await;
    label(&env, "c3", Some("yes")).await;
    network(&env, "c3", "10.3.0.0/16").await;
    check([false, true, true]).await;
    label(&env, "c1", Some("yes")).await;
    check([true, true, true]).await;
    env.delete("HelmChartProxy", "web").await;
    check([false, false, false]).await;
    env.wait("HelmChartProxy", "web", "gone", Value::is_null).await;
    for workload in &workloads[1..] {
        let place = super::fake::Place::new(workload.client(), "apps", "by-hand");
        assert!(place.newest().await.is_some(), "it was never ours");
    }
}

// A typing error uninstalls nothing: the new chart is looked for first.
#[tokio::test]
async fn no_release_goes_for_a_chart_that_is_not_there() {
    let env = Env::whole().await;
    let workload = cluster(&env, "c1", "10.1.0.0/16").await;
    chart(&env, "replicas: 1\n", "1.0.0").await;
    env.deployed(&proxy("c1"), 1).await;
    env.merge("HelmChartProxy", "web", &json!({"spec": {"chartName": "wep"}}))
        .await;
    env.wait("HelmChartProxy", "web", "the chart is missed", |object| {
        let told = super::env::condition(object, "HelmReleaseProxySpecsUpToDate");
        let message = told["message"].as_str().unwrap_or_default();
        told["status"] == "False" && message.contains("stays as it is") && message.contains("has no such chart")
    })
    .await;
    has(&workload, 1, "replicas: 1").await;
    assert_eq!(env.helm.calls(), ["install apps/web 1.0.0"]);
    // It is published later.
    env.helm.publish("wep", "1.0.0");
    env.until("it is installed", async || {
        let newest = web(&workload).newest().await;
        newest.is_some_and(|newest| newest.chart == "wep" && newest.status == Status::Deployed)
    })
    .await;
    let calls = ["install apps/web 1.0.0", "uninstall apps/web", "install apps/web 1.0.0"];
    assert_eq!(env.helm.calls(), calls);
}
