//! The controller against a real API server in this process: who gets data when, and what it costs in requests.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod env;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::{Value, json};
use windlass_api::core::v1beta2::{Cluster, Machine};
use windlass_api_kubeadm::bootstrap::KubeadmConfig;

use crate::env::{Env, is_true, text};

#[tokio::test]
async fn the_first_machine_makes_the_cluster_and_the_others_join() {
    let env = Env::start(true).await;
    env.certificates().await;
    let first = env
        .machine(
            "cp-1",
            true,
            json!({"initConfiguration": {"nodeRegistration": {"criSocket": "x"}}}),
        )
        .await;
    env.machine("cp-2", true, json!({"joinConfiguration": {"controlPlane": {}}}))
        .await;
    env.machine(
        "worker",
        false,
        json!({"joinConfiguration": {"nodeRegistration": {"criSocket": "x"}}}),
    )
    .await;
    env.config("worker", |config| {
        says(config, "DataSecretAvailable", "control plane to be initialized")
    })
    .await;
    env.config("cp-2", |config| {
        says(config, "DataSecretAvailable", "control plane to be initialized")
    })
    .await;

    let made = env.config("cp-1", is_finished).await;
    let spec = made.spec.clone().unwrap().cluster_configuration.unwrap();
    assert_eq!(spec.control_plane_endpoint.as_deref(), Some("10.0.0.1:6443"));
    assert_eq!(
        made.status.clone().unwrap().observed_generation,
        made.metadata.generation
    );
    let secret: Secret = env.get("cp-1").await.unwrap();
    assert_eq!(secret.type_.as_deref(), Some("cluster.x-k8s.io/secret"));
    let owner = secret.metadata.owner_references.clone().unwrap().remove(0);
    assert_eq!(
        (owner.kind.as_str(), owner.uid),
        ("KubeadmConfig", made.metadata.uid.clone().unwrap())
    );
    assert_eq!(owner.controller, Some(true));
    assert!(text(&secret, "value").contains("kubeadm init"));
    let lock: ConfigMap = env.get("demo-lock").await.unwrap();
    assert_eq!(lock.data.unwrap()["lock-information"], r#"{"machineName":"cp-1"}"#);
    assert!(first.metadata.uid.is_some());

    env.initialized().await;
    for (name, part) in [
        ("cp-2", "/etc/kubernetes/pki/ca.key"),
        ("worker", "node.cluster.x-k8s.io/uninitialized"),
    ] {
        let joined = env.config(name, is_finished).await;
        let secret: Secret = env.get(name).await.unwrap();
        let data = text(&secret, "value");
        assert!(data.contains("kubeadm join") && data.contains(part), "{name}:\n{data}");
        let discovery = joined.spec.unwrap().join_configuration.unwrap().discovery.unwrap();
        let token = discovery.bootstrap_token.unwrap().token.unwrap();
        let (id, _) = token.split_once('.').unwrap();
        let remote = env.token(&format!("bootstrap-token-{id}")).await;
        assert_eq!(
            format!("{}.{}", text(&remote, "token-id"), text(&remote, "token-secret")),
            token
        );
        assert_eq!(
            text(&remote, "auth-extra-groups"),
            "system:bootstrappers:kubeadm:default-node-token"
        );
    }
    env.gone::<ConfigMap>("demo-lock").await;
}

#[tokio::test]
async fn data_costs_few_requests_and_a_settled_config_none() {
    let env = Env::start(true).await;
    env.certificates().await;
    env.initialized().await;
    env.writes_settle().await;
    let before = env.management_writes();
    env.machine("worker", false, json!({"verbosity": 2})).await;
    env.config("worker", is_finished).await;
    env.writes_settle().await;
    // Two to make Machine and config; then the spec, the data, and one status.
    assert_eq!(env.management_writes() - before, 2 + 3);
    let settled = env.management_writes();
    env.touch("worker").await;
    env.writes_settle().await;
    assert_eq!(
        env.management_writes() - settled,
        1,
        "only the change itself was written"
    );
}

#[tokio::test]
async fn without_a_control_plane_object_the_certificates_are_made_here() {
    let env = Env::start(false).await;
    env.machine(
        "solo",
        true,
        json!({"clusterConfiguration": {"encryptionAlgorithm": "ECDSA-P256", "caCertificateValidityPeriodDays": 30}}),
    )
    .await;
    let config = env.config("solo", is_finished).await;
    for suffix in ["ca", "etcd", "proxy", "sa"] {
        let secret: Secret = env.get(&format!("demo-{suffix}")).await.unwrap();
        let owner = &secret.metadata.owner_references.clone().unwrap()[0];
        assert_eq!(owner.uid, config.metadata.uid.clone().unwrap(), "{suffix}");
        assert!(
            text(&secret, "tls.key").starts_with("-----BEGIN EC PRIVATE KEY-----"),
            "{suffix}"
        );
    }
    let data: Secret = env.get("solo").await.unwrap();
    let authority: Secret = env.get("demo-ca").await.unwrap();
    let line = text(&authority, "tls.crt").lines().nth(3).unwrap().to_owned();
    assert!(
        text(&data, "value").contains(&line),
        "the data carries the authority that was made"
    );
}

#[tokio::test]
async fn certificates_that_come_late_wake_who_waits_for_them() {
    let env = Env::start(true).await;
    env.machine("cp-1", true, json!({"initConfiguration": {"skipPhases": ["addon"]}}))
        .await;
    env.config("cp-1", |config| says(config, "CertificatesAvailable", "demo-ca"))
        .await;
    env.certificates().await;
    env.config("cp-1", is_finished).await;
}

#[tokio::test]
async fn a_lock_of_a_machine_that_is_gone_is_taken_over() {
    let env = Env::start(true).await;
    env.certificates().await;
    env.create::<ConfigMap>(json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "demo-lock"},
        "data": {"lock-information": r#"{"machineName":"gone"}"#},
    }))
    .await;
    env.machine("cp-1", true, json!({"initConfiguration": {"skipPhases": ["addon"]}}))
        .await;
    env.config("cp-1", is_finished).await;
    let lock: ConfigMap = env.get("demo-lock").await.unwrap();
    assert_eq!(lock.data.unwrap()["lock-information"], r#"{"machineName":"cp-1"}"#);
}

#[tokio::test]
async fn deletion_is_never_held_up() {
    let env = Env::start(true).await;
    env.machine("worker", false, json!({"verbosity": 2})).await;
    let config = env
        .config("worker", |config| says(config, "DataSecretAvailable", "initialized"))
        .await;
    assert_eq!(config.metadata.finalizers, None);
    env.delete::<KubeadmConfig>("worker").await;
    env.gone::<KubeadmConfig>("worker").await;
    assert!(env.get::<Machine>("worker").await.is_some());
    assert!(env.get::<Cluster>("demo").await.is_some());
}

fn is_finished(config: &KubeadmConfig) -> bool {
    let status = config.status.clone().unwrap_or_default();
    let created = status.initialization.and_then(|init| init.data_secret_created) == Some(true);
    created && status.data_secret_name == config.metadata.name && is_true(config, "Ready")
}

fn says(config: &KubeadmConfig, type_: &str, part: &str) -> bool {
    let status: Value = serde_json::to_value(config.status.clone()).unwrap();
    status["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == type_ && condition["message"].as_str().unwrap().contains(part))
}
