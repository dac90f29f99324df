//! A cluster of Machines alone: without a class, a control plane object and MachineSets.

use k8s_openapi::api::core::v1::Secret;
use serde_json::{Value, json};
use windlass_api::core::{Cluster, Machine};
use windlass_meta::ObjectKey;
use windlass_testkit::{Env, NAMESPACE};

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

#[tokio::test]
async fn machines_alone_make_a_cluster() {
    let env = Env::start().await;
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
    let registration = json!({"nodeRegistration": {"criSocket": "unix:///run/containerd/containerd.sock"}});
    let first = json!({"clusterConfiguration": {"certificatesDir": "/etc/kubernetes/pki"}, "initConfiguration": registration, "joinConfiguration": registration});
    machine(&env, "first", true, first).await;
    machine(&env, "worker", false, json!({"joinConfiguration": registration})).await;

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
