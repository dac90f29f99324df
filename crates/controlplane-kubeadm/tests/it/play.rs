//! What others do around a control plane, played as simply as possible: the objects that users make, kubeadm on a new machine, the Machine
//! controller, the bootstrap and the infrastructure provider.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use windlass_api::core::v1beta2::{Cluster, Machine, MachinePool};
use windlass_api::crd::crd;
use windlass_api::runtime::ExtensionConfig;
use windlass_api_ext::infrastructure::v1beta2::{DevMachine, DevMachineTemplate};
use windlass_api_kubeadm::bootstrap::v1beta2::KubeadmConfig;
use windlass_api_kubeadm::controlplane::v1beta2::KubeadmControlPlane;
use windlass_controller_runtime::ObjectKey;
use windlass_controlplane_kubeadm::facts::{NodeFacts, PodFacts};
use windlass_controlplane_kubeadm::workload::testing::FakeWorkload;

/// Static pods of a control plane machine.
const COMPONENTS: [&str; 4] = ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"];

pub(crate) fn cluster_key() -> ObjectKey {
    ObjectKey::new("default", "demo")
}

pub(crate) fn definitions() -> [Value; 8] {
    [
        crd::<Cluster>(),
        crd::<Machine>(),
        crd::<MachinePool>(),
        crd::<KubeadmConfig>(),
        crd::<KubeadmControlPlane>(),
        crd::<DevMachine>(),
        crd::<DevMachineTemplate>(),
        crd::<ExtensionConfig>(),
    ]
}

/// Objects of a kind, of which only the JSON counts.
pub(crate) fn objects<K>(client: &Client) -> Api<DynamicObject>
where
    K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
{
    Api::namespaced_with(client.clone(), "default", &ApiResource::erase::<K>(&()))
}

/// The stored objects of a kind.
pub(crate) async fn list<K>(client: &Client) -> Vec<Value>
where
    K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
{
    let list = objects::<K>(client).list(&ListParams::default()).await.unwrap();
    list.items.iter().map(|o| serde_json::to_value(o).unwrap()).collect()
}

/// All that the controller writes.
async fn written(client: &Client) -> Vec<Value> {
    let mut all = list::<KubeadmControlPlane>(client).await;
    all.extend(list::<Machine>(client).await);
    all.extend(list::<KubeadmConfig>(client).await);
    all.extend(list::<DevMachine>(client).await);
    all.extend(list::<Secret>(client).await);
    all
}

/// The resourceVersions of all that the controller writes.
pub(crate) async fn versions(client: &Client) -> Vec<String> {
    let all = written(client).await;
    let of = |o: &Value| format!("{} {}", o["metadata"]["name"], o["metadata"]["resourceVersion"]);
    all.iter().map(of).collect()
}

/// The contents of all that the controller writes. Fields may get another owner: what two clients have set in turns belongs to the last
/// one, until the first one applies it again.
pub(crate) async fn contents(client: &Client) -> Vec<Value> {
    let mut all = written(client).await;
    for object in &mut all {
        let metadata = object["metadata"].as_object_mut().unwrap();
        metadata.retain(|field, _| field != "managedFields" && field != "resourceVersion");
    }
    all
}

async fn create<K>(client: &Client, object: Value)
where
    K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
{
    let object: DynamicObject = serde_json::from_value(object).unwrap();
    let api = objects::<K>(client);
    api.create(&PostParams::default(), &object).await.unwrap();
}

/// Makes a Cluster with infrastructure, and its control plane `cp` with parts of its spec.
pub(crate) async fn make_cluster(client: &Client, spec: Value) {
    create::<Cluster>(
        client,
        json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2",
            "kind": "Cluster",
            "metadata": { "name": "demo", "namespace": "default" },
            "spec": {
                "controlPlaneEndpoint": { "host": "127.0.0.1", "port": 6443 },
                "controlPlaneRef": {
                    "apiGroup": "controlplane.cluster.x-k8s.io", "kind": "KubeadmControlPlane", "name": "cp",
                },
            },
        }),
    )
    .await;
    let provisioned = Patch::Merge(json!({ "status": { "initialization": { "infrastructureProvisioned": true } } }));
    let (clusters, params) = (objects::<Cluster>(client), PatchParams::default());
    let patched = clusters.patch_status("demo", &params, &provisioned);
    patched.await.unwrap();
    create::<DevMachineTemplate>(
        client,
        json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2",
            "kind": "DevMachineTemplate",
            "metadata": { "name": "tmpl", "namespace": "default" },
            "spec": { "template": { "spec": { "backend": { "inMemory": {} } } } },
        }),
    )
    .await;
    create::<KubeadmControlPlane>(client, control_plane(spec)).await;
}

fn control_plane(spec: Value) -> Value {
    let mut plane = json!({
        "apiVersion": "controlplane.cluster.x-k8s.io/v1beta2",
        "kind": "KubeadmControlPlane",
        "metadata": {
            "name": "cp", "namespace": "default", "labels": { "cluster.x-k8s.io/cluster-name": "demo" },
        },
        "spec": {
            "version": "v1.35.0",
            "machineTemplate": { "spec": { "infrastructureRef": {
                "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachineTemplate", "name": "tmpl",
            } } },
            "kubeadmConfigSpec": { "clusterConfiguration": { "encryptionAlgorithm": "ECDSA-P256" } },
        },
    });
    if let (Value::Object(whole), Value::Object(spec)) = (&mut plane["spec"], spec) {
        whole.extend(spec);
    }
    plane
}

fn condition(kind: &str, status: &str, reason: &str) -> Value {
    json!({
        "type": kind, "status": status, "reason": reason, "message": "",
        "lastTransitionTime": "2026-11-21T10:00:00Z",
    })
}

/// The Machine controller, with the providers that it waits for, and health checks. A refused write is answered.
#[derive(Clone)]
pub(crate) struct Machinist(pub(crate) Api<Machine>);

impl Machinist {
    pub(crate) fn new(client: &Client) -> Self {
        Self(Api::namespaced(client.clone(), "default"))
    }

    async fn merge(&self, name: &str, patch: Value) -> kube::Result<()> {
        let patch = Patch::Merge(patch);
        self.0.patch(name, &PatchParams::default(), &patch).await.map(drop)
    }

    async fn status(&self, name: &str, manager: &str, status: Value) -> kube::Result<()> {
        let patch = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "metadata": { "name": name },
            "status": status,
        });
        let params = PatchParams::apply(manager).force();
        self.0.patch_status(name, &params, &Patch::Apply(patch)).await.map(drop)
    }

    /// A deleting Machine waits for the hooks.
    pub(crate) async fn hold(&self, name: &str) -> kube::Result<()> {
        let waits = condition("Deleting", "True", "WaitingForPreTerminateHook");
        self.status(name, "machinist-deleting", json!({ "conditions": [waits] }))
            .await
    }

    /// A deleting Machine is gone.
    pub(crate) async fn let_go(&self, name: &str) -> kube::Result<()> {
        self.merge(name, json!({ "metadata": { "finalizers": null } })).await
    }

    /// The Machine shows when its certificates end.
    pub(crate) async fn certify(&self, name: &str, expiry: &str) -> kube::Result<()> {
        let status = json!({ "certificatesExpiryDate": expiry });
        self.status(name, "machinist-certificates", status).await
    }

    /// The provider has a machine.
    pub(crate) async fn identify(&self, name: &str) -> kube::Result<()> {
        let patch = json!({ "spec": { "providerID": provider_id(name) } });
        self.merge(name, patch).await
    }

    /// The Machine has found its Node.
    pub(crate) async fn link(&self, name: &str) -> kube::Result<()> {
        let status = json!({
            "nodeRef": { "name": name },
            "initialization": { "infrastructureProvisioned": true, "bootstrapDataSecretCreated": true },
            "conditions": [
                condition("Ready", "True", "Ready"),
                condition("Available", "True", "Available"),
                condition("NodeReady", "True", "NodeReady"),
            ],
        });
        self.status(name, "machinist", status).await
    }

    /// The Machine is of its cluster again.
    pub(crate) async fn label(&self, name: &str) -> kube::Result<()> {
        let labels = json!({ "cluster.x-k8s.io/cluster-name": "demo" });
        self.merge(name, json!({ "metadata": { "labels": labels } })).await
    }

    /// A health check finds the Machine unhealthy; `new` when it was not before.
    pub(crate) async fn mark(&self, name: &str, new: bool) -> kube::Result<()> {
        let unhealthy = condition("HealthCheckSucceeded", "False", "UnhealthyNode");
        self.status(name, "health", json!({ "conditions": [unhealthy] }))
            .await?;
        if new {
            let waits = condition("OwnerRemediated", "False", "WaitingForRemediation");
            self.status(name, "health-owner", json!({ "conditions": [waits] }))
                .await?;
        }
        Ok(())
    }

    /// A health check finds the Machine healthy.
    pub(crate) async fn unmark(&self, name: &str) -> kube::Result<()> {
        for manager in ["health", "health-owner"] {
            self.status(name, manager, json!({ "conditions": [] })).await?;
        }
        Ok(())
    }
}

fn provider_id(name: &str) -> String {
    format!("fake://{name}")
}

/// kubeadm has made a Node of a machine.
pub(crate) fn register(fake: &FakeWorkload, name: &str, now: Timestamp) {
    let mut state = fake.state();
    if state.nodes.iter().any(|n| n.name == name) {
        return;
    }
    state.nodes.push(NodeFacts {
        name: name.to_owned(),
        provider_id: Some(provider_id(name)),
        role_label: true,
        role_taint: true,
        ready: Some("True".to_owned()),
        created: Some(now),
        ..NodeFacts::default()
    });
}

/// The static pods of a machine run.
pub(crate) fn run_pods(fake: &FakeWorkload, name: &str) {
    let mut state = fake.state();
    state.up = true;
    state.kubeadm_config = true;
    state
        .kube_proxy
        .get_or_insert_with(|| "registry.k8s.io/kube-proxy:v1.35.0".to_owned());
    for component in COMPONENTS {
        let pod = PodFacts {
            phase: "Running".to_owned(),
            true_conditions: vec!["Ready".to_owned()],
            ..PodFacts::default()
        };
        state.pods.insert(format!("{component}-{name}"), pod);
    }
}

/// The static pods of a machine do not answer.
pub(crate) fn stop_pods(fake: &FakeWorkload, name: &str) {
    let mut state = fake.state();
    let of_machine = |pod: &String| pod.ends_with(name);
    for (_, pod) in state.pods.iter_mut().filter(|(pod, _)| of_machine(pod)) {
        pod.true_conditions.clear();
    }
}

/// Node and pods of a machine are gone.
pub(crate) fn leave(fake: &FakeWorkload, name: &str) {
    let mut state = fake.state();
    state.nodes.retain(|n| n.name != name);
    state.pods.retain(|pod, _| !pod.ends_with(name));
}
