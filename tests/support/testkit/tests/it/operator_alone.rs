//! `config/provider-operator.yaml`: the provider operator alone, with the permissions of the file.

use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use kube::ResourceExt;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, ValidationDirective,
};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use windlass_controller_runtime::Metrics;
use windlass_manager::{Fetcher, Helming, Selection, controllers, network};
use windlass_testkit::{MANAGER, Server, wait};

const OPERATOR: &str = include_str!("../../../../../config/provider-operator.yaml");
const PROVIDERS: &str = include_str!("../../../../../examples/provider-operator/providers.yaml");
/// The service account of the file's Deployment.
const ACCOUNT: &str = "system:serviceaccount:windlass-system:windlass-operator";

fn documents(yaml: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(yaml).unwrap()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Access to objects of a kind whose plural is its name with an `s`.
fn api(client: &kube::Client, api_version: &str, kind: &str, namespace: &str) -> Api<DynamicObject> {
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    if namespace.is_empty() {
        Api::all_with(client.clone(), &resource)
    } else {
        Api::namespaced_with(client.clone(), namespace, &resource)
    }
}

/// Applies like `kubectl apply --server-side`.
async fn apply(client: &kube::Client, objects: &[Value]) -> Vec<DynamicObject> {
    let parameters = PatchParams {
        field_validation: Some(ValidationDirective::Strict),
        ..PatchParams::apply(MANAGER)
    };
    let mut stored = Vec::new();
    for object in objects {
        let meta = &object["metadata"];
        let api = api(
            client,
            text(&object["apiVersion"]),
            text(&object["kind"]),
            text(&meta["namespace"]),
        );
        let sent = api.patch(text(&meta["name"]), &parameters, &Patch::Apply(object)).await;
        stored.push(sent.unwrap_or_else(|error| panic!("cannot apply {object}: {error}")));
    }
    stored
}

/// Whether a user has a permission.
async fn may(client: &kube::Client, user: &str, verb: &str, resource: &str, namespace: &str) -> bool {
    let (resource, group) = resource.split_once('.').unwrap_or((resource, ""));
    let review: SubjectAccessReview = serde_json::from_value(json!({"spec": {
        "user": user,
        "resourceAttributes": {"verb": verb, "group": group, "resource": resource, "namespace": namespace},
    }}))
    .unwrap();
    let reviews: Api<SubjectAccessReview> = Api::all(client.clone());
    let answer = reviews.create(&PostParams::default(), &review).await.unwrap();
    answer.status.is_some_and(|status| status.allowed)
}

/// The controllers in the arguments of the file's process.
fn chosen(objects: &[Value]) -> Selection {
    let deployment = objects.iter().find(|object| object["kind"] == "Deployment").unwrap();
    let given = deployment.pointer("/spec/template/spec/containers/0/args").unwrap();
    let arguments: Vec<String> = serde_json::from_value(given.clone()).unwrap();
    let names = arguments
        .iter()
        .find_map(|argument| argument.strip_prefix("--controllers="));
    let names: Vec<String> = names.unwrap().split(',').map(str::to_owned).collect();
    Selection::of(&names).unwrap()
}

async fn installed(client: &kube::Client, namespace: &str, kind: &str, name: &str) -> DynamicObject {
    let version = "operator.cluster.x-k8s.io/v1alpha2";
    let found = wait::until(api(client, version, kind, namespace), Some(name), |all| {
        let conditions = all
            .first()
            .and_then(|object| object.data["status"]["conditions"].as_array());
        let mut conditions = conditions.into_iter().flatten();
        conditions.any(|condition| condition["type"] == "ProviderInstalled" && condition["status"] == "True")
    });
    let Some(mut found) = found.await else {
        let is = api(client, version, kind, namespace).get_opt(name).await.unwrap();
        panic!(
            "{kind} {name} is never installed: {:#}",
            json!(is.map(|object| object.data))
        )
    };
    found.remove(0)
}

// OP-121, OP-123, OP-167, OP-228, OP-240, OP-248
#[tokio::test]
async fn one_file_is_the_whole_operator_and_its_rights_suffice() {
    let server = Server::start().await;
    let admin = server.client("admin");
    let mut file = documents(OPERATOR);
    apply(&admin, &file).await;
    for (verb, resource) in [
        ("create", "customresourcedefinitions.apiextensions.k8s.io"),
        ("escalate", "clusterroles.rbac.authorization.k8s.io"),
        ("bind", "clusterroles.rbac.authorization.k8s.io"),
        ("delete", "validatingwebhookconfigurations.admissionregistration.k8s.io"),
        ("get", "secrets"),
        ("list", "configmaps"),
    ] {
        assert!(may(&admin, ACCOUNT, verb, resource, "any").await, "{verb} {resource}");
        assert!(!may(&admin, &format!("{ACCOUNT}-else"), verb, resource, "any").await);
    }

    // Runs the same as its Deployment, with the same service account.
    let selection = chosen(&file);
    let groups = [
        "system:serviceaccounts",
        "system:serviceaccounts:windlass-system",
        "system:authenticated",
    ];
    let own = server.client_of(ACCOUNT, &groups);
    network::definitions(&own, &selection.definitions(), true)
        .await
        .unwrap();
    let running = controllers::start(
        own.clone(),
        Metrics::new(),
        &selection,
        &Fetcher::default(),
        &Helming::default(),
    );
    apply(&admin, &documents(PROVIDERS)).await;
    let core = installed(&admin, "capi-system", "CoreProvider", "cluster-api").await;
    installed(&admin, "tender-system", "InfrastructureProvider", "tender").await;
    let roles = api(&admin, "rbac.authorization.k8s.io/v1", "ClusterRole", "");
    assert!(roles.get_opt("tender-manager").await.unwrap().is_some());
    // A core provider installs the kinds of Cluster API.
    let definitions = api(&admin, "apiextensions.k8s.io/v1", "CustomResourceDefinition", "");
    assert!(
        definitions
            .get_opt("clusters.cluster.x-k8s.io")
            .await
            .unwrap()
            .is_none()
    );

    // A newer file with another image changes only the operator's own Deployment.
    let deployment = file.iter_mut().find(|object| object["kind"] == "Deployment").unwrap();
    deployment["spec"]["template"]["spec"]["containers"][0]["image"] = json!("mirror.example.org/windlass:v0.2.0");
    let stored = apply(&admin, &file).await;
    let image = &stored.last().unwrap().data["spec"]["template"]["spec"]["containers"][0]["image"];
    assert_eq!(image, "mirror.example.org/windlass:v0.2.0");
    let after = installed(&admin, "capi-system", "CoreProvider", "cluster-api").await;
    assert_eq!(after.metadata.uid, core.metadata.uid);
    running.shutdown().await;
    server.stop().await;
}

/// Deletes like `kubectl delete`, and waits until the objects are gone.
async fn deleted(client: &kube::Client, objects: &[Value]) {
    for object in objects.iter().rev() {
        let meta = &object["metadata"];
        let (version, kind, name) = (text(&object["apiVersion"]), text(&object["kind"]), text(&meta["name"]));
        let api = api(client, version, kind, text(&meta["namespace"]));
        api.delete(name, &DeleteParams::default()).await.unwrap();
        gone(api, kind, name).await;
    }
}

async fn gone(api: Api<DynamicObject>, kind: &str, name: &str) {
    let left = wait::until(api.clone(), Some(name), <[DynamicObject]>::is_empty).await;
    if left.is_none() {
        let is = api.get_opt(name).await.unwrap();
        panic!("{kind} {name} never goes: {is:#?}");
    }
}

// OP-233
#[tokio::test]
async fn the_operator_can_be_taken_away_and_nothing_that_it_installed_notices() {
    const API: &str = "operator.cluster.x-k8s.io/v1alpha2";
    let server = Server::start().await;
    let admin = server.client("admin");
    let file = documents(OPERATOR);
    let selection = chosen(&file);
    let begun = async || {
        apply(&admin, &file).await;
        let own = server.client_of(ACCOUNT, &["system:serviceaccounts", "system:authenticated"]);
        network::definitions(&own, &selection.definitions(), true)
            .await
            .unwrap();
        controllers::start(
            own,
            Metrics::new(),
            &selection,
            &Fetcher::default(),
            &Helming::default(),
        )
    };
    let running = begun().await;
    apply(&admin, &documents(PROVIDERS)).await;
    installed(&admin, "capi-system", "CoreProvider", "cluster-api").await;
    installed(&admin, "tender-system", "InfrastructureProvider", "tender").await;

    // The operator is deleted with all objects of its file, before its providers.
    running.shutdown().await;
    deleted(&admin, &file).await;
    assert!(!may(&admin, ACCOUNT, "get", "secrets", "any").await);
    let deployments = api(&admin, "apps/v1", "Deployment", "tender-system");
    let runs = deployments.get("tender-controller-manager").await.unwrap();
    assert!(runs.metadata.deletion_timestamp.is_none());

    // A declaration that is deleted meanwhile waits for an operator; its provider keeps running.
    let declared = api(&admin, API, "InfrastructureProvider", "tender-system");
    declared.delete("tender", &DeleteParams::default()).await.unwrap();
    let waits = declared.get("tender").await.unwrap();
    assert!(waits.metadata.deletion_timestamp.is_some());
    assert!(
        deployments
            .get_opt("tender-controller-manager")
            .await
            .unwrap()
            .is_some()
    );

    // The next operator completes it, and is deleted after its last provider. Only its definitions and those of the providers
    // stay.
    let running = begun().await;
    gone(declared, "InfrastructureProvider", "tender").await;
    assert!(
        deployments
            .get_opt("tender-controller-manager")
            .await
            .unwrap()
            .is_none()
    );
    let core = api(&admin, API, "CoreProvider", "capi-system");
    core.delete("cluster-api", &DeleteParams::default()).await.unwrap();
    gone(core, "CoreProvider", "cluster-api").await;
    running.shutdown().await;
    deleted(&admin, &file).await;
    let definitions = api(&admin, "apiextensions.k8s.io/v1", "CustomResourceDefinition", "");
    let names: Vec<String> = definitions
        .list(&ListParams::default())
        .await
        .unwrap()
        .items
        .iter()
        .map(ResourceExt::name_any)
        .collect();
    assert!(
        names.contains(&"coreproviders.operator.cluster.x-k8s.io".to_owned()),
        "{names:?}"
    );
    let roles = api(&admin, "rbac.authorization.k8s.io/v1", "ClusterRole", "");
    for role in ["tender-manager", "windlass-operator"] {
        assert!(roles.get_opt(role).await.unwrap().is_none(), "{role}");
    }
    server.stop().await;
}

// OP-167
#[test]
fn the_image_stands_in_one_place_and_nothing_else_is_fetched_to_start() {
    let images = OPERATOR.lines().filter(|line| line.trim_start().starts_with("image:"));
    assert_eq!(images.count(), 1);
    assert_eq!(OPERATOR.matches("://").count(), 0, "no address of anything else");
}

// OP-220
#[tokio::test]
async fn a_role_of_one_namespace_is_for_the_providers_of_that_namespace() {
    let server = Server::start().await;
    let admin = server.client("admin");
    let rbac = "rbac.authorization.k8s.io/v1";
    let mut objects: Vec<Value> = ["a", "b"]
        .map(|name| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
        .into();
    let groups = ["operator.cluster.x-k8s.io", "management.cluster.x-k8s.io"];
    objects.push(json!({
        "apiVersion": rbac, "kind": "Role", "metadata": {"name": "providers", "namespace": "a"},
        "rules": [{"apiGroups": groups, "resources": ["*"], "verbs": ["get", "list", "watch", "create", "update", "patch", "delete"]}],
    }));
    objects.push(json!({
        "apiVersion": rbac, "kind": "RoleBinding", "metadata": {"name": "providers", "namespace": "a"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "providers"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "team-a"}],
    }));
    apply(&admin, &objects).await;
    for group in groups {
        let kind = format!("infrastructureproviders.{group}");
        for verb in ["create", "patch", "delete"] {
            assert!(may(&admin, "team-a", verb, &kind, "a").await, "{verb} {kind}");
            assert!(!may(&admin, "team-a", verb, &kind, "b").await, "{verb} {kind}");
        }
    }
    server.stop().await;
}
