//! Stored objects, when their definitions change.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use windlass_fake_providers::LookAlike;
use windlass_provider_components::manifest;
use windlass_testkit::faults::{Fault, Faults};
use windlass_testkit::{Fate, Which};

use crate::env::{Env, NAMESPACE, Of, V1ALPHA2, declaration};

const INFRA: Of<'_> = (V1ALPHA2, "InfrastructureProvider", "rig");
const DEFINITION: Of<'_> = (
    "apiextensions.k8s.io/v1",
    "CustomResourceDefinition",
    "rigrigclusters.infrastructure.cluster.x-k8s.io",
);
const OLD: &str = "infrastructure.cluster.x-k8s.io/v1beta1";
const NEW: &str = "infrastructure.cluster.x-k8s.io/v1beta2";

fn rig(version: &str, storage: &str) -> LookAlike {
    let rig = LookAlike::infrastructure("rig")
        .without_required_variables()
        .without_webhooks();
    rig.version(version).storage_version(storage)
}

/// Component files without a version of their definitions.
fn without(version: &str, components: &str) -> String {
    let mut objects = manifest::parse(components).unwrap();
    for versions in objects.iter_mut().filter_map(|o| o.pointer_mut("/spec/versions")) {
        versions
            .as_array_mut()
            .unwrap()
            .retain(|known| known["name"] != version);
    }
    let documents: Vec<_> = objects.iter().map(Value::to_string).collect();
    documents.join("\n---\n")
}

/// A management cluster with v1.0.0, which stores v1beta1, with objects, and with v1.1.0, which stores v1beta2, and v1.2.0, which has
/// nothing else, at hand.
async fn stored() -> Env {
    let env = Env::start().await;
    env.with_core(V1ALPHA2).await;
    env.shelve(&rig("v1.0.0", "v1beta1")).await;
    env.shelve(&rig("v1.1.0", "v1beta2")).await;
    let last = rig("v1.2.0", "v1beta2");
    env.shelve_text(&last, &without("v1beta1", &last.components())).await;
    env.apply(declaration(V1ALPHA2, INFRA.1, INFRA.2, json!({"version": "v1.0.0"})))
        .await;
    env.wait_condition(INFRA, "Ready", "True", "DeploymentAvailable").await;
    for (api_version, name, size) in [(OLD, "old", 1), (NEW, "new", 2)] {
        let metadata = json!({"name": name, "namespace": NAMESPACE});
        env.apply(
            json!({"apiVersion": api_version, "kind": "RigRigCluster", "metadata": metadata, "spec": {"size": size}}),
        )
        .await;
    }
    assert_eq!(stored_versions(&env.get(DEFINITION).await.unwrap()), ["v1beta1"]);
    env
}

fn stored_versions(definition: &Value) -> Vec<&str> {
    let stored = definition["status"]["storedVersions"].as_array().into_iter().flatten();
    stored.filter_map(Value::as_str).collect()
}

async fn upgrade(env: &Env, version: &str) {
    env.merge(INFRA, json!({"spec": {"version": version}})).await;
}

async fn objects(env: &Env) -> Vec<(Value, Value)> {
    let mut found = Vec::new();
    for name in ["old", "new"] {
        let object = env.get((NEW, "RigRigCluster", name)).await.unwrap();
        found.push((object["metadata"]["uid"].clone(), object["spec"].clone()));
    }
    found
}

// OP-083, OP-084, OP-229
#[tokio::test(flavor = "multi_thread")]
async fn stored_objects_follow_the_storage_version_so_that_the_old_one_can_go() {
    let env = stored().await;
    let (before, uid) = (objects(&env).await, env.uid(DEFINITION).await);
    upgrade(&env, "v1.1.0").await;
    env.wait(DEFINITION, "only the new version to be stored", |definition| {
        stored_versions(definition) == ["v1beta2"]
    })
    .await;
    assert_eq!(objects(&env).await, before);
    upgrade(&env, "v1.2.0").await;
    env.wait_installed(INFRA, "v1.2.0").await;
    assert_eq!(objects(&env).await, before);
    assert_eq!(env.uid(DEFINITION).await, uid);
}

// The same before anything of v1.1.0 ran.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_not_migrated_after_an_upgrade_is_before_the_next_one() {
    let env = stored().await;
    let before = objects(&env).await;
    let runs = env.runs.as_ref().unwrap();
    runs.let_them(Which::all().with_image(":v1.1.0"), Fate::IsHeld);
    upgrade(&env, "v1.1.0").await;
    env.wait_condition(INFRA, "Ready", "False", "MinimumReplicasUnavailable")
        .await;
    assert_eq!(
        stored_versions(&env.get(DEFINITION).await.unwrap()),
        ["v1beta1", "v1beta2"]
    );
    upgrade(&env, "v1.2.0").await;
    env.wait_installed(INFRA, "v1.2.0").await;
    assert_eq!(stored_versions(&env.get(DEFINITION).await.unwrap()), ["v1beta2"]);
    assert_eq!(objects(&env).await, before);
}

// A replica of the API server that has not seen the new definition yet.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_counts_as_migrated_while_the_server_does_not_show_the_objects() {
    let mut env = stored().await;
    env.stop_operating().await;
    let is_late = Arc::new(AtomicBool::new(true));
    let faults = {
        let is_late = is_late.clone();
        Faults::when(move |request| {
            let is_discovery = request.path.ends_with("/apis/infrastructure.cluster.x-k8s.io/v1beta2");
            (is_discovery && is_late.load(Ordering::SeqCst)).then_some(Fault::Refused(404))
        })
    };
    env.operate(&faults);
    upgrade(&env, "v1.1.0").await;
    env.wait(INFRA, "the reason", |object| {
        object["status"]
            .to_string()
            .contains("does not serve v1beta2 of RigRigCluster")
    })
    .await;
    assert_eq!(
        stored_versions(&env.get(DEFINITION).await.unwrap()),
        ["v1beta1", "v1beta2"]
    );
    is_late.store(false, Ordering::SeqCst);
    env.wait(DEFINITION, "only the new version to be stored", |definition| {
        stored_versions(definition) == ["v1beta2"]
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_that_cannot_read_what_is_stored_is_not_installed() {
    let env = stored().await;
    let running = rig("v1.0.0", "v1beta1").deployment_names().remove(0);
    let running = ("apps/v1", "Deployment", running.as_str());
    let (before, uid) = (objects(&env).await, env.uid(running).await);
    upgrade(&env, "v1.2.0").await;
    let words = [
        DEFINITION.2,
        "stored as v1beta1",
        "v1.2.0",
        "upgrade to a version in between",
    ];
    env.wait_told(INFRA, ["ProviderUpgraded", "False", "ComponentsApplyError"], &words)
        .await;
    assert_eq!(env.uid(running).await, uid);
    assert_eq!(objects(&env).await, before);
    upgrade(&env, "v1.1.0").await;
    env.wait_installed(INFRA, "v1.1.0").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_that_came_up_is_not_taken_back_although_stored_objects_cannot_be_written() {
    let mut env = stored().await;
    env.stop_operating().await;
    let faults = Faults::when(|request| {
        let is_object = request.path.contains("/rigrigclusters/");
        (request.method == "PATCH" && is_object).then_some(Fault::Refused(403))
    });
    env.operate(&faults);
    upgrade(&env, "v1.1.0").await;
    env.wait_installed(INFRA, "v1.1.0").await;
    env.wait_condition(INFRA, "Ready", "True", "DeploymentAvailable").await;
    env.wait(INFRA, "the refused migration is reported", |object| {
        object["status"].to_string().contains("RigRigCluster providers/")
    })
    .await;
    // It works for long, and then a node fails.
    let which = Which::all().with_image("-controller:v1.1.0");
    env.runs.as_ref().unwrap().let_them(which, Fate::Fails);
    env.wait(INFRA, "it is not ready, and not another version", |object| {
        let ready = crate::env::condition(object, "Ready");
        ready["status"] == "False" && object["status"]["installedVersion"] == "v1.1.0"
    })
    .await;
}
