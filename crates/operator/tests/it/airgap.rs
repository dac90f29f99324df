//! Providers from ConfigMaps: nothing outside the cluster is asked.

use serde_json::json;
use windlass_fake_providers::LookAlike;

use crate::env::{Env, V1ALPHA1, V1ALPHA2, condition, declaration};

const INFRA: (&str, &str, &str) = (V1ALPHA2, "InfrastructureProvider", "rig");

// OP-012, OP-013, OP-060, OP-064, OP-066, OP-136, OP-156, OP-158, OP-162
#[tokio::test(flavor = "multi_thread")]
async fn the_core_comes_first_and_the_others_follow_by_themselves() {
    let env = Env::start().await;
    let infra = LookAlike::infrastructure("rig");
    for version in ["v1.0.0", "v1.1.0", "v1.2.0-rc.0"] {
        env.shelve(&infra.clone().version(version)).await;
    }
    env.variables("variables", &infra).await;
    let secret = json!({"configSecret": {"name": "variables"}});
    env.apply(declaration(V1ALPHA2, "InfrastructureProvider", "rig", secret))
        .await;
    let told = env
        .wait_condition(INFRA, "PreflightCheckPassed", "False", "WaitingForCoreProviderReady")
        .await;
    assert!(told["message"].as_str().unwrap().contains("CoreProvider"), "{told}");
    env.with_core(V1ALPHA2).await;
    let stored = env.wait_installed(INFRA, "v1.1.0").await;
    assert_eq!(stored["spec"]["version"], "v1.1.0");
    assert_eq!(stored["status"]["installedVersion"], "v1.1.0");
    assert_eq!(stored["status"]["contract"], "v1beta2");
    env.wait_condition(INFRA, "Ready", "True", "DeploymentAvailable").await;
    let provider = env
        .get(("clusterctl.cluster.x-k8s.io/v1alpha3", "Provider", "infrastructure-rig"))
        .await
        .expect("the inventory has it");
    assert_eq!(provider["version"], "v1.1.0");
    assert_eq!(provider["type"], "InfrastructureProvider");
}

// OP-002, OP-064, OP-073, OP-164
#[tokio::test(flavor = "multi_thread")]
async fn through_the_older_api_it_is_the_same() {
    let env = Env::start().await;
    env.with_core(V1ALPHA1).await;
    let infra = LookAlike::infrastructure("rig");
    env.shelve(&infra).await;
    env.variables("variables", &infra).await;
    let spec = json!({"version": "v1.0.0", "secretName": "variables"});
    env.apply(declaration(V1ALPHA1, "InfrastructureProvider", "rig", spec))
        .await;
    let of = (V1ALPHA1, "InfrastructureProvider", "rig");
    let stored = env.wait_installed(of, "v1.0.0").await;
    assert_eq!(stored["status"]["contract"], "v1beta2");
    env.wait_condition(of, "Ready", "True", "DeploymentAvailable").await;
    for name in infra.deployment_names() {
        assert!(env.get(("apps/v1", "Deployment", &name)).await.is_some(), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nothing_runs_pods_the_deployments_wait() {
    let env = Env::without_nodes().await;
    env.with_core(V1ALPHA2).await;
    let of = (V1ALPHA2, "CoreProvider", "cluster-api");
    let told = env
        .wait_condition(of, "Ready", "False", "WaitingForClusterThatRunsDeployments")
        .await;
    assert!(told["message"].as_str().unwrap().contains("wait"), "{told}");
    let stored = env.get(of).await.unwrap();
    assert_eq!(condition(&stored, "PreflightCheckPassed")["status"], "True");
}
