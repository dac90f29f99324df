//! What a rollout says of settings without an effect, of a paused class, of edited revisions and of its end.

use serde_json::{Value, json};

use super::fleet::{Fleet, NEWER, rollout};
use crate::env::condition;

/// The messages of events of the rollout with this reason.
async fn events(fleet: &Fleet, reason: &str) -> Vec<String> {
    let all = fleet.env.list("Event").await;
    let is_it = |event: &&Value| {
        let about = event.get("regarding").unwrap_or(&event["involvedObject"]);
        event["reason"] == reason && about["kind"] == "ClusterClassRollout"
    };
    let message = |event: &Value| {
        event
            .get("note")
            .unwrap_or(&event["message"])
            .as_str()
            .map(str::to_owned)
    };
    all.iter().filter(is_it).filter_map(message).collect()
}

async fn event(fleet: &Fleet, reason: &str, part: &str) {
    let told = async || {
        let found = events(fleet, reason).await;
        found.iter().any(|message| message.contains(part)).then_some(())
    };
    fleet.env.wait(&format!("an event {reason} with {part}"), told).await;
}

async fn topology_says(fleet: &Fleet, cluster: &str, part: &str) {
    let said = async || {
        let cluster = fleet.env.get("Cluster", cluster).await?;
        let condition = condition(&cluster, "TopologyReconciled")?;
        condition["message"].as_str()?.contains(part).then_some(())
    };
    fleet.env.wait(part, said).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_abort_without_an_effect_says_why() {
    let fleet = Fleet::start(&["a"]).await;
    fleet.env.apply(rollout(&json!({}))).await;
    let first = fleet.up_to_date().await;
    let abort = |revision: &str| json!({"spec": {"abort": {"revision": revision}}});
    let merge = async |patch: Value| fleet.env.merge("ClusterClassRollout", "mixed", patch).await;
    merge(abort("mixed-0123456789")).await;
    let part = "spec.abort has no effect: it names revision mixed-0123456789";
    fleet.says("Progressing", "Complete", part).await;
    event(&fleet, "AbortHasNoEffect", part).await;
    // All Clusters have it, and none is known before it.
    merge(abort(&first)).await;
    fleet.says("Progressing", "Complete", "none is known before it").await;
    merge(json!({"spec": {"abort": null}})).await;
    let silent = async || {
        let condition = condition(&fleet.object().await, "Progressing")?;
        (condition["message"] == "").then_some(())
    };
    fleet.env.wait("no message", silent).await;
    fleet.env.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_class_makes_no_revision_and_begins_no_wave() {
    let fleet = Fleet::start(&["a", "b"]).await;
    let paused = |value: Value| json!({"metadata": {"annotations": {"cluster.x-k8s.io/paused": value}}});
    let pause = async |value: Value| fleet.env.merge("ClusterClass", "mixed", paused(value)).await;
    // Also before there is any revision.
    pause("".into()).await;
    fleet.env.apply(rollout(&json!({}))).await;
    let why = "ClusterClass bar/mixed has the annotation cluster.x-k8s.io/paused";
    fleet.says("Progressing", "Paused", why).await;
    assert!(fleet.env.list("ClusterClassRevision").await.is_empty());
    pause(Value::Null).await;
    let first = fleet.up_to_date().await;
    pause("".into()).await;
    // A template is changed in place, and the class.
    let template = json!({"spec": {"template": {"spec": {"numCPUs": 6}}}});
    fleet
        .env
        .merge("VSphereMachineTemplate", super::MACHINES, template)
        .await;
    fleet.says("Progressing", "Paused", why).await;
    fleet.class_labels(NEWER).await;
    fleet.env.quiet().await;
    fleet.says("UpToDate", "NotAllUpdated", why).await;
    fleet.revisions_are(&[&first]).await;
    // It is not let go either: its Clusters would get the class as it is now.
    fleet.env.delete("ClusterClassRollout", "mixed").await;
    fleet.says("Progressing", "Paused", "is being deleted, and waits").await;
    assert!(!fleet.is_changed("a").await && !fleet.is_changed("b").await);
    assert_eq!(fleet.templates_with(6).await, 0);
    pause(Value::Null).await;
    fleet.is_gone().await;
    assert!(fleet.is_changed("a").await && fleet.is_changed("b").await);
    fleet.env.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revision_with_other_contents_than_its_name_stands_for_is_not_used() {
    let fleet = Fleet::start(&["a"]).await;
    fleet.env.apply(rollout(&json!({"paused": true}))).await;
    let first = fleet.up_to_date().await;
    // The spec is immutable, but an object can be replaced by another one of its name.
    let edit = async |revision: &str| {
        let mut object = fleet.env.get("ClusterClassRevision", revision).await.unwrap();
        object["metadata"] = json!({"name": revision, "namespace": "bar"});
        object["spec"]["class"]["controlPlane"]["metadata"] = json!({"labels": {"of-class": NEWER}});
        fleet.env.delete("ClusterClassRevision", revision).await;
        fleet.env.create(&object, "Strict").await.unwrap();
    };
    fleet.class_labels("newest").await;
    fleet.newest_is_not(&first).await;
    edit(&first).await;
    let why = format!("ClusterClassRevision bar/{first} has other contents than its name stands for");
    topology_says(&fleet, "a", &why).await;
    fleet.says("Progressing", "Paused", &why).await;
    event(&fleet, "RevisionEdited", &why).await;
    fleet.env.quiet().await;
    assert!(!fleet.is_changed("a").await);
    // Its wave brings the Cluster the newest one.
    fleet
        .env
        .merge("ClusterClassRollout", "mixed", json!({"spec": {"paused": false}}))
        .await;
    let second = fleet.up_to_date().await;
    fleet.revisions_are(&[&second]).await;
    assert!(!fleet.is_changed("a").await);
    fleet.env.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_way_back_has_an_end_in_events() {
    let fleet = Fleet::start(&["a", "b"]).await;
    fleet.env.apply(rollout(&json!({"waveSize": 2}))).await;
    let first = fleet.up_to_date().await;
    fleet.class_labels(NEWER).await;
    let status = fleet.in_wave(1, "others").await;
    let second = status["updateRevision"].as_str().unwrap().to_owned();
    let abort = json!({"spec": {"abort": {"revision": second, "released": "GoBack"}}});
    fleet.env.merge("ClusterClassRollout", "mixed", abort).await;
    fleet
        .says(
            "Progressing",
            "Aborted",
            "all Clusters have the revision before it again",
        )
        .await;
    let end = format!("all Clusters have revision {first} again, which they had before {second}");
    event(&fleet, "WentBack", &end).await;
    // The same without an abort: the class is changed back.
    fleet
        .env
        .merge("ClusterClassRollout", "mixed", json!({"spec": {"abort": null}}))
        .await;
    fleet.in_wave(1, "others").await;
    let back = json!({"spec": {"controlPlane": {"metadata": null}}});
    fleet.env.merge("ClusterClass", "mixed", back).await;
    let done = async || {
        fleet.play().await;
        let status = fleet.object().await["status"].clone();
        let is_complete = condition(&json!({"status": status}), "Progressing")?["reason"] == "Complete";
        (is_complete && status["updateRevision"] == first.as_str()).then_some(())
    };
    fleet.env.wait("the way back", done).await;
    event(&fleet, "Complete", &format!("all Clusters have revision {first}")).await;
    assert_eq!(events(&fleet, "WentBack").await.len(), 1);
    fleet.env.stop().await;
}
