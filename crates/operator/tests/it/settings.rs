//! Settings of a provider: applied again with other values, and to every version again.

use serde_json::{Value, json};
use windlass_fake_providers::LookAlike;

use crate::env::{Env, NAMESPACE, V1ALPHA1, declaration};

const INFRA: (&str, &str, &str) = (V1ALPHA1, "InfrastructureProvider", "rig");

/// What runs, as far as settings say it.
fn manager(deployment: &Value) -> &Value {
    &deployment["spec"]["template"]["spec"]["containers"][0]
}

fn has(deployment: &Value, argument: &str) -> bool {
    let arguments = manager(deployment)["args"].as_array();
    arguments.is_some_and(|all| all.iter().any(|given| given == argument))
}

/// A version in a ConfigMap with a label of the admin's own.
async fn shelve_elsewhere(env: &Env, provider: &LookAlike) {
    env.apply(json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": format!("elsewhere-{}", provider.release()), "namespace": NAMESPACE,
            "labels": {"x": "y", "provider.cluster.x-k8s.io/version": provider.release()},
        },
        "data": {"components": provider.components(), "metadata": provider.metadata()},
    }))
    .await;
}

// OP-018, OP-106, OP-108, OP-110, OP-166, OP-176, OP-186, OP-217, OP-237, OP-238
#[tokio::test(flavor = "multi_thread")]
async fn what_is_applied_again_with_other_values_is_rolled_out_and_outlives_upgrades() {
    let env = Env::start().await;
    env.with_core(V1ALPHA1).await;
    let old = LookAlike::infrastructure("rig");
    let new = old.clone().version("v1.1.0");
    env.shelve(&old).await;
    for provider in [&old, &new] {
        shelve_elsewhere(&env, provider).await;
    }
    env.variables("variables", &old).await;
    let declared = |concurrency: &str| {
        let resources =
            json!({"limits": {"cpu": "100m", "memory": "30Mi"}, "requests": {"cpu": "100m", "memory": "20Mi"}});
        let container = json!({
            "name": "manager", "args": {"rigcluster-concurrency": concurrency}, "resources": resources,
        });
        let spec = json!({
            "version": "v1.0.0", "secretName": "variables", "manager": {"syncPeriod": "660s"},
            "deployment": {"replicas": 2, "containers": [container]},
        });
        declaration(V1ALPHA1, INFRA.1, INFRA.2, spec)
    };
    let first = env.apply(declared("12")).await;
    env.wait_installed(INFRA, "v1.0.0").await;
    let name = old.deployment_names().remove(0);
    let running = ("apps/v1", "Deployment", name.as_str());
    let is_set = |deployment: &Value, concurrency: &str, image: &str| {
        has(deployment, &format!("--rigcluster-concurrency={concurrency}"))
            && has(deployment, "--sync-period=11m0s")
            && has(deployment, "--leader-elect")
            && manager(deployment)["resources"]["limits"] == json!({"cpu": "100m", "memory": "30Mi"})
            && manager(deployment)["resources"]["requests"] == json!({"cpu": "100m", "memory": "20Mi"})
            && deployment["spec"]["replicas"] == 2
            && manager(deployment)["image"]
                .as_str()
                .is_some_and(|is| is.ends_with(image))
    };
    let before = env.wait(running, "its settings", |d| is_set(d, "12", "v1.0.0")).await;
    let secret = ("v1", "Secret", "infrastructure-rig-manager-bootstrap-credentials");
    let secret = env.get(secret).await.unwrap();
    assert_eq!(
        secret["data"]["rig_region"], "dmFsdWU=",
        "what the key of the Secret says"
    );

    // The same again is no change and wakes no declaration.
    let again = env.apply(declared("12")).await;
    assert_eq!(again["metadata"]["generation"], first["metadata"]["generation"]);

    // Another place to fetch from, and other arguments: the same version, from there.
    let mut changed = declared("13");
    changed["spec"]["fetchConfig"] = json!({"selector": {"matchLabels": {"x": "y"}}});
    env.delete(("v1", "ConfigMap", "infrastructure-rig-v1.0.0")).await;
    env.apply(changed).await;
    let after = env
        .wait(running, "another argument", |d| is_set(d, "13", "v1.0.0"))
        .await;
    assert_ne!(after["metadata"]["uid"], before["metadata"]["uid"]);
    env.wait_installed(INFRA, "v1.0.0").await;

    // As `kubectl edit` does it.
    env.merge(
        INFRA,
        json!({"spec": {"manager": {"profilerAddress": "localhost:6060"}}}),
    )
    .await;
    env.wait(running, "the profiler", |d| {
        is_set(d, "13", "v1.0.0") && has(d, "--profiler-address=localhost:6060")
    })
    .await;

    env.merge(INFRA, json!({"spec": {"version": "v1.1.0"}})).await;
    env.wait_installed(INFRA, "v1.1.0").await;
    env.wait(running, "the same settings of the new version", |d| {
        is_set(d, "13", "v1.1.0") && has(d, "--profiler-address=localhost:6060")
    })
    .await;
}

// OP-111, OP-113, OP-223: a Secret is read when components are made, and at no other time.
#[tokio::test(flavor = "multi_thread")]
async fn other_values_in_a_secret_wait_for_the_next_change() {
    let env = Env::start().await;
    env.with_core(V1ALPHA1).await;
    let rig = LookAlike::infrastructure("rig");
    env.shelve(&rig).await;
    env.shelve(&rig.clone().version("v1.1.0")).await;
    env.variables("variables", &rig).await;
    let spec = json!({"version": "v1.0.0", "secretName": "variables"});
    env.apply(declaration(V1ALPHA1, INFRA.1, INFRA.2, spec)).await;
    env.wait_installed(INFRA, "v1.0.0").await;
    let made = ("v1", "Secret", "infrastructure-rig-manager-bootstrap-credentials");
    let name = rig.deployment_names().remove(0);
    let running = ("apps/v1", "Deployment", name.as_str());
    let before = env.get(running).await.unwrap();

    env.merge(
        ("v1", "Secret", "variables"),
        json!({"data": {"RIG_REGION": "b3RoZXI="}}),
    )
    .await;
    // The operator has looked since: it puts back what a user deletes.
    let account = ("v1", "ServiceAccount", "infrastructure-rig-manager");
    env.delete(account).await;
    env.wait(account, "to be there again", |a| a["metadata"]["uid"].is_string())
        .await;
    let region = |secret: &Value| secret["data"]["rig_region"].clone();
    assert_eq!(region(&env.get(made).await.unwrap()), "dmFsdWU=");
    let uid = env.get(running).await.unwrap()["metadata"]["uid"].clone();
    assert_eq!(uid, before["metadata"]["uid"]);

    // A rotation is a new Secret with a new name.
    let values = json!({"RIG_REGION": "dGhpcmQ=", "RIG_B64ENCODED_CREDENTIALS": "dmFsdWU="});
    env.apply(json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "rotated", "namespace": NAMESPACE}, "data": values,
    }))
    .await;
    env.merge(INFRA, json!({"spec": {"secretName": "rotated"}})).await;
    env.wait(made, "the values of the new Secret", |secret| {
        region(secret) == "dGhpcmQ="
    })
    .await;
    env.merge(INFRA, json!({"spec": {"secretName": "variables", "version": "v1.1.0"}}))
        .await;
    env.wait_installed(INFRA, "v1.1.0").await;
    assert_eq!(region(&env.get(made).await.unwrap()), "b3RoZXI=");
}

// OP-019, OP-221
#[tokio::test(flavor = "multi_thread")]
async fn a_secret_of_another_namespace_is_not_read() {
    let env = Env::start().await;
    env.with_core(V1ALPHA1).await;
    env.namespace("elsewhere").await;
    let rig = LookAlike::infrastructure("rig");
    env.shelve(&rig).await;
    let secret = |namespace: &str| {
        let values = json!({"RIG_REGION": "dmFsdWU=", "RIG_B64ENCODED_CREDENTIALS": "dmFsdWU="});
        json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "variables", "namespace": namespace}, "data": values,
        })
    };
    env.apply(secret("elsewhere")).await;
    let spec = json!({"version": "v1.0.0", "secretName": "variables"});
    env.apply(declaration(V1ALPHA1, INFRA.1, INFRA.2, spec)).await;
    let told = env
        .wait_condition(INFRA, "ProviderInstalled", "False", "ConfigSecretMissing")
        .await;
    let message = told["message"].as_str().unwrap();
    assert!(message.contains("Secret providers/variables"), "{told}");
    env.apply(secret(NAMESPACE)).await;
    env.wait_installed(INFRA, "v1.0.0").await;
}
