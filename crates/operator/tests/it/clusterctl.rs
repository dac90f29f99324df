//! Providers that clusterctl has installed, from taking them over to their end.

use serde_json::{Value, json};
use windlass_api_operator::ProviderType;
use windlass_fake_providers::LookAlike;
use windlass_provider_components::assemble::{Input, assemble};
use windlass_provider_components::{envsubst, manifest};

use crate::env::{Env, NAMESPACE, Of, V1ALPHA1, V1ALPHA2, declaration};

const INFRA: Of<'_> = (V1ALPHA2, "InfrastructureProvider", "rig");
const INVENTORY: Of<'_> = ("clusterctl.cluster.x-k8s.io/v1alpha3", "Provider", "infrastructure-rig");
const OLD_ONLY: Of<'_> = ("v1", "ConfigMap", "infrastructure-rig-old-only");

fn rig(version: &str) -> LookAlike {
    let rig = LookAlike::infrastructure("rig")
        .without_required_variables()
        .without_webhooks();
    rig.version(version)
}

/// Does what `clusterctl init` does to install a provider.
async fn init(env: &Env, provider: &LookAlike, type_: ProviderType, namespace: &str) {
    let text = provider.components();
    let text = envsubst::Template::parse(&text).unwrap().render(|_| None).unwrap();
    let components = assemble(Input {
        type_,
        name: provider.name(),
        namespace: Some(namespace),
        objects: manifest::parse(&text).unwrap(),
    });
    let mut objects = components.unwrap().objects;
    objects.retain(|object| object["kind"] != "Namespace");
    objects.push(json!({
        "apiVersion": INVENTORY.0, "kind": INVENTORY.1,
        "metadata": {"name": provider.label(), "namespace": namespace, "labels": {
            "clusterctl.cluster.x-k8s.io/core": "inventory", "cluster.x-k8s.io/provider": provider.label(),
        }},
        "providerName": provider.name(), "type": type_.inventory(), "version": provider.release(),
    }));
    for mut object in objects {
        object["metadata"]["labels"]["clusterctl.cluster.x-k8s.io"] = json!("");
        let made = env.create("clusterctl", &object).await;
        made.unwrap_or_else(|error| panic!("clusterctl cannot create {object}: {error}"));
    }
}

// OP-005, OP-083, OP-115, OP-188, OP-229, OP-239
#[tokio::test(flavor = "multi_thread")]
async fn they_are_adopted_upgraded_and_removed_and_the_inventory_stays_true() {
    let env = Env::start().await;
    let core = LookAlike::core().without_webhooks();
    init(&env, &core, ProviderType::Core, NAMESPACE).await;
    let old = rig("v1.0.0").extra("old-only");
    init(&env, &old, ProviderType::Infrastructure, NAMESPACE).await;
    env.shelve(&core).await;
    env.shelve(&old).await;
    env.shelve(&rig("v1.1.0")).await;
    let name = old.deployment_names().remove(0);
    let running = ("apps/v1", "Deployment", name.as_str());
    let group = "infrastructure.cluster.x-k8s.io/v1beta2";
    let metadata = json!({"name": "mine", "namespace": NAMESPACE});
    let user = (group, "RigRigCluster", "mine");
    env.apply(json!({"apiVersion": user.0, "kind": user.1, "metadata": metadata}))
        .await;
    let before = (
        env.uid(running).await,
        env.uid(INVENTORY).await,
        env.uid(OLD_ONLY).await,
        env.uid(user).await,
    );

    env.apply(declaration(V1ALPHA2, "CoreProvider", "cluster-api", json!({})))
        .await;
    env.apply(declaration(V1ALPHA2, INFRA.1, INFRA.2, json!({}))).await;
    let stored = env.wait_installed(INFRA, "v1.0.0").await;
    assert_eq!(stored["spec"]["version"], "v1.0.0", "what is there, not the latest");
    env.wait_condition(INFRA, "Ready", "True", "DeploymentAvailable").await;
    let after = (
        env.uid(running).await,
        env.uid(INVENTORY).await,
        env.uid(OLD_ONLY).await,
        env.uid(user).await,
    );
    assert_eq!(after, before, "nothing was made again");
    // From now on it is looked after.
    env.delete(OLD_ONLY).await;
    env.wait(OLD_ONLY, "to be there again", |object| {
        object["metadata"]["uid"].is_string()
    })
    .await;

    env.merge(INFRA, json!({"spec": {"version": "v1.1.0"}})).await;
    env.wait_installed(INFRA, "v1.1.0").await;
    assert_eq!(env.get(INVENTORY).await.unwrap()["version"], "v1.1.0");
    assert_eq!(env.uid(INVENTORY).await, before.1);
    assert_ne!(env.uid(running).await, before.0);
    assert_eq!(env.get(OLD_ONLY).await, None, "what the new version lacks is gone");
    assert_eq!(env.uid(user).await, before.3);

    env.delete(user).await;
    env.wait(user, "to be gone", Value::is_null).await;
    env.delete(INFRA).await;
    env.wait(INFRA, "to be gone", Value::is_null).await;
    assert_eq!(env.get(INVENTORY).await, None);
    assert_eq!(env.get(running).await, None);
    assert!(env.get(("v1", "Namespace", NAMESPACE)).await.is_some());
}

// OP-085: an upgrade at once takes what clusterctl's version had beyond the new one.
#[tokio::test(flavor = "multi_thread")]
async fn a_newer_version_may_take_their_place_at_once() {
    let env = Env::start().await;
    env.with_core(V1ALPHA1).await;
    let old = rig("v1.0.0").extra("old-only").deployments(2);
    init(&env, &old, ProviderType::Infrastructure, NAMESPACE).await;
    let names = old.deployment_names();
    let deployment = |at: usize| ("apps/v1", "Deployment", names[at].as_str());
    let before = env.uid(deployment(0)).await;
    env.shelve(&rig("v1.1.0")).await;
    let spec = json!({"version": "v1.1.0"});
    env.apply(declaration(V1ALPHA1, INFRA.1, INFRA.2, spec)).await;
    let of = (V1ALPHA1, INFRA.1, INFRA.2);
    env.wait_installed(of, "v1.1.0").await;
    env.wait_condition(of, "Ready", "True", "DeploymentAvailable").await;
    assert_ne!(env.uid(deployment(0)).await, before);
    for gone in [deployment(1), OLD_ONLY] {
        assert_eq!(env.get(gone).await, None, "{gone:?}");
    }
    assert_eq!(env.get(INVENTORY).await.unwrap()["version"], "v1.1.0");
}

// OP-129: no second one is installed in another namespace.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_installed_in_another_namespace_is_said_to_be_there() {
    let env = Env::start().await;
    env.with_core(V1ALPHA2).await;
    env.namespace("elsewhere").await;
    init(&env, &rig("v1.0.0"), ProviderType::Infrastructure, "elsewhere").await;
    env.shelve(&rig("v1.0.0")).await;
    env.apply(declaration(V1ALPHA2, INFRA.1, INFRA.2, json!({}))).await;
    let told = ["PreflightCheckPassed", "False", "InstalledElsewhere"];
    env.wait_told(INFRA, told, &["namespace elsewhere", "v1.0.0", "declare it there"])
        .await;
    // It leaves what is not its own alone.
    env.delete(INFRA).await;
    env.wait(INFRA, "to be gone", Value::is_null).await;
    let name = format!("elsewhere/{}", rig("v1.0.0").deployment_names().remove(0));
    assert!(env.get(("apps/v1", "Deployment", &name)).await.is_some());
    let inventory = (INVENTORY.0, INVENTORY.1, "elsewhere/infrastructure-rig");
    assert!(env.get(inventory).await.is_some());
}
