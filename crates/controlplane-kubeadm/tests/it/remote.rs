//! What is asked of the API server of a workload cluster for CoreDNS, and in the last stage of a rotation of authorities.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tokio::sync::Notify;
use windlass_api::core::v1beta2::Cluster;
use windlass_cluster_cache::{Clusters, Options, Workload as Known};
use windlass_controller_runtime::{ObjectKey, Runtime};
use windlass_controlplane_kubeadm::RemoteClusters;
use windlass_controlplane_kubeadm::workload::{WorkloadCluster, WorkloadClusters};
use windlass_pki::rotation::fingerprints;
use windlass_testkit::{Server, Workload};

use crate::authorities::pem;

const PATIENCE: Duration = Duration::from_mins(1);

/// A workload cluster, and a management cluster with a connection to it.
struct World {
    kit: Runtime,
    clusters: Clusters,
    workload: Workload,
    _server: Server,
}

impl Drop for World {
    fn drop(&mut self) {
        self.kit.cx().tasks().stop();
    }
}

/// Asks until there is an answer.
async fn eventually<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let answer = async {
        let mut again = tokio::time::interval(Duration::from_millis(10));
        loop {
            again.tick().await;
            if let Some(answer) = ask().await {
                return answer;
            }
        }
    };
    let answer = tokio::time::timeout(PATIENCE, answer).await;
    answer.unwrap_or_else(|_| panic!("never: {what}"))
}

impl World {
    async fn start() -> Self {
        let server = Server::with_definitions().await;
        let workload = Workload::start().await;
        let client = server.client("test");
        let params = PostParams::default();
        let secret = json!({
            "metadata": { "name": "demo-kubeconfig" }, "stringData": { "value": workload.kubeconfig() },
        });
        let secrets: Api<Secret> = Api::namespaced(client.clone(), "default");
        secrets
            .create(&params, &serde_json::from_value(secret).unwrap())
            .await
            .unwrap();
        let cluster = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": { "name": "demo" },
            "spec": { "controlPlaneRef": { "apiGroup": "x.io", "kind": "X", "name": "x" } },
        });
        let api: Api<Cluster> = Api::namespaced(client, "default");
        api.create(&params, &serde_json::from_value(cluster).unwrap())
            .await
            .unwrap();
        let status = json!({ "status": { "initialization": { "infrastructureProvisioned": true } } });
        api.patch_status("demo", &PatchParams::default(), &Patch::Merge(&status))
            .await
            .unwrap();
        let kit = Runtime::builder(server.client("controller")).build();
        let clusters = Clusters::new(&kit.cx(), Options::default());
        Self {
            kit,
            clusters,
            workload,
            _server: server,
        }
    }

    /// What a process that has just connected has.
    async fn connect(&self) -> (RemoteClusters, Box<dyn WorkloadCluster>) {
        let remote = RemoteClusters::new(&self.kit.cx(), self.clusters.clone());
        let key = ObjectKey::new("default", "demo");
        let connected = eventually("there is a connection", async || match remote.workload(&key) {
            Known::Up(connected) => Some(connected),
            Known::Down(_) | Known::NotTried(_) => None,
        });
        let connected = connected.await;
        (remote, connected)
    }

    /// How often the cluster was asked for Deployments and ConfigMaps.
    fn asked(&self) -> [u64; 2] {
        ["deployments", "configmaps"].map(|resource| self.workload.requests_for(resource))
    }

    async fn deployment(&self, key: &str) {
        let items = json!([{ "key": key, "path": "Corefile" }]);
        let labels = json!({ "k8s-app": "kube-dns" });
        let deployment = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "spec": {
                "selector": { "matchLabels": labels },
                "template": { "metadata": { "labels": labels }, "spec": {
                    "containers": [{ "name": "coredns", "image": "registry.k8s.io/coredns/coredns:v1.10.1" }],
                    "volumes": [{ "name": "config-volume", "configMap": { "name": "coredns", "items": items } }],
                } },
            },
        });
        self.apply::<Deployment>(deployment).await;
    }

    async fn config_map(&self) {
        let data = json!({ "Corefile": ".:53 {\n}\n" });
        self.apply::<ConfigMap>(json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": data }))
            .await;
    }

    async fn apply<K>(&self, mut object: Value)
    where
        K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
            + Clone
            + std::fmt::Debug
            + serde::de::DeserializeOwned,
    {
        object["metadata"] = json!({ "name": "coredns" });
        let api: Api<K> = Api::namespaced(self.workload.client(), "kube-system");
        let patch = Patch::Apply(&object);
        api.patch("coredns", &PatchParams::apply("test").force(), &patch)
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn an_update_that_was_left_is_looked_for_once_for_each_connection() {
    let world = World::start().await;
    world.deployment("Corefile").await;
    let (_remote, connected) = world.connect().await;
    let [before, _] = world.asked();
    for _ in 0..10 {
        assert_eq!(connected.unfinished_core_dns().await, Ok(None));
    }
    assert_eq!(world.asked()[0] - before, 1);

    world.deployment("Corefile-backup").await;
    let (_remote, connected) = world.connect().await;
    assert!(connected.unfinished_core_dns().await.unwrap().is_some());
    // Its watch is there after some requests.
    eventually("the Deployment is watched", async || {
        let before = world.asked();
        assert!(connected.unfinished_core_dns().await.unwrap().is_some());
        (world.asked() == before).then_some(())
    })
    .await;
    world.deployment("Corefile").await;
    let before = world.asked();
    eventually("the end is seen", async || {
        connected.unfinished_core_dns().await.unwrap().is_none().then_some(())
    })
    .await;
    assert_eq!(world.asked(), before);
}

#[tokio::test]
async fn a_config_map_that_is_missing_is_waited_for_without_requests() {
    let world = World::start().await;
    world.deployment("Corefile").await;
    let (remote, connected) = world.connect().await;
    let changed = Arc::new(Notify::new());
    let tell = changed.clone();
    remote.subscribe(Arc::new(move |_| tell.notify_one()));
    eventually("the ConfigMap is watched", async || {
        let before = world.asked();
        assert_eq!(connected.core_dns_objects().await, Ok(None));
        (world.asked() == before).then_some(())
    })
    .await;
    let before = world.asked();
    for _ in 0..10 {
        assert_eq!(connected.core_dns_objects().await, Ok(None));
    }
    assert_eq!(world.asked(), before);

    world.config_map().await;
    eventually("the control plane is woken when it comes", async || {
        tokio::time::timeout(PATIENCE, changed.notified()).await.unwrap();
        connected.core_dns_objects().await.unwrap()
    })
    .await;
}

#[tokio::test]
async fn aggregated_api_servers_lose_the_authorities_that_are_dropped_and_keep_all_others() {
    let world = World::start().await;
    let (_remote, connected) = world.connect().await;
    let (old, new, foreign) = (pem("b2xk"), pem("bmV3"), pem("Zm9yZWlnbg=="));
    let dropped = fingerprints(&old).unwrap();
    assert_eq!(connected.extension_authorities().await, Ok(None));
    connected.drop_extension_authorities(&dropped).await.unwrap();

    let maps: Api<ConfigMap> = Api::namespaced(world.workload.client(), "kube-system");
    let name = "extension-apiserver-authentication";
    let data = json!({
        "client-ca-file": format!("{old}{foreign}{new}"),
        "requestheader-client-ca-file": format!("{new}{old}"),
        "requestheader-allowed-names": "[\"front-proxy-client\"]",
    });
    let map = json!({ "metadata": { "name": name }, "data": data });
    let map = serde_json::from_value(map).unwrap();
    maps.create(&PostParams::default(), &map).await.unwrap();
    let all = fingerprints(&format!("{old}{new}{foreign}")).unwrap();
    assert_eq!(connected.extension_authorities().await, Ok(Some(all)));

    connected.drop_extension_authorities(&dropped).await.unwrap();
    let left = maps.get(name).await.unwrap();
    let data = left.data.clone().unwrap();
    assert_eq!(data["client-ca-file"], format!("{foreign}{new}"));
    assert_eq!(data["requestheader-client-ca-file"], new);
    assert_eq!(data["requestheader-allowed-names"], "[\"front-proxy-client\"]");
    let rest = fingerprints(&format!("{new}{foreign}")).unwrap();
    assert_eq!(connected.extension_authorities().await, Ok(Some(rest)));
    connected.drop_extension_authorities(&dropped).await.unwrap();
    assert_eq!(
        maps.get(name).await.unwrap().metadata.resource_version,
        left.metadata.resource_version
    );

    let junk = json!({ "data": { "client-ca-file": "junk" } });
    maps.patch(name, &PatchParams::default(), &Patch::Merge(&junk))
        .await
        .unwrap();
    let why = connected.extension_authorities().await.unwrap_err();
    assert!(why.contains(name) && why.contains("client-ca-file"), "{why}");
}
