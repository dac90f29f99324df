//! From one contract to the next.

use serde_json::{Value, json};
use windlass_forge::LookAlike;

use crate::env::{Env, V1ALPHA1, condition, declaration};

const CORE: (&str, &str, &str) = (V1ALPHA1, "CoreProvider", "cluster-api");
const INFRA: (&str, &str, &str) = (V1ALPHA1, "InfrastructureProvider", "rig");

const ORIGINAL: &str = "management.cluster.x-k8s.io/original-controller-replicas";

fn pause(paused: bool) -> Value {
    json!({"spec": {"paused": paused}})
}

// OP-088, OP-089, OP-090, OP-091, OP-092, OP-093, OP-094, OP-095, OP-096, OP-097, OP-098, OP-099, OP-100, OP-143, OP-216, OP-219:
// nobody answers the providers' webhooks here.
#[tokio::test(flavor = "multi_thread")]
async fn all_are_paused_the_core_goes_first_and_none_comes_back_before_all_have_changed() {
    let env = Env::start().await;
    let core = LookAlike::core().contract("v1beta1");
    let infra = LookAlike::infrastructure("rig")
        .without_required_variables()
        .contract("v1beta1");
    let (new_core, new_infra) = (
        LookAlike::core().version("v2.0.0").contract("v1beta2"),
        LookAlike::infrastructure("rig")
            .without_required_variables()
            .version("v2.0.0")
            .contract("v1beta2"),
    );
    for provider in [&core, &infra, &new_core, &new_infra] {
        env.shelve(provider).await;
    }
    env.apply(declaration(V1ALPHA1, CORE.1, CORE.2, json!({"version": "v1.0.0"})))
        .await;
    let spec = json!({"version": "v1.0.0", "deployment": {"replicas": 3}});
    env.apply(declaration(V1ALPHA1, INFRA.1, INFRA.2, spec)).await;
    env.wait_installed(INFRA, "v1.0.0").await;

    env.merge(CORE, json!({"spec": {"version": "v2.0.0"}})).await;
    let told = env
        .wait_condition(CORE, "PreflightCheckPassed", "False", "NotAllProvidersPaused")
        .await;
    let message = told["message"].as_str().unwrap();
    assert!(
        message.contains("providers/rig") && message.contains("providers/cluster-api"),
        "{told}"
    );
    env.merge(CORE, pause(true)).await;
    env.merge(INFRA, pause(true)).await;
    let name = infra.deployment_names().remove(0);
    let running = ("apps/v1", "Deployment", name.as_str());
    let held = |deployment: &Value| {
        deployment["spec"]["replicas"] == 0 && deployment["metadata"]["annotations"][ORIGINAL] == "3"
    };
    env.wait(running, "no replicas", held).await;
    let stored = env.wait_installed(CORE, "v2.0.0").await;
    assert_eq!(stored["status"]["contract"], "v1beta2");
    // OP-093: that the others are behind is no failure of the core.
    for type_ in ["PreflightCheckPassed", "ProviderInstalled", "ProviderUpgraded"] {
        assert_eq!(condition(&stored, type_)["status"], "True", "{type_}");
    }
    // OP-088: which versions the others get is for their users to say.
    assert_eq!(env.get(INFRA).await.unwrap()["spec"]["version"], "v1.0.0");

    env.merge(INFRA, pause(false)).await;
    let told = env.wait_condition(INFRA, "Ready", "False", "UnpauseBlocked").await;
    assert!(told["message"].as_str().unwrap().contains("providers/rig"), "{told}");
    env.wait(running, "still no replicas", held).await;
    // The core may not come back either; once the other has changed it does, and nobody has to touch it again.
    env.merge(CORE, pause(false)).await;
    env.wait_condition(CORE, "Ready", "False", "UnpauseBlocked").await;
    env.merge(INFRA, json!({"spec": {"version": "v2.0.0", "paused": true}}))
        .await;
    env.wait_installed(INFRA, "v2.0.0").await;
    env.wait(running, "no replicas of the new version", held).await;
    env.wait_condition(CORE, "Ready", "True", "DeploymentAvailable").await;
    env.merge(INFRA, pause(false)).await;
    env.wait(running, "its replicas again", |deployment| {
        deployment["spec"]["replicas"] == 3 && deployment["metadata"]["annotations"][ORIGINAL].is_null()
    })
    .await;
    env.wait_condition(INFRA, "Ready", "True", "DeploymentAvailable").await;
}
