//! A cluster of Machines alone: without a class, a control plane object and MachineSets.

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde_json::{Value, json};
use windlass_api::core::{Cluster, Machine};
use windlass_api_kubeadm::bootstrap::KubeadmConfig;
use windlass_meta::ObjectKey;
use windlass_testkit::{ByHand, Env, NAMESPACE};

const INFRASTRUCTURE: &str = "infrastructure.cluster.x-k8s.io";
const BOOTSTRAP: &str = "bootstrap.cluster.x-k8s.io";

/// A Machine with its objects, as a user writes it: without the label of its Cluster.
async fn machine(env: &Env, name: &str, control_plane: bool, config: Value) {
    let object = |group: &str, kind: &str, spec: Value| json!({"apiVersion": format!("{group}/v1beta2"), "kind": kind, "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec});
    let backend = json!({"backend": {"inMemory": {}}});
    env.apply(&object(INFRASTRUCTURE, "DevMachine", backend)).await;
    env.apply(&object(BOOTSTRAP, "KubeadmConfig", config)).await;
    let mut machine = object(
        "cluster.x-k8s.io",
        "Machine",
        json!({
            "clusterName": "alone", "version": "v1.35.0",
            "bootstrap": {"configRef": {"apiGroup": BOOTSTRAP, "kind": "KubeadmConfig", "name": name}},
            "infrastructureRef": {"apiGroup": INFRASTRUCTURE, "kind": "DevMachine", "name": name},
        }),
    );
    if control_plane {
        machine["metadata"]["labels"] = json!({"cluster.x-k8s.io/control-plane": ""});
    }
    env.apply(&machine).await;
}

/// The Cluster of these Machines and its infrastructure.
async fn cluster(env: &Env) {
    let metadata = json!({"name": "alone", "namespace": NAMESPACE});
    env.apply(&json!({
        "apiVersion": format!("{INFRASTRUCTURE}/v1beta2"), "kind": "DevCluster", "metadata": metadata,
        "spec": {"backend": {"inMemory": {}}},
    }))
    .await;
    env.apply(&json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": metadata,
        "spec": {
            "clusterNetwork": {"services": {"cidrBlocks": ["10.128.0.0/12"]}, "pods": {"cidrBlocks": ["192.168.0.0/16"]}},
            "infrastructureRef": {"apiGroup": INFRASTRUCTURE, "kind": "DevCluster", "name": "alone"},
        },
    }))
    .await;
}

fn registration() -> Value {
    json!({"nodeRegistration": {"criSocket": "unix:///run/containerd/containerd.sock"}})
}

/// The configuration of the first control plane Machine.
fn first() -> Value {
    json!({
        "clusterConfiguration": {"certificatesDir": "/etc/kubernetes/pki"},
        "initConfiguration": registration(),
        "joinConfiguration": registration(),
    })
}

#[tokio::test]
async fn machines_alone_make_a_cluster() {
    let env = Env::start().await;
    cluster(&env).await;
    machine(&env, "first", true, first()).await;
    machine(&env, "worker", false, json!({"joinConfiguration": registration()})).await;

    env.wait_all::<Machine>("Machines with Nodes", |all| {
        let has_node = |machine: &Machine| machine.status.as_ref().is_some_and(|status| status.node_ref.is_some());
        all.len() == 2 && all.iter().all(has_node)
    })
    .await;
    let key = ObjectKey::new(NAMESPACE, "alone");
    env.wait_for::<Cluster>(&key, "its control plane and worker", |cluster| {
        let Some(status) = &cluster.status else { return false };
        let is_true = |type_: &str| {
            status
                .conditions
                .iter()
                .any(|one| one.type_ == type_ && one.status == "True")
        };
        let initialized = status
            .initialization
            .as_ref()
            .and_then(|done| done.control_plane_initialized);
        let ready = |part: &Option<windlass_api::core::ClusterReplicasStatus>| {
            part.as_ref().and_then(|part| part.ready_replicas)
        };
        initialized == Some(true)
            && is_true("RemoteConnectionProbe")
            && ready(&status.control_plane) == Some(1)
            && ready(&status.workers) == Some(1)
    })
    .await;
    let secrets: kube::Api<Secret> = env.api();
    let kubeconfig = secrets.get("alone-kubeconfig").await.unwrap();
    let owner = &kubeconfig.metadata.owner_references.as_deref().unwrap_or_default()[0];
    assert_eq!(
        (owner.kind.as_str(), owner.name.as_str(), owner.controller),
        ("Cluster", "alone", None)
    );
    assert_eq!(
        kubeconfig.metadata.labels.unwrap()["cluster.x-k8s.io/cluster-name"],
        "alone"
    );

    env.delete("Cluster", "alone").await;
    env.wait_gone("alone").await;
    assert!(env.list::<Machine>().await.is_empty());
    env.stop().await;
}

/// The owner that controls an object, by kind and name.
fn controller(metadata: &ObjectMeta) -> Option<(&str, &str)> {
    let mut owners = metadata.owner_references.iter().flatten();
    let controls = |owner: &&OwnerReference| owner.controller == Some(true);
    owners
        .find(controls)
        .map(|owner| (owner.kind.as_str(), owner.name.as_str()))
}

fn label<'a>(metadata: &'a ObjectMeta, key: &str) -> Option<&'a str> {
    metadata.labels.as_ref()?.get(key).map(String::as_str)
}

#[tokio::test]
async fn a_machine_alone_becomes_one_of_a_control_plane_that_grows() {
    const PLANE: (&str, &str) = ("KubeadmControlPlane", "alone-control-plane");
    const OF_PLANE: &str = "cluster.x-k8s.io/control-plane-name";
    const AUTHORITIES: [&str; 4] = ["ca", "etcd", "proxy", "sa"];
    let env = Env::start().await;
    cluster(&env).await;
    // The feature gate is one that control planes of this version turn on.
    let mut config = first();
    config["clusterConfiguration"]["featureGates"] = json!({"ControlPlaneKubeletLocalMode": true});
    machine(&env, "first", true, config.clone()).await;
    let key = ObjectKey::new(NAMESPACE, "first");
    let runs =
        |machine: &Machine| machine.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running");
    let before = env.wait_for::<Machine>(&key, "running", runs).await;
    let secrets: kube::Api<Secret> = env.api();
    let mut authorities = Vec::new();
    for suffix in AUTHORITIES {
        let secret = secrets.get(&format!("alone-{suffix}")).await.unwrap();
        assert_eq!(
            controller(&secret.metadata),
            Some(("KubeadmConfig", "first")),
            "{suffix}"
        );
        authorities.push(secret.data);
    }

    // The control plane is the one that would have made the Machine.
    let plane = ByHand::new("alone", 1, 0).managed();
    env.apply(&plane.object("DevMachineTemplate")).await;
    let mut object = plane.object(PLANE.0);
    object["spec"]["kubeadmConfigSpec"] = config;
    env.apply(&object).await;
    let reference = plane.object("Cluster")["spec"]["controlPlaneRef"].clone();
    let refers = json!({"spec": {"controlPlaneRef": reference}});
    env.merge("Cluster", "alone", &refers).await;

    let is_taken = |machine: &Machine| {
        controller(&machine.metadata) == Some(PLANE) && label(&machine.metadata, OF_PLANE) == Some(PLANE.1)
    };
    env.wait_for::<Machine>(&key, "of the control plane", is_taken).await;
    // The KubeadmConfig stays that of its Machine, as of each Machine of a control plane.
    let follows = |config: &KubeadmConfig| {
        controller(&config.metadata) == Some(("Machine", "first")) && label(&config.metadata, OF_PLANE) == Some(PLANE.1)
    };
    env.wait_for::<KubeadmConfig>(&key, "of a Machine of the control plane", follows)
        .await;
    for (suffix, data) in AUTHORITIES.into_iter().zip(&authorities) {
        let key = ObjectKey::new(NAMESPACE, format!("alone-{suffix}"));
        let is_taken = |secret: &Secret| controller(&secret.metadata) == Some(PLANE);
        let secret = env.wait_for::<Secret>(&key, "of the control plane", is_taken).await;
        assert_eq!(secret.data, *data, "{suffix}");
    }
    plane.wait_running(&env).await;

    let plane = plane.control_plane(3);
    env.merge(PLANE.0, PLANE.1, &json!({"spec": {"replicas": 3}})).await;
    plane.wait_running(&env).await;
    env.rest().await;
    let after = env.api::<Machine>().get("first").await.unwrap();
    assert_eq!(after.metadata.uid, before.metadata.uid);
    assert_eq!(env.created("machines"), 2, "the first Machine was replaced");
    let etcd = env.cloud().etcd(&plane.key()).unwrap();
    assert!(
        etcd.members.contains_key("first") && etcd.members.len() == 3,
        "{etcd:?}"
    );
    assert!(etcd.members.values().all(|votes| *votes), "{etcd:?}");

    env.delete("Cluster", "alone").await;
    env.wait_gone("alone").await;
    env.stop().await;
}
