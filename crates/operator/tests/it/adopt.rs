//! Providers that clusterctl has installed.

use kube::api::ListParams;
use serde_json::{Value, json};
use windlass_fake_providers::LookAlike;
use windlass_testkit::faults::{Fault, Faults};

use crate::env::{Env, NAMESPACE, V1ALPHA2, declaration};

const CORE: (&str, &str, &str) = (V1ALPHA2, "CoreProvider", "cluster-api");

#[tokio::test(flavor = "multi_thread")]
async fn what_clusterctl_installed_is_taken_over_as_it_runs() {
    let mut env = Env::start().await;
    env.with_core(V1ALPHA2).await;
    env.shelve(&LookAlike::core().version("v1.1.0")).await;
    // What clusterctl leaves: the objects and the inventory, and nothing of the operator's.
    env.stop_operating().await;
    env.merge(CORE, json!({"metadata": {"finalizers": null}})).await;
    env.delete(CORE).await;
    let secrets: kube::Api<k8s_openapi::api::core::v1::Secret> = kube::Api::namespaced(env.client.clone(), NAMESPACE);
    let kept = ListParams::default().labels("managed-by.operator.cluster.x-k8s.io=true");
    for secret in secrets.list(&kept).await.unwrap() {
        env.delete(("v1", "Secret", &secret.metadata.name.unwrap())).await;
    }
    let stale = ("v1", "ConfigMap", "of-an-older-version");
    env.apply(json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": stale.2, "namespace": NAMESPACE, "labels": {
            "clusterctl.cluster.x-k8s.io": "", "cluster.x-k8s.io/provider": "cluster-api",
        }},
    }))
    .await;
    let name = LookAlike::core().deployment_names().remove(0);
    let running = ("apps/v1", "Deployment", name.as_str());
    let uid = |object: Option<Value>| object.unwrap()["metadata"]["uid"].clone();
    let before = uid(env.get(running).await);

    // A list that fails is read again; one that is forbidden is left out.
    let faults = Faults::when(|request| {
        let is_search = request
            .path
            .contains("clusterctl.cluster.x-k8s.io%2Ccluster.x-k8s.io%2Fprovider");
        match request.path.split(['?', '/']).nth(3) {
            Some("configmaps") if is_search && request.number < 60 => Some(Fault::Refused(500)),
            Some("secrets") if is_search => Some(Fault::Refused(403)),
            _ => None,
        }
    });
    env.operate(&faults);
    env.apply(declaration(V1ALPHA2, CORE.1, CORE.2, json!({}))).await;
    let stored = env.wait_installed(CORE, "v1.0.0").await;
    assert_eq!(
        stored["spec"]["version"], "v1.0.0",
        "the version that is there, not the latest"
    );
    assert_eq!(uid(env.get(running).await), before, "what runs goes on");
    env.wait(stale, "to be gone", Value::is_null).await;
    let injected = |what: Fault| faults.injected().iter().any(|(_, fault)| *fault == what);
    assert!(injected(Fault::Refused(500)) && injected(Fault::Refused(403)));
    env.wait_condition(CORE, "Ready", "True", "DeploymentAvailable").await;
}

// OP-188, OP-239: who goes on with clusterctl alone is not meddled with.
#[tokio::test(flavor = "multi_thread")]
async fn what_clusterctl_installed_and_no_user_declared_is_left_alone() {
    let mut env = Env::idle(windlass_provider_repository::Settings::default()).await;
    env.runs = Some(windlass_testkit::Deployments::run(env.client.clone()));
    let meta = |name: &str, provider: &str| {
        json!({
            "name": name, "namespace": NAMESPACE,
            "labels": {"clusterctl.cluster.x-k8s.io": "", "cluster.x-k8s.io/provider": provider},
        })
    };
    let of_clusterctl = [
        ("v1", "ConfigMap", "settings"),
        ("v1", "ServiceAccount", "manager"),
        (
            "clusterctl.cluster.x-k8s.io/v1alpha3",
            "Provider",
            "infrastructure-other",
        ),
    ];
    let mut before = Vec::new();
    for (api, kind, name) in of_clusterctl {
        let mut object = json!({"apiVersion": api, "kind": kind, "metadata": meta(name, "infrastructure-other")});
        if kind == "Provider" {
            object["metadata"]["labels"]["clusterctl.cluster.x-k8s.io/core"] = json!("inventory");
            for (field, value) in [
                ("providerName", "other"),
                ("type", "InfrastructureProvider"),
                ("version", "v1.0.0"),
            ] {
                object[field] = json!(value);
            }
        }
        before.push(env.apply(object).await);
    }
    env.operate(&Faults::none());
    env.with_core(V1ALPHA2).await;
    env.delete(CORE).await;
    env.wait(CORE, "to be gone", Value::is_null).await;
    for (of, before) in of_clusterctl.into_iter().zip(before) {
        let after = env.get(of).await.unwrap();
        assert_eq!(
            after["metadata"]["resourceVersion"], before["metadata"]["resourceVersion"],
            "{after}"
        );
    }
}
