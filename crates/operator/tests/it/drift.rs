//! What is installed stays as it was installed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use windlass_fake_providers::LookAlike;
use windlass_testkit::faults::{Fault, Faults};

use crate::env::{Env, NAMESPACE, V1ALPHA2};

const CORE: (&str, &str, &str) = (V1ALPHA2, "CoreProvider", "cluster-api");

#[tokio::test(flavor = "multi_thread")]
async fn what_another_field_manager_changes_or_deletes_is_put_back() {
    let mut env = Env::start().await;
    env.with_core(V1ALPHA2).await;
    let name = LookAlike::core().deployment_names().remove(0);
    let running = ("apps/v1", "Deployment", name.as_str());
    let account = ("v1", "ServiceAccount", "cluster-api-manager");
    for _ in 0..2 {
        env.merge(running, json!({"spec": {"replicas": 5}})).await;
        env.wait(running, "its replicas again", |d| d["spec"]["replicas"] != 5)
            .await;
        env.delete(account).await;
        env.wait(account, "to be there again", |a| a["metadata"]["uid"].is_string())
            .await;
        // Another process does the same, from what is kept.
        env.stop_operating().await;
        env.delete(account).await;
        env.operate(&Faults::none());
        env.wait(account, "to be there again", |a| a["metadata"]["uid"].is_string())
            .await;
    }
    env.wait_condition(CORE, "Ready", "True", "DeploymentAvailable").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_settled_operator_makes_no_request() {
    let env = Env::start().await;
    env.with_core(V1ALPHA2).await;
    env.wait_condition(CORE, "Ready", "True", "DeploymentAvailable").await;
    let writes = || -> Vec<_> {
        let all = env.server.counters().of(|write| write.agent == "operator");
        all.into_iter().collect()
    };
    // Quiet is when nothing was written for a while.
    let mut last = writes();
    let mut looks = tokio::time::interval(Duration::from_secs(2));
    looks.tick().await;
    let quiet = tokio::time::timeout(Duration::from_mins(1), async {
        loop {
            looks.tick().await;
            let now = writes();
            if now == last {
                return;
            }
            last = now;
        }
    });
    assert!(quiet.await.is_ok(), "it writes on and on: {last:?}");
    let before = env
        .get(CORE)
        .await
        .map(|object| object["metadata"]["resourceVersion"].clone());
    env.merge(CORE, json!({"metadata": {"annotations": {"touched": "1"}}}))
        .await;
    let after = env
        .get(CORE)
        .await
        .map(|object| object["metadata"]["resourceVersion"].clone());
    assert_ne!(before.unwrap_or(Value::Null), after.unwrap_or(Value::Null));
    looks.tick().await;
    assert_eq!(writes(), last, "looking again changes nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_tell_what_is_installed_works_and_was_repaired() {
    let env = Env::start().await;
    env.with_core(V1ALPHA2).await;
    env.wait_condition(CORE, "Ready", "True", "DeploymentAvailable").await;
    let account = ("v1", "ServiceAccount", "cluster-api-manager");
    env.delete(account).await;
    env.wait(account, "to be there again", |a| a["metadata"]["uid"].is_string())
        .await;
    let which = format!(r#"kind="CoreProvider",namespace="{NAMESPACE}",name="cluster-api""#);
    let lines = [
        format!(r#"windlass_provider_info{{{which},version="v1.0.0",contract="v1beta2"}} 1"#),
        format!("windlass_provider_ready{{{which}}} 1"),
        format!("windlass_provider_repairs_total{{{which}}} 1"),
    ];
    let text = env.metrics();
    for line in lines {
        assert!(text.contains(&line), "missing {line} in\n{text}");
    }
    env.delete(CORE).await;
    env.wait(CORE, "to be gone", Value::is_null).await;
    let mut looks = tokio::time::interval(Duration::from_millis(100));
    let gone = tokio::time::timeout(Duration::from_mins(1), async {
        while env.metrics().contains(&which) {
            looks.tick().await;
        }
    });
    assert!(gone.await.is_ok(), "it is gone");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_server_refuses_to_change_is_not_deleted() {
    let name = LookAlike::core().deployment_names().remove(0);
    let path = format!("/deployments/{name}?");
    let code = Arc::new(AtomicU16::new(0));
    let refused = code.clone();
    let faults = Faults::when(move |request| {
        let code = refused.load(Ordering::SeqCst);
        let is_it = request.path.contains(&path);
        (code != 0 && request.method == "PATCH" && is_it).then_some(Fault::Refused(code))
    });
    let mut env = Env::idle(windlass_provider_repository::Settings::default()).await;
    env.runs = Some(windlass_testkit::Deployments::run(env.client.clone()));
    env.operate(&faults);
    env.with_core(V1ALPHA2).await;
    let running = ("apps/v1", "Deployment", name.as_str());
    let before = env.uid(running).await;
    for denial in [400, 422] {
        code.store(denial, Ordering::SeqCst);
        env.merge(running, json!({"spec": {"replicas": 5}})).await;
        let told = ["ProviderUpgraded", "False", "ComponentsApplyError"];
        env.wait_told(CORE, told, &[&name, "a fault that the test asked for"])
            .await;
        assert_eq!(env.uid(running).await, before, "it still runs");
        code.store(0, Ordering::SeqCst);
        env.poke(CORE, &denial.to_string()).await;
        env.wait(running, "its replicas again", |d| d["spec"]["replicas"] != 5)
            .await;
        env.wait_condition(CORE, "ProviderUpgraded", "True", "ProviderUpgraded")
            .await;
    }
    assert_eq!(env.uid(running).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_whose_secret_was_deleted_is_rendered_again() {
    let env = Env::start().await;
    env.with_core(V1ALPHA2).await;
    env.wait_condition(CORE, "Ready", "True", "DeploymentAvailable").await;
    let secrets: kube::Api<k8s_openapi::api::core::v1::Secret> = kube::Api::namespaced(env.client.clone(), NAMESPACE);
    let kept = kube::api::ListParams::default().labels("managed-by.operator.cluster.x-k8s.io=true");
    for secret in secrets.list(&kept).await.unwrap() {
        env.delete(("v1", "Secret", &secret.metadata.name.unwrap())).await;
    }
    let account = ("v1", "ServiceAccount", "cluster-api-manager");
    env.delete(account).await;
    env.wait(account, "to be there again", |a| a["metadata"]["uid"].is_string())
        .await;
    env.wait_condition(CORE, "Ready", "True", "DeploymentAvailable").await;
    assert!(!secrets.list(&kept).await.unwrap().items.is_empty(), "it is kept again");
}
