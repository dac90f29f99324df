//! What must not happen to Clusters that wait for their wave.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use windlass_controller_runtime::{Metrics, transport};
use windlass_testkit::faults::{Fault, Faults};

use super::fleet::{Fleet, NEWER, member, rollout};
use crate::env::{Env, VSPHERE, condition, documents};

async fn topology_says(fleet: &Fleet, cluster: &str, part: &str) -> Value {
    let said = async || {
        let cluster = fleet.env.get("Cluster", cluster).await?;
        let condition = condition(&cluster, "TopologyReconciled")?;
        condition["message"].as_str()?.contains(part).then_some(condition)
    };
    fleet.env.wait(part, said).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revision_that_is_lost_moves_no_cluster_before_its_wave() {
    let fleet = Fleet::start(&["a", "b"]).await;
    fleet.env.apply(rollout(&json!({"paused": true}))).await;
    let first = fleet.up_to_date().await;
    fleet.class_labels(NEWER).await;
    fleet.newest_is_not(&first).await;
    fleet.env.delete("ClusterClassRevision", &first).await;
    for cluster in ["a", "b"] {
        let said = topology_says(&fleet, cluster, "nothing of the Cluster is changed").await;
        assert_eq!(said["reason"], "ReconcileFailed");
    }
    fleet.env.quiet().await;
    assert!(!fleet.is_changed("a").await && !fleet.is_changed("b").await);
    fleet.says("Progressing", "Paused", "").await;
    // Their waves bring them the newest one.
    fleet
        .env
        .merge("ClusterClassRollout", "mixed", json!({"spec": {"paused": false}}))
        .await;
    let status = fleet.in_wave(2, "others").await;
    assert_eq!(status["wave"]["clusters"], json!(["bar/b"]));
    fleet.up_to_date().await;
    assert!(fleet.is_changed("a").await && fleet.is_changed("b").await);
    fleet.env.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn values_for_variables_of_a_newer_class_stay() {
    let fleet = Fleet::start(&["a"]).await;
    let text = |default: Option<&str>| {
        let mut schema = json!({"type": "string"});
        if let Some(default) = default {
            schema["default"] = default.into();
        }
        json!({"openAPIV3Schema": schema})
    };
    let variables = |list: Value| json!({"spec": {"variables": list}});
    let old = json!([{"name": "v", "required": false, "schema": text(Some("x"))}]);
    fleet.env.merge("ClusterClass", "mixed", variables(old)).await;
    fleet.env.apply(rollout(&json!({"paused": true}))).await;
    let first = fleet.up_to_date().await;
    let new = json!([
        {"name": "v", "required": false, "schema": text(None)}, {"name": "fresh", "required": false, "schema": text(None)},
    ]);
    fleet.env.merge("ClusterClass", "mixed", variables(new)).await;
    fleet.newest_is_not(&first).await;
    let values = json!([{"name": "fresh", "value": "precious"}]);
    let topology = json!({"variables": values, "controlPlane": {"replicas": 5}});
    fleet
        .env
        .merge("Cluster", "a", json!({"spec": {"topology": topology}}))
        .await;
    fleet.has_five("a").await;
    fleet.env.quiet().await;
    let cluster = fleet.env.get("Cluster", "a").await.unwrap();
    assert_eq!(cluster["spec"]["topology"]["variables"], values);
    fleet.env.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_moves_to_another_class_leaves_its_revision() {
    let fleet = Fleet::start(&["a", "b"]).await;
    let mut other = fleet.env.get("ClusterClass", "mixed").await.unwrap();
    other["metadata"] = json!({"name": "other", "namespace": "bar"});
    other.as_object_mut().unwrap().remove("status");
    fleet.env.apply(other).await;
    let reconciled = async || {
        let class = fleet.env.get("ClusterClass", "other").await?;
        (class["status"]["observedGeneration"] == class["metadata"]["generation"]).then_some(())
    };
    fleet.env.wait("the other class", reconciled).await;
    fleet.env.apply(rollout(&json!({}))).await;
    fleet.up_to_date().await;
    let class = json!({"spec": {"topology": {"classRef": {"name": "other"}}}});
    fleet.env.merge("Cluster", "a", class).await;
    let left = async || {
        let cluster = fleet.env.get("Cluster", "a").await?;
        (!cluster["metadata"]["annotations"].to_string().contains("windlass.dev")).then_some(())
    };
    fleet.env.wait("no revision", left).await;
    // What becomes of the class that it had is no matter of it.
    fleet.class_labels(NEWER).await;
    let status = fleet.until_complete(1).await;
    assert_eq!(status["progress"], "1/1");
    fleet.scale_to_five("a").await;
    assert!(fleet.is_changed("b").await && !fleet.is_changed("a").await);
    fleet.env.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_needs_the_newer_class_gets_it() {
    let fleet = Fleet::start(&["a", "b"]).await;
    fleet.env.apply(rollout(&json!({"paused": true}))).await;
    let first = fleet.up_to_date().await;
    let class = fleet.env.get("ClusterClass", "mixed").await.unwrap();
    let mut workers = class["spec"]["workers"]["machineDeployments"]
        .as_array()
        .unwrap()
        .clone();
    let mut gpu = workers
        .iter()
        .find(|worker| worker["class"] == "linux-worker")
        .unwrap()
        .clone();
    gpu["class"] = "gpu".into();
    workers.push(gpu);
    let workers = json!({"spec": {"workers": {"machineDeployments": workers}}});
    fleet.env.merge("ClusterClass", "mixed", workers).await;
    fleet.newest_is_not(&first).await;
    let sets = json!([
        {"class": "linux-worker", "name": "md", "replicas": 2}, {"class": "gpu", "name": "gpu", "replicas": 1},
    ]);
    let workers = json!({"spec": {"topology": {"workers": {"machineDeployments": sets}}}});
    fleet.env.merge("Cluster", "a", workers).await;
    topology_says(&fleet, "a", &format!("(revision {first})")).await;
    fleet
        .env
        .merge("ClusterClassRollout", "mixed", json!({"spec": {"paused": false}}))
        .await;
    fleet.up_to_date().await;
    assert_eq!(fleet.env.of_entry("MachineDeployment", "gpu").await.len(), 1);
    fleet.env.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_for_ever_says_why() {
    let mut fleet = Fleet::start(&["a", "b"]).await;
    fleet.env.apply(rollout(&json!({}))).await;
    let first = fleet.up_to_date().await;
    fleet.broken.insert("a".to_owned());
    fleet.class_labels(NEWER).await;
    fleet.in_wave(1, "others").await;
    let status = fleet.object().await["status"].clone();
    let abort = json!({"spec": {"abort": {"revision": status["updateRevision"]}}});
    fleet.env.merge("ClusterClassRollout", "mixed", abort).await;
    fleet.says("Progressing", "Aborted", "").await;
    fleet.env.delete("ClusterClassRollout", "mixed").await;
    fleet
        .says(
            "Progressing",
            "Aborted",
            "is being deleted, and waits until all Clusters have revision",
        )
        .await;
    fleet.broken.clear();
    let back = json!({"spec": {"abort": {"released": "GoBack"}}});
    fleet.env.merge("ClusterClassRollout", "mixed", back).await;
    fleet.has("a", &first).await;
    fleet
        .env
        .merge("ClusterClassRollout", "mixed", json!({"spec": {"abort": null}}))
        .await;
    fleet.is_gone().await;
    assert!(fleet.is_changed("a").await && fleet.is_changed("b").await);
    fleet.env.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_cluster_names_the_rollout_that_does_nothing() {
    let fleet = Fleet::start(&["a"]).await;
    fleet.env.apply(rollout(&json!({}))).await;
    fleet.up_to_date().await;
    let paused = json!({"metadata": {"annotations": {"cluster.x-k8s.io/paused": ""}}});
    fleet.env.merge("ClusterClassRollout", "mixed", paused).await;
    let is_paused = async || {
        let condition = condition(&fleet.object().await, "Paused")?;
        (condition["status"] == "True").then_some(())
    };
    fleet.env.wait("a paused rollout", is_paused).await;
    fleet.create("n").await;
    let said = topology_says(
        &fleet,
        "n",
        "ClusterClassRollout bar/mixed has not given the Cluster a revision",
    )
    .await;
    let message = said["message"].as_str().unwrap();
    assert!(
        message.contains("it has the annotation cluster.x-k8s.io/paused"),
        "{message}"
    );
    fleet.env.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_is_refused_is_named_and_gets_its_revision_later() {
    let refuses = Arc::new(AtomicBool::new(false));
    let asked = refuses.clone();
    let faults = Faults::when(move |request| {
        let is_it = request.path.contains("/clusters/b?fieldManager=windlass-class-rollout");
        (is_it && asked.load(Ordering::SeqCst)).then_some(Fault::Refused(403))
    });
    let behind = faults.clone();
    let env = Env::start_behind(move |server| {
        transport::in_process(behind.wrap(server.service("topology")), &Metrics::new())
    })
    .await;
    let fleet = Fleet::on(env, documents(VSPHERE), vec![member("a"), member("b")]).await;
    fleet.env.apply(rollout(&json!({"waveSize": 2}))).await;
    let first = fleet.up_to_date().await;
    refuses.store(true, Ordering::SeqCst);
    fleet.class_labels(NEWER).await;
    let status = fleet.says("Progressing", "WriteFailed", "b").await;
    assert_eq!(status["currentRevision"], first);
    let changed = async || fleet.is_changed("a").await.then_some(());
    fleet.env.wait("the newer class for the other one", changed).await;
    // Attempts that fail are no waves. The refused one is tried again when the other one is healthy.
    let tried = async || {
        fleet.play().await;
        (faults.injected().len() > 4).then_some(())
    };
    fleet.env.wait("more attempts", tried).await;
    refuses.store(false, Ordering::SeqCst);
    fleet.up_to_date().await;
    assert!(fleet.is_changed("b").await);
    let wave = fleet.object().await["status"]["wave"]["number"].as_i64().unwrap();
    assert!(wave <= 2, "{wave}");
    fleet.env.stop().await;
}
