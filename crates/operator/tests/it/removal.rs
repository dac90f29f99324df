//! Removing providers, and what is in the way of it.

use serde_json::json;
use windlass_forge::LookAlike;

use crate::env::{Env, NAMESPACE, V1ALPHA2, declaration};

const CORE: (&str, &str, &str) = (V1ALPHA2, "CoreProvider", "cluster-api");
const INFRA: (&str, &str, &str) = (V1ALPHA2, "InfrastructureProvider", "rig");

// OP-114, OP-115, OP-116, OP-117, OP-118, OP-144, OP-229
#[tokio::test(flavor = "multi_thread")]
async fn a_provider_goes_when_nobody_needs_it_and_leaves_definitions() {
    let env = Env::start().await;
    env.with_core(V1ALPHA2).await;
    // Nobody answers webhooks here.
    let infra = LookAlike::infrastructure("rig").without_webhooks();
    env.shelve(&infra).await;
    env.variables("variables", &infra).await;
    let spec = json!({"version": "v1.0.0", "configSecret": {"name": "variables"}});
    env.apply(declaration(V1ALPHA2, "InfrastructureProvider", "rig", spec))
        .await;
    env.wait_installed(INFRA, "v1.0.0").await;
    let user = ("infrastructure.cluster.x-k8s.io/v1beta2", "RigRigCluster", "mine");
    env.apply(json!({"apiVersion": user.0, "kind": user.1, "metadata": {"name": user.2, "namespace": NAMESPACE}}))
        .await;

    env.delete(CORE).await;
    let told = env
        .wait_condition(CORE, "Deleting", "True", "OtherProvidersExist")
        .await;
    assert!(
        told["message"]
            .as_str()
            .unwrap()
            .contains("InfrastructureProvider providers/rig"),
        "{told}"
    );
    env.delete(INFRA).await;
    let told = env.wait_condition(INFRA, "Deleting", "True", "ProviderInUse").await;
    assert!(
        told["message"]
            .as_str()
            .unwrap()
            .contains("RigRigCluster providers/mine"),
        "{told}"
    );
    let name = infra.deployment_names().remove(0);
    assert!(env.get(("apps/v1", "Deployment", &name)).await.is_some());

    env.delete(user).await;
    env.wait(INFRA, "to be gone", serde_json::Value::is_null).await;
    env.wait(CORE, "to be gone", serde_json::Value::is_null).await;
    for name in infra
        .deployment_names()
        .into_iter()
        .chain(LookAlike::core().deployment_names())
    {
        assert!(env.get(("apps/v1", "Deployment", &name)).await.is_none(), "{name}");
    }
    let gone = [
        ("v1", "ServiceAccount", "infrastructure-rig-manager"),
        (
            "rbac.authorization.k8s.io/v1",
            "ClusterRole",
            "infrastructure-rig-manager-role",
        ),
        ("clusterctl.cluster.x-k8s.io/v1alpha3", "Provider", "infrastructure-rig"),
        ("v1", "Secret", "infrastructure-rig-authority"),
    ];
    for of in gone {
        assert!(env.get(of).await.is_none(), "{of:?}");
    }
    let definition = (
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        "rigrigclusters.infrastructure.cluster.x-k8s.io",
    );
    assert!(env.get(definition).await.is_some());
    assert!(env.get(("v1", "Namespace", NAMESPACE)).await.is_some());
    assert!(
        env.get(("v1", "Secret", "variables")).await.is_some(),
        "what is the user's stays"
    );
}

// OP-071
#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_was_never_installed_goes_at_once() {
    let env = Env::start().await;
    env.apply(declaration(V1ALPHA2, "InfrastructureProvider", "rig", json!({})))
        .await;
    env.wait_condition(INFRA, "ProviderInstalled", "False", "WaitingForCoreProviderReady")
        .await;
    env.delete(INFRA).await;
    env.wait(INFRA, "to be gone", serde_json::Value::is_null).await;
}
