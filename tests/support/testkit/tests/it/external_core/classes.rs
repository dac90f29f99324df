//! Classes with externally managed InfraClusters: their clusters live, move and keep the annotation.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use kube::api::PostParams;
use serde_json::{Value, json};
use windlass_api::core::{Cluster, Machine};
use windlass_manager::registry::kinds::KINDS;
use windlass_testkit::wait::{TIMEOUT, looks};
use windlass_testkit::{ByHand, ClusterOf, Env, ExternalSystem, reserved_port};

use super::view::{HOST, MANAGED_BY, cluster_says, condition, get, list, message, rests, wait};

const CLUSTER_WITH_CLASS: &str = include_str!("../../../../../../examples/externally-managed/cluster-with-class.yaml");
const CLASS_OF_EXTERNAL: &str = include_str!("../../../../../../examples/externally-managed/clusterclass.yaml");

// EX-064, EX-065: a Cluster of a class with the annotation in its template, from creation to deletion: fields that the external
// system writes beside those of the template stay, and only the object is deleted.
#[tokio::test]
async fn a_cluster_of_an_external_class_lives_and_goes() {
    let env = Env::start().await;
    env.apply_yaml(CLASS_OF_EXTERNAL).await;
    let stored = env.stored().await;
    let mut object: Value = serde_saphyr::from_str(CLUSTER_WITH_CLASS).unwrap();
    object["metadata"]["name"] = json!("classy");
    object["spec"]["topology"]["controlPlane"]["replicas"] = json!(1);
    object["spec"]["topology"]["workers"]["machineDeployments"][0]["replicas"] = json!(1);
    env.apply(&object).await;
    let cluster = ClusterOf::new("classy", 1, 1);
    let named = env
        .wait_for::<Cluster>(&cluster.key(), "it names its infrastructure", |cluster| {
            cluster.spec.infrastructure_ref.is_some()
        })
        .await;
    let name = named.spec.infrastructure_ref.unwrap().name;
    let infrastructure = wait(&env, "DevCluster", &name, "there", |_| true).await;
    assert_eq!(infrastructure["metadata"]["annotations"][MANAGED_BY], "terraform");
    let system = ExternalSystem::new(&env);
    system
        .merge(
            &name,
            &json!({"metadata": {"annotations": {"terraform.io/run": "1"}, "labels": {"net": "n1"}}}),
        )
        .await;
    system.provision(&name, HOST, reserved_port()).await;
    cluster.wait_running(&env).await;
    let cluster = cluster.version("v1.36.0");
    env.merge(
        "Cluster",
        "classy",
        &json!({"spec": {"topology": {"version": "v1.36.0"}}}),
    )
    .await;
    cluster.wait_running(&env).await;
    let after = get(&env, "DevCluster", &name).await;
    assert_eq!(after["metadata"]["annotations"]["terraform.io/run"], "1");
    assert_eq!(after["metadata"]["labels"]["net"], "n1");
    let written = after["metadata"]["managedFields"].as_array().unwrap().iter();
    let managers: Vec<&str> = written.map(|entry| entry["manager"].as_str().unwrap()).collect();
    assert!(
        managers
            .iter()
            .all(|manager| ["terraform", "capi-topology", "capi-manager"].contains(manager)),
        "{managers:?}"
    );
    env.delete("Cluster", "classy").await;
    env.wait_gone("classy").await;
    assert_eq!(env.stored().await, stored);
    env.stop().await;
}

/// Objects in the form that another management cluster receives: without status and fields set by the server.
fn stripped(mut object: Value) -> Value {
    object.as_object_mut().unwrap().remove("status");
    let metadata = object["metadata"].as_object_mut().unwrap();
    for given in [
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "managedFields",
    ] {
        metadata.remove(given);
    }
    object
}

/// Moves all objects of our kinds, owners first, with rewritten owner references.
async fn move_all(from: &Env, to: &Env) {
    let mut left = Vec::new();
    for kind in KINDS {
        left.extend(list(from, kind.kind).await);
    }
    let mut uids: BTreeMap<String, Value> = BTreeMap::new();
    while !left.is_empty() {
        let known = |object: &Value| {
            let owners = object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
            owners
                .into_iter()
                .all(|owner| uids.contains_key(owner["uid"].as_str().unwrap()))
        };
        let (now, later): (Vec<Value>, Vec<Value>) = left.into_iter().partition(known);
        assert!(!now.is_empty(), "an owner is missing: {later:?}");
        for object in now {
            let old = object["metadata"]["uid"].as_str().unwrap().to_owned();
            let mut new = stripped(object);
            for owner in new["metadata"]["ownerReferences"].as_array_mut().into_iter().flatten() {
                owner["uid"] = uids[owner["uid"].as_str().unwrap()].clone();
            }
            let api = to.dynamic(new["kind"].as_str().unwrap());
            let new = serde_json::from_value(new).unwrap();
            let created = api.create(&PostParams::default(), &new).await.unwrap();
            uids.insert(old, json!(created.metadata.uid));
        }
        left = later;
    }
}

// EX-066: annotation, spec and owner references move to another management cluster, the status does not. There the Cluster waits
// until the external system has written it.
#[tokio::test]
async fn a_moved_cluster_waits_until_its_status_is_written_there() {
    let source = Env::start().await;
    let mut cluster = ByHand::new("moved", 1, 1);
    let system = ExternalSystem::new(&source);
    system.create(&cluster).await;
    // Without a control plane, there is nothing else to move yet.
    for mut object in cluster.objects() {
        match object["kind"].as_str().unwrap() {
            "KubeadmControlPlane" | "DevCluster" => continue,
            "Cluster" => drop(object["spec"].as_object_mut().unwrap().remove("controlPlaneRef")),
            _ => {}
        }
        source.apply(&object).await;
    }
    let port = reserved_port();
    system.provision("moved", HOST, port).await;
    let provisioned = |cluster: &Cluster| {
        let status = cluster.status.as_ref();
        let done = status.and_then(|status| status.initialization.as_ref());
        done.and_then(|done| done.infrastructure_provisioned) == Some(true)
            && cluster.spec.control_plane_endpoint.is_some()
    };
    source
        .wait_for::<Cluster>(&cluster.key(), "provisioned", provisioned)
        .await;
    source
        .wait_all::<Machine>("a worker", |machines| machines.len() == 1)
        .await;
    source
        .merge("Cluster", "moved", &json!({"spec": {"paused": true}}))
        .await;
    rests(&source).await;

    let target = Env::start().await;
    move_all(&source, &target).await;
    rests(&target).await;
    let paused = get(&target, "Cluster", "moved").await;
    assert_eq!(
        paused["status"].get("initialization"),
        None,
        "a paused Cluster takes nothing over"
    );
    target
        .merge("Cluster", "moved", &json!({"spec": {"paused": false}}))
        .await;
    let waits = "DevCluster moved: status.initialization.provisioned is false";
    cluster_says(&target, &cluster, "InfrastructureReady", waits).await;
    rests(&target).await;
    let object = get(&target, "Cluster", "moved").await;
    assert_eq!(object["status"]["phase"], "Provisioning");
    assert_eq!(
        object["spec"]["controlPlaneEndpoint"],
        json!({"host": HOST, "port": port})
    );
    let infrastructure = get(&target, "DevCluster", "moved").await;
    assert_eq!(infrastructure["metadata"]["annotations"][MANAGED_BY], "terraform");
    assert_eq!(infrastructure["spec"]["controlPlaneEndpoint"]["port"], port);
    assert_eq!(infrastructure.get("status"), None);
    assert_eq!(
        infrastructure["metadata"]["ownerReferences"][0]["uid"],
        object["metadata"]["uid"]
    );
    let before = get(&source, "DevCluster", "moved").await;
    assert_ne!(infrastructure["metadata"]["uid"], before["metadata"]["uid"]);
    for config in list(&target, "KubeadmConfig").await {
        let waits = "Waiting for Cluster status.initialization.infrastructureProvisioned to be true";
        assert_eq!(message(&config, "DataSecretAvailable"), waits);
    }

    // The external system writes the same there, and the control plane may start.
    source.stop().await;
    let system = ExternalSystem::new(&target);
    system.set_provisioned("moved").await;
    target
        .wait_for::<Cluster>(&cluster.key(), "provisioned", provisioned)
        .await;
    cluster = cluster.workers(1);
    cluster.apply_rest(&target).await;
    cluster.wait_running(&target).await;
    target.stop().await;
}

// EX-065, EX-079: a class that loses the annotation cannot remove it from its clusters: the Cluster shows the message of
// admission, attempts become rare, and nothing is lost.
#[tokio::test]
async fn a_class_cannot_take_the_annotation_away() {
    let env = Env::start().await;
    env.apply_yaml(CLASS_OF_EXTERNAL).await;
    let mut object: Value = serde_saphyr::from_str(CLUSTER_WITH_CLASS).unwrap();
    object["metadata"]["name"] = json!("kept");
    env.apply(&object).await;
    let key = ClusterOf::new("kept", 1, 1).key();
    let named = env
        .wait_for::<Cluster>(&key, "it names its infrastructure", |cluster| {
            cluster.spec.infrastructure_ref.is_some()
        })
        .await;
    let name = named.spec.infrastructure_ref.unwrap().name;
    wait(&env, "DevCluster", &name, "there", |_| true).await;
    let annotation = |value: Value| json!({"spec": {"template": {"metadata": {"annotations": {(MANAGED_BY): value}}}}});
    env.merge("DevClusterTemplate", "externally-managed", &annotation(Value::Null))
        .await;
    let refused = |object: &Value| {
        let condition = condition(object, "TopologyReconciled");
        let words = "removal of externally managed annotation is not allowed";
        condition["status"] == "False"
            && condition["message"]
                .as_str()
                .is_some_and(|message| message.contains(words))
    };
    let cluster = wait(&env, "Cluster", "kept", "refused", refused).await;
    assert!(message(&cluster, "TopologyReconciled").contains(&name));
    let attempts = || env.writes_to("DevCluster", &name).values().sum::<u64>();
    let (begun, mut last, mut since) = (Instant::now(), attempts(), Instant::now());
    let mut looks = looks();
    while since.elapsed() < Duration::from_secs(1) {
        looks.tick().await;
        if attempts() != last {
            assert!(begun.elapsed() < TIMEOUT, "{last} attempts");
            (last, since) = (attempts(), Instant::now());
        }
    }
    assert!(last < 40, "{last} attempts");
    let infrastructure = get(&env, "DevCluster", &name).await;
    assert_eq!(infrastructure["metadata"]["annotations"][MANAGED_BY], "terraform");
    env.merge(
        "DevClusterTemplate",
        "externally-managed",
        &annotation(json!("terraform")),
    )
    .await;
    let good = |object: &Value| condition(object, "TopologyReconciled")["status"] == "True";
    wait(&env, "Cluster", "kept", "good again", good).await;
    env.stop().await;
}
