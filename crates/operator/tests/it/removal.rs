//! Removing providers, and what is in the way of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::Method;
use serde_json::{Value, json};
use windlass_fake_providers::LookAlike;
use windlass_provider_repository::Settings;
use windlass_testkit::Deployments;
use windlass_testkit::faults::{Fault, Faults};

use crate::env::{Env, NAMESPACE, V1ALPHA1, V1ALPHA2, declaration, plain};

const CORE: (&str, &str, &str) = (V1ALPHA2, "CoreProvider", "cluster-api");
const INFRA: (&str, &str, &str) = (V1ALPHA2, "InfrastructureProvider", "rig");

// OP-114, OP-115, OP-116, OP-117, OP-118, OP-144, OP-229
#[tokio::test(flavor = "multi_thread")]
async fn a_provider_goes_when_no_other_needs_it_and_leaves_definitions() {
    let env = Env::start().await;
    env.with_core(V1ALPHA2).await;
    // No webhooks are served here.
    let infra = LookAlike::infrastructure("rig").without_webhooks();
    env.shelve(&infra).await;
    env.variables("variables", &infra).await;
    let spec = json!({"version": "v1.0.0", "configSecret": {"name": "variables"}});
    env.apply(declaration(V1ALPHA2, "InfrastructureProvider", "rig", spec))
        .await;
    env.wait_installed(INFRA, "v1.0.0").await;
    let user = ("infrastructure.cluster.x-k8s.io/v1beta2", "RigRigCluster", "mine");
    env.apply(json!({"apiVersion": user.0, "kind": user.1, "metadata": {"name": user.2, "namespace": NAMESPACE}}))
        .await;

    env.delete(CORE).await;
    let told = env
        .wait_condition(CORE, "Deleting", "True", "OtherProvidersExist")
        .await;
    assert!(
        told["message"]
            .as_str()
            .unwrap()
            .contains("InfrastructureProvider providers/rig"),
        "{told}"
    );
    env.delete(INFRA).await;
    let told = env.wait_condition(INFRA, "Deleting", "True", "ProviderInUse").await;
    assert!(
        told["message"]
            .as_str()
            .unwrap()
            .contains("RigRigCluster providers/mine"),
        "{told}"
    );
    let name = infra.deployment_names().remove(0);
    assert!(env.get(("apps/v1", "Deployment", &name)).await.is_some());

    env.delete(user).await;
    env.wait(INFRA, "to be gone", serde_json::Value::is_null).await;
    env.wait(CORE, "to be gone", serde_json::Value::is_null).await;
    for name in infra
        .deployment_names()
        .into_iter()
        .chain(LookAlike::core().deployment_names())
    {
        assert!(env.get(("apps/v1", "Deployment", &name)).await.is_none(), "{name}");
    }
    let gone = [
        ("v1", "ServiceAccount", "infrastructure-rig-manager"),
        (
            "rbac.authorization.k8s.io/v1",
            "ClusterRole",
            "infrastructure-rig-manager-role",
        ),
        ("clusterctl.cluster.x-k8s.io/v1alpha3", "Provider", "infrastructure-rig"),
        ("v1", "Secret", "infrastructure-rig-authority"),
    ];
    for of in gone {
        assert!(env.get(of).await.is_none(), "{of:?}");
    }
    let definition = (
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        "rigrigclusters.infrastructure.cluster.x-k8s.io",
    );
    assert!(env.get(definition).await.is_some());
    assert!(env.get(("v1", "Namespace", NAMESPACE)).await.is_some());
    assert!(
        env.get(("v1", "Secret", "variables")).await.is_some(),
        "what is the user's stays"
    );
}

// OP-071
#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_was_never_installed_goes_at_once() {
    let env = Env::start().await;
    env.apply(declaration(V1ALPHA2, "InfrastructureProvider", "rig", json!({})))
        .await;
    env.wait_condition(INFRA, "ProviderInstalled", "False", "WaitingForCoreProviderReady")
        .await;
    env.delete(INFRA).await;
    env.wait(INFRA, "to be gone", serde_json::Value::is_null).await;
}

// OP-073, OP-115, OP-117, OP-118, OP-216: in whatever namespaces and through whichever API the others are declared.
#[tokio::test(flavor = "multi_thread")]
async fn the_core_stays_as_long_as_any_provider_and_definitions_stay_with_what_is_made_of_them() {
    let (env, forge) = Env::forged().await;
    let core = (V1ALPHA1, CORE.1, CORE.2);
    let name = |kind: &str, name: &str| match kind {
        "BootstrapProvider" => LookAlike::bootstrap(name),
        _ => LookAlike::infrastructure(name).without_required_variables(),
    };
    env.with_core(core.0).await;
    let rest = [
        (V1ALPHA2, "InfrastructureProvider", "rig"),
        (V1ALPHA1, "BootstrapProvider", "rag"),
    ];
    let declared = async || {
        for (of, namespace) in rest.iter().zip(["rigs", "rags"]) {
            env.namespace(namespace).await;
            forge.publish("acme/all", &name(of.1, of.2).without_webhooks());
            let mut object = plain(
                *of,
                &json!({"fetchConfig": {"url": "https://github.com/acme/all/releases"}}),
            );
            object["metadata"]["namespace"] = json!(namespace);
            env.apply(object).await;
        }
        for of in [(rest[0].0, rest[0].1, "rigs/rig"), (rest[1].0, rest[1].1, "rags/rag")] {
            env.wait_condition(of, "Ready", "True", "DeploymentAvailable").await;
        }
    };
    declared().await;
    env.delete(core).await;
    let blocked = ["Deleting", "True", "OtherProvidersExist"];
    env.wait_told(
        core,
        blocked,
        &["InfrastructureProvider rigs/rig", "BootstrapProvider rags/rag"],
    )
    .await;
    let running = LookAlike::core().deployment_names().remove(0);
    let running = ("apps/v1", "Deployment", running.as_str());
    assert!(env.get(running).await.is_some(), "it goes on until it may go");
    for (api, kind, name) in [(rest[1].0, rest[1].1, "rags/rag"), (rest[0].0, rest[0].1, "rigs/rig")] {
        env.delete((api, kind, name)).await;
        env.wait((api, kind, name), "to be gone", Value::is_null).await;
    }
    env.wait(core, "to be gone", Value::is_null).await;
    assert!(env.get(running).await.is_none());

    // What users make meanwhile of the kinds that are left is there when the provider comes back.
    let user = ("infrastructure.cluster.x-k8s.io/v1beta2", "RigRigCluster", "mine");
    let object = json!({
        "apiVersion": user.0, "kind": user.1, "metadata": {"name": user.2, "namespace": NAMESPACE}, "spec": {"size": 7},
    });
    let uid = env.apply(object).await["metadata"]["uid"].clone();
    env.with_core(core.0).await;
    declared().await;
    let kept = env.get(user).await.unwrap();
    assert_eq!((&kept["metadata"]["uid"], &kept["spec"]["size"]), (&uid, &json!(7)));
}

// OP-144: an object that cannot be read may still exist.
#[tokio::test(flavor = "multi_thread")]
async fn a_declaration_stays_while_it_is_unknown_whether_its_objects_are_gone() {
    let mut env = Env::idle(Settings::default()).await;
    env.runs = Some(Deployments::run(env.client.clone()));
    let (deleted, refused) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(true)));
    let (seen, refuse) = (deleted.clone(), refused.clone());
    env.operate(&Faults::when(move |request| {
        let is_held = !request.is_watch() && request.path.contains("/configmaps/cluster-api-held");
        if is_held && request.is_write() {
            seen.store(request.method == Method::DELETE, Ordering::Relaxed);
            return None;
        }
        let fails = is_held && seen.load(Ordering::Relaxed) && refuse.load(Ordering::Relaxed);
        fails.then_some(Fault::Refused(403))
    }));
    env.shelve(&LookAlike::core().extra("held")).await;
    env.apply(declaration(V1ALPHA2, CORE.1, CORE.2, json!({"version": "v1.0.0"})))
        .await;
    env.wait_installed(CORE, "v1.0.0").await;
    let held = ("v1", "ConfigMap", "cluster-api-held");
    let finalizers = |all: Value| json!({"metadata": {"finalizers": all}});
    env.merge(held, finalizers(json!(["example.com/hold"]))).await;
    env.delete(CORE).await;
    env.wait_condition(CORE, "Deleting", "True", "ComponentsApplyError")
        .await;
    assert!(deleted.load(Ordering::Relaxed));
    refused.store(false, Ordering::Relaxed);
    env.wait_condition(CORE, "Deleting", "True", "Removing").await;
    env.merge(held, finalizers(Value::Null)).await;
    env.wait(CORE, "to be gone", Value::is_null).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_whose_secrets_are_gone_is_removed_by_its_labels() {
    let mut env = Env::start().await;
    env.with_core(V1ALPHA2).await;
    env.wait_condition(CORE, "Ready", "True", "DeploymentAvailable").await;
    env.stop_operating().await;
    // As when the namespace is deleted while no operator runs: the declaration holds it, and everything else in it goes.
    let secrets: kube::Api<k8s_openapi::api::core::v1::Secret> = kube::Api::namespaced(env.client.clone(), NAMESPACE);
    for secret in secrets.list(&kube::api::ListParams::default()).await.unwrap() {
        env.delete(("v1", "Secret", &secret.metadata.name.unwrap())).await;
    }
    env.delete(("clusterctl.cluster.x-k8s.io/v1alpha3", "Provider", "cluster-api"))
        .await;
    let role = (
        "rbac.authorization.k8s.io/v1",
        "ClusterRole",
        "cluster-api-manager-role",
    );
    assert!(env.get(role).await.is_some());
    env.delete(CORE).await;
    // What cannot be listed may be there.
    let faults = Faults::when(|request| {
        let is_search = request.path.contains("/clusterroles?") && request.path.contains("labelSelector=clusterctl");
        (is_search && request.number < 60).then_some(Fault::Refused(500))
    });
    env.operate(&faults);
    env.wait(CORE, "to be gone", Value::is_null).await;
    assert!(env.get(role).await.is_none(), "no cluster-scoped object is left");
    let name = LookAlike::core().deployment_names().remove(0);
    assert!(env.get(("apps/v1", "Deployment", &name)).await.is_none());
    let definitions = kube::Api::<
        k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    >::all(env.client.clone());
    let labelled = kube::api::ListParams::default().labels("cluster.x-k8s.io/provider=cluster-api");
    assert!(
        !definitions.list(&labelled).await.unwrap().items.is_empty(),
        "definitions stay"
    );
}
