//! What rules look at beside the object that is written.

use std::collections::BTreeMap;

use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, PostParams};
use kube::core::Status;
use serde_json::{Value, json};
use windlass_admission::{Admission, Change, Operation, Read, Rule, Unread, Verdict, WRITES, view};
use windlass_testkit::define;

use crate::support::{Serving, World, until};

/// A Cluster needs its class. A class with Clusters cannot be deleted.
fn rules() -> Vec<Rule> {
    let cluster = |change: &Change<'_>| {
        let name = change.new["spec"]["topology"]["classRef"]["name"]
            .as_str()
            .unwrap_or_default();
        let kind = ("cluster.x-k8s.io", "ClusterClass");
        let class = view::object(change.view, kind, "default", name)?;
        let labels = BTreeMap::from([("for".to_owned(), name.to_owned())]);
        let others = view::labelled(change.view, ("infra.example.com", "TestCluster"), "default", labels)?;
        Ok::<_, Unread>(Verdict {
            forbidden: class.is_none().then(|| "there is no class".to_owned()),
            warnings: vec![format!("{} others", others.len())],
            ..Verdict::default()
        })
    };
    let class = |change: &Change<'_>| {
        let text = |name: &str| change.old["metadata"][name].as_str().unwrap_or_default().to_owned();
        let clusters = change.view.read(&Read::ClustersOf {
            namespace: text("namespace"),
            name: text("name"),
            exact: true,
        })?;
        let names: Vec<&str> = clusters
            .iter()
            .filter_map(|found| found["metadata"]["name"].as_str())
            .collect();
        Ok::<_, Unread>(Verdict {
            forbidden: (!names.is_empty()).then(|| format!("used by {}", names.join(", "))),
            ..Verdict::default()
        })
    };
    let rule = |kind: &'static str, resource: &'static str, admission: Admission| Rule {
        group: "cluster.x-k8s.io",
        version: "v1beta2",
        kind,
        resource,
        admission,
        decode: None,
        closed: Vec::new(),
    };
    vec![
        rule("Cluster", "clusters", Admission::checking(WRITES, cluster)),
        rule(
            "ClusterClass",
            "clusterclasses",
            Admission::checking(&[Operation::Delete], class),
        ),
    ]
}

fn definition(kind: &str, plural: &str) -> Value {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.cluster.x-k8s.io"), "annotations": {"api-approved.kubernetes.io": "unapproved"}},
        "spec": {
            "group": "cluster.x-k8s.io", "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase(), "listKind": format!("{kind}List")},
            "versions": [{"name": "v1beta2", "served": true, "storage": true, "schema": {"openAPIV3Schema": any}}],
        },
    })
}

/// An API server with both kinds.
async fn world() -> World {
    let world = World::start().await;
    define(
        &world.client,
        &[
            definition("Cluster", "clusters"),
            definition("ClusterClass", "clusterclasses"),
        ],
    )
    .await;
    world
}

fn api(client: &kube::Client, kind: &str, plural: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("cluster.x-k8s.io", "v1beta2", kind);
    Api::default_namespaced_with(client.clone(), &ApiResource::from_gvk_with_plural(&kind, plural))
}

fn object(kind: &str, name: &str) -> DynamicObject {
    let class = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": name}});
    serde_json::from_value(class).unwrap()
}

fn cluster(name: &str, class: &str) -> DynamicObject {
    let mut object = object("Cluster", name);
    object.data = json!({"spec": {"topology": {"classRef": {"name": class}}}});
    object
}

fn refused<T: std::fmt::Debug>(result: Result<T, kube::Error>) -> Box<Status> {
    match result {
        Err(kube::Error::Api(status)) => status,
        other => panic!("not refused: {other:?}"),
    }
}

// What was written a moment ago is seen, whether a cache has it yet or not.
#[tokio::test]
async fn what_the_caches_do_not_have_is_read_from_the_api_server() {
    let world = world().await;
    let serving = Serving {
        rules: rules(),
        ..Serving::new()
    };
    let webhooks = serving.start(world.client.clone()).await.unwrap();
    let (clusters, classes) = (
        api(&world.client, "Cluster", "clusters"),
        api(&world.client, "ClusterClass", "clusterclasses"),
    );
    let create = PostParams::default();
    until("the webhook is asked", async || {
        let dry = PostParams {
            dry_run: true,
            ..PostParams::default()
        };
        clusters.create(&dry, &cluster("a", "none")).await.is_err()
    })
    .await;
    let status = refused(clusters.create(&create, &cluster("a", "none")).await);
    assert!(
        status.code == 403 && status.message.ends_with("there is no class"),
        "{status:?}"
    );
    for number in 0..5 {
        let name = format!("class-{number}");
        classes.create(&create, &object("ClusterClass", &name)).await.unwrap();
        clusters.create(&create, &cluster(&name, &name)).await.unwrap();
        let status = refused(classes.delete(&name, &DeleteParams::default()).await);
        assert!(status.message.ends_with(&format!("used by {name}")), "{status:?}");
        clusters.delete(&name, &DeleteParams::default()).await.unwrap();
        classes.delete(&name, &DeleteParams::default()).await.unwrap();
    }
    webhooks.shutdown().await;
}

// A manager that may not read what a rule needs cannot tell: the write is refused, and may be tried again.
#[tokio::test]
async fn what_cannot_be_read_refuses_the_write_and_says_what_it_is() {
    let world = world().await;
    world.allow("manager", "", "secrets", &["*"]).await;
    for kind in ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"] {
        world
            .allow("manager", "admissionregistration.k8s.io", kind, &["*"])
            .await;
    }
    world
        .allow("manager", "apiextensions.k8s.io", "customresourcedefinitions", &["*"])
        .await;
    let serving = Serving {
        rules: rules(),
        ..Serving::new()
    };
    let webhooks = serving.start(world.user("manager")).await.unwrap();
    let clusters = api(&world.client, "Cluster", "clusters");
    let message = async || {
        let dry = PostParams {
            dry_run: true,
            ..PostParams::default()
        };
        let made = clusters.create(&dry, &cluster("a", "none")).await;
        made.err().map_or_else(String::new, |error| error.to_string())
    };
    until("it is refused", async || {
        let message = message().await;
        message.contains("ClusterClass default/none cannot be read, and the write depends on it")
            && message.contains("cannot get resource \"clusterclasses\"")
            && message.contains("try again")
    })
    .await;
    webhooks.shutdown().await;
}
