//! Changes of a class in waves.

mod fleet;
mod harms;
mod said;
mod two_hundred;

/// The template of a class's Machines.
const MACHINES: &str = "linux-vsphere-template";

use serde_json::json;

use crate::env::{assert_has, condition, name};
use fleet::{Fleet, NEWER, rollout};

#[tokio::test(flavor = "multi_thread")]
async fn a_change_goes_from_wave_to_wave_and_stops_at_a_failure() {
    let mut fleet = Fleet::start(&["z", "a", "b", "c", "d"]).await;
    fleet
        .env
        .merge("Cluster", "z", json!({"metadata": {"labels": {"tier": "canary"}}}))
        .await;
    let stages =
        |soak| json!([{"name": "canary", "selector": {"matchLabels": {"tier": "canary"}}, "soakSeconds": soak}]);
    fleet
        .env
        .apply(rollout(&json!({"waveSize": "50%", "stages": stages(3600)})))
        .await;
    let first = fleet.up_to_date().await;
    for cluster in ["a", "z"] {
        fleet.has(cluster, &first).await;
    }
    fleet.class_labels(NEWER).await;
    // The canary alone, until it is healthy.
    let status = fleet.in_wave(1, "canary").await;
    assert_has(
        &status,
        &json!({"clusters": 5, "progress": "1/5", "currentRevision": first, "wave": {"clusters": ["bar/z"]}}),
    );
    let second = status["updateRevision"].as_str().unwrap().to_owned();
    fleet.has("z", &second).await;
    assert!(fleet.is_changed("z").await && !fleet.is_changed("a").await);
    // A change of a Cluster that waits goes through, and brings no other one.
    fleet.scale_to_five("a").await;
    assert!(!fleet.is_changed("a").await);
    fleet
        .says("Progressing", "Soaking", "wave 1 is healthy and soaks until")
        .await;
    fleet.broken.insert("b".to_owned());
    fleet
        .env
        .merge("ClusterClassRollout", "mixed", json!({"spec": {"stages": stages(1)}}))
        .await;
    let status = fleet.in_wave(2, "others").await;
    assert_has(
        &status,
        &json!({"wave": {"clusters": ["bar/a", "bar/b"]}, "progress": "3/5"}),
    );
    // One of two does not come back.
    fleet
        .says("Progressing", "WaveInProgress", "wave 2 waits for bar/b (")
        .await;
    let gate = json!({"spec": {"healthGate": {"progressDeadlineSeconds": 1}}});
    fleet.env.merge("ClusterClassRollout", "mixed", gate).await;
    let status = fleet
        .says("Progressing", "HealthGateFailed", "not healthy in time: bar/b;")
        .await;
    assert_has(
        &status,
        &json!({"failure": {"clusters": ["bar/b"], "revision": second}}),
    );
    assert!(!fleet.is_changed("c").await && !fleet.is_changed("d").await);
    // It stays so until a user goes on.
    fleet.broken.clear();
    fleet.says("UpToDate", "NotAllUpdated", "stopped at").await;
    fleet.plays_until_healthy(3).await;
    fleet.says("Progressing", "HealthGateFailed", "").await;
    let resume = json!({"metadata": {"annotations": {"windlass.dev/resume": ""}}, "spec": {"healthGate": null}});
    fleet.env.merge("ClusterClassRollout", "mixed", resume).await;
    let status = fleet.in_wave(3, "others").await;
    assert_has(
        &status,
        &json!({"wave": {"clusters": ["bar/c", "bar/d"]}, "failure": null}),
    );
    assert_eq!(fleet.up_to_date().await, second);
    for cluster in ["a", "b", "c", "d", "z"] {
        assert!(fleet.is_changed(cluster).await, "{cluster}");
    }
    let object = fleet.object().await;
    assert_eq!(object["metadata"]["annotations"].get("windlass.dev/resume"), None);
    assert_has(
        &object["status"],
        &json!({"currentRevision": second, "progress": "5/5", "healthyClusters": 5}),
    );
    // What no Cluster has is not kept.
    fleet.revisions_are(&[&second]).await;
    fleet.env.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_went_goes_back_when_it_is_aborted() {
    let mut fleet = Fleet::start(&["a", "b", "c"]).await;
    fleet.env.apply(rollout(&json!({}))).await;
    let first = fleet.up_to_date().await;
    fleet.broken.insert("b".to_owned());
    fleet.class_labels(NEWER).await;
    let status = fleet.in_wave(2, "others").await;
    let second = status["updateRevision"].as_str().unwrap().to_owned();
    let abort = |released: &str| json!({"spec": {"abort": {"revision": second, "released": released}}});
    fleet.env.merge("ClusterClassRollout", "mixed", abort("Stay")).await;
    fleet.says("Progressing", "Aborted", "is not rolled out further").await;
    assert!(fleet.is_changed("a").await && !fleet.is_changed("c").await);
    // A new Cluster gets what the others have.
    fleet.create("e").await;
    fleet.has("e", &first).await;
    fleet.broken.clear();
    fleet.env.merge("ClusterClassRollout", "mixed", abort("GoBack")).await;
    fleet
        .says(
            "Progressing",
            "Aborted",
            "all Clusters have the revision before it again",
        )
        .await;
    for cluster in ["a", "b", "c", "e"] {
        fleet.has(cluster, &first).await;
        assert!(!fleet.is_changed(cluster).await, "{cluster}");
    }
    // The next change is no matter of the abort.
    fleet.class_labels("newest").await;
    let third = fleet.up_to_date().await;
    assert!(third != first && third != second);
    fleet.env.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clusters_that_wait_keep_templates_and_variables_of_their_revision() {
    let fleet = Fleet::start(&["a", "b"]).await;
    fleet.env.apply(rollout(&json!({"paused": true}))).await;
    let first = fleet.up_to_date().await;
    // A template of the class is changed in place, and goes later.
    let template = json!({"spec": {"template": {"spec": {"numCPUs": 6}}}});
    fleet.env.merge("VSphereMachineTemplate", MACHINES, template).await;
    fleet.says("Progressing", "Paused", "spec.paused").await;
    // A variable that is new has a default, which admission writes with the next change of a Cluster.
    let mut class = fleet.env.get("ClusterClass", "mixed").await.unwrap();
    let variables = class["spec"]["variables"].as_array_mut();
    let fresh =
        json!({"name": "fresh", "required": false, "schema": {"openAPIV3Schema": {"type": "string", "default": "x"}}});
    match variables {
        Some(list) => list.push(fresh),
        None => class["spec"]["variables"] = json!([fresh]),
    }
    fleet
        .env
        .merge(
            "ClusterClass",
            "mixed",
            json!({"spec": {"variables": class["spec"]["variables"]}}),
        )
        .await;
    fleet.newest_is_not(&first).await;
    fleet
        .env
        .merge("Cluster", "a", json!({"metadata": {"labels": {"touched": "yes"}}}))
        .await;
    let value = fleet.env.get("Cluster", "a").await.unwrap();
    let values = value["spec"]["topology"]["variables"].to_string();
    assert!(values.contains("fresh"), "{values}");
    fleet.scale_to_five("a").await;
    assert_eq!(fleet.templates_with(6).await, 0);
    fleet.has("a", &first).await;
    fleet
        .env
        .merge("ClusterClassRollout", "mixed", json!({"spec": {"paused": false}}))
        .await;
    fleet.up_to_date().await;
    assert!(fleet.templates_with(6).await >= 2);
    fleet.env.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollout_that_is_deleted_goes_when_all_clusters_follow_the_class() {
    let fleet = Fleet::start(&["a", "b"]).await;
    fleet.env.apply(rollout(&json!({"paused": true}))).await;
    fleet.up_to_date().await;
    fleet.class_labels(NEWER).await;
    fleet.says("Progressing", "Paused", "").await;
    fleet.env.delete("ClusterClassRollout", "mixed").await;
    fleet.says("Progressing", "Paused", "").await;
    assert!(fleet.object().await["metadata"]["deletionTimestamp"].is_string());
    assert!(!fleet.is_changed("a").await);
    fleet
        .env
        .merge("ClusterClassRollout", "mixed", json!({"spec": {"paused": false}}))
        .await;
    fleet.is_gone().await;
    for cluster in ["a", "b"] {
        assert!(fleet.is_changed(cluster).await, "{cluster}");
        let cluster = fleet.env.get("Cluster", cluster).await.unwrap();
        assert!(
            !cluster["metadata"]["annotations"].to_string().contains("windlass.dev"),
            "{cluster:#}"
        );
    }
    // The class is all that counts from now on.
    fleet.class_labels("newest").await;
    let label = async || {
        let control_plane = fleet.control_plane("a").await;
        (control_plane["metadata"]["labels"]["of-class"] == "newest").then_some(())
    };
    fleet.env.wait("the newest class", label).await;
    fleet.env.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_lost_changes_nothing_at_once() {
    let mut fleet = Fleet::start(&["a", "b", "c"]).await;
    fleet.env.apply(rollout(&json!({"paused": true}))).await;
    let first = fleet.up_to_date().await;
    fleet.class_labels(NEWER).await;
    fleet.newest_is_not(&first).await;
    // Annotations that are lost come back with what the others have.
    fleet
        .env
        .merge(
            "Cluster",
            "a",
            json!({"metadata": {"annotations": {"windlass.dev/class-revision": null}}}),
        )
        .await;
    fleet
        .env
        .merge(
            "Cluster",
            "b",
            json!({"metadata": {"annotations": {"windlass.dev/class-revision": "mixed-none"}}}),
        )
        .await;
    for cluster in ["a", "b"] {
        fleet.has(cluster, &first).await;
    }
    // The status is lost, and another process takes over.
    fleet
        .env
        .restart_after(async |env| {
            env.status("ClusterClassRollout", "mixed", json!(null)).await;
        })
        .await;
    fleet.says("Progressing", "Paused", "").await;
    assert_has(
        &fleet.object().await["status"],
        &json!({"currentRevision": first, "progress": "0/3"}),
    );
    for cluster in ["a", "b", "c"] {
        assert!(!fleet.is_changed(cluster).await, "{cluster}");
    }
    // A user can move a Cluster by hand.
    let status = fleet.object().await["status"].clone();
    let newest = &status["updateRevision"];
    fleet
        .env
        .merge(
            "Cluster",
            "c",
            json!({"metadata": {"annotations": {"windlass.dev/class-revision": newest}}}),
        )
        .await;
    let moved = async || fleet.is_changed("c").await.then_some(());
    fleet.env.wait("the newest class", moved).await;
    // The rollout itself is lost: Clusters stay as they are, and one whose revision is lost says so.
    fleet
        .env
        .restart_after(async |env| {
            env.merge(
                "ClusterClassRollout",
                "mixed",
                json!({"metadata": {"finalizers": null}}),
            )
            .await;
            env.delete("ClusterClassRollout", "mixed").await;
            env.delete("ClusterClassRevision", &first).await;
        })
        .await;
    let said = async || {
        let cluster = fleet.env.get("Cluster", "a").await?;
        let condition = condition(&cluster, "TopologyReconciled")?;
        let message = condition["message"].as_str()?.to_owned();
        message.contains("does not exist").then_some(message)
    };
    let message = fleet.env.wait("a message", said).await;
    assert!(
        message.contains(&format!("ClusterClassRevision bar/{first}")),
        "{message}"
    );
    assert!(!fleet.is_changed("a").await);
    fleet.env.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_class_that_is_broken_begins_no_wave() {
    let fleet = Fleet::start(&["a"]).await;
    fleet.env.apply(rollout(&json!({}))).await;
    fleet.up_to_date().await;
    fleet
        .env
        .delete("KubeadmControlPlaneTemplate", "vsphere-prod-cluster-template-kcp")
        .await;
    let status = fleet
        .says("UpToDate", "ClassNotReady", "KubeadmControlPlaneTemplate")
        .await;
    assert_has(&status, &json!({"progress": "1/1"}));
    // Its Clusters go on with what was kept.
    fleet.scale_to_five("a").await;
    let revisions = fleet.env.list("ClusterClassRevision").await;
    assert_eq!(
        revisions.len(),
        1,
        "{:?}",
        revisions.iter().map(name).collect::<Vec<_>>()
    );
    fleet.env.stop().await;
}
