//! Which clusters get a chart, and when.

use k8s_openapi::api::core::v1::{Namespace, Node, Secret};
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use windlass_api::core::{Cluster, Machine};
use windlass_api_ext::addons::{HelmChartProxy, HelmReleaseProxy};
use windlass_fake_providers::ChartLike;
use windlass_testkit::{CLASS, ClusterOf, NAMESPACE, wait};

use super::world::{World, chart, chart_proxy, client, is_ready, kubeconfig, run};

/// Makes the Nodes of a cluster ready or, as without a network, not ready, and waits until their Machines report it.
async fn set_nodes_ready(world: &World, cluster: &str, ready: bool) {
    let nodes: Api<Node> = Api::all(world.client(cluster).await);
    let status = if ready { "True" } else { "False" };
    let condition = json!({"type": "Ready", "status": status, "reason": "Network", "message": "network plugin"});
    let patch = json!({"status": {"conditions": [condition]}});
    for node in nodes.list(&ListParams::default()).await.unwrap() {
        let name = node.metadata.name.unwrap();
        let (parameters, patch) = (PatchParams::default(), Patch::Strategic(&patch));
        nodes.patch_status(&name, &parameters, &patch).await.unwrap();
    }
    let says = |machine: &Machine| {
        let conditions = machine.status.iter().flat_map(|status| &status.conditions);
        conditions
            .into_iter()
            .any(|c| c.type_ == "NodeReady" && c.status == status)
    };
    let what = format!("NodeReady {status}");
    world
        .env
        .wait_all::<Machine>(&what, |all| !all.is_empty() && all.iter().all(says))
        .await;
}

// AD-034, AD-035, AD-132: a chart that installs the network does not need one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_node_has_to_be_ready() {
    run("helm", async |world| {
        world.forge.chart("charts", &chart("1.0.0"));
        let cluster = ClusterOf::new("c1", 1, 1);
        cluster.apply(&world.env).await;
        cluster.wait_running(&world.env).await;
        set_nodes_ready(world, "c1", false).await;
        world.label("c1", Some("yes")).await;
        world.web(&json!({})).await;
        world.deployed("web", "c1", 1).await;
        let nodes: Api<Node> = Api::all(world.client("c1").await);
        for node in nodes.list(&ListParams::default()).await.unwrap() {
            let conditions = node.status.unwrap().conditions.unwrap();
            assert!(conditions.iter().any(|c| c.type_ == "Ready" && c.status == "False"));
        }
        set_nodes_ready(world, "c1", true).await;
        cluster.wait_running(&world.env).await;
    })
    .await;
}

// T15, AD-081, AD-161
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clusters_of_other_namespaces_are_not_served() {
    run("helm", async |world| {
        world.forge.chart("charts", &chart("1.0.0"));
        let other = "other";
        let namespaces: Api<Namespace> = Api::all(world.env.client().clone());
        let namespace = serde_json::from_value(json!({"metadata": {"name": other}})).unwrap();
        namespaces.create(&PostParams::default(), &namespace).await.unwrap();
        let class: Vec<Value> = serde_saphyr::from_multiple(CLASS).unwrap();
        let mut cluster = ClusterOf::new("c1", 1, 0).object();
        cluster["metadata"]["labels"] = json!({"web": "yes"});
        for object in class.iter().chain([&cluster]) {
            world.apply_to(other, object).await;
        }
        world.clusters(&["c1"]).await;
        world.web(&json!({})).await;
        world.deployed("web", "c1", 1).await;
        let clusters: Api<Cluster> = Api::namespaced(world.env.client().clone(), other);
        let is_initialized = |all: &[Cluster]| {
            let mut done = all
                .iter()
                .filter_map(|cluster| cluster.status.as_ref()?.initialization.as_ref());
            done.any(|done| done.control_plane_initialized == Some(true))
        };
        assert!(wait::until(clusters, None, is_initialized).await.is_some());
        world.env.looked(&["helmchartproxy", "helmreleaseproxy"]).await;

        // It has the same name and the label, and is reachable, but nothing is installed there.
        let releases: Api<HelmReleaseProxy> = Api::namespaced(world.env.client().clone(), other);
        assert!(releases.list(&ListParams::default()).await.unwrap().items.is_empty());
        let secrets: Api<Secret> = Api::namespaced(world.env.client().clone(), other);
        let theirs = kubeconfig(&secrets, "c1").await;
        assert!(world.listed_by("theirs", &theirs).await.is_empty());
        let proxies: Api<HelmChartProxy> = world.env.api();
        let matching = proxies
            .get("web")
            .await
            .unwrap()
            .status
            .unwrap()
            .matching_clusters
            .unwrap();
        let matching: Vec<_> = matching
            .iter()
            .map(|of| (of.namespace.as_deref(), of.name.as_deref()))
            .collect();
        assert_eq!(matching, [(Some(NAMESPACE), Some("c1"))]);

        // Its own HelmChartProxy selects it, and no other cluster.
        let authority = json!({"metadata": {"name": "forge"}, "stringData": {"ca.crt": world.forge.authority()}});
        let authority = serde_json::from_value(authority).unwrap();
        secrets.create(&PostParams::default(), &authority).await.unwrap();
        let theirs_to_be = chart_proxy(other, "web", &json!({"valuesTemplate": "greeting: theirs\n"}));
        world.apply_to(other, &theirs_to_be).await;
        assert!(
            wait::until(releases, None, |all| all.iter().any(is_ready))
                .await
                .is_some()
        );
        let listed = ["apps/web web-1.0.0 r1 deployed"];
        assert_eq!(world.listed_by("theirs", &theirs).await, listed);
        assert_eq!(world.listed("c1").await, listed);
        let maps = Api::<k8s_openapi::api::core::v1::ConfigMap>::namespaced(client(&theirs).await, "apps");
        assert_eq!(maps.get("web").await.unwrap().data.unwrap()["greeting"], "theirs");
        assert_eq!(world.data("c1", "apps", "web").await["greeting"], "hello");
    })
    .await;
}

// AD-107, AD-151: a chart may be installed before another chart that it needs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn charts_that_need_one_another_may_come_in_any_order() {
    run("helm", async |world| {
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.example.com"},
            "spec": {
                "group": "example.com", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}],
            },
        });
        let thing = json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "thing"}});
        let first = ChartLike::new("first", "1.0.0").file("crds/thing.yaml", &definition.to_string());
        let then = ChartLike::new("then", "1.0.0").file("templates/thing.yaml", &thing.to_string());
        world.forge.chart("charts", &first);
        world.forge.chart("charts", &then);
        world.clusters(&["c1"]).await;
        world.chart_proxy("then", &json!({"chartName": "then"})).await;
        let parts = ["no matches for kind \"Thing\""];
        world.blocked("then", "c1", "HelmInstallOrUpgradeFailed", &parts).await;
        world.told("then", "NotReady", &["Cluster c1", parts[0]], &[]).await;
        world.chart_proxy("first", &json!({"chartName": "first"})).await;
        world.deployed("first", "c1", 1).await;
        world.env.wait_all::<HelmReleaseProxy>("both ready", |all| all.len() == 2 && all.iter().all(is_ready)).await;
    })
    .await;
}
