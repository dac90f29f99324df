//! A blocked provider waits for an event: the server is asked nothing meanwhile.

use serde_json::json;
use windlass_fake_providers::LookAlike;

use crate::asked::Asked;
use crate::env::{NAMESPACE, V1ALPHA2, declaration};

const KIND: &str = "InfrastructureProvider";
const INFRA: (&str, &str, &str) = (V1ALPHA2, KIND, "rig");

fn map(namespace: &str, name: &str, data: &serde_json::Value) -> serde_json::Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": name, "namespace": namespace,
            "labels": {"provider-components": "infrastructure-rig", "provider.cluster.x-k8s.io/version": "v1.3.0"},
        },
        "data": data,
    })
}

// OP-134, OP-136, OP-138, OP-141, OP-162, OP-163: no user touches the declaration.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_missing_is_waited_for_and_nothing_is_asked_meanwhile() {
    let asked = Asked::default();
    let env = asked.env().await;
    env.with_core(V1ALPHA2).await;
    let infra = LookAlike::infrastructure("rig").version("v1.3.0");
    let spec = json!({
        "version": "v1.3.0", "configSecret": {"name": "variables"}, "additionalManifests": {"name": "more"},
    });
    env.apply(declaration(V1ALPHA2, KIND, "rig", spec)).await;
    env.wait_condition(INFRA, "ProviderInstalled", "False", "ConfigSecretMissing")
        .await;
    asked.nothing().await;
    let secret = |data: serde_json::Value| {
        let meta = json!({"name": "variables", "namespace": NAMESPACE});
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": data})
    };
    env.apply(secret(json!({"RIG_REGION": "dmFsdWU="}))).await;
    env.wait_condition(INFRA, "ProviderInstalled", "False", "ComponentsFetchError")
        .await;
    // What is in another namespace is none of this provider's.
    env.namespace("elsewhere").await;
    let files = json!({"components": infra.components(), "metadata": infra.metadata()});
    env.apply(map("elsewhere", "v1.3.0", &files)).await;
    asked.nothing().await;
    env.wait_condition(INFRA, "ProviderInstalled", "False", "ComponentsFetchError")
        .await;
    // Metadata that do not know the version.
    let strange = infra.clone().series(1, 0, "v1beta2");
    let files = json!({"components": infra.components(), "metadata": strange.metadata()});
    env.apply(map(NAMESPACE, "v1.3.0", &files)).await;
    let told = env
        .wait_condition(INFRA, "PreflightCheckPassed", "False", "CAPIVersionIncompatibility")
        .await;
    assert!(told["message"].as_str().unwrap().contains("v1.3.0"), "{told}");
    // Metadata that cannot be read.
    let files = json!({"components": infra.components(), "metadata": "releaseSeries: 7"});
    env.apply(map(NAMESPACE, "v1.3.0", &files)).await;
    env.wait_condition(INFRA, "PreflightCheckPassed", "False", "ComponentsFetchError")
        .await;
    let name = infra.deployment_names().remove(0);
    assert_eq!(env.get(("apps/v1", "Deployment", &name)).await, None);
    asked.nothing().await;
    let files = json!({"components": infra.components(), "metadata": infra.metadata()});
    env.apply(map(NAMESPACE, "v1.3.0", &files)).await;
    env.wait_condition(INFRA, "ProviderInstalled", "False", "AdditionalManifestsMissing")
        .await;
    asked.nothing().await;
    let more = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "added"}, "data": {"a": "b"}});
    let meta = json!({"name": "more", "namespace": NAMESPACE});
    let data = json!({"manifests": more.to_string()});
    env.apply(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}))
        .await;
    let told = env
        .wait_condition(INFRA, "ProviderInstalled", "False", "VariablesMissing")
        .await;
    assert!(
        told["message"].as_str().unwrap().contains("RIG_B64ENCODED_CREDENTIALS"),
        "{told}"
    );
    asked.nothing().await;
    env.apply(secret(
        json!({"RIG_REGION": "dmFsdWU=", "RIG_B64ENCODED_CREDENTIALS": "dmFsdWU="}),
    ))
    .await;
    env.wait_installed(INFRA, "v1.3.0").await;
    env.wait_condition(INFRA, "Ready", "True", "DeploymentAvailable").await;
    asked.nothing().await;
}

// OP-116, OP-138, OP-144
#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_waits_for_the_last_user_and_asks_nothing_meanwhile() {
    let asked = Asked::default();
    let env = asked.env().await;
    env.with_core(V1ALPHA2).await;
    let infra = LookAlike::infrastructure("rig").without_webhooks();
    env.shelve(&infra).await;
    env.variables("variables", &infra).await;
    let spec = json!({"version": "v1.0.0", "configSecret": {"name": "variables"}});
    env.apply(declaration(V1ALPHA2, KIND, "rig", spec)).await;
    env.wait_installed(INFRA, "v1.0.0").await;
    let user = |name| ("infrastructure.cluster.x-k8s.io/v1beta2", "RigRigCluster", name);
    for name in ["first", "second"] {
        let (api_version, kind, name) = user(name);
        let meta = json!({"name": name, "namespace": NAMESPACE});
        env.apply(json!({"apiVersion": api_version, "kind": kind, "metadata": meta, "spec": {"size": 1}}))
            .await;
    }
    env.delete(INFRA).await;
    env.wait_condition(INFRA, "Deleting", "True", "ProviderInUse").await;
    asked.nothing().await;
    env.delete(user("first")).await;
    env.wait(INFRA, "the other one to be told", |object| {
        object.to_string().contains("providers/second")
    })
    .await;
    asked.nothing().await;
    env.delete(user("second")).await;
    env.wait(INFRA, "to be gone", serde_json::Value::is_null).await;
}
