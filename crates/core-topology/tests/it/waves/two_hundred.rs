//! A change of a class comes to 200 Clusters in waves. Two of the third wave do not get over it.

use serde_json::{Value, json};

use super::fleet::{Fleet, rollout};
use crate::env::{assert_has, cluster, condition, example};

/// How many Clusters there are.
const ALL: usize = 200;
/// Those that the change does not suit.
const ODD: [usize; 2] = [30, 33];

/// The stage of a Cluster: 5 canaries, 45 of the staging, and the others.
fn tier(index: usize) -> &'static str {
    match index {
        0..5 => "canary",
        5..50 => "staging",
        _ => "prod",
    }
}

/// The example, whose class has a variable that marks Clusters which a change does not suit.
fn class() -> Vec<Value> {
    example(|class| {
        let odd = json!({
            "name": "odd", "required": false, "schema": {"openAPIV3Schema": {"type": "boolean", "default": false}},
        });
        class["spec"]["variables"] = json!([odd]);
    })
}

/// A change of the class: another label for control planes, and a patch that hits this path in odd Clusters.
fn change(label: &str, path: &str) -> Value {
    let control_plane = json!({
        "apiVersion": "controlplane.cluster.x-k8s.io/v1beta2", "kind": "KubeadmControlPlaneTemplate",
        "matchResources": {"controlPlane": true},
    });
    let patch = json!({
        "name": "odd", "enabledIf": "{{ .odd }}",
        "definitions": [{"selector": control_plane, "jsonPatches": [{"op": "add", "path": path, "value": "yes"}]}],
    });
    let metadata = json!({"labels": {"of-class": label}});
    json!({"spec": {"controlPlane": {"metadata": metadata}, "patches": [patch]}})
}

fn spec(deadline: u32) -> Value {
    let stage =
        |name: &str, size: &str| json!({"name": name, "selector": {"matchLabels": {"tier": name}}, "waveSize": size});
    json!({
        "stages": [stage("canary", "100%"), stage("staging", "50%")], "waveSize": "50%",
        "healthGate": {"progressDeadlineSeconds": deadline},
    })
}

/// The Clusters whose control planes have a label of the class.
async fn with(fleet: &Fleet, label: &str) -> Vec<usize> {
    let all = fleet.env.generated("KubeadmControlPlane").await;
    let has = all.iter().filter(|one| {
        one["metadata"]["labels"]
            .get("of-class")
            .is_some_and(|value| value == label)
    });
    let cluster = |one: &Value| {
        one["metadata"]["labels"]["cluster.x-k8s.io/cluster-name"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let mut found: Vec<usize> = has
        .map(|one| cluster(one).trim_start_matches("c-").parse().unwrap())
        .collect();
    found.sort_unstable();
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_clusters_get_a_change_in_waves_and_stop_at_the_third() {
    let clusters = (0..ALL).map(|index| {
        let mut object = cluster();
        object["metadata"]["name"] = format!("c-{index:03}").into();
        object["metadata"]["labels"] = json!({"tier": tier(index)});
        let is_odd = ODD.contains(&index);
        object["spec"]["topology"]["variables"] = json!([{"name": "odd", "value": is_odd}]);
        object["spec"]["topology"].as_object_mut().unwrap().remove("workers");
        object
    });
    let fleet = Fleet::of(class(), clusters.collect()).await;
    fleet.env.apply(rollout(&spec(3600))).await;
    let first = fleet.up_to_date().await;
    fleet
        .env
        .merge(
            "ClusterClass",
            "mixed",
            change("second", "/spec/template/spec/nowhere/at/all"),
        )
        .await;
    // The canaries, then half of the staging, then its rest, of which two fail.
    fleet.in_wave(3, "staging").await;
    fleet.plays_until_healthy(48).await;
    let status = fleet
        .says(
            "Progressing",
            "WaveInProgress",
            "wave 3 waits for bar/c-030 (TopologyReconciled: ",
        )
        .await;
    assert_has(
        &status,
        &json!({"progress": "50/200", "updatedClusters": 50, "clusters": 200, "currentRevision": first}),
    );
    assert_eq!(status["wave"]["clusters"].as_array().unwrap().len(), 22);
    fleet.env.apply(rollout(&spec(1))).await;
    let status = fleet
        .says("Progressing", "HealthGateFailed", "bar/c-030, bar/c-033;")
        .await;
    assert_has(&status, &json!({"failure": {"clusters": ["bar/c-030", "bar/c-033"]}}));
    let expected: Vec<usize> = (0..50).filter(|index| !ODD.contains(index)).collect();
    assert_eq!(with(&fleet, "second").await, expected);
    // All others are as they were.
    let revision = |cluster: &Value| cluster["metadata"]["annotations"]["windlass.dev/class-revision"] == first;
    let held = fleet.env.list("Cluster").await;
    assert_eq!(held.iter().filter(|cluster| revision(cluster)).count(), 150);
    // The class is mended: its new revision goes to all, and first to the canaries.
    fleet.env.apply(rollout(&spec(3600))).await;
    fleet
        .env
        .merge(
            "ClusterClass",
            "mixed",
            change("third", "/spec/template/metadata/labels/odd"),
        )
        .await;
    fleet.in_wave(1, "canary").await;
    let newest = fleet.up_to_date().await;
    let object = fleet.object().await;
    assert_has(
        &object["status"],
        &json!({"currentRevision": newest, "progress": "200/200", "failure": null}),
    );
    assert_eq!(object["status"]["wave"]["number"], 5);
    assert_eq!(with(&fleet, "third").await.len(), ALL);
    assert_eq!(condition(&object, "Progressing").unwrap()["reason"], "Complete");
    fleet.env.stop().await;
}
