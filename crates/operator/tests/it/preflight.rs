//! What has to be so before anything is installed.

use serde_json::{Value, json};
use windlass_fake_providers::LookAlike;

use crate::env::{Env, NAMESPACE, V1ALPHA1, V1ALPHA2, declaration};

const INFRA: (&str, &str, &str) = (V1ALPHA2, "InfrastructureProvider", "rig");

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_no_label_can_hold_is_refused_before_anything_is_fetched() {
    let env = Env::start().await;
    let name = "r".repeat(49);
    env.apply(declaration(V1ALPHA2, INFRA.1, &name, json!({"version": "v1.0.0"})))
        .await;
    let refused = ["PreflightCheckPassed", "False", "SpecValidationError"];
    env.wait_told(
        (V1ALPHA2, INFRA.1, &name),
        refused,
        &["has 49 characters, and may have 48"],
    )
    .await;
}

// OP-065, OP-129, OP-130, OP-131, OP-138, OP-141, OP-224
#[tokio::test(flavor = "multi_thread")]
async fn what_is_missing_is_named_and_waited_for() {
    let env = Env::start().await;
    env.with_core(V1ALPHA2).await;
    let infra = LookAlike::infrastructure("rig");
    let spec = json!({"version": "v1.0.0", "configSecret": {"name": "variables"}});
    env.apply(declaration(V1ALPHA2, "InfrastructureProvider", "rig", spec))
        .await;
    let told = env
        .wait_condition(INFRA, "ProviderInstalled", "False", "ConfigSecretMissing")
        .await;
    assert!(
        told["message"].as_str().unwrap().contains("providers/variables"),
        "{told}"
    );
    env.apply(json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "variables", "namespace": NAMESPACE},
        "data": {"RIG_REGION": "c2VjcmV0LXBsYWNl"},
    }))
    .await;
    let told = env
        .wait_condition(INFRA, "ProviderInstalled", "False", "ComponentsFetchError")
        .await;
    assert!(
        told["message"]
            .as_str()
            .unwrap()
            .contains("provider-components=infrastructure-rig"),
        "{told}"
    );
    env.shelve(&infra).await;
    let told = env
        .wait_condition(INFRA, "ProviderInstalled", "False", "VariablesMissing")
        .await;
    let message = told["message"].as_str().unwrap();
    assert!(
        message.contains("RIG_B64ENCODED_CREDENTIALS") && !message.contains("secret-place"),
        "{told}"
    );
    env.variables("variables", &infra).await;
    env.wait_installed(INFRA, "v1.0.0").await;

    // The same through the other API, and another core.
    let spec = json!({"version": "v1.0.0", "secretName": "variables"});
    env.apply(declaration(V1ALPHA1, "InfrastructureProvider", "rig", spec))
        .await;
    let twin = (V1ALPHA1, "InfrastructureProvider", "rig");
    let told = env
        .wait_condition(twin, "PreflightCheckPassed", "False", "MoreThanOneExists")
        .await;
    assert!(told["message"].as_str().unwrap().contains(V1ALPHA2), "{told}");
    env.apply(declaration(
        V1ALPHA1,
        "CoreProvider",
        "other",
        json!({"version": "v1.0.0"}),
    ))
    .await;
    let other = (V1ALPHA1, "CoreProvider", "other");
    env.wait_condition(other, "PreflightCheckPassed", "False", "MoreThanOneExists")
        .await;
    // What leaves again takes nothing with it.
    env.delete(twin).await;
    env.wait(twin, "to be gone", Value::is_null).await;
    env.wait_condition(INFRA, "Ready", "True", "DeploymentAvailable").await;
}

// OP-071, OP-133, OP-146, OP-151
#[tokio::test(flavor = "multi_thread")]
async fn a_contract_that_does_not_fit_is_refused() {
    let env = Env::start().await;
    env.with_core(V1ALPHA1).await;
    let check = async |api: &str, provider: LookAlike, reason: &str, words: &[&str]| {
        env.shelve(&provider).await;
        let spec = json!({"version": provider.release()});
        env.apply(declaration(api, "InfrastructureProvider", provider.name(), spec))
            .await;
        let of = (api, "InfrastructureProvider", provider.name());
        let told = env.wait_condition(of, "PreflightCheckPassed", "False", reason).await;
        for word in words {
            assert!(told["message"].as_str().unwrap().contains(word), "{told}");
        }
        for name in provider.deployment_names() {
            assert!(env.get(("apps/v1", "Deployment", &name)).await.is_none());
        }
    };
    let rig = |name: &str| LookAlike::infrastructure(name).without_required_variables();
    check(
        V1ALPHA1,
        rig("a").contract("v1alpha3"),
        "CAPIVersionIncompatibility",
        &["v1alpha3", "v1beta2"],
    )
    .await;
    check(
        V1ALPHA1,
        rig("b").contract("v1beta1"),
        "ContractMismatch",
        &["v1beta1", "v1beta2"],
    )
    .await;
    let unknown = json!({
        "apiVersion": V1ALPHA2, "kind": "InfrastructureProvider",
        "metadata": {"name": "nosuch", "namespace": NAMESPACE}, "spec": {},
    });
    env.apply(unknown).await;
    let of = (V1ALPHA2, "InfrastructureProvider", "nosuch");
    let told = env
        .wait_condition(of, "PreflightCheckPassed", "False", "UnknownProvider")
        .await;
    assert!(told["message"].as_str().unwrap().contains("spec.fetchConfig"), "{told}");
}

// OP-074, OP-132: other names, the same components.
#[tokio::test(flavor = "multi_thread")]
async fn two_providers_with_the_same_components_are_not_both_installed() {
    let env = Env::start().await;
    env.with_core(V1ALPHA2).await;
    let rig = LookAlike::infrastructure("rig").without_webhooks();
    env.shelve(&rig).await;
    env.variables("variables", &rig).await;
    let kind = "InfrastructureProvider";
    let spec = json!({"version": "v1.0.0", "configSecret": {"name": "variables"}});
    env.apply(declaration(V1ALPHA2, kind, "rig", spec.clone())).await;
    env.wait_installed((V1ALPHA2, kind, "rig"), "v1.0.0").await;
    let mut twin = declaration(V1ALPHA2, kind, "myrig", spec);
    twin["spec"]["fetchConfig"]["selector"]["matchLabels"]["provider-components"] = json!("infrastructure-rig");
    env.apply(twin).await;
    let of = (V1ALPHA2, kind, "myrig");
    let told = env
        .wait_condition(of, "PreflightCheckPassed", "False", "ComponentsShared")
        .await;
    assert!(told["message"].as_str().unwrap().contains("providers/rig"), "{told}");
    env.delete((V1ALPHA2, kind, "rig")).await;
    env.wait_installed(of, "v1.0.0").await;
}
