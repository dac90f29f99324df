//! The contract of infrastructure: the whole life of a cluster of a class on machines of a provider in Go, in each version of the contract.
//!
//! The machines are in the memory of their provider. It serves the API server of each workload cluster, and etcd behind forwarded ports.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use http::header::CONTENT_TYPE;
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use windlass_api::core::{Cluster, Machine};
use windlass_api::{annotations, labels};
use windlass_manager::Selection;
use windlass_manager::registry::controllers::CONTROLLERS;
use windlass_testkit::faults::Faults;
use windlass_testkit::{CLASS, ClusterOf, Env, GoProvider, reserved_port, wait};

use super::{CAPD, CAPIM, foreign};
use crate::life::workload;

const GROUP: &str = "infrastructure.cluster.x-k8s.io";
/// Where the providers serve workload clusters.
const HOST: &str = "127.0.0.1";
/// The annotation in which the older provider keeps which cluster it serves at an endpoint.
const LISTENER: &str = "inmemorycluster.infrastructure.cluster.x-k8s.io/listener";
/// The ConfigMap of kubeadm.
const CONFIGURATION: &str = "kubeadm-config";
/// The control plane and the workers of a class, as JSON pointers.
const HEALTH_CHECKED: [&str; 2] = ["/spec/controlPlane", "/spec/workers/machineDeployments/0"];

/// The kinds of a provider.
#[derive(Clone, Copy, Debug)]
struct Kinds {
    /// The API version with the contract's fields.
    version: &'static str,
    cluster: &'static str,
    machine: &'static str,
}

impl Kinds {
    fn clusters(self, env: &Env) -> Api<DynamicObject> {
        foreign(env, GROUP, self.version, self.cluster)
    }

    fn machines(self, env: &Env) -> Api<DynamicObject> {
        foreign(env, GROUP, self.version, self.machine)
    }
}

/// The provider serves kinds that our process does not know, in the older contract.
#[tokio::test]
async fn a_cluster_lives_on_machines_of_a_go_provider_by_contract_v1beta1() {
    let kinds = Kinds {
        version: "v1alpha1",
        cluster: "InMemoryCluster",
        machine: "InMemoryMachine",
    };
    lives(CAPIM, kinds).await;
}

#[tokio::test]
async fn a_cluster_lives_on_machines_of_a_go_provider_by_contract_v1beta2() {
    let kinds = Kinds {
        version: "v1beta2",
        cluster: "DevCluster",
        machine: "DevMachine",
    };
    lives(CAPD, kinds).await;
}

/// Providers in memory have a listener for debugging at a fixed port, so one runs at a time on a machine. The lock ends with the file.
async fn alone() -> File {
    // Beside the programs, whose folder belongs to this user.
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../target/machines-in-memory.lock");
    let locked = tokio::task::spawn_blocking(move || {
        let file = File::create(path).unwrap();
        file.lock().unwrap();
        file
    });
    locked.await.unwrap()
}

async fn lives(provider: GoProvider, kinds: Kinds) {
    let Some(built) = provider.required() else {
        return;
    };
    let _alone = alone().await;
    let is_other = |name: &&str| !name.starts_with("dev");
    let others: Vec<&str> = CONTROLLERS.iter().map(|info| info.name).filter(is_other).collect();
    let builder = Env::builder().controllers(Selection::of(&others).unwrap());
    let mut env = builder.without_controllers().start().await;
    let mut manager = built.start(env.server(), |_| {}).await;
    env.start_controllers(&Faults::default());
    for object in class(kinds) {
        apply(&env, &object).await;
    }
    let stored = env.stored().await;

    let mut cluster = ClusterOf::new("c", 1, 1).version("v1.34.0");
    cluster.apply(&env).await;
    cluster.wait_running(&env).await;
    is_by_contract(&env, kinds, &cluster).await;
    let inside = workload(&env, &cluster).await;
    give_configuration(&inside).await;
    if kinds.version == "v1alpha1" {
        give_role_bindings(&inside).await;
    }

    // More machines.
    cluster = ClusterOf::new("c", 3, 2).version("v1.34.0");
    cluster.apply(&env).await;
    cluster.wait_running(&env).await;
    is_by_contract(&env, kinds, &cluster).await;

    for control_plane in [false, true] {
        remediates(&env, kinds, &cluster, control_plane).await;
    }

    // A rollout of both, each with new machines of the provider, and fewer workers.
    let before = names(kinds.machines(&env)).await;
    cluster = cluster.version("v1.35.0").workers(1);
    cluster.apply(&env).await;
    cluster.wait_running(&env).await;
    let after = names(kinds.machines(&env)).await;
    assert!(before.iter().all(|name| !after.contains(name)), "{before:?} {after:?}");
    is_by_contract(&env, kinds, &cluster).await;
    let kept = configuration(&inside).get(CONFIGURATION).await.unwrap().data.unwrap();
    assert!(
        kept["ClusterConfiguration"].contains("kubernetesVersion: v1.35.0"),
        "{kept:?}"
    );

    goes(&env, kinds).await;
    assert_eq!(env.stored().await, stored);
    manager.check().unwrap();
    drop(manager);
    env.stop().await;
}

/// The example class with infrastructure of these kinds, and with health checks of all machines.
fn class(kinds: Kinds) -> Vec<Value> {
    let version = format!("{GROUP}/v1beta2");
    let mut documents: Vec<Value> = serde_saphyr::from_multiple(CLASS).unwrap();
    for document in &mut documents {
        replace(document, &version, &format!("{GROUP}/{}", kinds.version));
        replace(document, "DevCluster", kinds.cluster);
        replace(document, "DevMachine", kinds.machine);
        let is_class = document["kind"] == "ClusterClass";
        for place in HEALTH_CHECKED.iter().filter(|_| is_class) {
            let part = document.pointer_mut(place).unwrap();
            part["healthCheck"] = json!({"checks": {
                "unhealthyNodeConditions": [{"type": "Ready", "status": "False", "timeoutSeconds": 300}],
            }});
            // Pods of a control plane cannot be evicted in memory.
            part["deletion"] = json!({"nodeDrainTimeoutSeconds": 1});
        }
        if document["kind"] == "DevClusterTemplate" {
            document["spec"]["template"]["spec"]["controlPlaneEndpoint"] = json!({"port": reserved_port()});
        }
        if kinds.version == "v1alpha1" {
            replace(
                document,
                "/spec/template/spec/backend/inMemory",
                "/spec/template/spec/behaviour",
            );
            let kind = document["kind"].as_str().unwrap().to_owned();
            if let Some(spec) = document.pointer_mut("/spec/template/spec") {
                to_older(spec, &kind);
            }
            if kind == "InMemoryClusterTemplate" {
                // As after a restart, it goes on at the port that the cluster had. Otherwise it would take the first one that ours take.
                document["spec"]["template"]["metadata"] = json!({"annotations": {(LISTENER): "default/c"}});
            }
        }
    }
    documents
}

/// The part of a template that is specific to the older provider.
fn to_older(spec: &mut Value, kind: &str) {
    // The API server of its workload clusters takes new objects in protobuf only, so no token can be made there.
    let discovery = json!({"file": {"kubeConfigPath": "/etc/kubernetes/discovery.conf"}});
    match kind {
        "InMemoryClusterTemplate" => *spec = json!({"controlPlaneEndpoint": {"host": HOST, "port": reserved_port()}}),
        "InMemoryMachineTemplate" => *spec = json!({"behaviour": spec["backend"]["inMemory"]}),
        "KubeadmControlPlaneTemplate" => {
            spec["kubeadmConfigSpec"]["joinConfiguration"]["discovery"] = discovery;
            // Nor do its Nodes have the taint that kubeadm gives to those of a control plane.
            let taint = json!({
                "key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule", "propagation": "Always",
            });
            spec["machineTemplate"]["spec"]["taints"] = json!([taint]);
        }
        "KubeadmConfigTemplate" => spec["joinConfiguration"]["discovery"] = discovery,
        _ => {}
    }
}

/// Replaces the beginning of all texts in a value.
fn replace(value: &mut Value, beginning: &str, by: &str) {
    match value {
        Value::String(text) => {
            if let Some(rest) = text.strip_prefix(beginning) {
                *text = format!("{by}{rest}");
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, beginning, by)),
        Value::Object(fields) => fields.values_mut().for_each(|field| replace(field, beginning, by)),
        _ => {}
    }
}

async fn apply(env: &Env, object: &Value) {
    let text = |field: &str| object[field].as_str().unwrap();
    let (group, version) = text("apiVersion").split_once('/').unwrap();
    let api = foreign(env, group, version, text("kind"));
    let name = object["metadata"]["name"].as_str().unwrap();
    let parameters = PatchParams::apply(windlass_testkit::MANAGER).force();
    let sent = api.patch(name, &parameters, &Patch::Apply(object)).await;
    sent.unwrap_or_else(|error| panic!("cannot apply {object}: {error}"));
}

async fn names(api: Api<DynamicObject>) -> Vec<String> {
    let all = api.list(&ListParams::default()).await.unwrap();
    all.into_iter().filter_map(|object| object.metadata.name).collect()
}

fn configuration(workload: &kube::Client) -> Api<ConfigMap> {
    Api::namespaced(workload.clone(), "kube-system")
}

/// The configuration that kubeadm keeps in a new cluster, which the provider leaves empty.
async fn give_configuration(workload: &kube::Client) {
    let document = "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nkubernetesVersion: v1.34.0\n";
    let patch = Patch::Merge(json!({"data": {"ClusterConfiguration": document}}));
    let sent = configuration(workload)
        .patch(CONFIGURATION, &PatchParams::default(), &patch)
        .await;
    sent.unwrap_or_else(|error| panic!("cannot write {CONFIGURATION}: {error}"));
}

/// The role bindings that kubeadm makes in a new cluster, which are missing in one of the older provider. It takes them in protobuf.
async fn give_role_bindings(workload: &kube::Client) {
    for (name, role) in [
        ("kubeadm:apiserver-kubelet-client", "system:kubelet-api-admin"),
        ("kubeadm:cluster-admins", "cluster-admin"),
    ] {
        let role = [field(2, b"ClusterRole"), field(3, role.as_bytes())].concat();
        let binding = [field(1, &field(1, name.as_bytes())), field(3, &role)].concat();
        let kind = [
            field(1, b"rbac.authorization.k8s.io/v1"),
            field(2, b"ClusterRoleBinding"),
        ]
        .concat();
        let request = http::Request::post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings")
            .header(CONTENT_TYPE, "application/vnd.kubernetes.protobuf")
            .body([b"k8s\0".to_vec(), field(1, &kind), field(2, &binding)].concat())
            .unwrap();
        workload.request_text(request).await.unwrap();
    }
}

/// A field of a message of protobuf that is short.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let length = u8::try_from(content.len()).unwrap();
    assert!(length < 0x80, "its length would take two bytes");
    [&[number << 3 | 2, length], content].concat()
}

/// What the core writes to the provider's objects, and what it takes from them.
async fn is_by_contract(env: &Env, kinds: Kinds, cluster: &ClusterOf) {
    let stored = env.api::<Cluster>().get(&cluster.name).await.unwrap();
    let found = serde_json::to_value(&stored).unwrap();
    let infra_name = found["spec"]["infrastructureRef"]["name"].as_str().unwrap();
    let infra = kinds.clusters(env).get(infra_name).await.unwrap();
    let endpoint = &infra.data["spec"]["controlPlaneEndpoint"];
    assert_eq!(endpoint["host"], HOST);
    assert_eq!(found["spec"]["controlPlaneEndpoint"], *endpoint);
    assert_eq!(found["status"]["initialization"]["infrastructureProvisioned"], true);
    assert!(is_true(&found, "InfrastructureReady"), "{found}");
    let uid = stored.metadata.uid.as_ref();
    assert!(owners(&infra.metadata).any(|(_, owner)| Some(owner) == uid));
    is_cloned(&infra.metadata, cluster);

    let machines = kinds.machines(env).list(&ListParams::default()).await.unwrap().items;
    let mut machines: BTreeMap<String, DynamicObject> = machines
        .into_iter()
        .map(|machine| (machine.metadata.name.clone().unwrap(), machine))
        .collect();
    for machine in env.list::<Machine>().await {
        let found = serde_json::to_value(&machine).unwrap();
        let infra_name = found["spec"]["infrastructureRef"]["name"].as_str().unwrap();
        let infra = machines.remove(infra_name).unwrap();
        assert_eq!(infra.data["spec"]["providerID"], format!("in-memory://{infra_name}"));
        assert_eq!(found["spec"]["providerID"], infra.data["spec"]["providerID"]);
        assert_eq!(found["status"]["nodeRef"]["name"], infra_name);
        assert_eq!(found["status"]["initialization"]["infrastructureProvisioned"], true);
        for condition in ["InfrastructureReady", "BootstrapConfigReady", "NodeHealthy"] {
            assert!(is_true(&found, condition), "{condition}: {found}");
        }
        let uid = machine.metadata.uid.as_ref();
        assert!(owners(&infra.metadata).any(|(controls, owner)| controls && Some(owner) == uid));
        is_cloned(&infra.metadata, cluster);
    }
    assert!(machines.is_empty(), "none is without a Machine: {:?}", machines.keys());
}

fn is_true(object: &Value, condition: &str) -> bool {
    let all = object["status"]["conditions"].as_array();
    let mut all = all.into_iter().flatten();
    all.any(|one| one["type"] == condition && one["status"] == "True")
}

/// The owners of an object by UID, and whether each controls it.
fn owners(metadata: &ObjectMeta) -> impl Iterator<Item = (bool, &String)> {
    let all = metadata.owner_references.iter().flatten();
    all.map(|owner| (owner.controller == Some(true), &owner.uid))
}

/// What a clone of a template has by contract.
fn is_cloned(metadata: &ObjectMeta, cluster: &ClusterOf) {
    let label = metadata.labels.as_ref().and_then(|all| all.get(labels::CLUSTER_NAME));
    assert_eq!(label, Some(&cluster.name));
    let from = metadata
        .annotations
        .as_ref()
        .and_then(|all| all.get(annotations::CLONED_FROM_NAME));
    assert!(from.is_some(), "{metadata:?}");
}

/// A machine whose Node is not ready is replaced, with that of the provider.
async fn remediates(env: &Env, kinds: Kinds, cluster: &ClusterOf, control_plane: bool) {
    let machines = env.list::<Machine>().await;
    let sick = cluster.machines(&machines, control_plane)[0];
    let node = sick.status.as_ref().unwrap().node_ref.as_ref().unwrap().name.clone();
    let condition = json!({
        "type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": "the test says so",
        "lastTransitionTime": "2026-01-01T00:00:00Z", "lastHeartbeatTime": "2026-01-01T00:00:00Z",
    });
    let nodes: Api<Node> = Api::all(workload(env, cluster).await);
    let patch = json!({"status": {"conditions": [condition]}});
    let sent = nodes.patch(&node, &PatchParams::default(), &Patch::Merge(&patch)).await;
    sent.unwrap_or_else(|error| panic!("cannot change Node {node}: {error}"));
    let name = sick.metadata.name.as_ref();
    env.wait_all::<Machine>("the sick one gone", |all| {
        all.iter().all(|machine| machine.metadata.name.as_ref() != name)
    })
    .await;
    cluster.wait_running(env).await;
    is_by_contract(env, kinds, cluster).await;
    let left = nodes.list(&ListParams::default()).await.unwrap();
    let mut left = left.iter().filter_map(|node| node.metadata.name.as_ref());
    assert!(left.all(|name| *name != node), "its provider removed the Node, too");
}

/// The infrastructure of the Cluster goes after its machines, and the Cluster after it.
async fn goes(env: &Env, kinds: Kinds) {
    env.delete("Cluster", "c").await;
    let going = |all: &[DynamicObject]| all.iter().all(|one| one.metadata.deletion_timestamp.is_some());
    let found = wait::until(kinds.clusters(env), None, going).await;
    assert!(found.is_some(), "the {} stays\n{}", kinds.cluster, env.explain().await);
    assert_eq!(names(kinds.machines(env)).await, [""; 0], "machines go before it");
    env.wait_gone("c").await;
    let gone = wait::until(kinds.clusters(env), None, <[DynamicObject]>::is_empty).await;
    assert!(gone.is_some(), "the {} never goes", kinds.cluster);
}
