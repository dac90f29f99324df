//! Objects that refer to what does not exist, or that cannot go on for a reason which another object knows: each says so itself.

use serde_json::{Value, json};
use windlass_testkit::{CLASS, ClusterOf, Env, NAMESPACE};

const INFRASTRUCTURE: &str = "infrastructure.cluster.x-k8s.io";
const BOOTSTRAP: &str = "bootstrap.cluster.x-k8s.io";

/// Waits until a condition of an object says this.
async fn says(env: &Env, (kind, name): (&str, &str), type_: &str, words: &[&str]) {
    let is_said = |all: &[kube::api::DynamicObject]| {
        let found = all.iter().find(|object| object.metadata.name.as_deref() == Some(name));
        let conditions = found.and_then(|object| object.data["status"]["conditions"].as_array());
        let mut messages = conditions
            .into_iter()
            .flatten()
            .filter(|condition| condition["type"] == type_)
            .filter_map(|condition| condition["message"].as_str());
        messages.any(|message| words.iter().all(|word| message.contains(word)))
    };
    let found = windlass_testkit::wait::until(env.dynamic(kind), None, is_said).await;
    let last = env.dynamic(kind).get_opt(name).await;
    assert!(found.is_some(), "{kind} {name} never says {words:?}: {last:?}");
}

fn object(group: &str, kind: &str, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": format!("{group}/v1beta2"), "kind": kind,
        "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec,
    })
}

fn control_plane(name: &str, kind: &str) -> Value {
    object(
        "controlplane.cluster.x-k8s.io",
        "KubeadmControlPlane",
        name,
        &json!({
            "replicas": 1, "version": "v1.35.0",
            "kubeadmConfigSpec": {"clusterConfiguration": {"certificatesDir": "/etc/kubernetes/pki"}},
            "machineTemplate": {"spec": {"infrastructureRef": {"apiGroup": INFRASTRUCTURE, "kind": kind, "name": name}}},
        }),
    )
}

/// A Cluster with a control plane and infrastructure of its name.
async fn cluster(env: &Env, name: &str) {
    let reference = |group: &str, kind: &str| json!({"apiGroup": group, "kind": kind, "name": name});
    env.apply(&object(
        "cluster.x-k8s.io",
        "Cluster",
        name,
        &json!({
            "controlPlaneRef": reference("controlplane.cluster.x-k8s.io", "KubeadmControlPlane"),
            "infrastructureRef": reference(INFRASTRUCTURE, "DevCluster"),
        }),
    ))
    .await;
}

/// Workers of a Cluster, with their templates.
async fn workers(env: &Env, cluster: &str, name: &str, version: &str) {
    let backend = json!({"template": {"spec": {"backend": {"inMemory": {}}}}});
    env.apply(&object(INFRASTRUCTURE, "DevMachineTemplate", name, &backend))
        .await;
    let registration = json!({"nodeRegistration": {"criSocket": "unix:///run/containerd/containerd.sock"}});
    let join = json!({"template": {"spec": {"joinConfiguration": registration}}});
    env.apply(&object(BOOTSTRAP, "KubeadmConfigTemplate", name, &join))
        .await;
    let reference = |group: &str, kind: &str| json!({"apiGroup": group, "kind": kind, "name": name});
    env.apply(&object(
        "cluster.x-k8s.io",
        "MachineDeployment",
        name,
        &json!({
            "clusterName": cluster, "replicas": 1, "selector": {"matchLabels": {}},
            "template": {"spec": {
                "clusterName": cluster, "version": version,
                "bootstrap": {"configRef": reference(BOOTSTRAP, "KubeadmConfigTemplate")},
                "infrastructureRef": reference(INFRASTRUCTURE, "DevMachineTemplate"),
            }},
        }),
    ))
    .await;
}

#[tokio::test]
async fn a_deployment_says_that_its_cluster_does_not_exist() {
    let env = Env::start().await;
    workers(&env, "ghost", "md", "v1.35.0").await;
    says(
        &env,
        ("MachineDeployment", "md"),
        "ScalingUp",
        &["Cluster ghost (spec.clusterName) does not exist"],
    )
    .await;
    env.rest().await;
    env.stop().await;
}

#[tokio::test]
async fn a_deployment_says_why_its_sets_make_no_machines() {
    let env = Env::start().await;
    env.apply_yaml(CLASS).await;
    let cluster = ClusterOf::new("here", 1, 0);
    cluster.apply(&env).await;
    cluster.wait_running(&env).await;
    workers(&env, "here", "md", "v1.40.0").await;
    let words = [
        "MachineSet md-",
        "makes no Machines: MachineSet version (1.40.0) and ControlPlane version (1.35.0)",
    ];
    says(&env, ("MachineDeployment", "md"), "ScalingUp", &words).await;
    // A deployment that runs says it of its rollout.
    workers(&env, "here", "md", "v1.35.0").await;
    env.wait_for::<windlass_api::core::MachineDeployment>(
        &windlass_meta::ObjectKey::new(NAMESPACE, "md"),
        "available",
        |md| md.status.as_ref().and_then(|status| status.available_replicas) == Some(1),
    )
    .await;
    workers(&env, "here", "md", "v1.40.0").await;
    says(&env, ("MachineDeployment", "md"), "RollingOut", &words).await;
    env.rest().await;
    env.stop().await;
}

#[tokio::test]
async fn a_control_plane_says_that_no_definition_serves_the_kind_of_its_template() {
    let env = Env::start().await;
    env.apply(&control_plane("cp", "NoMachineTemplate")).await;
    env.apply(&object(
        INFRASTRUCTURE,
        "DevCluster",
        "cp",
        &json!({"backend": {"inMemory": {}}}),
    ))
    .await;
    cluster(&env, "cp").await;
    let words = ["no CustomResourceDefinition serves kind NoMachineTemplate"];
    says(&env, ("KubeadmControlPlane", "cp"), "ScalingUp", &words).await;
    env.delete("Cluster", "cp").await;
    env.wait_gone("cp").await;
    env.stop().await;
}

#[tokio::test]
async fn a_control_plane_without_a_cluster_says_so_and_can_be_deleted() {
    let env = Env::start().await;
    env.apply(&control_plane("alone", "DevMachineTemplate")).await;
    let words = ["no Cluster refers to this control plane"];
    says(&env, ("KubeadmControlPlane", "alone"), "Available", &words).await;
    env.delete("KubeadmControlPlane", "alone").await;
    let gone = |all: &[kube::api::DynamicObject]| all.is_empty();
    let found = windlass_testkit::wait::until(env.dynamic("KubeadmControlPlane"), None, gone).await;
    assert!(found.is_some(), "it stays");
    env.stop().await;
}

/// A second control plane would make authorities and Machines for a Cluster that has its own.
#[tokio::test]
async fn a_control_plane_with_only_the_label_of_a_cluster_makes_no_machines() {
    let env = Env::start().await;
    env.apply_yaml(CLASS).await;
    let cluster = ClusterOf::new("here", 1, 0);
    cluster.apply(&env).await;
    cluster.wait_running(&env).await;
    let backend = json!({"template": {"spec": {"backend": {"inMemory": {}}}}});
    env.apply(&object(INFRASTRUCTURE, "DevMachineTemplate", "second", &backend))
        .await;
    let mut second = control_plane("second", "DevMachineTemplate");
    second["metadata"]["labels"] = json!({"cluster.x-k8s.io/cluster-name": "here"});
    env.apply(&second).await;
    let words = ["no Cluster refers to this control plane"];
    says(&env, ("KubeadmControlPlane", "second"), "Available", &words).await;
    env.rest().await;
    assert_eq!(env.created("machines"), 1);
    env.delete("KubeadmControlPlane", "second").await;
    let gone = |all: &[kube::api::DynamicObject]| all.len() == 1;
    let found = windlass_testkit::wait::until(env.dynamic("KubeadmControlPlane"), None, gone).await;
    assert!(found.is_some(), "it stays");
    assert_eq!(env.list::<windlass_api::core::Machine>().await.len(), 1);
    env.stop().await;
}

/// Until the infrastructure is there, a user can bring authorities of their own.
#[tokio::test]
async fn a_control_plane_makes_no_authorities_before_the_infrastructure_is_there() {
    let env = Env::start().await;
    // Another system makes the infrastructure.
    let mut infrastructure = object(
        INFRASTRUCTURE,
        "DevCluster",
        "cp",
        &json!({"backend": {"inMemory": {}}}),
    );
    infrastructure["metadata"]["annotations"] = json!({"cluster.x-k8s.io/managed-by": "test"});
    env.apply(&infrastructure).await;
    env.apply(&control_plane("cp", "DevMachineTemplate")).await;
    cluster(&env, "cp").await;
    let words = ["Control plane not yet initialized"];
    says(&env, ("KubeadmControlPlane", "cp"), "Available", &words).await;
    env.rest().await;
    let secrets = env.list::<k8s_openapi::api::core::v1::Secret>().await;
    let mut names = secrets.iter().filter_map(|secret| secret.metadata.name.as_deref());
    assert!(!names.any(|name| name == "cp-ca"));
    let plane = env.dynamic("KubeadmControlPlane").get("cp").await.unwrap();
    let conditions = plane.data["status"]["conditions"].as_array().unwrap();
    assert!(
        !conditions.iter().any(|one| one["type"] == "CertificatesAvailable"),
        "{conditions:?}"
    );
    env.stop().await;
}
