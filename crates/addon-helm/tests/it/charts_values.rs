//! The values that Clusters get.

use serde_json::{Value, json};
use windlass_api::core::Cluster;
use windlass_api_ext::addons::{HelmChartProxy, HelmReleaseProxy};
use windlass_api_ext::infrastructure::DevCluster;
use windlass_helm::values as yaml;

use crate::env::Env;

fn values(releases: &[HelmReleaseProxy]) -> Vec<&str> {
    releases
        .iter()
        .map(|release| release.spec.values.as_deref().unwrap_or_default())
        .collect()
}

async fn wait_values(env: &Env, expect: &[&str]) {
    env.releases(&format!("values {expect:?}"), |all| values(all) == expect)
        .await;
}

async fn pods(env: &Env, cluster: &str, cidrs: Value) {
    env.merge::<Cluster>(
        cluster,
        json!({"spec": {"clusterNetwork": {"pods": {"cidrBlocks": cidrs}}}}),
    )
    .await;
}

// AD-082, AD-084, AD-121, AD-146; T4, T5
#[tokio::test(flavor = "multi_thread")]
async fn every_cluster_gets_its_own_values() {
    let env = Env::start().await;
    for cluster in ["c1", "c2"] {
        env.cluster(cluster).await;
    }
    pods(&env, "c2", json!(["10.2.0.0/16"])).await;
    let template = "pods: {{ index .Cluster.spec.clusterNetwork.pods.cidrBlocks 0 }}\n";
    env.chart(json!({"valuesTemplate": template})).await;
    wait_values(&env, &["pods: 10.0.0.0/16\n", "pods: 10.2.0.0/16\n"]).await;
    pods(&env, "c1", json!(["10.1.0.0/16"])).await;
    wait_values(&env, &["pods: 10.1.0.0/16\n", "pods: 10.2.0.0/16\n"]).await;
    env.chart(json!({"valuesTemplate": "name: {{ .Cluster.metadata.name }}\n", "version": "1.2.3"}))
        .await;
    wait_values(&env, &["name: c1\n", "name: c2\n"]).await;
    let all = env.served(&["c1", "c2"]).await;
    assert!(all.iter().all(|release| release.spec.version() == Some("1.2.3")));
    // AD-144: none of them has been upgraded yet.
    env.told("Ready", "False", "HelmReleaseProxySpecsUpdating", &[]).await;
}

// AD-086, AD-126; T14
#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_without_values_keeps_no_other_waiting() {
    let env = Env::start().await;
    for cluster in ["c1", "c2", "c3"] {
        env.cluster(cluster).await;
    }
    env.merge::<Cluster>("c2", json!({"metadata": {"annotations": {"fail": "me"}}}))
        .await;
    let template = "{{ if .Cluster.metadata.annotations }}{{ fail \"not here\" }}{{ end }}a: 1\n";
    env.chart(json!({"valuesTemplate": template})).await;
    env.served(&["c1", "c3"]).await;
    env.told(
        "HelmReleaseProxySpecsUpToDate",
        "False",
        "ValueParsingFailed",
        &["Cluster c2: ", "not here"],
    )
    .await;
    env.merge::<Cluster>("c2", json!({"metadata": {"annotations": null}}))
        .await;
    env.served(&["c1", "c2", "c3"]).await;
    // What runs keeps its last good values.
    env.chart(json!({"valuesTemplate": "{{ .Cluster"})).await;
    env.told(
        "HelmReleaseProxySpecsUpToDate",
        "False",
        "ValueParsingFailed",
        &["line 1"],
    )
    .await;
    wait_values(&env, &["a: 1\n", "a: 1\n", "a: 1\n"]).await;
    // AD-127
    env.chart(json!({"valuesTemplate": "- a\n- b\n"})).await;
    env.told(
        "HelmReleaseProxySpecsUpToDate",
        "False",
        "ValueParsingFailed",
        &["Clusters c1, c2, c3: "],
    )
    .await;
}

async fn infra(env: &Env, host: &str) {
    let spec = json!({"controlPlaneEndpoint": {"host": host, "port": 6443}, "backend": {"inMemory": {}}});
    env.apply::<DevCluster>(json!({"metadata": {"name": "c1"}, "spec": spec}))
        .await;
}

// AD-088, AD-125: what a Cluster refers to is followed, also when it comes late.
#[tokio::test(flavor = "multi_thread")]
async fn values_follow_what_the_cluster_refers_to() {
    let env = Env::start().await;
    env.cluster("c1").await;
    let reference = json!({"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevCluster", "name": "c1"});
    env.merge::<Cluster>("c1", json!({"spec": {"infrastructureRef": reference}}))
        .await;
    let template = "host: {{ .InfraCluster.spec.controlPlaneEndpoint.host }}\n";
    env.chart(json!({"valuesTemplate": template})).await;
    let words = "Cluster c1: DevCluster fleet/c1, which the template uses as .InfraCluster, does not exist";
    env.told("HelmReleaseProxySpecsUpToDate", "False", "ValueParsingFailed", &[words])
        .await;
    infra(&env, "one.example").await;
    wait_values(&env, &["host: one.example\n"]).await;
    infra(&env, "two.example").await;
    wait_values(&env, &["host: two.example\n"]).await;
}

/// The example of the proposal.
const EXAMPLE: &str = include_str!("../../../../examples/helm-addons/calico-cni.yaml");
/// What its template gives for two ranges.
const VALUES: &str = include_str!("../../../addon-values/testdata/calico-values.yaml");

/// The example as the text of the proposal has it, which lost all indentation.
const AS_PUBLISHED: &str = "\
apiVersion: addons.cluster.x-k8s.io/v1alpha1
kind: HelmChartProxy
metadata:
name: calico-cni
spec:
clusterSelector:
matchLabels:
calicoCNI: enabled
releaseName: calico
repoURL: https://projectcalico.docs.tigera.io/charts
chartName: tigera-operator
valuesTemplate: |
installation:
cni:
type: Calico
ipam:
type: HostLocal
calicoNetwork:
bgp: Disabled
mtu: 1350
ipPools:{{range $i, $cidr := .Cluster.Spec.ClusterNetwork.Pods.CIDRBlocks }}
- cidr: {{ $cidr }}
encapsulation: None
natOutgoing: Enabled
nodeSelector: all(){{end}}
";

// AD-131: the example has the words of the proposal and nothing but its indentation is ours; without that it would mean nothing. Its address is
// never asked by any test.
#[test]
fn the_example_is_that_of_the_proposal_word_for_word() {
    let words = |text: &'static str| {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines.flat_map(str::split_whitespace).collect::<Vec<_>>()
    };
    assert_eq!(words(EXAMPLE), words(AS_PUBLISHED));
    assert!(yaml::parse(AS_PUBLISHED).is_err());
}

// AD-119, AD-120, AD-122, AD-123, AD-129, AD-130: the example of the proposal, as it stands there.
#[tokio::test(flavor = "multi_thread")]
async fn the_example_of_the_proposal_gives_a_pool_for_every_range() {
    let env = Env::start().await;
    env.cluster("c1").await;
    pods(&env, "c1", json!(["10.0.0.0/16", "fd00::/48"])).await;
    let example = Value::Object(yaml::parse(EXAMPLE).unwrap());
    env.apply::<HelmChartProxy>(example).await;
    env.releases("none", <[_]>::is_empty).await;
    env.merge::<Cluster>("c1", json!({"metadata": {"labels": {"calicoCNI": "enabled"}}}))
        .await;
    wait_values(&env, &[VALUES]).await;
    let release = env.served(&["c1"]).await.remove(0);
    assert_eq!(release.spec.release_name(), Some("calico"));
    assert_eq!(
        (release.spec.release_namespace(), release.spec.version()),
        ("default", None)
    );
    // What no object of the controller's own process says is for templates to read.
    env.chart(json!({"valuesTemplate": "home: {{ env \"HOME\" }}\n"})).await;
    env.told("HelmReleaseProxySpecsUpToDate", "False", "ValueParsingFailed", &["env"])
        .await;
    wait_values(&env, &[VALUES]).await;
}
