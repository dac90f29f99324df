//! The example extension plays all hooks, for a Cluster from its creation to its deletion.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use windlass_api::core::{Cluster, Machine, MachineDeployment};
use windlass_api::meta::MetaExt as _;
use windlass_api_kubeadm::bootstrap::KubeadmConfig;
use windlass_example_extension::{HOLD, IN_PLACE, PROTECTED};
use windlass_runtime_extension::hooks::CATALOG;
use windlass_testkit::{CLASS, ClusterOf, Env};

use crate::extensions::{Served, config, is_discovered, says};

/// The uids of the Machines that are updated in place.
fn marked(machines: &[Machine]) -> Vec<Option<String>> {
    let has = |machine: &&Machine| machine.metadata.annotation(IN_PLACE).is_some();
    let marked = machines.iter().filter(has);
    marked.map(|machine| machine.metadata.uid.clone()).collect()
}

/// Sets or takes away the annotation that holds a hook.
async fn hold(env: &Env, hook: &str, value: Value) {
    let annotation = format!("{HOLD}{}", hook.to_lowercase());
    let patch = json!({"metadata": {"annotations": {annotation: value}}});
    env.merge("Cluster", "played", &patch).await;
}

// TO-109, TO-166, TO-167, TO-321; rows 310, 332 to 344: an extension that people can start from serves each hook.
#[tokio::test]
async fn the_example_plays_all_hooks() {
    let env = Env::start().await;
    let served = Served::start(windlass_example_extension::extension().unwrap()).await;
    let mut object = served.config("ext");
    object["spec"]["settings"] = json!({"mostWorkers": "2", "versions": "v1.36.2"});
    env.apply(&object).await;
    let found = config(&env, "discovered", is_discovered).await.status.unwrap().handlers;
    let of_example: BTreeSet<&str> = found.iter().map(|handler| handler.request_hook.hook.as_str()).collect();
    let all: BTreeSet<&str> = CATALOG
        .iter()
        .map(|one| one.name)
        .filter(|name| *name != "Discovery")
        .collect();
    assert_eq!(of_example, all);
    env.apply_yaml(CLASS).await;
    let external = json!({"name": "example", "external": {
        "generatePatchesExtension": "motd.ext", "validateTopologyExtension": "quota.ext",
        "discoverVariablesExtension": "motd-variables.ext",
    }});
    let class: Vec<Value> = serde_saphyr::from_multiple(CLASS).unwrap();
    let mut patches = class[0]["spec"]["patches"].clone();
    patches.as_array_mut().unwrap().push(external);
    let change = json!({"spec": {
        "patches": patches, "upgrade": {"external": {"generateUpgradePlanExtension": "upgrade-plan.ext"}},
    }});
    env.merge("ClusterClass", "quick-start", &change).await;

    let cluster = ClusterOf::new("played", 1, 3);
    create(&env, &cluster).await;
    upgrade(&env, &cluster).await;
    delete(&env, &cluster).await;
    env.stop().await;
}

/// A hook holds the creation, the quota refuses it, and then the file is there.
async fn create(env: &Env, cluster: &ClusterOf) {
    let with = |cluster: &ClusterOf, motd: &str| {
        let mut object = cluster.object();
        object["spec"]["topology"]["variables"] = json!([{"name": "motd", "value": motd}]);
        object
    };
    let mut held = with(cluster, "hello");
    held["metadata"]["annotations"] = json!({format!("{HOLD}beforeclustercreate"): "review 7"});
    env.apply(&held).await;
    says(
        env,
        &cluster.key(),
        "ClusterCreating",
        "hold-beforeclustercreate is set: review 7",
    )
    .await;
    hold(env, "BeforeClusterCreate", Value::Null).await;
    let quota = "the workers have 3 replicas, and 2 are allowed";
    says(env, &cluster.key(), "ReconcileFailed", quota).await;
    assert!(env.list::<MachineDeployment>().await.is_empty());
    let allowed = cluster.clone().workers(1);
    env.apply(&with(&allowed, "hello")).await;
    allowed.wait_running(env).await;
    let configs = env.list::<KubeadmConfig>().await;
    let has_file = |config: &KubeadmConfig| {
        let spec = serde_json::to_string(&config.spec).unwrap();
        spec.contains("/etc/motd") && spec.contains("hello")
    };
    assert_eq!(
        (configs.len(), configs.iter().filter(|config| has_file(config)).count()),
        (2, 2)
    );
}

/// An upgrade over the versions that the extension says, with the hooks in its way. Machines of workers stay.
async fn upgrade(env: &Env, cluster: &ClusterOf) {
    let annotate = json!({"metadata": {"annotations": {IN_PLACE: ""}}});
    let strategy = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}});
    let topology = json!({"spec": {"topology": {"workers": {"machineDeployments": [{
        "class": "default-worker", "name": "md-0", "replicas": 1, "metadata": annotate["metadata"],
        "rollout": {"strategy": strategy},
    }]}}}});
    env.merge("Cluster", "played", &topology).await;
    let before = env
        .wait_all::<Machine>("marked for updates in place", |machines| marked(machines).len() == 1)
        .await;
    let hooks = [
        "BeforeClusterUpgrade",
        "BeforeControlPlaneUpgrade",
        "AfterControlPlaneUpgrade",
        "BeforeWorkersUpgrade",
        "AfterWorkersUpgrade",
        "AfterClusterUpgrade",
    ];
    for hook in hooks {
        hold(env, hook, json!("")).await;
    }
    env.merge(
        "Cluster",
        "played",
        &json!({"spec": {"topology": {"version": "v1.36.2"}}}),
    )
    .await;
    for hook in hooks {
        let text = format!("{hook}: the annotation {HOLD}{} is set", hook.to_lowercase());
        says(env, &cluster.key(), "ClusterUpgrading", &text).await;
        hold(env, hook, Value::Null).await;
    }
    // The example changes no kubelet, so the Node keeps its version.
    says(env, &cluster.key(), "ReconcileSucceeded", "").await;
    let after = env.list::<Machine>().await;
    assert_eq!(marked(&after), marked(&before), "updated in place");
    assert!(
        after
            .iter()
            .all(|machine| machine.spec.version.as_deref() == Some("v1.36.2"))
    );
}

/// The deletion waits as well.
async fn delete(env: &Env, cluster: &ClusterOf) {
    env.merge(
        "Cluster",
        "played",
        &json!({"metadata": {"annotations": {PROTECTED: ""}}}),
    )
    .await;
    env.delete("Cluster", "played").await;
    let is_held = |cluster: &Cluster| {
        let mut all = cluster.status.iter().flat_map(|status| &status.conditions);
        all.any(|one| {
            one.type_ == "Deleting" && one.reason == "WaitingForBeforeDeleteHook" && one.message.contains(PROTECTED)
        })
    };
    env.wait_for::<Cluster>(&cluster.key(), "held", is_held).await;
    env.merge(
        "Cluster",
        "played",
        &json!({"metadata": {"annotations": {PROTECTED: null}}}),
    )
    .await;
    env.wait_gone("played").await;
}
