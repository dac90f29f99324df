//! The status of a cluster's objects while they wait for infrastructure, and while all controllers are idle.

use std::time::{Duration, Instant};

use kube::api::{DynamicObject, ListParams};
use serde_json::Value;
use windlass_api::core::Cluster;
use windlass_testkit::wait::{self, TIMEOUT};
use windlass_testkit::{ByHand, Env, NAMESPACE};

pub(super) const MANAGED_BY: &str = "cluster.x-k8s.io/managed-by";
pub(super) const HOST: &str = "127.0.0.1";

/// Changes of texts in a status are delayed no longer than this: a controller that is idle for so long waits for an event.
const HELD_BACK: Duration = Duration::from_secs(4);

/// Waits until no controller writes or reconciles any more.
pub(super) async fn rests(env: &Env) {
    let begun = Instant::now();
    let work = || (env.writes_by_kind(), env.load());
    let (mut before, mut since) = (work(), Instant::now());
    let mut looks = wait::looks();
    while since.elapsed() < HELD_BACK {
        looks.tick().await;
        let now = work();
        // Key generation takes a while without any change.
        if now != before || !now.1.busy.is_empty() {
            assert!(begun.elapsed() < 2 * TIMEOUT, "still at work: {before:?} -> {now:?}");
            (before, since) = (now, Instant::now());
        }
    }
}

/// An object of one of our kinds, when it satisfies a condition.
pub(super) async fn wait(env: &Env, kind: &str, name: &str, what: &str, is_right: impl Fn(&Value) -> bool) -> Value {
    let value = |object: &DynamicObject| serde_json::to_value(object).unwrap();
    let found = wait::until(env.dynamic(kind), Some(name), |all| {
        all.first().is_some_and(|object| is_right(&value(object)))
    });
    match found.await {
        Some(all) => value(&all[0]),
        None => panic!("{kind} {name} is never {what}: {}", env.explain().await),
    }
}

/// An object of one of our kinds.
pub(super) async fn get(env: &Env, kind: &str, name: &str) -> Value {
    serde_json::to_value(env.dynamic(kind).get(name).await.unwrap()).unwrap()
}

pub(super) async fn list(env: &Env, kind: &str) -> Vec<Value> {
    let all = env.dynamic(kind).list(&ListParams::default()).await.unwrap();
    let values = all
        .items
        .into_iter()
        .map(|object| serde_json::to_value(object).unwrap());
    values.collect()
}

pub(super) fn condition<'a>(object: &'a Value, type_: &str) -> &'a Value {
    let mut all = object["status"]["conditions"].as_array().into_iter().flatten();
    all.find(|one| one["type"] == type_).unwrap_or(&Value::Null)
}

pub(super) fn message<'a>(object: &'a Value, type_: &str) -> &'a str {
    condition(object, type_)["message"].as_str().unwrap_or_default()
}

/// Waits for a condition of the Cluster.
pub(super) async fn cluster_says(env: &Env, cluster: &ByHand, type_: &str, words: &str) -> Value {
    let says = |object: &Cluster| message(&serde_json::to_value(object).unwrap(), type_) == words;
    let found = env
        .wait_for::<Cluster>(&cluster.key(), &format!("{type_}: {words}"), says)
        .await;
    serde_json::to_value(found).unwrap()
}

/// Asserts that no work on the cluster has started, every object reports what it waits for, and no controller reconciles without
/// an event.
async fn waits_for_infrastructure(env: &Env, cluster: &ByHand, control_plane_waits: &str, worker_waits: &str) {
    let object = get(env, "Cluster", cluster.name()).await;
    assert_eq!(object["status"]["phase"], "Provisioning");
    let name = format!("{}-control-plane", cluster.name());
    for type_ in ["EtcdClusterHealthy", "ControlPlaneComponentsHealthy"] {
        let is_right = |object: &Value| message(object, type_) == control_plane_waits;
        wait(env, "KubeadmControlPlane", &name, control_plane_waits, is_right).await;
    }
    rests(env).await;
    for set in list(env, "MachineSet").await {
        let blocked = message(&set, "ScalingUp");
        let waits = format!(
            "KubeadmControlPlane {NAMESPACE}/{}-control-plane is provisioning",
            cluster.name()
        );
        assert!(blocked.contains(&waits), "{blocked}");
    }
    let machines = list(env, "Machine").await;
    for machine in &machines {
        assert_eq!(machine["status"]["phase"], "Pending");
        assert_eq!(machine["spec"].get("providerID"), None);
        let bootstrap = message(machine, "BootstrapConfigReady");
        assert!(bootstrap.contains(worker_waits), "{bootstrap}");
    }
    for config in list(env, "KubeadmConfig").await {
        assert_eq!(config["status"].get("dataSecretName"), None);
        assert!(message(&config, "DataSecretAvailable").contains(worker_waits));
    }
    for machine in list(env, "DevMachine").await {
        let status = &machine["status"];
        assert_eq!(status["initialization"].get("provisioned"), None, "{machine}");
        let ready = condition(&machine, "Ready");
        assert_eq!(ready["status"], "False", "{machine}");
    }
    for kind in [
        "Cluster",
        "KubeadmControlPlane",
        "KubeadmConfig",
        "Machine",
        "MachineSet",
        "MachineDeployment",
        "DevMachine",
    ] {
        for object in list(env, kind).await {
            for one in object["status"]["conditions"].as_array().into_iter().flatten() {
                let reason = one["reason"].as_str().unwrap();
                // A missing connection is how v1.14 waits for the first answer.
                let waits = ["InspectionFailed", "ProbeFailed"].contains(&reason);
                let bad = reason == "InternalError" || reason.contains("Failed");
                assert!(!bad || waits, "{kind} says {one}");
            }
        }
    }
}

pub(super) async fn at_infrastructure(env: &Env, cluster: &ByHand) {
    waits_for_infrastructure(
        env,
        cluster,
        "Waiting for Cluster status.initialization.infrastructureProvisioned to be true",
        "Waiting for Cluster status.initialization.infrastructureProvisioned to be true",
    )
    .await;
}

pub(super) async fn at_endpoint(env: &Env, cluster: &ByHand) {
    waits_for_infrastructure(
        env,
        cluster,
        "Waiting for Cluster spec.controlPlaneEndpoint.host and spec.controlPlaneEndpoint.port to be set",
        "Waiting for Cluster control plane to be initialized",
    )
    .await;
}
