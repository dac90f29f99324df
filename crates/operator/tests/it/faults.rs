//! Whatever goes wrong on the way to the server, the end is the same.

use serde_json::json;
use windlass_fake_providers::LookAlike;
use windlass_provider_repository::Settings;
use windlass_testkit::Deployments;
use windlass_testkit::faults::{Fault, Faults};

use crate::env::{Env, V1ALPHA2, declaration};

const CORE: (&str, &str, &str) = (V1ALPHA2, "CoreProvider", "cluster-api");

async fn shelved() -> Env {
    let mut env = Env::idle(Settings::default()).await;
    env.runs = Some(Deployments::run(env.client.clone()));
    env.shelve(&LookAlike::core().extra("old-only")).await;
    env.shelve(&LookAlike::core().version("v1.1.0")).await;
    env
}

async fn is_whole(env: &Env, version: &str) {
    env.wait_installed(CORE, version).await;
    env.wait_condition(CORE, "Ready", "True", "DeploymentAvailable").await;
    let has_extra = env.get(("v1", "ConfigMap", "cluster-api-old-only")).await.is_some();
    assert_eq!(has_extra, version == "v1.0.0");
    let inventory = ("clusterctl.cluster.x-k8s.io/v1alpha3", "Provider", "cluster-api");
    assert_eq!(
        env.get(inventory).await.expect("the inventory has it")["version"],
        version
    );
}

// A process that ends anywhere is taken over by the next one.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_dies_between_steps_is_taken_over() {
    for write in [3, 9] {
        let mut env = shelved().await;
        let faults = Faults::dying_at_write(write);
        env.operate(&faults);
        env.apply(declaration(V1ALPHA2, CORE.1, CORE.2, json!({"version": "v1.0.0"})))
            .await;
        faults.died().await;
        env.stop_operating().await;
        env.operate(&Faults::none());
        is_whole(&env, "v1.0.0").await;
        env.stop_operating().await;
        let faults = Faults::dying_at_write(write * 2);
        env.operate(&faults);
        env.merge(CORE, json!({"spec": {"version": "v1.1.0"}})).await;
        faults.died().await;
        env.stop_operating().await;
        env.operate(&Faults::none());
        is_whole(&env, "v1.1.0").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_and_lost_answers_are_overcome() {
    let mut env = shelved().await;
    env.operate(&Faults::when(|request| {
        let every = |n: usize| request.is_write() && request.number.is_multiple_of(n);
        match () {
            () if every(7) => Some(Fault::AnswerLost),
            () if every(11) => Some(Fault::Refused(409)),
            () if every(13) => Some(Fault::Lost),
            () => None,
        }
    }));
    env.apply(declaration(V1ALPHA2, CORE.1, CORE.2, json!({"version": "v1.0.0"})))
        .await;
    is_whole(&env, "v1.0.0").await;
    env.merge(CORE, json!({"spec": {"version": "v1.1.0"}})).await;
    is_whole(&env, "v1.1.0").await;
}
