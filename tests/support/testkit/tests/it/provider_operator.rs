//! `examples/provider-operator/`: providers from ConfigMaps, without a network.

use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use serde_json::Value;
use windlass_testkit::{Deployments, Env, MANAGER, wait};

const PROVIDERS: &str = include_str!("../../../../../examples/provider-operator/providers.yaml");
const UPGRADE: &str = include_str!("../../../../../examples/provider-operator/upgrade/tender-v1.1.0.yaml");

/// Access to objects of any kind whose plural is its name with an `s`.
fn resource(api_version: &str, kind: &str) -> ApiResource {
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
}

fn api(env: &Env, api_version: &str, kind: &str, namespace: &str) -> Api<DynamicObject> {
    let (client, resource) = (env.client().clone(), resource(api_version, kind));
    if namespace.is_empty() {
        Api::all_with(client, &resource)
    } else {
        Api::namespaced_with(client, namespace, &resource)
    }
}

async fn apply(env: &Env, yaml: &str) {
    let objects: Vec<Value> = serde_saphyr::from_multiple(yaml).unwrap();
    for object in objects {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let metadata = &object["metadata"];
        let (name, namespace) = (text(&metadata["name"]), text(&metadata["namespace"]));
        let api = api(env, &text(&object["apiVersion"]), &text(&object["kind"]), &namespace);
        let applied = api
            .patch(&name, &PatchParams::apply(MANAGER).force(), &Patch::Apply(&object))
            .await;
        applied.unwrap_or_else(|error| panic!("cannot apply {object}: {error}"));
    }
}

const API: &str = "operator.cluster.x-k8s.io/v1alpha2";

/// Waits until the declared provider satisfies a condition.
async fn until(env: &Env, what: &str, is_right: impl Fn(Option<&Value>) -> bool) {
    let api = api(env, API, "InfrastructureProvider", "tender-system");
    let found = wait::until(api, Some("tender"), |all| {
        let object = all.first().map(|object| object.data.clone());
        is_right(object.as_ref())
    });
    assert!(
        found.await.is_some(),
        "waited in vain for {what}\n{}",
        env.explain().await
    );
}

fn condition(object: &Value, kind: &str) -> (String, String) {
    let mut all = object["status"]["conditions"].as_array().into_iter().flatten();
    let found = all.find(|condition| condition["type"] == kind).unwrap_or(&Value::Null);
    let text = |key: &str| found[key].as_str().unwrap_or_default().to_owned();
    (text("status"), text("reason"))
}

fn is_installed(object: Option<&Value>, version: &str) -> bool {
    object.is_some_and(|object| {
        object["status"]["installedVersion"] == version && condition(object, "ProviderInstalled").0 == "True"
    })
}

#[tokio::test]
async fn providers_from_config_maps_are_installed_upgraded_and_removed() {
    let env = Env::start().await;
    apply(&env, PROVIDERS).await;
    // No pods run: all objects exist, and the status says what it waits for.
    until(&env, "v1.0.0 to be installed, and to wait for its pods", |object| {
        let waits = |object: &Value| condition(object, "Ready").1 == "WaitingForClusterThatRunsDeployments";
        is_installed(object, "v1.0.0") && object.is_some_and(waits)
    })
    .await;
    let role = api(&env, "rbac.authorization.k8s.io/v1", "ClusterRole", "");
    assert!(role.get_opt("tender-manager").await.unwrap().is_some());

    let _deployments = Deployments::run(env.server().client("kubelet"));
    until(&env, "v1.0.0 to be ready", |object| {
        object.is_some_and(|object| condition(object, "Ready").0 == "True")
    })
    .await;
    apply(&env, UPGRADE).await;
    until(&env, "v1.1.0 to be ready", |object| {
        is_installed(object, "v1.1.0") && object.is_some_and(|object| condition(object, "Ready").0 == "True")
    })
    .await;
    let definitions = api(&env, "apiextensions.k8s.io/v1", "CustomResourceDefinition", "");
    let name = "tenderclusters.infrastructure.cluster.x-k8s.io";
    let definition = definitions.get(name).await.unwrap().data;
    let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
    assert_eq!(schema["color"]["default"], "white");

    let declared = api(&env, API, "InfrastructureProvider", "tender-system");
    declared.delete("tender", &DeleteParams::default()).await.unwrap();
    until(&env, "the provider to be gone", |object| object.is_none()).await;
    assert!(role.get_opt("tender-manager").await.unwrap().is_none());
    assert!(definitions.get_opt(name).await.unwrap().is_some());
    env.stop().await;
}
