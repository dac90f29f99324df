//! Providers that the process has built in: declared or not, they count as installed, and nothing is installed in their place.

use kube::api::{Api, DynamicObject, ListParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use windlass_api_operator::{BUILT_IN, NAMESPACE as HOME};
use windlass_fake_providers::LookAlike;
use windlass_operator::{BuiltIns, Own};
use windlass_provider_components::{envsubst, manifest};
use windlass_provider_repository::Settings;
use windlass_testkit::Deployments;
use windlass_testkit::faults::Faults;

use crate::env::{Env, NAMESPACE, Of, V1ALPHA1, V1ALPHA2, condition, declaration, plain};

const INVENTORY: &str = "clusterctl.cluster.x-k8s.io/v1alpha3";
const CORE: Of<'_> = (V1ALPHA2, "CoreProvider", "cluster-api");
const INFRA: Of<'_> = (V1ALPHA2, "InfrastructureProvider", "rig");

/// The built-in providers, with these definitions of the core.
fn built_ins(core: &[String]) -> BuiltIns {
    BuiltIns::new(BUILT_IN.map(|is| Own {
        is,
        definitions: if is.label() == "cluster-api" {
            core.to_vec()
        } else {
            Vec::new()
        },
    }))
}

/// An operator with built-in providers.
async fn started() -> Env {
    let mut env = Env::idle(Settings::default()).await;
    env.built_ins = built_ins(&["coreclusters.cluster.x-k8s.io".to_owned()]);
    env.runs = Some(Deployments::run(env.client.clone()));
    env.operate(&Faults::none());
    env
}

/// What is stored of a kind, in all namespaces.
async fn all(env: &Env, api_version: &str, kind: &str) -> Vec<Value> {
    let (group, version) = api_version.split_once('/').unwrap();
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    let api: Api<DynamicObject> = Api::all_with(env.client.clone(), &resource);
    let found = api.list(&ListParams::default()).await.unwrap().items;
    found
        .into_iter()
        .map(|object| serde_json::to_value(object).unwrap())
        .collect()
}

/// The objects of a provider's files.
fn objects(provider: &LookAlike) -> Vec<Value> {
    let text = envsubst::Template::parse(&provider.components())
        .unwrap()
        .render(|_| None)
        .unwrap();
    manifest::parse(&text).unwrap()
}

fn rig() -> LookAlike {
    LookAlike::infrastructure("rig")
        .without_required_variables()
        .without_webhooks()
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap()
}

async fn in_inventory(env: &Env, entry: &str, version: &str) -> Value {
    env.wait(
        (INVENTORY, "Provider", &format!("{HOME}/{entry}")),
        "in the inventory",
        |object| object["version"] == version,
    )
    .await
}

// OP-188
#[tokio::test(flavor = "multi_thread")]
async fn a_provider_is_installed_with_nothing_else_declared() {
    let env = started().await;
    let rig = rig();
    env.shelve(&rig).await;
    env.apply(declaration(V1ALPHA2, INFRA.1, INFRA.2, json!({"version": "v1.0.0"})))
        .await;
    env.wait_installed(INFRA, "v1.0.0").await;
    env.wait_condition(INFRA, "Ready", "True", "DeploymentAvailable").await;

    for (entry, type_, provider, version) in [
        ("cluster-api", "CoreProvider", "cluster-api", "v1.14.0"),
        ("bootstrap-kubeadm", "BootstrapProvider", "kubeadm", "v1.14.0"),
        ("control-plane-kubeadm", "ControlPlaneProvider", "kubeadm", "v1.14.0"),
        ("infrastructure-docker", "InfrastructureProvider", "docker", "v1.14.0"),
        ("addon-helm", "AddonProvider", "helm", "v0.6.4"),
    ] {
        let stored = in_inventory(&env, entry, version).await;
        assert_eq!(
            (&stored["type"], &stored["providerName"]),
            (&json!(type_), &json!(provider))
        );
        // As clusterctl writes them.
        let labels = &stored["metadata"]["labels"];
        assert_eq!(labels["clusterctl.cluster.x-k8s.io"], "");
        assert_eq!(labels["clusterctl.cluster.x-k8s.io/core"], "inventory");
        assert_eq!(labels["cluster.x-k8s.io/provider"], entry);
    }

    // The inventory stays true.
    let entry = format!("{HOME}/cluster-api");
    let entry = (INVENTORY, "Provider", entry.as_str());
    let before = env.uid(entry).await;
    env.delete(entry).await;
    env.wait(entry, "to be there again", |object| {
        object["metadata"]["uid"].as_str().is_some_and(|uid| uid != before)
    })
    .await;
    env.merge(entry, json!({"version": "v1.9.0"})).await;
    in_inventory(&env, "cluster-api", "v1.14.0").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_declaration_of_one_is_satisfied_and_its_deletion_deletes_nothing() {
    let env = started().await;
    env.apply(declaration(
        V1ALPHA2,
        CORE.1,
        CORE.2,
        json!({"configSecret": {"name": "none"}}),
    ))
    .await;
    env.apply(plain(
        (V1ALPHA1, "BootstrapProvider", "kubeadm"),
        &json!({"version": "v1.14.0"}),
    ))
    .await;
    env.apply(plain(
        (V1ALPHA2, "AddonProvider", "helm"),
        &json!({"version": "v0.6.4"}),
    ))
    .await;
    env.wait_condition(CORE, "Ready", "True", "BuiltIn").await;
    let core = env.wait_condition(CORE, "ProviderInstalled", "True", "BuiltIn").await;
    let message = core["message"].as_str().unwrap();
    for words in [
        "version v1.14.0",
        "nothing is installed",
        "no effect have spec.fetchConfig, spec.configSecret",
    ] {
        assert!(message.contains(words), "{words}: {message}");
    }
    let stored = env
        .wait_condition(CORE, "PreflightCheckPassed", "True", "PreflightCheckPassed")
        .await;
    assert_eq!(stored["status"], "True");
    let stored = env.get(CORE).await.unwrap();
    assert_eq!(
        (&stored["status"]["installedVersion"], &stored["status"]["contract"]),
        (&json!("v1.14.0"), &json!("v1beta2"))
    );
    // The version stays open: a newer Windlass has a newer one.
    assert_eq!(stored["spec"]["version"], Value::Null);
    let bootstrap = (V1ALPHA1, "BootstrapProvider", "kubeadm");
    env.wait_condition(bootstrap, "Ready", "True", "BuiltIn").await;
    assert_eq!(env.get(bootstrap).await.unwrap()["status"]["contract"], "v1beta2");
    env.wait_condition((V1ALPHA2, "AddonProvider", "helm"), "Ready", "True", "BuiltIn")
        .await;

    // Other providers need the core, and would keep an installed one.
    let rig = rig();
    env.shelve(&rig).await;
    env.apply(declaration(V1ALPHA1, INFRA.1, INFRA.2, json!({"version": "v1.0.0"})))
        .await;
    env.wait_installed((V1ALPHA1, INFRA.1, INFRA.2), "v1.0.0").await;
    in_inventory(&env, "cluster-api", "v1.14.0").await;
    let entry = env.uid((INVENTORY, "Provider", &format!("{HOME}/cluster-api"))).await;
    env.delete(CORE).await;
    env.wait(CORE, "to be gone", Value::is_null).await;
    assert_eq!(
        env.uid((INVENTORY, "Provider", &format!("{HOME}/cluster-api"))).await,
        entry
    );
    let deployments = all(&env, "apps/v1", "Deployment").await;
    let names: Vec<&str> = deployments.iter().map(name).collect();
    assert_eq!(names, rig.deployment_names(), "only what was asked for is installed");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_one_in_its_place_is_refused_with_the_way_out() {
    let env = started().await;
    env.shelve(&LookAlike::core()).await;
    env.apply(declaration(V1ALPHA2, CORE.1, CORE.2, json!({"version": "v1.0.0"})))
        .await;
    let refused = ["PreflightCheckPassed", "False", "BuiltInDifferently"];
    env.wait_told(
        CORE,
        refused,
        &["spec.version", "v1.14.0", "leave spec.version out", "--controllers"],
    )
    .await;
    env.wait_condition(CORE, "Ready", "False", "BuiltInDifferently").await;
    assert_eq!(
        env.get(CORE).await.unwrap()["status"]["installedVersion"],
        "v1.14.0",
        "it is there"
    );
    env.merge(CORE, json!({"spec": {"version": null}})).await;
    env.wait_condition(CORE, "Ready", "True", "BuiltIn").await;

    // A pause cannot be had.
    let control = (V1ALPHA1, "ControlPlaneProvider", "kubeadm");
    env.apply(plain(control, &json!({"paused": true}))).await;
    env.wait_told(control, refused, &["spec.paused"]).await;

    // Under another name, it would bring the definitions of the built-in core.
    let twin = LookAlike::infrastructure("twin")
        .without_required_variables()
        .without_webhooks();
    let crd = objects(&LookAlike::core())
        .into_iter()
        .find(|object| object["kind"] == "CustomResourceDefinition");
    let crd = name(&crd.unwrap()).to_owned();
    let mut bad = started_with(std::slice::from_ref(&crd)).await;
    let text = format!("{}\n---\n{}", twin.components(), only(&LookAlike::core(), &crd));
    bad.shelve_text(&twin, &text).await;
    let of = (V1ALPHA2, "InfrastructureProvider", "twin");
    bad.apply(declaration(of.0, of.1, of.2, json!({"version": "v1.0.0"})))
        .await;
    let shared = ["PreflightCheckPassed", "False", "ComponentsShared"];
    bad.wait_told(of, shared, &[crd.as_str(), "CoreProvider cluster-api", "built in"])
        .await;
    bad.stop_operating().await;
}

async fn started_with(core: &[String]) -> Env {
    let mut env = Env::idle(Settings::default()).await;
    env.built_ins = built_ins(core);
    env.operate(&Faults::none());
    env
}

/// One definition of a provider's files, without its conversion.
fn only(provider: &LookAlike, definition: &str) -> String {
    let mut found = objects(provider)
        .into_iter()
        .find(|object| name(object) == definition)
        .unwrap();
    found["spec"].as_object_mut().unwrap().remove("conversion");
    found["metadata"].as_object_mut().unwrap().remove("annotations");
    found.to_string()
}

// A core that the operator installed before this process had one of its own.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_installed_before_is_taken_out_of_the_way_and_users_keep_theirs() {
    let mut env = Env::start().await;
    env.with_core(V1ALPHA2).await;
    let core = objects(&LookAlike::core());
    let of_kind = |kind: &str| -> Vec<String> {
        core.iter()
            .filter(|object| object["kind"] == kind)
            .map(|object| name(object).to_owned())
            .collect()
    };
    let definition = core
        .iter()
        .find(|object| object["kind"] == "CustomResourceDefinition")
        .unwrap();
    let group = definition["spec"]["group"].as_str().unwrap();
    let stored = definition["spec"]["versions"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["storage"] == true)
        .unwrap();
    let api_version = format!("{group}/{}", stored["name"].as_str().unwrap());
    let kind = definition["spec"]["names"]["kind"].as_str().unwrap();
    // Webhooks without a server would refuse it.
    let hooks = all(
        &env,
        "admissionregistration.k8s.io/v1",
        "ValidatingWebhookConfiguration",
    )
    .await;
    assert!(!hooks.is_empty());
    env.stop_operating().await;

    env.built_ins = built_ins(&of_kind("CustomResourceDefinition"));
    env.operate(&Faults::none());
    // Another version than the built-in one is declared.
    env.wait_told(
        CORE,
        ["PreflightCheckPassed", "False", "BuiltInDifferently"],
        &["v1.0.0"],
    )
    .await;
    in_inventory(&env, "cluster-api", "v1.14.0").await;
    for hooks in ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"] {
        assert_eq!(
            all(&env, "admissionregistration.k8s.io/v1", hooks).await,
            [Value::Null; 0]
        );
    }
    assert_eq!(all(&env, "apps/v1", "Deployment").await, [Value::Null; 0]);
    let entries = all(&env, INVENTORY, "Provider").await;
    assert_eq!(
        entries.iter().filter(|entry| entry["type"] == "CoreProvider").count(),
        1,
        "{entries:#?}"
    );
    // All else stays: definitions and their objects first of all.
    for (api_version, kind) in [
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
        ("rbac.authorization.k8s.io/v1", "ClusterRole"),
    ] {
        let left = all(&env, api_version, kind).await;
        for expect in of_kind(kind) {
            assert!(left.iter().any(|object| name(object) == expect), "{kind} {expect}");
        }
    }
    let user = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "mine", "namespace": NAMESPACE}});
    env.apply(user).await;
    // One event tells it, and the declaration is satisfied when it asks for what there is.
    let events: Vec<Value> = all_core(&env, "Event").await;
    let told = events
        .iter()
        .find(|event| event["reason"] == "ReplacedByBuiltIn")
        .expect("an event");
    let message = told["message"].as_str().unwrap();
    for words in [
        "version v1.0.0 was installed",
        "Deployment ",
        "Never delete the CustomResourceDefinitions",
    ] {
        assert!(message.contains(words), "{words}: {message}");
    }
    env.merge(CORE, json!({"spec": {"version": "v1.14.0"}})).await;
    env.wait_condition(CORE, "Ready", "True", "BuiltIn").await;
    let stored = env.get(CORE).await.unwrap();
    assert_eq!(condition(&stored, "ProviderUpgraded"), &Value::Null);
    let secrets = all_core(&env, "Secret").await;
    assert!(
        !secrets
            .iter()
            .any(|secret| secret["type"] == "cluster.x-k8s.io/provider-release"),
        "{secrets:#?}"
    );
    env.delete(CORE).await;
    env.wait(CORE, "to be gone", Value::is_null).await;
    assert!(env.get((api_version.as_str(), kind, "mine")).await.is_some());
}

/// [`all`] of a kind of the core group.
async fn all_core(env: &Env, kind: &str) -> Vec<Value> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", kind));
    let api: Api<DynamicObject> = Api::all_with(env.client.clone(), &resource);
    let found = api.list(&ListParams::default()).await.unwrap().items;
    found
        .into_iter()
        .map(|object| serde_json::to_value(object).unwrap())
        .collect()
}

// The operator alone, where another process had the core built in and its inventory says so.
#[tokio::test(flavor = "multi_thread")]
async fn the_operator_alone_installs_nothing_over_what_the_inventory_says_is_built_in() {
    let mut env = started().await;
    in_inventory(&env, "cluster-api", "v1.14.0").await;
    env.stop_operating().await;
    env.built_ins = BuiltIns::default();
    env.operate(&Faults::none());
    env.shelve(&LookAlike::core().without_webhooks()).await;
    env.apply(declaration(V1ALPHA2, CORE.1, CORE.2, json!({"version": "v1.0.0"})))
        .await;
    let elsewhere = ["PreflightCheckPassed", "False", "InstalledElsewhere"];
    env.wait_told(
        CORE,
        elsewhere,
        &[
            "built in, as version v1.14.0",
            "delete Provider windlass-system/cluster-api",
        ],
    )
    .await;
    env.delete((INVENTORY, "Provider", &format!("{HOME}/cluster-api")))
        .await;
    env.wait_installed(CORE, "v1.0.0").await;
}
