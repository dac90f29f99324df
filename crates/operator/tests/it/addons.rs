//! Add-on providers: installed and upgraded like all others, as many as one likes.

use serde_json::json;
use windlass_fake_providers::LookAlike;

use crate::env::{Env, Of, V1ALPHA2, condition, declaration};

const KIND: &str = "AddonProvider";
const HELM: Of<'_> = (V1ALPHA2, KIND, "helm");
const OTHER: Of<'_> = (V1ALPHA2, KIND, "other");

fn helm(version: &str, contract: &str) -> LookAlike {
    LookAlike::addon("helm").version(version).contract(contract)
}

// AD-014, AD-163, AD-164: two of them are installed side by side from `addon-components.yaml`. What `metadata.yaml` says of a version decides
// about its contract, and a version that it does not have is not installed.
#[tokio::test(flavor = "multi_thread")]
async fn add_on_providers_are_installed_upgraded_and_held_to_a_contract() {
    let env = Env::start().await;
    env.with_core(V1ALPHA2).await;
    let (old, new) = (helm("v0.5.0", "v1beta2"), helm("v0.6.0", "v1beta2"));
    assert_eq!(old.components_file(), "addon-components.yaml");
    let other = LookAlike::addon("other");
    for provider in [&old, &new, &other] {
        env.shelve(provider).await;
    }
    env.apply(declaration(V1ALPHA2, KIND, HELM.2, json!({"version": "v0.5.0"})))
        .await;
    env.apply(declaration(V1ALPHA2, KIND, OTHER.2, json!({"version": "v1.0.0"})))
        .await;
    let stored = env.wait_installed(HELM, "v0.5.0").await;
    assert_eq!(stored["status"]["contract"], "v1beta2");
    env.wait_installed(OTHER, "v1.0.0").await;
    for of in [HELM, OTHER] {
        env.wait_condition(of, "Ready", "True", "DeploymentAvailable").await;
    }
    let name = old.deployment_names().remove(0);
    let running: Of<'_> = ("apps/v1", "Deployment", &name);
    let label = &env.get(running).await.unwrap()["metadata"]["labels"]["cluster.x-k8s.io/provider"];
    assert_eq!(label, "addon-helm");
    let inventory = ("clusterctl.cluster.x-k8s.io/v1alpha3", "Provider", "addon-helm");
    let listed = env.get(inventory).await.unwrap();
    assert_eq!(
        (&listed["type"], &listed["version"]),
        (&json!("AddonProvider"), &json!("v0.5.0"))
    );

    env.merge(HELM, json!({"spec": {"version": "v0.6.0"}})).await;
    let stored = env.wait_installed(HELM, "v0.6.0").await;
    assert_eq!(condition(&stored, "ProviderUpgraded")["status"], "True");
    env.wait_condition(HELM, "Ready", "True", "DeploymentAvailable").await;
    assert_eq!(env.get(inventory).await.unwrap()["version"], "v0.6.0");
    env.wait_installed(OTHER, "v1.0.0").await;

    // A contract that the core does not speak, and metadata that do not know the version.
    env.shelve(&helm("v0.7.0", "v1beta9")).await;
    env.merge(HELM, json!({"spec": {"version": "v0.7.0"}})).await;
    env.wait(HELM, "that v0.7.0 is not installed", |object| {
        let told = object["status"]["conditions"].to_string();
        object["status"]["observedGeneration"] == object["metadata"]["generation"] && told.contains("v1beta9")
    })
    .await;
    env.shelve(&LookAlike::addon("helm").version("v0.8.0").series(0, 6, "v1beta2"))
        .await;
    env.merge(HELM, json!({"spec": {"version": "v0.8.0"}})).await;
    env.wait(HELM, "that v0.8.0 is not installed", |object| {
        let told = object["status"]["conditions"].to_string();
        object["status"]["observedGeneration"] == object["metadata"]["generation"] && told.contains("0.8")
    })
    .await;
    assert_eq!(env.get(inventory).await.unwrap()["version"], "v0.6.0");
}
