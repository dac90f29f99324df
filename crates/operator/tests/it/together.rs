//! Many providers at once: each goes its own way.

use k8s_openapi::api::core::v1::Event;
use kube::Api;
use serde_json::{Value, json};
use windlass_fake_providers::LookAlike;
use windlass_testkit::faults::Faults;
use windlass_testkit::wait;

use crate::env::{Env, NAMESPACE, V1ALPHA1, V1ALPHA2, declaration};

const BOOTSTRAP: (&str, &str, &str) = (V1ALPHA2, "BootstrapProvider", "rig");
const CONTROL_PLANE: (&str, &str, &str) = (V1ALPHA2, "ControlPlaneProvider", "rig");
const INFRA: (&str, &str, &str) = (V1ALPHA2, "InfrastructureProvider", "rig");
const WANTING: (&str, &str, &str) = (V1ALPHA2, "InfrastructureProvider", "wanting");

// OP-072, OP-087, OP-118, OP-142, OP-236, OP-241
#[tokio::test(flavor = "multi_thread")]
async fn what_is_declared_at_once_comes_one_by_one_and_a_failure_is_ones_own() {
    let env = Env::start().await;
    let core = LookAlike::core();
    let bootstrap = LookAlike::bootstrap("rig");
    let control_plane = LookAlike::control_plane("rig");
    let infra = LookAlike::infrastructure("rig").without_required_variables();
    let wanting = LookAlike::infrastructure("wanting");
    let addon = LookAlike::addon("rig");
    for provider in [&core, &bootstrap, &control_plane, &infra, &wanting, &addon] {
        env.shelve(provider).await;
    }
    let version = || json!({"version": "v1.0.0"});
    // The core is the last one to be declared.
    let addon = (V1ALPHA2, "AddonProvider", "rig");
    let core = (V1ALPHA2, "CoreProvider", "cluster-api");
    for (api, kind, name) in [WANTING, addon, INFRA, CONTROL_PLANE, BOOTSTRAP, core] {
        env.apply(declaration(api, kind, name, version())).await;
    }
    for of in [core, BOOTSTRAP, CONTROL_PLANE, INFRA, addon] {
        env.wait_installed(of, "v1.0.0").await;
        env.wait_condition(of, "Ready", "True", "DeploymentAvailable").await;
    }
    let told = env
        .wait_condition(WANTING, "ProviderInstalled", "False", "VariablesMissing")
        .await;

    // `kubectl describe` shows the same in an Event, also to those who never look at conditions.
    let events: Api<Event> = Api::namespaced(env.client.clone(), NAMESPACE);
    let found = wait::until(events, None, |all| {
        all.iter().any(|event| {
            event.involved_object.name.as_deref() == Some("wanting")
                && event.type_.as_deref() == Some("Warning")
                && event.reason.as_deref() == Some("VariablesMissing")
                && event.message.as_deref() == told["message"].as_str()
        })
    });
    assert!(found.await.is_some(), "no Event tells {told}");

    // Two that can be had, and one that cannot.
    env.shelve(&bootstrap.version("v1.1.0")).await;
    env.shelve(&control_plane.version("v1.1.0")).await;
    for (of, version) in [(BOOTSTRAP, "v1.1.0"), (INFRA, "v1.9.0"), (CONTROL_PLANE, "v1.1.0")] {
        env.merge(of, json!({"spec": {"version": version}})).await;
    }
    env.wait_installed(BOOTSTRAP, "v1.1.0").await;
    env.wait_installed(CONTROL_PLANE, "v1.1.0").await;
    env.wait_condition(INFRA, "ProviderUpgraded", "False", "ComponentsFetchError")
        .await;
    env.wait_installed(INFRA, "v1.0.0").await;

    // And away again, with nothing but deletions.
    env.delete(BOOTSTRAP).await;
    env.wait(BOOTSTRAP, "to be gone", Value::is_null).await;
}

// OP-123: definitions and the process are replaced, and nothing that runs notices.
#[tokio::test(flavor = "multi_thread")]
async fn another_operator_takes_over_what_is_declared_and_what_runs() {
    let mut env = Env::start().await;
    env.with_core(V1ALPHA1).await;
    let core = (V1ALPHA1, "CoreProvider", "cluster-api");
    let name = LookAlike::core().deployment_names().remove(0);
    let running = ("apps/v1", "Deployment", name.as_str());
    let id = |object: &Value| {
        let meta = &object["metadata"];
        (meta["uid"].clone(), meta["generation"].clone())
    };
    let before = (env.get(core).await.unwrap(), env.get(running).await.unwrap());
    env.stop_operating().await;
    env.server.define(&crate::env::definitions()).await;
    env.operate(&Faults::none());
    // It has looked at everything once it puts back what a user deletes.
    let account = ("v1", "ServiceAccount", "cluster-api-manager");
    env.delete(account).await;
    env.wait(account, "to be there again", |a| a["metadata"]["uid"].is_string())
        .await;
    env.wait_condition(core, "Ready", "True", "DeploymentAvailable").await;
    let after = (env.get(core).await.unwrap(), env.get(running).await.unwrap());
    assert_eq!((id(&after.0), id(&after.1)), (id(&before.0), id(&before.1)));
}

// OP-129, OP-130: of two that are the same one is installed, and the other one when that is gone.
#[tokio::test(flavor = "multi_thread")]
async fn who_was_refused_as_a_duplicate_follows_when_the_other_one_goes() {
    let env = Env::start().await;
    env.with_core(V1ALPHA2).await;
    let rig = LookAlike::infrastructure("rig").without_required_variables();
    env.shelve(&rig).await;
    let old = (V1ALPHA1, "InfrastructureProvider", "rig");
    let version = || json!({"version": "v1.0.0"});
    env.apply(declaration(old.0, old.1, old.2, version())).await;
    env.apply(declaration(INFRA.0, INFRA.1, INFRA.2, version())).await;
    // Both may have been declared within a second, so either may be the one.
    let installed = |object: &Value| {
        let conditions = object["status"]["conditions"].as_array();
        conditions.is_some_and(|all| {
            all.iter()
                .any(|c| c["type"] == "ProviderInstalled" && c["status"] == "True")
        })
    };
    let one = env.wait(old, "to be installed or refused", |object| {
        installed(object) || object["status"].to_string().contains("MoreThanOneExists")
    });
    let (first, second) = if installed(&one.await) {
        (old, INFRA)
    } else {
        (INFRA, old)
    };
    env.wait_installed(first, "v1.0.0").await;
    env.wait_condition(second, "PreflightCheckPassed", "False", "MoreThanOneExists")
        .await;
    env.delete(first).await;
    env.wait(first, "to be gone", Value::is_null).await;
    env.wait_installed(second, "v1.0.0").await;
    env.wait_condition(second, "Ready", "True", "DeploymentAvailable").await;
}
