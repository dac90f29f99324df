//! Objects of the kinds that the provider itself defines: its controllers and webhooks look after them.

use serde_json::{Value, json};
use windlass_fake_providers::LookAlike;
use windlass_testkit::faults::Faults;

use crate::env::{Env, NAMESPACE, Of, V1ALPHA2, declaration};
use crate::hook;

const INFRA: Of<'_> = (V1ALPHA2, "InfrastructureProvider", "rig");
const GROUP: &str = "infrastructure.cluster.x-k8s.io";
const IDENTITY: Of<'_> = ("infrastructure.cluster.x-k8s.io/v1", "RigIdentity", "default");

fn rig(version: &str) -> LookAlike {
    let rig = LookAlike::infrastructure("rig").without_webhooks();
    rig.without_required_variables().version(version)
}

/// Additional manifests: a kind whose objects never change, and one of these objects.
async fn shelve(env: &Env, account: &str, finalizer: &str, more: &[Value]) {
    let spec = json!({
        "type": "object", "properties": {"account": {"type": "string"}},
        "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "spec is immutable"}],
    });
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("rigidentities.{GROUP}")},
        "spec": {
            "group": GROUP, "scope": "Cluster", "names": {"kind": "RigIdentity", "plural": "rigidentities"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
            }],
        },
    });
    let mut identity = json!({
        "apiVersion": IDENTITY.0, "kind": IDENTITY.1, "metadata": {"name": IDENTITY.2}, "spec": {"account": account},
    });
    if !finalizer.is_empty() {
        identity["metadata"]["finalizers"] = json!([finalizer]);
    }
    let all: Vec<_> = [definition, identity]
        .iter()
        .chain(more)
        .map(Value::to_string)
        .collect();
    env.apply(json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "more", "namespace": NAMESPACE},
        "data": {"manifests": all.join("\n---\n")},
    }))
    .await;
}

async fn installed(env: &Env) {
    env.with_core(V1ALPHA2).await;
    env.shelve(&rig("v1.0.0")).await;
    env.shelve(&rig("v1.1.0")).await;
    let spec = json!({"version": "v1.0.0", "additionalManifests": {"name": "more"}});
    env.apply(declaration(V1ALPHA2, INFRA.1, INFRA.2, spec)).await;
    env.wait_installed(INFRA, "v1.0.0").await;
    env.wait_condition(INFRA, "Ready", "True", "DeploymentAvailable").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_does_not_wait_for_a_webhook_that_only_the_new_release_serves() {
    let mut env = Env::start().await;
    let name = rig("v1.0.0").deployment_names().remove(0);
    let client = hook::serve(&env, &name).await;
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "rig-identities"},
        "webhooks": [{
            "name": "identities.rig.example.com", "clientConfig": client, "failurePolicy": "Fail",
            "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "rules": [{
                "apiGroups": [GROUP], "apiVersions": ["v1"], "resources": ["rigidentities"],
                "operations": ["CREATE", "UPDATE"], "scope": "*",
            }],
        }],
    });
    shelve(&env, "one", "", &[configuration]).await;
    installed(&env).await;
    // This process does not know how the objects were left, so it applies all of them.
    env.stop_operating().await;
    env.operate(&Faults::none());
    env.merge(INFRA, json!({"spec": {"version": "v1.1.0"}})).await;
    env.wait_installed(INFRA, "v1.1.0").await;
    env.wait_condition(INFRA, "Ready", "True", "DeploymentAvailable").await;
    // A provider whose webhook is not served can be repaired by another release.
    let running: Of<'_> = ("apps/v1", "Deployment", &name);
    env.stop_operating().await;
    env.delete(running).await;
    env.merge(INFRA, json!({"spec": {"deployment": {"replicas": 2}}})).await;
    env.operate(&Faults::none());
    env.wait(running, "to run as declared", |d| d["spec"]["replicas"] == 2)
        .await;
    env.wait_condition(INFRA, "Ready", "True", "DeploymentAvailable").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_custom_object_that_cannot_be_changed_is_not_deleted() {
    let env = Env::start().await;
    shelve(&env, "one", "", &[]).await;
    installed(&env).await;
    let before = env.uid(IDENTITY).await;
    shelve(&env, "two", "", &[]).await;
    env.merge(INFRA, json!({"spec": {"version": "v1.1.0"}})).await;
    let told = ["ProviderUpgraded", "False", "ComponentsApplyError"];
    env.wait_told(
        INFRA,
        told,
        &["nothing was changed", "RigIdentity default", "spec is immutable"],
    )
    .await;
    assert_eq!(env.uid(IDENTITY).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removal_leaves_the_controllers_running_until_their_objects_are_gone() {
    let env = Env::start().await;
    shelve(&env, "one", "example.com/account", &[]).await;
    installed(&env).await;
    env.delete(INFRA).await;
    env.wait_told(
        INFRA,
        ["Deleting", "True", "Removing"],
        &["RigIdentity default", "finalizers"],
    )
    .await;
    let name = rig("v1.0.0").deployment_names().remove(0);
    let running: Of<'_> = ("apps/v1", "Deployment", &name);
    assert!(env.get(running).await.is_some(), "the controller can finish");
    env.merge(IDENTITY, json!({"metadata": {"finalizers": null}})).await;
    env.wait(INFRA, "to be gone", Value::is_null).await;
    env.wait(running, "to be gone", Value::is_null).await;
}
