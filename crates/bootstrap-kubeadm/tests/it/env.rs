//! A management API server with the kinds that matter here, a workload API server, and the controller between them.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::runtime::watcher;
use kube::{Api, Client};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use windlass_api::core::v1beta2::{Cluster, Machine};
use windlass_api::crd::crd;
use windlass_api_kubeadm::bootstrap::KubeadmConfig;
use windlass_apiserver::{ApiServer, Options, UserInfo};
use windlass_bootstrap_kubeadm::{KubeadmConfigController, OnChange, WorkloadClusters};
use windlass_kit::{ControllerEntry, Kit, ObjectKey};
use windlass_pki::{KeyAlgorithm, KeyMaterial, KeyPool, PrivateKey, Purpose};
use windlass_store::{Limits, Store};

const NAMESPACE: &str = "default";
/// Long enough for a busy machine; a test that waits for it has failed.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Env {
    management: ApiServer,
    workload: ApiServer,
    kit: Kit,
}

/// One workload cluster that is always connected.
struct Connected(Client);

impl WorkloadClusters for Connected {
    fn client(&self, _: &ObjectKey) -> Result<Client, String> {
        Ok(self.0.clone())
    }

    fn on_change(&self, _: OnChange) {}
}

trait Kind:
    kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + Serialize
    + DeserializeOwned
    + Clone
    + Debug
    + Send
    + Sync
    + 'static
{
}

impl<K> Kind for K where
    K: kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Serialize
        + DeserializeOwned
        + Clone
        + Debug
        + Send
        + Sync
        + 'static
{
}

impl Env {
    /// Servers, controller, and a Cluster `demo` whose infrastructure is there; with or without a control plane object.
    pub(crate) async fn start(control_plane_object: bool) -> Self {
        let server = || async {
            ApiServer::start(Options::new(Store::memory(Limits::small())))
                .await
                .unwrap()
        };
        let (management, workload) = (server().await, server().await);
        let client = client(&management);
        let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
        for definition in [crd::<Cluster>(), crd::<Machine>(), crd::<KubeadmConfig>()] {
            let definition = serde_json::from_value(definition).unwrap();
            definitions.create(&PostParams::default(), &definition).await.unwrap();
        }
        let kit = Kit::builder(client).build();
        let keys = KeyPool::new(1, KeyAlgorithm::EcdsaP256, 0);
        let controller = KubeadmConfigController::new(Arc::new(Connected(self::client(&workload))), keys);
        kit.start(vec![ControllerEntry::of(controller)]);
        let env = Self {
            management,
            workload,
            kit,
        };
        let mut cluster = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "demo"},
            "spec": {
                "controlPlaneEndpoint": {"host": "10.0.0.1", "port": 6443},
                "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevCluster", "name": "demo"},
            },
        });
        if control_plane_object {
            cluster["spec"]["controlPlaneRef"] =
                json!({"apiGroup": "controlplane.cluster.x-k8s.io", "kind": "KubeadmControlPlane", "name": "demo"});
        }
        env.create::<Cluster>(cluster).await;
        env.cluster_status(json!({"infrastructureProvisioned": true})).await;
        env
    }

    pub(crate) async fn initialized(&self) {
        self.cluster_status(json!({"infrastructureProvisioned": true, "controlPlaneInitialized": true}))
            .await;
    }

    async fn cluster_status(&self, initialization: Value) {
        let patch = Patch::Merge(json!({"status": {"initialization": initialization}}));
        let api: Api<Cluster> = self.api();
        api.patch_status("demo", &PatchParams::default(), &patch).await.unwrap();
    }

    /// The Secrets that a control plane object would make.
    pub(crate) async fn certificates(&self) {
        for purpose in Purpose::CONTROL_PLANE {
            let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap();
            let now = "2026-11-21T10:00:00Z".parse().unwrap();
            let material = KeyMaterial::generate(purpose, key, 3650, now).unwrap();
            let owner = json!({
                "apiVersion": "controlplane.cluster.x-k8s.io/v1beta2", "kind": "KubeadmControlPlane", "name": "demo",
                "uid": "6f1b1c1e-0000-4000-8000-000000000000", "controller": true,
            });
            let mut secret = purpose.secret(NAMESPACE, "demo", &owner, &material.data());
            // The garbage collector would collect what belongs to an owner that does not exist.
            secret["metadata"].as_object_mut().unwrap().remove("ownerReferences");
            self.create::<Secret>(secret).await;
        }
    }

    /// A Machine with a config of its name; the config has no owner reference yet, as right after its creation.
    pub(crate) async fn machine(&self, name: &str, control_plane: bool, spec: Value) -> Machine {
        let mut labels = json!({"cluster.x-k8s.io/cluster-name": "demo"});
        if control_plane {
            labels["cluster.x-k8s.io/control-plane"] = "".into();
        }
        self.create::<KubeadmConfig>(json!({
            "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2", "kind": "KubeadmConfig",
            "metadata": {"name": name, "labels": labels}, "spec": spec,
        }))
        .await;
        self.create::<Machine>(json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
            "metadata": {"name": name, "labels": labels},
            "spec": {
                "clusterName": "demo", "version": "v1.35.0",
                "bootstrap": {"configRef": {"apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfig", "name": name}},
                "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachine", "name": name},
            },
        }))
        .await
    }

    #[expect(private_bounds, reason = "a shorthand for the bounds of kube")]
    pub(crate) async fn create<K: Kind>(&self, object: Value) -> K {
        let object: K = serde_json::from_value(object).unwrap();
        self.api().create(&PostParams::default(), &object).await.unwrap()
    }

    #[expect(private_bounds, reason = "a shorthand for the bounds of kube")]
    pub(crate) async fn get<K: Kind>(&self, name: &str) -> Option<K> {
        self.api().get_opt(name).await.unwrap()
    }

    #[expect(private_bounds, reason = "a shorthand for the bounds of kube")]
    pub(crate) async fn delete<K: Kind>(&self, name: &str) {
        let api: Api<K> = self.api();
        api.delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// A token in the workload cluster.
    pub(crate) async fn token(&self, name: &str) -> Secret {
        let api: Api<Secret> = Api::namespaced(client(&self.workload), "kube-system");
        api.get(name).await.unwrap()
    }

    /// Changes something about a config that does not matter.
    pub(crate) async fn touch(&self, name: &str) {
        let api: Api<KubeadmConfig> = self.api();
        let patch = Patch::Merge(json!({"metadata": {"annotations": {"touched": "yes"}}}));
        api.patch(name, &PatchParams::default(), &patch).await.unwrap();
    }

    /// The config once it is as wished.
    pub(crate) async fn config(&self, name: &str, wish: impl Fn(&KubeadmConfig) -> bool) -> KubeadmConfig {
        self.until(name, |config: Option<&KubeadmConfig>| config.is_some_and(&wish))
            .await
            .unwrap()
    }

    #[expect(private_bounds, reason = "a shorthand for the bounds of kube")]
    pub(crate) async fn gone<K: Kind>(&self, name: &str) {
        self.until(name, |object: Option<&K>| object.is_none()).await;
    }

    async fn until<K: Kind>(&self, name: &str, wish: impl Fn(Option<&K>) -> bool) -> Option<K> {
        let mut last: Option<K> = None;
        let mut events = Box::pin(watcher::watch_object(self.api::<K>(), name));
        let waiting = async {
            while let Some(event) = events.next().await {
                last = event.unwrap();
                if wish(last.as_ref()) {
                    return;
                }
            }
        };
        let outcome = tokio::time::timeout(PATIENCE, waiting).await;
        assert!(outcome.is_ok(), "{name} did not become as wished: {last:#?}");
        last
    }

    /// All requests that wrote to the management cluster.
    pub(crate) fn management_writes(&self) -> u64 {
        self.management.counters().writes()
    }

    /// Waits until nothing was written for a while in which a reconcile would have ended many times.
    pub(crate) async fn writes_settle(&self) {
        let mut before = self.management_writes();
        let mut quiet = tokio::time::interval(Duration::from_millis(300));
        quiet.tick().await;
        loop {
            quiet.tick().await;
            let now = self.management_writes();
            if now == before {
                return;
            }
            before = now;
        }
    }

    fn api<K: Kind>(&self) -> Api<K> {
        Api::namespaced(client(&self.management), NAMESPACE)
    }
}

impl Drop for Env {
    fn drop(&mut self) {
        self.management.shutdown();
        self.workload.shutdown();
        self.kit.tasks().stop();
    }
}

fn client(server: &ApiServer) -> Client {
    Client::new(server.client_service(UserInfo::admin("test")), NAMESPACE)
}

pub(crate) fn is_true(config: &KubeadmConfig, type_: &str) -> bool {
    let conditions = config.status.iter().flat_map(|status| &status.conditions);
    conditions
        .into_iter()
        .any(|condition| condition.type_ == type_ && condition.status == "True")
}

pub(crate) fn text(secret: &Secret, key: &str) -> String {
    String::from_utf8(secret.data.as_ref().unwrap()[key].0.clone()).unwrap()
}
