//! A change of a class comes to 200 Clusters in waves. Some of the third wave do not get over it.

use std::time::Duration;

use serde_json::{Value, json};
use windlass_api::core::{Cluster, ClusterClass};
use windlass_api_ext::rollouts::{ClusterClassRollout, ClusterClassRolloutStatus, annotations};
use windlass_api_kubeadm::controlplane::KubeadmControlPlane;
use windlass_meta::ObjectKey;
use windlass_testkit::{CLASS, ClusterOf, Env, NAMESPACE};

/// How many Clusters there are.
const ALL: usize = 200;
const CLASS_NAME: &str = "quick-start";
/// A label that only the newer class gives control planes.
const NEWER: &str = "newer";

fn name(index: usize) -> String {
    format!("c-{index:03}")
}

/// The stage of a Cluster: 5 canaries, 45 of the staging, and the others.
fn tier(index: usize) -> &'static str {
    match index {
        0..5 => "canary",
        5..50 => "staging",
        _ => "prod",
    }
}

/// The example class with a variable that marks Clusters which a change does not suit.
fn class() -> Value {
    let documents: Vec<Value> = serde_saphyr::from_multiple(CLASS).unwrap();
    let mut class = documents.into_iter().find(|one| one["kind"] == "ClusterClass").unwrap();
    let odd =
        json!({"name": "odd", "required": false, "schema": {"openAPIV3Schema": {"type": "boolean", "default": false}}});
    class["spec"]["variables"].as_array_mut().unwrap().push(odd);
    class
}

/// The same, changed: another label for control planes, and a patch that hits a missing path in odd Clusters.
fn changed(path: &str) -> Value {
    let mut class = class();
    class["spec"]["controlPlane"]["metadata"] = json!({"labels": {NEWER: "yes"}});
    let control_plane = json!({
        "apiVersion": "controlplane.cluster.x-k8s.io/v1beta2", "kind": "KubeadmControlPlaneTemplate",
        "matchResources": {"controlPlane": true},
    });
    class["spec"]["patches"].as_array_mut().unwrap().push(json!({
        "name": "odd", "enabledIf": "{{ .odd }}",
        "definitions": [{"selector": control_plane, "jsonPatches": [{"op": "add", "path": path, "value": "yes"}]}],
    }));
    class
}

async fn rollout(env: &Env) -> ClusterClassRolloutStatus {
    rollout_is(env, "there", |_| true).await
}

/// Waits for a status of the rollout.
async fn rollout_is(
    env: &Env,
    what: &str,
    is_so: impl Fn(&ClusterClassRolloutStatus) -> bool,
) -> ClusterClassRolloutStatus {
    let key = ObjectKey::new(NAMESPACE, CLASS_NAME);
    let found = env.wait_for::<ClusterClassRollout>(&key, what, |rollout| rollout.status.as_ref().is_some_and(&is_so));
    found.await.status.unwrap()
}

fn state(status: &ClusterClassRolloutStatus) -> &str {
    let progressing = status
        .conditions
        .iter()
        .find(|condition| condition.type_ == "Progressing");
    progressing.map_or("", |condition| condition.reason.as_str())
}

/// The Clusters whose control planes have the newer class.
async fn newer(env: &Env) -> Vec<usize> {
    let all = env.list::<KubeadmControlPlane>().await;
    let has = |one: &&KubeadmControlPlane| {
        one.metadata
            .labels
            .as_ref()
            .is_some_and(|labels| labels.contains_key(NEWER))
    };
    let cluster = |one: &KubeadmControlPlane| {
        let labels = one.metadata.labels.clone().unwrap_or_default();
        labels["cluster.x-k8s.io/cluster-name"]
            .trim_start_matches("c-")
            .parse()
            .unwrap()
    };
    let mut found: Vec<usize> = all.iter().filter(has).map(cluster).collect();
    found.sort_unstable();
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_clusters_get_a_change_in_waves_and_stop_at_the_third() {
    let env = Env::start().await;
    env.apply_yaml(CLASS).await;
    env.apply(&class()).await;
    let key = ObjectKey::new(NAMESPACE, CLASS_NAME);
    env.wait_for::<ClusterClass>(&key, "reconciled", |class| {
        let observed = class.status.as_ref().and_then(|status| status.observed_generation);
        observed == class.metadata.generation
    })
    .await;
    for index in 0..ALL {
        let mut object = ClusterOf::new(&name(index), 1, 0).object();
        object["metadata"]["labels"] = json!({"tier": tier(index)});
        // Two of the second wave of the staging, which is the third of all.
        let is_odd = [30, 33].contains(&index);
        object["spec"]["topology"]["variables"] = json!([{"name": "odd", "value": is_odd}]);
        object["spec"]["topology"].as_object_mut().unwrap().remove("workers");
        env.apply(&object).await;
    }
    let is_up = |cluster: &Cluster| {
        let conditions = cluster.status.iter().flat_map(|status| &status.conditions);
        let good = conditions.filter(|one| one.status == "True");
        let types: Vec<&str> = good.map(|one| one.type_.as_str()).collect();
        types.contains(&"Available") && types.contains(&"TopologyReconciled")
    };
    env.wait_all::<Cluster>("200 Clusters", |all| all.len() == ALL && all.iter().all(is_up))
        .await;
    let stage =
        |name: &str, size: &str| json!({"name": name, "selector": {"matchLabels": {"tier": name}}, "waveSize": size});
    let object = |deadline: u32| {
        json!({
            "apiVersion": "windlass.dev/v1alpha1", "kind": "ClusterClassRollout",
            "metadata": {"name": CLASS_NAME, "namespace": NAMESPACE},
            "spec": {
                "stages": [stage("canary", "100%"), stage("staging", "50%")], "waveSize": "50%",
                "healthGate": {"progressDeadlineSeconds": deadline},
            },
        })
    };
    env.apply(&object(3600)).await;
    let is_up_to_date =
        |status: &ClusterClassRolloutStatus| state(status) == "Complete" && status.healthy_clusters == Some(200);
    let first = rollout_is(&env, "up to date", is_up_to_date)
        .await
        .update_revision
        .unwrap();
    env.apply(&changed("/spec/template/spec/nowhere/at/all")).await;
    // The canaries, then half of the staging, then its rest, of which two fail.
    let status = rollout_is(&env, "stopped in the third wave by two Clusters", |status| {
        let is_third = status.wave.as_ref().is_some_and(|wave| wave.number == 3);
        is_third && status.healthy_clusters == Some(48)
    })
    .await;
    assert_eq!(status.progress.as_deref(), Some("50/200"));
    let wave = status.wave.unwrap();
    assert_eq!((wave.stage.as_str(), wave.clusters.len()), ("staging", 22));
    env.apply(&object(1)).await;
    let status = rollout_is(&env, "failed", |status| state(status) == "HealthGateFailed").await;
    assert_eq!(status.failure.unwrap().clusters, ["default/c-030", "default/c-033"]);
    let expected: Vec<usize> = (0..50).filter(|index| ![30, 33].contains(index)).collect();
    assert_eq!(newer(&env).await, expected);
    // All others are as they were, and stay so.
    let revision = |cluster: &Cluster| {
        cluster
            .metadata
            .annotations
            .as_ref()?
            .get(annotations::CLASS_REVISION)
            .cloned()
    };
    let held = env
        .list::<Cluster>()
        .await
        .iter()
        .filter(|cluster| revision(cluster).as_ref() == Some(&first))
        .count();
    assert_eq!(held, 150);
    // The class is mended: its new revision goes to all, and first to the canaries.
    env.apply(&object(3600)).await;
    env.apply(&changed("/spec/template/metadata/labels/odd")).await;
    let status = rollout_is(&env, "up to date", is_up_to_date).await;
    assert_eq!(status.current_revision, status.update_revision);
    assert_eq!(status.wave.unwrap().number, 5);
    assert_eq!(newer(&env).await.len(), ALL);
    assert_eq!(rollout(&env).await.failure, None);
    tokio::time::timeout(Duration::from_mins(5), env.stop()).await.unwrap();
}
