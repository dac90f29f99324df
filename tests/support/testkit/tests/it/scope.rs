//! Managers that share a management cluster: a namespace, a value of the label for watches, and what goes from Machines to Nodes.

use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use windlass_api::core::{Cluster, Machine};
use windlass_controller_runtime::{Metrics, Runtime};
use windlass_manager::registry::controllers::Ports;
use windlass_manager::{NodeSync, Running, Scope, controllers};
use windlass_meta::ObjectKey;
use windlass_testkit::wait::until;
use windlass_testkit::{CLASS, ClusterOf, Env, MANAGER, NAMESPACE, Objects, Server};

use crate::foreign_class::{namespace, put};
use crate::life::workload;
use crate::manager_role::{ACCOUNT, FILE, GROUPS, unprivileged};

const WATCH: &str = "cluster.x-k8s.io/watch-filter";
/// Another namespace than that of the manager.
const OTHER: &str = "elsewhere";

fn watches(value: &str) -> Scope {
    Scope {
        watch_filter: Some(value.to_owned()),
        ..Scope::default()
    }
}

fn reads(namespace: &str) -> Scope {
    Scope {
        namespace: Some(namespace.to_owned()),
        ..Scope::default()
    }
}

/// A Cluster with infrastructure alone, in a namespace and with labels.
fn bare(name: &str, namespace: &str, labels: &Value) -> [Value; 2] {
    let metadata = json!({"name": name, "namespace": namespace, "labels": labels});
    let infrastructure = "infrastructure.cluster.x-k8s.io";
    [
        json!({
            "apiVersion": format!("{infrastructure}/v1beta2"), "kind": "DevCluster", "metadata": metadata,
            "spec": {"backend": {"inMemory": {}}},
        }),
        json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": metadata,
            "spec": {"infrastructureRef": {"apiGroup": infrastructure, "kind": "DevCluster", "name": name}},
        }),
    ]
}

async fn provisioned(objects: &Objects, name: &str) -> Cluster {
    let key = ObjectKey::new(NAMESPACE, name);
    let has = |cluster: &Cluster| {
        let status = cluster.status.as_ref();
        let done = status.and_then(|status| status.initialization.as_ref());
        done.and_then(|done| done.infrastructure_provisioned) == Some(true)
    };
    objects.wait_for(&key, "provisioned infrastructure", has).await
}

/// Whether a controller has touched an object.
fn is_touched(object: &DynamicObject) -> bool {
    let metadata = &object.metadata;
    !object.data["status"].is_null() || metadata.finalizers.is_some() || metadata.owner_references.is_some()
}

async fn labelled(env: &Env, name: &str, value: &Value) {
    for kind in ["DevCluster", "Cluster"] {
        env.merge(kind, name, &json!({"metadata": {"labels": {WATCH: value}}}))
            .await;
    }
}

#[tokio::test]
async fn only_objects_with_the_label_of_the_watch_filter_are_reconciled() {
    let env = Env::builder().scope(watches("east")).start().await;
    let others = [("none", json!({})), ("west", json!({WATCH: "west"}))];
    for (name, labels) in &others {
        for object in bare(name, NAMESPACE, labels) {
            env.apply(&object).await;
        }
    }
    for object in bare("east", NAMESPACE, &json!({WATCH: "east"})) {
        env.apply(&object).await;
    }
    provisioned(&env, "east").await;
    env.rest().await;
    for (name, _) in &others {
        for kind in ["Cluster", "DevCluster"] {
            let object = env.dynamic(kind).get(name).await.unwrap();
            assert!(!is_touched(&object), "{kind} {name} is of another manager: {object:#?}");
        }
    }

    // Objects come to this manager with the label.
    labelled(&env, "none", &json!("east")).await;
    provisioned(&env, "none").await;
    // And leave it with the label: what is deleted now waits for another manager.
    env.rest().await;
    labelled(&env, "east", &json!("west")).await;
    env.rest().await;
    env.delete("Cluster", "east").await;
    env.delete("Cluster", "none").await;
    env.wait_gone("none").await;
    env.rest().await;
    let left = env.dynamic("Cluster").get("east").await.unwrap();
    assert!(left.metadata.deletion_timestamp.is_some() && left.metadata.finalizers.is_some());
    assert!(env.dynamic("DevCluster").get("east").await.is_ok());
    labelled(&env, "east", &json!("east")).await;
    env.wait_gone("east").await;
    env.stop().await;
}

// As docs/leader-election.md says where the label has to be.
#[tokio::test]
async fn a_cluster_of_a_class_lives_within_a_watch_filter() {
    let env = Env::builder().scope(watches("east")).start().await;
    let label = json!({WATCH: "east"});
    for mut object in serde_saphyr::from_multiple::<Value>(CLASS).unwrap() {
        if object["kind"] == "ClusterClass" {
            object["metadata"]["labels"] = label.clone();
        } else {
            object["spec"]["template"]["metadata"]["labels"] = label.clone();
        }
        env.apply(&object).await;
    }
    let cluster = ClusterOf::new("small", 1, 1);
    let mut object = cluster.object();
    object["metadata"]["labels"] = label.clone();
    let topology = &mut object["spec"]["topology"];
    topology["controlPlane"]["metadata"]["labels"] = label.clone();
    topology["workers"]["machineDeployments"][0]["metadata"]["labels"] = label;
    env.apply(&object).await;
    cluster.wait_running(&env).await;
    env.delete("Cluster", "small").await;
    env.wait_gone("small").await;
    env.stop().await;
}

/// A manager for one namespace whose account has the rights of `config/manager-role.yaml` in this namespace only, and reads definitions.
async fn confined(server: &Server, admin: &Objects) -> Running {
    for mut object in serde_saphyr::from_multiple::<Value>(FILE).unwrap() {
        if object["kind"] == "ClusterRoleBinding" {
            object["kind"] = json!("RoleBinding");
            object["metadata"]["namespace"] = json!(NAMESPACE);
        }
        put(admin, &object).await;
    }
    let rbac = "rbac.authorization.k8s.io";
    let verbs = ["get", "list", "watch"];
    put(
        admin,
        &json!({
            "apiVersion": format!("{rbac}/v1"), "kind": "ClusterRole", "metadata": {"name": "reads-what-has-no-namespace"},
            "rules": [
                {"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "verbs": verbs},
                {"apiGroups": ["runtime.cluster.x-k8s.io"], "resources": ["extensionconfigs"], "verbs": verbs},
            ],
        }),
    )
    .await;
    put(
        admin,
        &json!({
            "apiVersion": format!("{rbac}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": "reads-what-has-no-namespace"},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "reads-what-has-no-namespace"},
            "subjects": [{"kind": "ServiceAccount", "name": "windlass-manager", "namespace": "windlass-system"}],
        }),
    )
    .await;
    let kit = Runtime::builder(server.client_of(ACCOUNT, &GROUPS))
        .metrics(Metrics::new())
        .scope(reads(NAMESPACE))
        .build();
    controllers::start_with(kit, &unprivileged(), |cx| Ports::new(cx, windlass_testkit::keys()))
}

// CL-035: Clusters and DevClusters are in namespaces, each with a status of its own.
#[tokio::test]
async fn a_manager_of_a_namespace_needs_no_rights_elsewhere() {
    let server = Server::with_definitions().await;
    let objects = Objects::new(server.client(MANAGER));
    namespace(&objects, OTHER).await;
    for object in bare("foreign", OTHER, &json!({})) {
        put(&objects, &object).await;
    }
    let running = confined(&server, &objects).await;
    objects.apply_yaml(CLASS).await;
    let cluster = ClusterOf::new("small", 1, 1);
    cluster.apply(&objects).await;
    cluster.wait_running(&objects).await;
    for kind in ["Cluster", "DevCluster"] {
        let object = objects.dynamic_in(kind, OTHER).get("foreign").await.unwrap();
        assert!(!is_touched(&object), "{kind} of another namespace: {object:#?}");
    }
    objects.delete("Cluster", "small").await;
    objects.wait_gone("small").await;
    running.shutdown().await;
    server.stop().await;
}

#[tokio::test]
async fn a_class_that_this_manager_does_not_read_is_unknown_and_not_gone() {
    let env = Env::builder().scope(reads(NAMESPACE)).start().await;
    namespace(&env, OTHER).await;
    let mut cluster = ClusterOf::new("far", 1, 1).object();
    cluster["spec"]["topology"]["classRef"]["namespace"] = json!(OTHER);
    env.apply(&cluster).await;
    let key = ObjectKey::new(NAMESPACE, "far");
    let says = |cluster: &Cluster| {
        let conditions = cluster.status.iter().flat_map(|status| &status.conditions);
        let mut ours = conditions.filter(|one| one.type_ == "TopologyReconciled" && one.status == "False");
        ours.any(|one| one.message.contains("--namespace") && one.message.contains(OTHER))
    };
    env.wait_for(&key, "which class is not read", says).await;
    env.delete("Cluster", "far").await;
    env.wait_gone("far").await;
    env.stop().await;
}

/// The Node of the only worker, once its label of Cluster API's tracker is this, and its labels and annotations.
async fn node(nodes: &Api<Node>, what: &str, is_right: impl Fn(&Node) -> bool + Send) -> Node {
    let workers = |all: &[Node]| all.iter().find(|node| is_right(node)).cloned();
    let found = until(nodes.clone(), None, |all: &[Node]| workers(all).is_some()).await;
    assert!(
        found.is_some(),
        "no Node {what}: {:#?}",
        nodes.list(&kube::api::ListParams::default()).await
    );
    let all = nodes.list(&kube::api::ListParams::default()).await.unwrap();
    workers(&all.items).expect("it was there")
}

#[tokio::test]
async fn labels_and_annotations_that_options_select_reach_nodes() {
    let nodes = NodeSync {
        labels: vec![r"^team\.example\.com/".parse().unwrap()],
        annotations: vec!["^note$".parse().unwrap()],
        ..NodeSync::default()
    };
    let env = Env::builder().nodes(nodes).start().await;
    env.apply_yaml(CLASS).await;
    let cluster = ClusterOf::new("synced", 1, 1);
    cluster.apply(&env).await;
    cluster.wait_running(&env).await;
    let nodes: Api<Node> = Api::all(workload(&env, &cluster).await);
    let machines = env.list::<Machine>().await;
    let worker = cluster.machines(&machines, false)[0].metadata.name.clone().unwrap();
    let patch = json!({"metadata": {
        "labels": {"team.example.com/name": "blue", "team.example.org/name": "red"},
        "annotations": {"note": "kept", "notes": "not"},
    }});
    env.merge("Machine", &worker, &patch).await;
    let has = |node: &Node, key: &str| node.metadata.labels.iter().flatten().any(|(name, _)| name == key);
    let synced = node(&nodes, "has the label", |node| has(node, "team.example.com/name")).await;
    let name = synced.metadata.name.clone().unwrap();
    let annotations = synced.metadata.annotations.clone().unwrap_or_default();
    assert_eq!(annotations.get("note").map(String::as_str), Some("kept"));
    assert!(!annotations.contains_key("notes") && !has(&synced, "team.example.org/name"));
    assert_eq!(
        annotations["cluster.x-k8s.io/labels-from-machine"],
        "team.example.com/name"
    );
    assert_eq!(annotations["cluster.x-k8s.io/annotations-from-machine"], "note");

    // A label of a user on the Node stays, and what leaves the Machine leaves the Node.
    let foreign = json!({"metadata": {"labels": {"team.example.com/of-a-user": "green"}}});
    nodes
        .patch(&name, &PatchParams::default(), &Patch::Merge(&foreign))
        .await
        .unwrap();
    let patch = json!({"metadata": {"labels": {"team.example.com/name": null}, "annotations": {"note": null}}});
    env.merge("Machine", &worker, &patch).await;
    let left = node(&nodes, "lost the label", |node| {
        node.metadata.name.as_deref() == Some(name.as_str()) && !has(node, "team.example.com/name")
    })
    .await;
    assert!(has(&left, "team.example.com/of-a-user"));
    assert!(!left.metadata.annotations.unwrap_or_default().contains_key("note"));
    env.stop().await;
}
