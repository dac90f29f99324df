//! A management cluster with a workload cluster that a worker is to join.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use windlass_api::core::v1beta2::{Cluster, Machine};
use windlass_api_kubeadm::bootstrap::KubeadmConfig;
use windlass_bootstrap_kubeadm::{OnChange, TokenTtl, WorkloadClusters};
use windlass_cluster_cache::Workload;
use windlass_controller_runtime::{ObjectKey, Runtime};
use windlass_meta::{Clock, FakeClock};
use windlass_pki::{KeyAlgorithm, KeyMaterial, KeyPool, PrivateKey, Purpose};
use windlass_testkit::Server;

const CONTROLLER: &str = "controller";

/// One workload cluster that always answers.
struct Connected(kube::Client);

impl WorkloadClusters for Connected {
    fn workload(&self, _: &ObjectKey) -> Workload<kube::Client> {
        Workload::Up(self.0.clone())
    }

    fn on_change(&self, _: OnChange) {}
}

pub(crate) struct World {
    pub(crate) management: Server,
    pub(crate) workload: Server,
    pub(crate) clock: FakeClock,
    pub(crate) ca: KeyMaterial,
    kit: Runtime,
}

impl Drop for World {
    fn drop(&mut self) {
        self.kit.cx().tasks().stop();
    }
}

pub(crate) fn resource<K>(client: &kube::Client) -> Api<DynamicObject>
where
    K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
{
    Api::namespaced_with(client.clone(), "default", &ApiResource::erase::<K>(&()))
}

pub(crate) async fn create<K>(client: &kube::Client, object: Value)
where
    K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
{
    let object: DynamicObject = serde_json::from_value(object).unwrap();
    let created = resource::<K>(client).create(&PostParams::default(), &object).await;
    created.unwrap();
}

/// The writes of the controller.
pub(crate) fn writes(server: &Server) -> BTreeMap<String, u64> {
    let ours = server
        .counters()
        .of(|write| write.agent == CONTROLLER && write.resource != "events");
    let mut writes = BTreeMap::new();
    for (write, count) in ours {
        *writes.entry(format!("{} {}", write.verb, write.resource)).or_default() += count;
    }
    writes
}

impl World {
    pub(crate) async fn start(tokens: TokenTtl) -> Self {
        let management = Server::with_definitions().await;
        let workload = Server::start().await;
        let clock = FakeClock::new(Timestamp::now());
        let kit = Runtime::builder(management.client(CONTROLLER))
            .clock(clock.clone())
            .build();
        let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap();
        let ca = KeyMaterial::generate(Purpose::ClusterCa, key, 3650, clock.now()).unwrap();
        let world = Self {
            management,
            workload,
            clock,
            ca,
            kit,
        };
        world.objects().await;
        let keys = KeyPool::new(1, KeyAlgorithm::EcdsaP256, 0);
        let clusters = Arc::new(Connected(world.workload.client(CONTROLLER)));
        world
            .kit
            .start(vec![windlass_bootstrap_kubeadm::entry(clusters, keys, tokens)]);
        world
    }

    pub(crate) fn client(&self) -> kube::Client {
        self.management.client("test")
    }

    /// A cluster that is there, and a worker that is to join it.
    async fn objects(&self) {
        let client = self.client();
        let cluster = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": { "name": "demo" },
            "spec": {
                "controlPlaneEndpoint": { "host": "127.0.0.1", "port": 6443 },
                "controlPlaneRef": {
                    "apiGroup": "controlplane.cluster.x-k8s.io", "kind": "KubeadmControlPlane", "name": "cp",
                },
            },
        });
        create::<Cluster>(&client, cluster).await;
        let status = json!({ "status": { "initialization": {
            "infrastructureProvisioned": true, "controlPlaneInitialized": true,
        } } });
        self.status::<Cluster>("demo", status).await;
        // A user's own: it has no owner.
        let mut secret = Purpose::ClusterCa.secret("default", "demo", &Value::Null, &self.ca.data());
        secret["metadata"]["ownerReferences"] = json!([]);
        create::<Secret>(&client, secret).await;
        let config = json!({
            "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2", "kind": "KubeadmConfig",
            "metadata": { "name": "m", "labels": { "cluster.x-k8s.io/cluster-name": "demo" } },
            "spec": { "joinConfiguration": { "nodeRegistration": { "criSocket": "unix:///run/c.sock" } } },
        });
        create::<KubeadmConfig>(&client, config).await;
        let machine = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
            "metadata": { "name": "m", "labels": { "cluster.x-k8s.io/cluster-name": "demo" } },
            "spec": {
                "clusterName": "demo", "version": "v1.35.0",
                "bootstrap": { "configRef": {
                    "apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfig", "name": "m",
                } },
                "infrastructureRef": {
                    "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachine", "name": "m",
                },
            },
        });
        create::<Machine>(&client, machine).await;
    }

    pub(crate) async fn status<K>(&self, name: &str, status: Value)
    where
        K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
    {
        let api = resource::<K>(&self.client());
        let (params, patch) = (PatchParams::default(), Patch::Merge(status));
        api.patch_status(name, &params, &patch).await.unwrap();
    }

    /// Waits for an object to be as it should.
    pub(crate) async fn until<K>(&self, name: &str, what: &str, is_right: impl Fn(&Value) -> bool) -> Value
    where
        K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
    {
        let api = resource::<K>(&self.client());
        let mut last = Value::Null;
        let looking = async {
            while !is_right(&last) {
                tokio::time::sleep(Duration::from_millis(2)).await;
                let found = api.get_opt(name).await.unwrap();
                last = found.map_or(Value::Null, |object| serde_json::to_value(object).unwrap());
            }
        };
        let found = tokio::time::timeout(Duration::from_mins(1), looking).await;
        assert!(found.is_ok(), "{name} is never {what}: {last:#}");
        last
    }

    /// The ends of the tokens in the workload cluster.
    pub(crate) async fn tokens(&self) -> Vec<Timestamp> {
        let secrets: Api<Secret> = Api::namespaced(self.workload.client("test"), "kube-system");
        let tokens = secrets.list(&ListParams::default()).await.unwrap().items.into_iter();
        let tokens = tokens.filter(|secret| secret.type_.as_deref() == Some("bootstrap.kubernetes.io/token"));
        let end = |secret: Secret| String::from_utf8(secret.data.unwrap()["expiration"].0.clone()).unwrap();
        tokens.map(|secret| end(secret).parse().unwrap()).collect()
    }

    /// Moves the clock and all timers, and waits until nothing happens for a moment.
    pub(crate) async fn pass(&self, time: Duration) {
        self.clock.advance(SignedDuration::try_from(time).unwrap());
        tokio::time::pause();
        tokio::time::advance(time).await;
        tokio::time::resume();
        self.rests().await;
    }

    pub(crate) async fn rests(&self) {
        let now = || {
            let metrics = self.kit.metrics();
            let results = ["success", "requeue_after", "error"];
            let reconciles: u64 = results.iter().map(|r| metrics.reconciles("kubeadmconfig", r)).sum();
            (reconciles, writes(&self.management), writes(&self.workload))
        };
        let (mut last, mut same) = (now(), 0);
        while same < 10 {
            tokio::time::sleep(Duration::from_millis(2)).await;
            let now = now();
            same = if now == last { same + 1 } else { 0 };
            last = now;
        }
    }
}
