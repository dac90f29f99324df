//! Upgrades that fail, at once or after all, leave the version before running.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use windlass_fake_providers::LookAlike;
use windlass_testkit::faults::{Fault, Faults};
use windlass_testkit::{Fate, Which};

use crate::asked::Asked;
use crate::env::{Env, V1ALPHA2, condition, declaration};

const INFRA: (&str, &str, &str) = (V1ALPHA2, "InfrastructureProvider", "rig");

/// A provider whose version v1.0.0 works, with nothing to do.
async fn working(asked: &Asked) -> Env {
    let env = asked.env().await;
    env.with_core(V1ALPHA2).await;
    let old = LookAlike::infrastructure("rig").extra("old-only");
    env.shelve(&old).await;
    env.variables("variables", &old).await;
    let spec = json!({"version": "v1.0.0", "configSecret": {"name": "variables"}});
    env.apply(declaration(V1ALPHA2, INFRA.1, INFRA.2, spec)).await;
    env.wait_condition(INFRA, "Ready", "True", "DeploymentAvailable").await;
    asked.nothing().await;
    env
}

fn release(version: &str) -> LookAlike {
    LookAlike::infrastructure("rig").version(version).extra("new-only")
}

fn let_them(env: &Env, version: &str, fate: Fate) {
    let which = Which::all().with_image(&format!("-controller:{version}"));
    env.runs
        .as_ref()
        .expect("a controller of Deployments runs")
        .let_them(which, fate);
}

/// v1.0.0 runs, and nothing of the other version is left.
async fn is_back(env: &Env) -> Value {
    let told = env
        .wait_condition(INFRA, "ProviderUpgraded", "False", "ComponentsUpgradeError")
        .await;
    let extra = |which: &str| {
        (
            "v1".to_owned(),
            "ConfigMap".to_owned(),
            format!("infrastructure-rig-{which}-only"),
        )
    };
    let (a, b, c) = extra("new");
    env.wait((&a, &b, &c), "to be gone", Value::is_null).await;
    let (a, b, c) = extra("old");
    env.wait((&a, &b, &c), "to be there", Value::is_object).await;
    let name = release("v1.0.0").deployment_names().remove(0);
    env.wait(("apps/v1", "Deployment", &name), "to be the old one", |deployment| {
        deployment.to_string().contains("-controller:v1.0.0")
    })
    .await;
    env.wait_condition(INFRA, "Ready", "True", "DeploymentAvailable").await;
    let stored = env.wait_installed(INFRA, "v1.0.0").await;
    assert_eq!(stored["status"]["installedVersion"], "v1.0.0");
    let inventory = ("clusterctl.cluster.x-k8s.io/v1alpha3", "Provider", "infrastructure-rig");
    env.wait(inventory, "v1.0.0", |provider| provider["version"] == "v1.0.0")
        .await;
    told
}

// OP-082, OP-140: the controller of Deployments says that the new version does not come up.
#[tokio::test(flavor = "multi_thread")]
async fn what_never_comes_up_gives_way_to_what_worked() {
    let asked = Asked::default();
    let env = working(&asked).await;
    let_them(&env, "v1.1.0", Fate::Fails);
    env.shelve(&release("v1.1.0")).await;
    env.merge(INFRA, json!({"spec": {"version": "v1.1.0"}})).await;
    let told = is_back(&env).await;
    let message = told["message"].as_str().unwrap();
    assert!(
        message.contains("v1.1.0 was taken back") && message.contains("timed out"),
        "{message}"
    );
    // The same is not tried again, not even by another process.
    asked.nothing().await;
    let name = release("v1.0.0").deployment_names().remove(0);
    let running = ("apps/v1", "Deployment", name.as_str());
    let before = env.get(running).await.unwrap()["metadata"]["uid"].clone();
    let mut env = env;
    env.stop_operating().await;
    asked.clear();
    env.operate(&asked.faults(|_| None));
    asked.nothing().await;
    assert_eq!(asked.writes(), [""; 0]);
    assert_eq!(env.get(running).await.unwrap()["metadata"]["uid"], before);
    // With another Secret it is.
    let_them(&env, "v1.1.0", Fate::Runs);
    env.merge(
        ("v1", "Secret", "variables"),
        json!({"data": {"RIG_REGION": "b3RoZXI="}}),
    )
    .await;
    let stored = env.wait_installed(INFRA, "v1.1.0").await;
    assert_eq!(condition(&stored, "ProviderUpgraded")["status"], "True");
    env.wait_condition(INFRA, "Ready", "True", "DeploymentAvailable").await;
}

// OP-082: a process that goes back may be cut off.
#[tokio::test(flavor = "multi_thread")]
async fn going_back_is_finished_by_the_next_process() {
    let asked = Asked::default();
    let mut env = working(&asked).await;
    for (version, write) in [("v1.1.0", 1), ("v1.2.0", 3), ("v1.3.0", 12)] {
        let_them(&env, version, Fate::IsHeld);
        env.shelve(&release(version)).await;
        env.merge(INFRA, json!({"spec": {"version": version}})).await;
        env.wait_installed(INFRA, version).await;
        asked.nothing().await;
        env.stop_operating().await;
        let_them(&env, version, Fate::Fails);
        let faults = Faults::dying_at_write(write);
        env.operate(&faults);
        faults.died().await;
        env.stop_operating().await;
        env.operate(&asked.faults(|_| None));
        is_back(&env).await;
        asked.nothing().await;
    }
}

// OP-082: the server refuses the last object, and the process ends while it takes back what it did.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_is_taken_back_by_the_next_process() {
    let asked = Asked::default();
    let mut env = working(&asked).await;
    for (version, after) in [("v1.1.0", 2), ("v1.2.0", 3), ("v1.3.0", 10)] {
        env.stop_operating().await;
        let left = Arc::new(AtomicUsize::new(usize::MAX));
        let count = left.clone();
        env.operate(&asked.faults(move |request| {
            let runs = request.path.contains("/deployments/") && !request.path.contains("dryRun");
            match count.load(Ordering::Relaxed) {
                0 => Some(Fault::Lost),
                usize::MAX if request.method == "PATCH" && runs => {
                    count.store(after, Ordering::Relaxed);
                    Some(Fault::Refused(403))
                }
                usize::MAX => None,
                more => {
                    count.store(more - usize::from(request.is_write()), Ordering::Relaxed);
                    None
                }
            }
        }));
        env.shelve(&release(version)).await;
        env.merge(INFRA, json!({"spec": {"version": version}})).await;
        let mut looks = tokio::time::interval(std::time::Duration::from_millis(50));
        while left.load(Ordering::Relaxed) != 0 {
            looks.tick().await;
        }
        env.stop_operating().await;
        env.operate(&asked.faults(|_| None));
        is_back(&env).await;
        asked.nothing().await;
    }
}
