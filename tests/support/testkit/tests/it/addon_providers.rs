//! Add-on providers and the core do not depend on each other, and other add-on providers can be written.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use windlass_addon_values::{Objects as Seen, Template};
use windlass_api::core::Cluster;
use windlass_api_ext::addons::{HelmChartProxy, HelmReleaseProxy};
use windlass_contract::Selector;
use windlass_controller_runtime::Metrics;
use windlass_manager::registry::controllers::CONTROLLERS;
use windlass_manager::registry::kinds;
use windlass_manager::{Fetcher, Helming, Selection, controllers};
use windlass_testkit::{CLASS, ClusterOf, MANAGER, NAMESPACE, Objects, Server};

const HELM: [&str; 2] = ["helmchartproxy", "helmreleaseproxy"];

fn is_of_helm(definition: &Value) -> bool {
    let name = definition["metadata"]["name"].as_str().unwrap_or_default();
    name.starts_with("helm")
}

/// A minimal add-on provider: it installs a ConfigMap for each selected Cluster, on the management cluster.
struct Other {
    objects: Objects,
    selector: LabelSelector,
    template: Template,
}

impl Other {
    fn maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.objects.client().clone(), NAMESPACE)
    }

    /// The inventory: which Clusters have the add-on.
    async fn inventory(&self) -> BTreeSet<String> {
        let ours = ListParams::default().labels("other.example/add-on=yes");
        let found = self.maps().list(&ours).await.unwrap();
        found.into_iter().map(|map| map.metadata.name.unwrap()).collect()
    }

    /// Installs the add-on for selected Clusters, with rendered values, and removes it from the others.
    async fn reconcile(&self) {
        let selector = Selector::parse(&self.selector).unwrap();
        let mut chosen = BTreeSet::new();
        for cluster in self.objects.list::<Cluster>().await {
            if !selector.matches(cluster.metadata.labels.as_ref()) {
                continue;
            }
            let name = cluster.metadata.name.clone().unwrap();
            let object = serde_json::to_value(&cluster).unwrap();
            let seen = Seen {
                cluster: &object,
                control_plane: None,
                infra_cluster: None,
            };
            let map = json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": name, "labels": {"other.example/add-on": "yes"}},
                "data": {"values": self.template.render(&seen).unwrap()},
            });
            let parameters = PatchParams::apply("other").force();
            self.maps()
                .patch(&name, &parameters, &Patch::Apply(&map))
                .await
                .unwrap();
            chosen.insert(name);
        }
        for gone in self.inventory().await.difference(&chosen) {
            self.maps().delete(gone, &DeleteParams::default()).await.unwrap();
        }
    }
}

// AD-014, AD-017, AD-158, AD-159, AD-160: the core creates a cluster without the Helm provider and its definitions. Another
// provider, built from the same selector and templates, installs its add-on there and removes it again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_core_goes_without_helm_and_another_provider_takes_its_place() {
    let server = Server::start().await;
    let definitions: Vec<Value> = kinds::all_crds().into_iter().filter(|one| !is_of_helm(one)).collect();
    assert_eq!(definitions.len() + 2, kinds::all_crds().len());
    server.define(&definitions).await;
    let names: Vec<&str> = CONTROLLERS.iter().map(|info| info.name).collect();
    let others: Vec<&str> = names.into_iter().filter(|name| !HELM.contains(name)).collect();
    assert_eq!(others.len() + 2, CONTROLLERS.len());
    let core = controllers::start(
        server.client("core"),
        Metrics::new(),
        &Selection::of(&others).unwrap(),
        &Fetcher::default(),
        &Helming::default(),
    );
    let objects = Objects::new(server.client(MANAGER));
    objects.apply_yaml(CLASS).await;
    let cluster = ClusterOf::new("c1", 1, 0);
    cluster.apply(&objects).await;
    cluster.wait_running(&objects).await;

    let other = Other {
        objects: Objects::new(server.client("other")),
        selector: serde_json::from_value(json!({"matchLabels": {"other": "yes"}})).unwrap(),
        template: Template::parse("pods: {{ index .Cluster.spec.clusterNetwork.pods.cidrBlocks 0 }}\n").unwrap(),
    };
    let label = async |value: Option<&str>| {
        let patch = json!({"metadata": {"labels": {"other": value}}});
        objects.merge("Cluster", "c1", &patch).await;
        other.reconcile().await;
    };
    other.reconcile().await;
    assert!(other.inventory().await.is_empty());
    label(Some("yes")).await;
    let map = other.maps().get("c1").await.unwrap();
    assert_eq!(map.data.unwrap()["values"], "pods: 192.168.0.0/16\n");
    label(None).await;
    assert!(other.inventory().await.is_empty());
    core.shutdown().await;
    server.stop().await;
}

// AD-023: the provider is a separate process beside that of the core. It ships no helm, and reports when helm is missing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_provider_runs_beside_the_core() {
    let server = Server::start().await;
    server.define(&kinds::all_crds()).await;
    let folder = tempfile::tempdir().unwrap();
    let helming = Helming {
        program: Some("/nowhere/helm".into()),
        home: Some(folder.path().to_owned()),
        ..Helming::default()
    };
    let others: Vec<&str> = CONTROLLERS
        .iter()
        .map(|info| info.name)
        .filter(|name| !HELM.contains(name))
        .collect();
    let run = |name: &'static str, selection: &[&str]| {
        let selection = Selection::of(selection).unwrap();
        let client = server.client(name);
        controllers::start(client, Metrics::new(), &selection, &Fetcher::default(), &helming)
    };
    let (core, provider) = (run("core", &others), run("provider", &HELM));
    let objects = Objects::new(server.client(MANAGER));
    objects.apply_yaml(CLASS).await;
    let cluster = ClusterOf::new("c1", 1, 0);
    cluster.apply(&objects).await;
    objects
        .apply(&json!({
            "apiVersion": "addons.cluster.x-k8s.io/v1alpha1", "kind": "HelmChartProxy",
            "metadata": {"name": "web", "namespace": NAMESPACE},
            "spec": {"clusterSelector": {}, "chartName": "web", "repoURL": "https://charts.example", "version": "1.0.0"},
        }))
        .await;
    let told = |proxy: &HelmReleaseProxy| {
        let conditions = proxy.status.iter().flat_map(|status| &status.conditions);
        let mut words = conditions.map(|condition| condition.message.as_str());
        words.any(|words| words.contains("there is no program /nowhere/helm") && words.contains("install helm"))
    };
    objects
        .wait_all::<HelmReleaseProxy>("the missing program is reported", |all| all.len() == 1 && told(&all[0]))
        .await;
    let charts = objects.list::<HelmChartProxy>().await;
    let status = charts[0].status.as_ref().unwrap();
    assert_eq!(status.matching_clusters.as_ref().map(Vec::len), Some(1));
    cluster.wait_running(&objects).await;
    provider.shutdown().await;
    core.shutdown().await;
    server.stop().await;
}
