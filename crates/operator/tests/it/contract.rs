//! From one contract to the next.

use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use serde_json::{Value, json};
use windlass_fake_providers::LookAlike;
use windlass_testkit::wait;

use crate::env::{Env, NAMESPACE, Of, V1ALPHA1, V1ALPHA2, condition, declaration, plain};

const CORE: (&str, &str, &str) = (V1ALPHA1, "CoreProvider", "cluster-api");
const INFRA: (&str, &str, &str) = (V1ALPHA1, "InfrastructureProvider", "rig");

const ORIGINAL: &str = "management.cluster.x-k8s.io/original-controller-replicas";

fn pause(paused: bool) -> Value {
    json!({"spec": {"paused": paused}})
}

// OP-088, OP-089, OP-090, OP-091, OP-092, OP-093, OP-094, OP-095, OP-096, OP-097, OP-098, OP-099, OP-100, OP-143, OP-216, OP-219:
// the providers' webhooks are not served here.
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
    // The core may not come back either; once the other has changed it does, and no user has to touch it again.
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

fn rig(version: &str, contract: &str) -> LookAlike {
    let rig = LookAlike::infrastructure("rig").without_required_variables();
    rig.version(version).contract(contract)
}

fn core(version: &str, contract: &str) -> LookAlike {
    LookAlike::core().version(version).contract(contract)
}

/// Both providers at v1.0.0 with the older contract, and at v2.0.0 with the newer one at hand.
async fn installed(api: &'static str) -> (Env, [Of<'static>; 2]) {
    let env = Env::start().await;
    let kinds = [(api, CORE.1, CORE.2), (api, INFRA.1, INFRA.2)];
    for (version, contract) in [("v1.0.0", "v1beta1"), ("v2.0.0", "v1beta2")] {
        env.shelve(&core(version, contract)).await;
        env.shelve(&rig(version, contract)).await;
    }
    for of in kinds {
        let mut spec = json!({"version": "v1.0.0"});
        if of.1 == INFRA.1 {
            spec["deployment"] = json!({"replicas": 3});
        }
        env.apply(declaration(api, of.1, of.2, spec)).await;
    }
    for of in kinds {
        let stored = env.wait_installed(of, "v1.0.0").await;
        assert_eq!(stored["status"]["contract"], "v1beta1");
        env.wait_condition(of, "Ready", "True", "DeploymentAvailable").await;
    }
    (env, kinds)
}

async fn upgrade(env: &Env, of: Of<'_>) {
    env.merge(of, json!({"spec": {"version": "v2.0.0"}})).await;
}

const HELD: [&str; 3] = ["PreflightCheckPassed", "False", "WaitingForCoreProviderUpgrade"];

// OP-087, OP-088, OP-089, OP-133, OP-135, OP-143, OP-216
#[tokio::test(flavor = "multi_thread")]
async fn the_core_goes_first_and_the_others_follow_without_a_pause() {
    let (env, [core, infra]) = installed(V1ALPHA2).await;
    let name = rig("v1.0.0", "v1beta1").deployment_names().remove(0);
    let running = ("apps/v1", "Deployment", name.as_str());
    let uid = env.uid(running).await;
    upgrade(&env, infra).await;
    env.wait_told(
        infra,
        HELD,
        &["CoreProvider providers/cluster-api", "v1beta1", "v1beta2"],
    )
    .await;
    assert_eq!(env.uid(running).await, uid, "what runs goes on");
    upgrade(&env, core).await;
    let stored = env.wait_installed(core, "v2.0.0").await;
    assert_eq!(stored["status"]["contract"], "v1beta2");
    let stored = env.wait_installed(infra, "v2.0.0").await;
    assert_eq!(stored["status"]["contract"], "v1beta2");
    for of in [core, infra] {
        env.wait_condition(of, "Ready", "True", "DeploymentAvailable").await;
    }
    let replicas = env.get(running).await.unwrap()["spec"]["replicas"].clone();
    assert_eq!(replicas, 3);
}

// OP-089, OP-093: the core understands the contract before its own.
#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_follow_the_core_at_once_goes_on() {
    let (env, [core, infra]) = installed(V1ALPHA2).await;
    upgrade(&env, core).await;
    env.wait_installed(core, "v2.0.0").await;
    env.wait_condition(core, "Ready", "True", "DeploymentAvailable").await;
    env.merge(infra, json!({"spec": {"deployment": {"replicas": 2}}})).await;
    let stored = env.wait_installed(infra, "v1.0.0").await;
    assert_eq!(stored["status"]["contract"], "v1beta1");
    env.wait_condition(infra, "Ready", "True", "DeploymentAvailable").await;
}

// OP-091, OP-092, OP-093, OP-097, OP-101, OP-102, OP-216
#[tokio::test(flavor = "multi_thread")]
async fn nothing_runs_between_pause_and_unpause_whatever_the_order() {
    let (env, [core, infra]) = installed(V1ALPHA1).await;
    // A provider that was never installed has to be paused, too, or to go.
    let ghost = (V1ALPHA1, "BootstrapProvider", "ghost");
    env.apply(plain(ghost, &json!({}))).await;
    for of in [infra, core] {
        env.merge(of, json!({"spec": {"version": "v2.0.0", "paused": true}}))
            .await;
    }
    let told = ["PreflightCheckPassed", "False", "NotAllProvidersPaused"];
    env.wait_told(core, told, &["BootstrapProvider providers/ghost"]).await;
    env.wait_told(infra, HELD, &["v1beta1"]).await;
    let name = rig("v1.0.0", "v1beta1").deployment_names().remove(0);
    let running = ("apps/v1", "Deployment", name.as_str());
    let held = |deployment: &Value| {
        deployment["spec"]["replicas"] == 0 && deployment["metadata"]["annotations"][ORIGINAL] == "3"
    };
    env.wait(running, "no replicas", held).await;
    let (api, watched) = (
        Api::<Deployment>::namespaced(env.client.clone(), NAMESPACE),
        name.clone(),
    );
    let runs = tokio::spawn(async move {
        let runs = |one: &Deployment| one.spec.replicas != Some(0);
        wait::until(api, Some(&watched), |all| all.iter().any(runs)).await
    });
    env.delete(ghost).await;
    for of in [core, infra] {
        let stored = env.wait_installed(of, "v2.0.0").await;
        assert_eq!(stored["status"]["contract"], "v1beta2");
        env.wait_condition(of, "Ready", "False", "Paused").await;
    }
    env.wait(running, "no replicas of the new version either", held).await;
    assert!(!runs.is_finished(), "it had replicas in between");
    runs.abort();
    for of in [infra, core] {
        env.merge(of, pause(false)).await;
        env.wait_condition(of, "Ready", "True", "DeploymentAvailable").await;
    }
    assert_eq!(env.get(running).await.unwrap()["spec"]["replicas"], 3);
}

// OP-021, OP-094, OP-095, OP-096, OP-098, OP-100
#[tokio::test(flavor = "multi_thread")]
async fn one_provider_is_paused_alone_and_keeps_what_it_had() {
    let (env, [core, infra]) = installed(V1ALPHA1).await;
    let name = rig("v1.0.0", "v1beta1").deployment_names().remove(0);
    let running = ("apps/v1", "Deployment", name.as_str());
    env.merge(infra, pause(true)).await;
    env.wait_condition(infra, "Ready", "False", "Paused").await;
    let profiled = json!({"spec": {"manager": {"profilerAddress": "localhost:6060"}}});
    env.merge(infra, profiled).await;
    env.wait_condition(infra, "Ready", "False", "Paused").await;
    let paused = env.get(running).await.unwrap();
    assert_eq!(paused["spec"]["replicas"], 0);
    assert_eq!(paused["metadata"]["annotations"][ORIGINAL], "3");
    assert!(!paused.to_string().contains("profiler"), "settings wait");
    env.wait_condition(core, "Ready", "True", "DeploymentAvailable").await;
    env.merge(infra, pause(false)).await;
    let back = env
        .wait(running, "its replicas and the settings", |deployment| {
            deployment["spec"]["replicas"] == 3 && deployment.to_string().contains("--profiler-address=localhost:6060")
        })
        .await;
    assert_eq!(back["metadata"]["annotations"][ORIGINAL], Value::Null);
    env.wait_condition(infra, "Ready", "True", "DeploymentAvailable").await;
}
