//! All objects of a cluster are deleted and come back from a backup: with other uids, without status, while the cluster itself
//! runs on.

use std::collections::BTreeMap;

use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use rand::rngs::SmallRng;
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};
use windlass_api::core::Machine;
use windlass_api_ext::addons::HelmReleaseProxy;
use windlass_infra_dev::Cloud;
use windlass_manager::registry::helm::HelmUse;
use windlass_testkit::faults::Faults;
use windlass_testkit::rest::{Stored, differences};
use windlass_testkit::{CLASS, ClusterOf, Env, seeds, wait};

use super::dark::{mend, occupy, vacate};
use super::lost::pause;
use super::{hosts, running};

/// The template of the control plane in the class.
const CONTROL_PLANE: &str = "quick-start-control-plane";
/// The same with an argument of the API server.
const ARGUED: &str = "argued-control-plane";

/// What the server decides about each object that is created.
const OF_THE_SERVER: &[&str] = &[
    "metadata.uid",
    "metadata.resourceVersion",
    "metadata.generation",
    "metadata.creationTimestamp",
];

/// The order in which objects come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Any,
    /// The Cluster comes last. Before it is there, its objects cannot be told from those of another time, and nothing happens to them.
    ClusterLast,
}

/// What a backup keeps of the owner references.
#[derive(Clone, Copy, Debug)]
enum Owners {
    /// None of them: their uids are those of another time, and the garbage collector deletes what has only such owners.
    Dropped,
    /// All of them, with the uids of the owners that were restored before, as `clusterctl move` does.
    Mapped,
}

#[tokio::test]
async fn a_backup_is_restored_in_any_order_while_the_controllers_run() {
    let env = Env::start().await;
    let (cluster, before, backup) = paused(&env).await;
    remove(&env, &backup).await;
    restore(&env, &backup, Owners::Dropped, Order::Any).await;
    goes_on(env, cluster, &before).await;
}

// The tool that restores drops the managed fields as well.
#[tokio::test]
async fn a_backup_of_a_cluster_that_is_not_paused_is_restored_with_the_cluster_last() {
    let cloud = Cloud::new();
    let home = tempfile::tempdir().unwrap();
    let mut helm = HelmUse::new(home.path().join("home"));
    helm.program.program = home.path().join("no-helm");
    let mut env = Env::builder().cloud(&cloud).helm(&helm).start().await;
    let cluster = with_check(&env).await;
    charted(&env, &cluster).await;
    let backup = env.all().await;
    env.stop_controllers().await;
    remove(&env, &backup).await;
    env.start_controllers(&Faults::none());
    restore(&env, &backup, Owners::Dropped, Order::ClusterLast).await;
    for (kind, name) in backup.keys().map(|key| split(key)) {
        let lost = Patch::Merge(json!({"metadata": {"managedFields": [{}]}}));
        api(&env, kind)
            .patch(name, &PatchParams::default(), &lost)
            .await
            .unwrap();
    }
    cluster.wait_running(&env).await;
    is_as_before(&env, &backup).await;
    let (created, machines) = (env.created_by_resource(), machines_of(&backup));
    env.rest().await;
    assert_eq!(hosts(&env).await, machines, "nothing is replaced");
    assert_eq!(env.created_by_resource(), created, "nothing is made");
    fields_can_go(&env, &cluster).await;
    env.delete("Cluster", &cluster.name).await;
    env.wait_gone(&cluster.name).await;
    env.stop().await;
}

/// A HelmChartProxy with a HelmReleaseProxy, whose release is installed.
async fn charted(env: &Env, cluster: &ClusterOf) {
    env.apply(&json!({
        "apiVersion": "addons.cluster.x-k8s.io/v1alpha1", "kind": "HelmChartProxy",
        "metadata": {"name": "web", "namespace": cluster.key().namespace},
        "spec": {
            "clusterSelector": {"matchLabels": {"web": "yes"}},
            "chartName": "web", "repoURL": "https://charts.example.com", "version": "1.0.0",
        },
    }))
    .await;
    env.merge(
        "Cluster",
        &cluster.name,
        &json!({"metadata": {"labels": {"web": "yes"}}}),
    )
    .await;
    let made = env
        .wait_all::<HelmReleaseProxy>("a HelmReleaseProxy with a name for the release", |all| {
            all.len() == 1 && all[0].is_release_name_generated()
        })
        .await;
    let name = made[0].metadata.name.as_deref().unwrap();
    let installed = "helmreleaseproxy.addons.cluster.x-k8s.io/release-successfully-installed";
    env.merge(
        "HelmReleaseProxy",
        name,
        &json!({"metadata": {"annotations": {installed: "true"}}}),
    )
    .await;
    env.rest().await;
}

/// A label and an argument of the control plane that the topology no longer has go.
async fn fields_can_go(env: &Env, cluster: &ClusterOf) {
    env.merge("Cluster", &cluster.name, &label(None)).await;
    use_template(env, CONTROL_PLANE).await;
    let are_gone = |all: &[DynamicObject]| {
        all.iter().all(|control_plane| {
            let config = &control_plane.data["spec"]["kubeadmConfigSpec"]["clusterConfiguration"];
            let mut arguments = config["apiServer"]["extraArgs"].as_array().into_iter().flatten();
            let labels = control_plane.metadata.labels.as_ref();
            labels.is_none_or(|labels| !labels.contains_key("team")) && arguments.all(|one| one["name"] != "v")
        })
    };
    let gone = wait::until(env.dynamic("KubeadmControlPlane"), None, are_gone).await;
    assert!(
        gone.is_some(),
        "the label or the argument stays: {}",
        env.explain().await
    );
    cluster.wait_running(env).await;
}

fn label(team: Option<&str>) -> Value {
    json!({"spec": {"topology": {"controlPlane": {"metadata": {"labels": {"team": team}}}}}})
}

#[tokio::test]
async fn clusters_move_to_other_controllers_with_their_owners() {
    let cloud = Cloud::new();
    let mut env = Env::builder().cloud(&cloud).start().await;
    let (cluster, before, backup) = paused(&env).await;
    env.stop_controllers().await;
    remove(&env, &backup).await;
    restore(&env, &backup, Owners::Mapped, Order::Any).await;
    env.start_controllers(&Faults::none());
    goes_on(env, cluster, &before).await;
}

/// No status tells that the cluster has come up once, nor which Node a Machine has.
#[tokio::test]
async fn a_machine_that_is_restored_during_an_outage_is_not_removed_undrained() {
    let cloud = Cloud::new();
    let mut env = Env::builder().cloud(&cloud).start().await;
    let cluster = ClusterOf::new("dark", 1, 2);
    running(&env, &cluster).await;
    occupy(&env, &cluster).await;
    let (before, backup) = (hosts(&env).await, env.all().await);
    env.stop_controllers().await;
    remove(&env, &backup).await;
    env.cloud().disconnect(&cluster.key()).await;
    restore(&env, &backup, Owners::Mapped, Order::Any).await;
    env.start_controllers(&Faults::none());
    env.rest().await;
    let machines = env.list::<Machine>().await;
    let worker = cluster.machines(&machines, false)[0].metadata.name.clone().unwrap();
    env.delete("Machine", &worker).await;
    env.rest().await;
    assert_eq!(hosts(&env).await, before, "{worker} went undrained");
    let running = env.cloud().machines(&cluster.key());
    assert!(
        before.keys().all(|machine| running.contains_key(machine)),
        "{running:?}"
    );
    mend(&env, &cluster).await;
    vacate(&env, &cluster).await;
    cluster.wait_running(&env).await;
    assert!(!hosts(&env).await.contains_key(&worker));
    env.stop().await;
}

/// A cluster with a MachineHealthCheck, all objects while it ran, and all objects of the backup: now it is paused.
async fn paused(env: &Env) -> (ClusterOf, Stored, Stored) {
    let cluster = with_check(env).await;
    let running = env.all().await;
    pause(env, &cluster, true).await;
    env.rest().await;
    (cluster, running, env.all().await)
}

/// Has the class make control planes of a template.
async fn use_template(env: &Env, name: &str) {
    let change = json!({"spec": {"controlPlane": {"templateRef": {"name": name}}}});
    env.merge("ClusterClass", "quick-start", &change).await;
}

/// A cluster with a MachineHealthCheck, and with a label and an argument of its control plane.
async fn with_check(env: &Env) -> ClusterOf {
    let cluster = ClusterOf::new("saved", 3, 2);
    env.apply_yaml(CLASS).await;
    // A template cannot change, so there are two.
    let found = env
        .dynamic("KubeadmControlPlaneTemplate")
        .get(CONTROL_PLANE)
        .await
        .unwrap();
    let mut argued = json!({
        "apiVersion": "controlplane.cluster.x-k8s.io/v1beta2", "kind": "KubeadmControlPlaneTemplate",
        "metadata": {"name": ARGUED, "namespace": cluster.key().namespace}, "spec": found.data["spec"],
    });
    argued["spec"]["template"]["spec"]["kubeadmConfigSpec"]["clusterConfiguration"]["apiServer"]["extraArgs"] =
        json!([{"name": "v", "value": "4"}]);
    env.apply(&argued).await;
    use_template(env, ARGUED).await;
    // The class does not take back what it gave the first one.
    let disowned = json!({"metadata": {"ownerReferences": null}});
    env.merge("KubeadmControlPlaneTemplate", CONTROL_PLANE, &disowned).await;
    cluster.apply(env).await;
    env.merge("Cluster", &cluster.name, &label(Some("a"))).await;
    cluster.wait_running(env).await;
    env.rest().await;
    env.apply(&json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "MachineHealthCheck",
        "metadata": {"name": "workers", "namespace": cluster.key().namespace},
        "spec": {
            "clusterName": cluster.name,
            "selector": {"matchLabels": {"topology.cluster.x-k8s.io/deployment-name": "md-0"}},
            "checks": {"nodeStartupTimeoutSeconds": 60, "unhealthyNodeConditions": [
                {"type": "Ready", "status": "Unknown", "timeoutSeconds": 1},
                {"type": "Ready", "status": "False", "timeoutSeconds": 1},
            ]},
        },
    }))
    .await;
    env.rest().await;
    cluster
}

/// Deletes all these objects, with nothing but their entries in the API server.
async fn remove(env: &Env, objects: &Stored) {
    let bare = Patch::Merge(json!({"metadata": {"finalizers": []}}));
    // The garbage collector may be faster.
    for (kind, name) in objects.keys().map(|key| split(key)) {
        let _ = api(env, kind).delete(name, &DeleteParams::background()).await;
    }
    // Only now: a controller puts its finalizer back on an object that is not being deleted.
    for (kind, name) in objects.keys().map(|key| split(key)) {
        let _ = api(env, kind).patch(name, &PatchParams::default(), &bare).await;
    }
    let mut looks = wait::looks();
    let begun = std::time::Instant::now();
    loop {
        looks.tick().await;
        let left = env.all().await;
        if left.is_empty() {
            return;
        }
        // A class is deleted after its Clusters only.
        for (kind, name) in left
            .keys()
            .map(|key| split(key))
            .filter(|(kind, _)| *kind == "ClusterClass")
        {
            let _ = api(env, kind).delete(name, &DeleteParams::background()).await;
        }
        assert!(begun.elapsed() < wait::TIMEOUT, "not deleted: {:?}", left.keys());
    }
}

/// Creates all these objects in an order that the seed decides.
async fn restore(env: &Env, objects: &Stored, owners: Owners, order: Order) {
    let seed = seeds::given().unwrap_or_default();
    let _shown = seeds::Shown(seed);
    let mut random = SmallRng::seed_from_u64(seed);
    let mut left: Vec<(&String, &Value)> = objects.iter().collect();
    left.shuffle(&mut random);
    let mut uids = BTreeMap::new();
    while !left.is_empty() {
        let is_next = |(key, object): &(&String, &Value)| match (owners, order) {
            (Owners::Dropped, Order::Any) => true,
            (Owners::Dropped, Order::ClusterLast) => left.len() == 1 || !key.starts_with("Cluster "),
            (Owners::Mapped, _) => {
                references(object).all(|owner| uids.contains_key(owner["uid"].as_str().unwrap_or_default()))
            }
        };
        let ready: Vec<usize> = (0..left.len()).filter(|at| is_next(&left[*at])).collect();
        let (key, object) = left.swap_remove(ready[random.random_range(0..ready.len())]);
        let (kind, name) = split(key);
        let api = api(env, kind);
        let copy = copy(object, owners, &uids);
        let made = api.create(&PostParams::default(), &copy).await;
        let made = made.unwrap_or_else(|error| panic!("{kind} {name} cannot be restored: {error}"));
        let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
        uids.insert(uid.to_owned(), made.metadata.uid.unwrap_or_default());
    }
}

fn references(object: &Value) -> impl Iterator<Item = &Value> {
    object["metadata"]["ownerReferences"].as_array().into_iter().flatten()
}

/// An object as a backup has it.
fn copy(object: &Value, owners: Owners, uids: &BTreeMap<String, String>) -> DynamicObject {
    let mut copy = object.clone();
    if let Some(copy) = copy.as_object_mut() {
        copy.remove("status");
    }
    if let Some(metadata) = copy["metadata"].as_object_mut() {
        for field in ["uid", "resourceVersion", "generation", "creationTimestamp"] {
            metadata.remove(field);
        }
        if matches!(owners, Owners::Dropped) {
            metadata.remove("ownerReferences");
        }
    }
    for owner in copy["metadata"]["ownerReferences"].as_array_mut().into_iter().flatten() {
        owner["uid"] = uids[owner["uid"].as_str().unwrap_or_default()].as_str().into();
    }
    serde_json::from_value(copy).unwrap()
}

/// The cluster goes on as it was: nothing is made twice, nothing is replaced, and it can still be scaled and deleted.
async fn goes_on(env: Env, cluster: ClusterOf, before: &Stored) {
    let created = env.created_by_resource();
    let machines = machines_of(before);
    // While it is paused, nothing happens to it.
    env.rest().await;
    pause(&env, &cluster, false).await;
    cluster.wait_running(&env).await;
    is_as_before(&env, before).await;
    assert_eq!(hosts(&env).await, machines, "nothing is replaced");
    env.rest().await;
    assert_eq!(env.created_by_resource(), created, "nothing is made");

    let cluster = cluster.workers(3);
    cluster.apply(&env).await;
    cluster.wait_running(&env).await;
    let now = hosts(&env).await;
    assert!(
        machines.iter().all(|host| now.get(host.0) == Some(host.1)),
        "{machines:?} became {now:?}"
    );
    env.delete("Cluster", &cluster.name).await;
    env.wait_gone(&cluster.name).await;
    assert!(env.list::<Machine>().await.is_empty());
    assert!(env.cloud().machines(&cluster.key()).is_empty());
    env.stop().await;
}

fn machines_of(objects: &Stored) -> BTreeMap<String, String> {
    let machines = objects.iter().filter_map(|(key, object)| {
        let (kind, name) = split(key);
        let host = object["spec"]["providerID"].as_str().unwrap_or_default();
        (kind == "Machine").then(|| (name.to_owned(), host.to_owned()))
    });
    machines.collect()
}

/// Waits until all is as before, except for what belongs to the new objects and to their time.
async fn is_as_before(env: &Env, before: &Stored) {
    let mut looks = wait::looks();
    let begun = std::time::Instant::now();
    loop {
        looks.tick().await;
        let mut found = differences(&sorted(before.clone()), &sorted(env.all().await), OF_THE_SERVER);
        let moved = [
            "ownerReferences[].uid",
            "lastTransitionTime",
            "observedGeneration",
            "status.lastUpdated",
            "cluster-seen",
        ];
        found.retain(|line| !moved.iter().any(|one| line.contains(one)));
        if found.is_empty() {
            return;
        }
        assert!(begun.elapsed() < wait::TIMEOUT, "not as before:\n{}", found.join("\n"));
    }
}

/// The objects with their conditions in order: the first writers of a new object decide where each stands.
fn sorted(mut objects: Stored) -> Stored {
    for object in objects.values_mut() {
        let status = &mut object["status"];
        for path in ["/conditions", "/deprecated/v1beta1/conditions", "/v1beta2/conditions"] {
            if let Some(Value::Array(conditions)) = status.pointer_mut(path) {
                conditions.sort_by_key(|condition| condition["type"].to_string());
            }
        }
    }
    objects
}

fn split(key: &str) -> (&str, &str) {
    key.split_once(' ').unwrap_or_default()
}

fn api(env: &Env, kind: &str) -> kube::Api<DynamicObject> {
    if kind == "Secret" {
        let secrets = kube::api::ApiResource::erase::<k8s_openapi::api::core::v1::Secret>(&());
        return kube::Api::namespaced_with(env.client().clone(), windlass_testkit::NAMESPACE, &secrets);
    }
    env.dynamic(kind)
}
