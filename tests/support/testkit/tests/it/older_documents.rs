//! What `kubectl` shows of older API versions: the schemas that `kubectl explain` reads, and the columns of `kubectl get`.

use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams, PostParams};
use serde_json::{Value, json};
use windlass_testkit::{MANAGER, NAMESPACE, Server, wait};

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

async fn get(client: &kube::Client, path: &str, accept: &str) -> kube::Result<Value> {
    let request = http::Request::get(path).header("accept", accept);
    client.request(request.body(Vec::new()).unwrap()).await
}

/// Asks until there is an answer that serves: a real server follows definitions by a watch.
async fn until<T>(what: &str, f: impl AsyncFn() -> Option<T>) -> T {
    let waiting = async {
        let mut looks = wait::looks();
        loop {
            if let Some(found) = f().await {
                return found;
            }
            looks.tick().await;
        }
    };
    let in_time = tokio::time::timeout(wait::TIMEOUT, waiting).await;
    in_time.unwrap_or_else(|_| panic!("waited in vain for {what}"))
}

/// The schema of a kind among those of a document.
fn schema<'a>(schemas: &'a Value, kind: [&str; 3]) -> Option<&'a Value> {
    let [group, version, kind] = kind;
    let name = json!({"group": group, "version": version, "kind": kind});
    schemas.as_object()?.values().find(|schema| {
        let kinds = schema["x-kubernetes-group-version-kind"].as_array();
        kinds.is_some_and(|kinds| kinds.contains(&name))
    })
}

/// The schema of a field.
fn field<'a>(schema: &'a Value, path: &str) -> &'a Value {
    path.split('.').fold(schema, |schema, name| &schema["properties"][name])
}

#[tokio::test]
async fn schemas_of_older_versions_are_in_the_documents_that_kubectl_reads() {
    let server = Server::with_definitions().await;
    let client = server.client(MANAGER);
    let core = |version| ["cluster.x-k8s.io", version, "Cluster"];
    for (kind, has, has_not) in [
        (core("v1beta1"), "spec.topology.rolloutAfter", "spec.topology.classRef"),
        (core("v1beta2"), "spec.topology.classRef", "spec.topology.rolloutAfter"),
        (
            ["cluster.x-k8s.io", "v1beta1", "Machine"],
            "spec.nodeDrainTimeout",
            "spec.deletion",
        ),
        (
            ["controlplane.cluster.x-k8s.io", "v1beta1", "KubeadmControlPlane"],
            "spec.machineTemplate.nodeDrainTimeout",
            "spec.machineTemplate.spec",
        ),
        (
            ["runtime.cluster.x-k8s.io", "v1alpha1", "ExtensionConfig"],
            "spec.clientConfig.caBundle",
            "spec.clientConfig.deletion",
        ),
        (
            ["ipam.cluster.x-k8s.io", "v1alpha1", "IPAddress"],
            "spec.gateway",
            "spec.deletion",
        ),
    ] {
        let [group, version, _] = kind;
        // As `kubectl explain` does: the list of documents, the one of the version, the schema of the kind.
        let explained = until("the document of a version", async || {
            let documents = get(&client, "/openapi/v3", "application/json").await.ok()?;
            let place = documents["paths"][format!("apis/{group}/{version}")]["serverRelativeURL"].as_str()?;
            let document = get(&client, place, "application/json").await.ok()?;
            schema(&document["components"]["schemas"], kind).cloned()
        })
        .await;
        let merged = until("the merged document", async || {
            let document = get(&client, "/openapi/v2", "application/json").await.ok()?;
            schema(&document["definitions"], kind).cloned()
        })
        .await;
        for schema in [&explained, &merged] {
            for described in [schema, field(schema, has)] {
                let words = described["description"].as_str().unwrap_or_default();
                assert!(!words.is_empty(), "{kind:?} {has}: {described}");
            }
            assert!(field(schema, has)["type"].is_string(), "{kind:?} {has}");
            assert!(field(schema, has_not).is_null(), "{kind:?} {has_not}");
            assert!(field(schema, "metadata").is_object(), "{kind:?}");
        }
    }
}

#[tokio::test]
async fn tables_have_the_columns_of_their_version() {
    let server = Server::with_definitions().await;
    let client = server.client(MANAGER);
    let resource =
        |group: &str, version: &str, kind: &str| ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    let clusters: Api<DynamicObject> = Api::namespaced_with(
        client.clone(),
        NAMESPACE,
        &resource("cluster.x-k8s.io", "v1beta1", "Cluster"),
    );
    let cluster = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "metadata": {"name": "c", "namespace": NAMESPACE},
        "spec": {"topology": {"class": "a-class", "version": "v1.35.0"}},
    });
    let cluster: DynamicObject = serde_json::from_value(cluster).unwrap();
    until("a Cluster in v1beta1", async || {
        clusters.create(&PostParams::default(), &cluster).await.ok()
    })
    .await;

    let definitions: Api<DynamicObject> = Api::all_with(
        client.clone(),
        &resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
    );
    let mut older = 0;
    for definition in definitions.list(&ListParams::default()).await.unwrap() {
        let spec = &definition.data["spec"];
        let versions = spec["versions"].as_array().unwrap();
        if versions.len() < 2 || !spec["group"].as_str().unwrap().ends_with("cluster.x-k8s.io") {
            continue;
        }
        for version in versions {
            let name = version["name"].as_str().unwrap();
            let (group, plural) = (
                spec["group"].as_str().unwrap(),
                spec["names"]["plural"].as_str().unwrap(),
            );
            let columns = version["additionalPrinterColumns"].as_array().unwrap();
            let mut expect = vec!["Name"];
            expect.extend(columns.iter().filter_map(|one| one["name"].as_str()));
            let path = format!("/apis/{group}/{name}/{plural}");
            let table = until(&path, async || get(&client, &path, TABLE).await.ok()).await;
            let found = table["columnDefinitions"].as_array().unwrap();
            assert_eq!(
                found.iter().filter_map(|one| one["name"].as_str()).collect::<Vec<_>>(),
                expect,
                "{path}"
            );
            older += usize::from(name != "v1beta2");
            if path != "/apis/cluster.x-k8s.io/v1beta1/clusters" {
                continue;
            }
            let cells = table["rows"][0]["cells"].as_array().unwrap();
            let cell = |column: &str| &cells[expect.iter().position(|name| *name == column).unwrap()];
            assert_eq!(
                ["Name", "ClusterClass", "Version"].map(cell),
                ["c", "a-class", "v1.35.0"]
            );
            assert_eq!(expect.len(), 5, "v1beta1 has its own columns: {expect:?}");
        }
    }
    assert!(older >= 20, "{older} older versions");
}
