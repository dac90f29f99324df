//! Other versions and other settings of a provider that runs.

use serde_json::{Value, json};
use windlass_fake_providers::{Flaw, LookAlike};

use crate::env::{Env, V1ALPHA2, condition, declaration};

const KIND: &str = "InfrastructureProvider";
const INFRA: (&str, &str, &str) = (V1ALPHA2, KIND, "rig");
const CRD: (&str, &str, &str) = (
    "apiextensions.k8s.io/v1",
    "CustomResourceDefinition",
    "rigrigclusters.infrastructure.cluster.x-k8s.io",
);

fn deployment(provider: &LookAlike) -> String {
    provider.deployment_names().remove(0)
}

async fn infra(env: &Env, provider: &LookAlike) {
    env.with_core(V1ALPHA2).await;
    env.shelve(provider).await;
    env.variables("variables", provider).await;
    let spec = json!({"version": provider.release(), "configSecret": {"name": "variables"}});
    env.apply(declaration(V1ALPHA2, KIND, "rig", spec)).await;
    env.wait_installed(INFRA, provider.release()).await;
}

fn uid(object: Option<&Value>) -> Value {
    object
        .map(|object| object["metadata"]["uid"].clone())
        .unwrap_or_default()
}

// OP-079, OP-083, OP-084, OP-085, OP-086, OP-104, OP-229
#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_replaces_what_runs_and_keeps_what_users_have() {
    let env = Env::start().await;
    let old = LookAlike::infrastructure("rig").without_webhooks().extra("old-only");
    infra(&env, &old).await;
    let user = ("infrastructure.cluster.x-k8s.io/v1beta2", "RigRigCluster", "mine");
    env.apply(json!({
        "apiVersion": user.0, "kind": user.1, "metadata": {"name": user.2, "namespace": crate::env::NAMESPACE}, "spec": {"size": 1},
    }))
    .await;
    let name = deployment(&old);
    let running = ("apps/v1", "Deployment", name.as_str());
    let before = (env.get(running).await, env.get(CRD).await, env.get(user).await);
    let extra = ("v1", "ConfigMap", "infrastructure-rig-old-only");
    assert!(env.get(extra).await.is_some());

    let new = LookAlike::infrastructure("rig").without_webhooks().version("v1.1.0");
    env.shelve(&new).await;
    env.merge(INFRA, json!({"spec": {"version": "v1.1.0"}})).await;
    let stored = env.wait_installed(INFRA, "v1.1.0").await;
    assert_eq!(condition(&stored, "ProviderUpgraded")["status"], "True");
    let after = (env.get(running).await, env.get(CRD).await, env.get(user).await);
    assert!(after.0.is_some());
    assert_ne!(
        uid(before.0.as_ref()),
        uid(after.0.as_ref()),
        "the Deployment is another one"
    );
    assert_eq!(
        uid(before.1.as_ref()),
        uid(after.1.as_ref()),
        "the definition is the same"
    );
    assert_eq!(
        uid(before.2.as_ref()),
        uid(after.2.as_ref()),
        "the user's object is the same"
    );
    assert!(env.get(extra).await.is_none(), "what the new version lacks is gone");
    let inventory = ("clusterctl.cluster.x-k8s.io/v1alpha3", "Provider", "infrastructure-rig");
    assert_eq!(env.get(inventory).await.unwrap()["version"], "v1.1.0");
    env.wait_condition(INFRA, "Ready", "True", "DeploymentAvailable").await;
}

// OP-082, OP-140: what cannot be had or used leaves what runs alone.
#[tokio::test(flavor = "multi_thread")]
async fn a_release_that_cannot_be_used_leaves_what_runs_alone() {
    let env = Env::start().await;
    let old = LookAlike::infrastructure("rig");
    infra(&env, &old).await;
    let name = deployment(&old);
    let running = ("apps/v1", "Deployment", name.as_str());
    let before = uid(env.get(running).await.as_ref());
    let check = async |version: &str, reason: &str, word: &str| {
        env.merge(INFRA, json!({"spec": {"version": version}})).await;
        let told = env.wait_condition(INFRA, "ProviderUpgraded", "False", reason).await;
        assert!(told["message"].as_str().unwrap().contains(word), "{told}");
        assert_eq!(uid(env.get(running).await.as_ref()), before);
    };
    check("v1.3.0", "ComponentsFetchError", "v1.0.0").await;
    env.shelve(&old.clone().version("v1.4.0").with_flaw(Flaw::NoDeployment))
        .await;
    check("v1.4.0", "ComponentsFetchError", "Deployment").await;
    env.shelve(&old.clone().version("v1.5.0").with_flaw(Flaw::Tab)).await;
    check("v1.5.0", "ComponentsFetchError", "tab").await;
    env.shelve(&old.clone().version("v1.6.0").requires("HAS_NO_VALUE"))
        .await;
    check("v1.6.0", "VariablesMissing", "HAS_NO_VALUE").await;
    // OP-080
    check("v0.9.0", "UnsupportedProviderDowngradeReason", "patch").await;
    env.merge(INFRA, json!({"spec": {"version": "v1.0.0"}})).await;
    env.wait_condition(INFRA, "ProviderUpgraded", "True", "ProviderUpgraded")
        .await;
    assert_eq!(uid(env.get(running).await.as_ref()), before);
}

// OP-105, OP-107, OP-109, OP-111, OP-112, OP-113, OP-218
#[tokio::test(flavor = "multi_thread")]
async fn settings_change_what_runs_and_where_files_come_from_does_not() {
    let env = Env::start().await;
    let provider = LookAlike::infrastructure("rig");
    infra(&env, &provider).await;
    let name = deployment(&provider);
    let running = ("apps/v1", "Deployment", name.as_str());
    let before = uid(env.get(running).await.as_ref());
    // Neither other labels of ConfigMaps nor other values of variables do anything.
    let other = json!({"spec": {"fetchConfig": {"selector": {"matchLabels": {"provider-components": "other"}}}}});
    env.merge(INFRA, other).await;
    env.wait_installed(INFRA, "v1.0.0").await;
    let values = json!({"data": {"RIG_REGION": "b3RoZXI="}});
    env.merge(("v1", "Secret", "variables"), values).await;
    assert_eq!(uid(env.get(running).await.as_ref()), before);
    let back =
        json!({"spec": {"fetchConfig": {"selector": {"matchLabels": {"provider-components": "infrastructure-rig"}}}}});
    env.merge(INFRA, back).await;
    env.merge(
        INFRA,
        json!({"spec": {"manager": {"profilerAddress": "localhost:6060"}}}),
    )
    .await;
    let changed = env
        .wait(running, "another argument", |deployment| {
            deployment.to_string().contains("--profiler-address=localhost:6060")
        })
        .await;
    assert_ne!(changed["metadata"]["uid"], before);
    env.wait_installed(INFRA, "v1.0.0").await;
    // OP-014
    env.merge(INFRA, json!({"spec": {"version": null}})).await;
    env.wait(INFRA, "the version that is installed", |object| {
        object["spec"]["version"] == "v1.0.0"
    })
    .await;
}
