//! `config/manager-role.yaml`: the rights of the manager suffice for the life of a cluster, and providers add theirs.

use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use windlass_api::addons::ClusterResourceSet;
use windlass_api::addons::conditions::RESOURCES_APPLIED;
use windlass_api::core::Cluster;
use windlass_api::ipam::IPAddress;
use windlass_api::kind::Conditioned;
use windlass_controller_runtime::Metrics;
use windlass_manager::registry::controllers::CONTROLLERS;
use windlass_manager::{Fetcher, Helming, Running, Selection, controllers};
use windlass_meta::ObjectKey;
use windlass_testkit::{CLASS, ClusterOf, MANAGER, NAMESPACE, Objects, Server};

use crate::ip_pools::{claim, pool};

pub(crate) const FILE: &str = include_str!("../../../../../config/manager-role.yaml");
pub(crate) const ACCOUNT: &str = "system:serviceaccount:windlass-system:windlass-manager";
/// A resource of a set for all Clusters with a topology.
const RESOURCE: &str = r#"
apiVersion: v1
kind: Secret
metadata: {name: resource, namespace: default}
type: addons.cluster.x-k8s.io/resource-set
stringData: {account: "{apiVersion: v1, kind: ServiceAccount, metadata: {name: of-set}}"}
"#;
const RESOURCE_SET: &str = r"
apiVersion: addons.cluster.x-k8s.io/v1beta2
kind: ClusterResourceSet
metadata: {name: accounts, namespace: default}
spec:
  clusterSelector: {matchExpressions: [{key: topology.cluster.x-k8s.io/owned, operator: Exists}]}
  resources: [{kind: Secret, name: resource}]
";
const GROUP: &str = "infrastructure.acme.example.com";

/// The groups of the file's service account.
pub(crate) const GROUPS: [&str; 3] = [
    "system:serviceaccounts",
    "system:serviceaccounts:windlass-system",
    "system:authenticated",
];

/// All controllers but those of the provider operator, whose rights are in another file.
pub(crate) fn unprivileged() -> Selection {
    let names = CONTROLLERS.iter().map(|info| info.name);
    let names: Vec<&str> = names
        .filter(|name| !name.starts_with("operator/") && !name.starts_with("management/"))
        .collect();
    Selection::of(&names).unwrap()
}

/// These controllers, with the file's service account.
fn run(server: &Server) -> Running {
    controllers::start(
        server.client_of(ACCOUNT, &GROUPS),
        Metrics::new(),
        &unprivileged(),
        &Fetcher::default(),
        &Helming::default(),
    )
}

fn resource(api_version: &str, kind: &str) -> ApiResource {
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
}

async fn apply(client: &kube::Client, object: &Value) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let resource = resource(&text(&object["apiVersion"]), &text(&object["kind"]));
    let api: Api<DynamicObject> = match object["metadata"]["namespace"].as_str() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let parameters = PatchParams::apply("admin");
    let name = text(&object["metadata"]["name"]);
    let sent = api.patch(&name, &parameters, &Patch::Apply(object)).await;
    sent.unwrap_or_else(|error| panic!("cannot apply {object}: {error}"));
}

/// A kind of a provider in a group of its own.
fn definition() -> Value {
    let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("acmeclusters.{GROUP}"), "labels": {"cluster.x-k8s.io/v1beta2": "v1"}},
        "spec": {
            "group": GROUP, "scope": "Namespaced",
            "names": {"kind": "AcmeCluster", "listKind": "AcmeClusterList", "plural": "acmeclusters", "singular": "acmecluster"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": anything, "status": anything}}},
            }],
        },
    })
}

// CL-067, CL-068: who writes a Cluster.
fn check_writers(cluster: &Cluster) {
    for entry in cluster.metadata.managed_fields.iter().flatten() {
        let manager = entry.manager.as_deref().unwrap_or_default();
        let status = ["capi-cluster-status", "capi-topology-status"];
        let is_known = if entry.subresource.as_deref() == Some("status") {
            status.contains(&manager)
        } else {
            ["capi-manager", MANAGER].contains(&manager)
        };
        assert!(is_known, "{manager} has written a Cluster: {entry:#?}");
    }
}

// CL-067, CL-068, CL-085: who writes a Cluster and its status.
#[tokio::test]
async fn the_rights_of_the_file_suffice_for_the_life_of_a_cluster() {
    let server = Server::with_definitions().await;
    let admin = server.client(MANAGER);
    for object in serde_saphyr::from_multiple::<Value>(FILE).unwrap() {
        apply(&admin, &object).await;
    }
    let objects = Objects::new(admin.clone());
    let running = run(&server);
    objects.apply_yaml(CLASS).await;
    let secret: Value = serde_saphyr::from_str(RESOURCE).unwrap();
    apply(&admin, &secret).await;
    objects.apply_yaml(RESOURCE_SET).await;
    let cluster = ClusterOf::new("small", 1, 1);
    cluster.apply(&objects).await;
    check_writers(&cluster.wait_running(&objects).await);
    let is_applied = |all: &[ClusterResourceSet]| {
        let mut conditions = all.iter().flat_map(Conditioned::conditions);
        conditions.any(|one| one.type_ == RESOURCES_APPLIED && one.status == "True")
    };
    objects.wait_all("resources on the Cluster", is_applied).await;
    running.kit().ready().expect("everything that is watched can be read");
    let mut claim = claim("address");
    claim["spec"]["clusterName"] = json!("small");
    for object in [pool("10.0.0.2"), claim] {
        apply(&admin, &object).await;
    }
    objects
        .wait_all("an address for the claim", |all: &[IPAddress]| all.len() == 1)
        .await;
    objects.delete("IPAddressClaim", "address").await;
    objects
        .wait_all("no address without its claim", |all: &[IPAddress]| all.is_empty())
        .await;
    objects.delete("Cluster", "small").await;
    objects.wait_gone("small").await;
    running.shutdown().await;
    server.stop().await;
}

// CL-081, CL-083: a provider whose group is not known in advance works once its ClusterRole is there.
#[tokio::test]
async fn a_provider_adds_the_rights_for_its_kinds() {
    let server = Server::with_definitions().await;
    let admin = server.client(MANAGER);
    for object in serde_saphyr::from_multiple::<Value>(FILE).unwrap() {
        apply(&admin, &object).await;
    }
    server.define(&[definition()]).await;
    let objects = Objects::new(admin.clone());
    let running = run(&server);
    let api: Api<DynamicObject> = Api::namespaced_with(
        admin.clone(),
        NAMESPACE,
        &resource(&format!("{GROUP}/v1"), "AcmeCluster"),
    );
    let infrastructure =
        json!({"apiVersion": format!("{GROUP}/v1"), "kind": "AcmeCluster", "metadata": {"name": "acme"}, "spec": {}});
    let infrastructure = serde_json::from_value(infrastructure).unwrap();
    api.create(&PostParams::default(), &infrastructure).await.unwrap();
    let key = ObjectKey::new(NAMESPACE, "acme");
    objects
        .apply(&json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "acme", "namespace": NAMESPACE},
            "spec": {"infrastructureRef": {"apiGroup": GROUP, "kind": "AcmeCluster", "name": "acme"}},
        }))
        .await;
    let says = |cluster: &Cluster, status: &str| {
        let conditions = cluster.status.iter().flat_map(|status| &status.conditions);
        let mut ours = conditions.filter(|one| one.type_ == "InfrastructureReady");
        ours.any(|one| one.status == status)
    };
    objects
        .wait_for::<Cluster>(&key, "without the right to read its infrastructure", |cluster| {
            says(cluster, "Unknown")
        })
        .await;
    assert_eq!(api.get("acme").await.unwrap().metadata.owner_references, None);

    apply(
        &admin,
        &json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": "acme-kinds", "labels": {"cluster.x-k8s.io/aggregate-to-manager": "true"}},
            "rules": [{"apiGroups": [GROUP], "resources": ["*"], "verbs": ["get", "list", "watch", "patch", "delete"]}],
        }),
    )
    .await;
    objects
        .wait_for::<Cluster>(&key, "that reads its infrastructure", |cluster| says(cluster, "False"))
        .await;
    let owners = api.get("acme").await.unwrap().metadata.owner_references;
    assert_eq!(owners.unwrap_or_default().len(), 1);
    objects.delete("Cluster", "acme").await;
    objects.wait_gone("acme").await;
    running.shutdown().await;
    server.stop().await;
}
