//! The life of a cluster, from creation to deletion.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Event, Node, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{Api, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::json;
use windlass_api::core::Machine;
use windlass_infra_dev::{Call, Cloud};
use windlass_testkit::faults::Faults;
use windlass_testkit::wait::{self, until};
use windlass_testkit::{CLASS, ClusterOf, Env, NAMESPACE};

/// A client with nothing but the kubeconfig for users.
pub(crate) async fn workload(env: &Env, cluster: &ClusterOf) -> kube::Client {
    let secret = env
        .api::<Secret>()
        .get(&format!("{}-kubeconfig", cluster.name))
        .await
        .unwrap();
    assert_eq!(secret.type_.as_deref(), Some("cluster.x-k8s.io/secret"));
    let text = &secret.data.as_ref().unwrap()["value"].0;
    let kubeconfig: Kubeconfig = serde_saphyr::from_slice(text).unwrap();
    let options = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .unwrap();
    kube::Client::try_from(config).unwrap()
}

/// Waits until the workload cluster has exactly the Nodes of the Machines, at the cluster's version.
pub(crate) async fn wait_nodes(env: &Env, cluster: &ClusterOf) {
    let machines = env.list::<Machine>().await;
    let wanted: BTreeSet<_> = machines
        .into_iter()
        .map(|machine| (machine.status.unwrap().node_ref.unwrap().name, cluster.version.clone()))
        .collect();
    assert_eq!(wanted.len(), cluster.control_plane + cluster.workers);
    let version = |node: &Node| Some(node.status.as_ref()?.node_info.as_ref()?.kubelet_version.clone());
    let names = |nodes: &[Node]| -> BTreeSet<_> {
        nodes
            .iter()
            .map(|node| (node.metadata.name.clone().unwrap(), version(node).unwrap_or_default()))
            .collect()
    };
    let api: Api<Node> = Api::all(workload(env, cluster).await);
    let found = until(api, None, |nodes| names(nodes) == wanted).await;
    assert!(found.is_some(), "the Nodes are never {wanted:?}");
}

// CL-010, CL-062, CL-071
#[tokio::test]
async fn a_cluster_is_created_scaled_and_deleted_without_leaving_anything() {
    let env = Env::start().await;
    env.apply_yaml(CLASS).await;
    let stored = env.stored().await;
    let cluster = ClusterOf::new("one", 3, 3);
    cluster.apply(&env).await;
    cluster.wait_running(&env).await;
    wait_nodes(&env, &cluster).await;

    let grown = cluster.clone().workers(5);
    grown.apply(&env).await;
    grown.wait_running(&env).await;
    wait_nodes(&env, &grown).await;

    let before = env.list::<Machine>().await;
    let shrunk = grown.workers(1);
    shrunk.apply(&env).await;
    shrunk.wait_running(&env).await;
    wait_nodes(&env, &shrunk).await;
    let names = |machines: Vec<&Machine>| -> Vec<_> { machines.iter().map(|m| m.metadata.name.clone()).collect() };
    let after = env.list::<Machine>().await;
    assert_eq!(
        names(shrunk.machines(&after, true)),
        names(shrunk.machines(&before, true)),
        "scaling workers leaves the control plane alone"
    );
    env.delete("Cluster", "one").await;
    env.wait_gone("one").await;
    assert_eq!(env.stored().await, stored);
    env.stop().await;
}

// TO-303, TO-304, TO-331
#[tokio::test]
async fn an_upgrade_replaces_the_control_plane_first_and_never_loses_its_quorum() {
    let env = Env::start().await;
    env.apply_yaml(CLASS).await;
    let old = ClusterOf::new("up", 3, 2);
    old.apply(&env).await;
    old.wait_running(&env).await;
    let before: Vec<_> = env
        .list::<Machine>()
        .await
        .into_iter()
        .map(|m| m.metadata.uid)
        .collect();

    let new = old.clone().version("v1.36.0");
    env.merge(
        "Cluster",
        "up",
        &json!({"spec": {"topology": {"version": new.version}}}),
    )
    .await;
    let at_new = |machine: &&Machine| machine.spec.version.as_deref() == Some(new.version.as_str());
    let watched = env.wait_all::<Machine>("the upgrade is done", |machines| {
        let control_plane = new.machines(machines, true);
        let running = control_plane.iter().filter(|m| phase(m) == "Running").count();
        assert!(running >= 3, "{running} of 3 control plane machines run");
        assert!(
            control_plane.len() <= 4,
            "{} control plane machines at once",
            control_plane.len()
        );
        let workers = new.machines(machines, false);
        let upgraded = control_plane
            .iter()
            .filter(|m| at_new(m) && phase(m) == "Running")
            .count();
        assert!(
            upgraded == 3 || !workers.iter().any(at_new),
            "a worker is upgraded while {upgraded} of 3 control plane machines are"
        );
        machines.len() == 5 && machines.iter().all(|m| at_new(&m) && phase(m) == "Running")
    });
    watched.await;
    new.wait_running(&env).await;
    for machine in env.list::<Machine>().await {
        assert!(
            !before.contains(&machine.metadata.uid),
            "machines are replaced, not changed"
        );
    }
    wait_nodes(&env, &new).await;
    let server = workload(&env, &new).await.apiserver_version().await.unwrap();
    assert_eq!(server.git_version, new.version, "the API server is upgraded as well");
    env.stop().await;
}

fn phase(machine: &Machine) -> &str {
    machine
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref())
        .unwrap_or_default()
}

// Row 159: a provider's mistake is an event, and the Machine keeps what it knows.
#[tokio::test]
async fn two_nodes_with_one_provider_id_are_reported() {
    let env = Env::start().await;
    env.apply_yaml(CLASS).await;
    let cluster = ClusterOf::new("twins", 1, 1);
    cluster.apply(&env).await;
    cluster.wait_running(&env).await;
    let machines = env.list::<Machine>().await;
    let worker = cluster.machines(&machines, false)[0].clone();
    let id = worker.spec.provider_id.clone().unwrap();
    let nodes = Api::<Node>::all(workload(&env, &cluster).await);
    let twin = json!({ "metadata": { "name": "twin" }, "spec": { "providerID": id } });
    let twin = serde_json::from_value(twin).unwrap();
    nodes.create(&PostParams::default(), &twin).await.unwrap();
    let events: Api<Event> = Api::namespaced(env.client().clone(), NAMESPACE);
    let name = worker.metadata.name.clone().unwrap();
    let wanted = format!("unexpectedly found more than one Node matching the providerID {id}: twin, {name}");
    let is_reported = |all: &[Event]| {
        all.iter().any(|event| {
            event.reason.as_deref() == Some("FailedSetNodeRef")
                && event.message.as_deref() == Some(wanted.as_str())
                && event.involved_object.name == worker.metadata.name
        })
    };
    until(events, None, is_reported).await.expect("an event");
    let kept = env.api::<Machine>().get(&name).await.unwrap();
    assert_eq!(kept.status.unwrap().node_ref, worker.status.clone().unwrap().node_ref);
    env.stop().await;
}

/// Since when the Nodes of all Machines are ready, or not.
async fn ready_since(env: &Env) -> BTreeMap<String, (String, Time)> {
    let machines = env.list::<Machine>().await.into_iter();
    let ready = machines.filter_map(|machine| {
        let conditions = machine.status?.conditions;
        let ready = conditions
            .into_iter()
            .find(|condition| condition.type_ == "NodeReady")?;
        Some((machine.metadata.name?, (ready.status, ready.last_transition_time)))
    });
    ready.collect()
}

#[tokio::test]
async fn a_simulated_cluster_that_is_made_again_shows_no_machine_without_its_node() {
    let cloud = Cloud::new();
    let mut env = Env::builder().cloud(&cloud).start().await;
    env.apply_yaml(CLASS).await;
    let cluster = ClusterOf::new("whole", 3, 2);
    cluster.apply(&env).await;
    cluster.wait_running(&env).await;
    let before = ready_since(&env).await;
    assert!(before.values().all(|(status, _)| status == "True"), "{before:?}");
    // The process ends, and with it the simulated machines. They come back, and register their Nodes one second later.
    env.stop_controllers().await;
    cloud.shutdown().await;
    let registered = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&registered);
    cloud.delay(move |call, _| {
        let count = Arc::clone(&count);
        Box::pin(async move {
            if call == Call::RegisterNode {
                tokio::time::sleep(Duration::from_secs(1)).await;
                count.fetch_add(1, Ordering::Relaxed);
            }
        })
    });
    env.start_controllers(&Faults::none());
    let mut looks = wait::looks();
    let back = tokio::time::timeout(wait::TIMEOUT, async {
        while registered.load(Ordering::Relaxed) < before.len() {
            looks.tick().await;
        }
    });
    back.await.expect("all machines come back");
    wait_nodes(&env, &cluster).await;
    assert_eq!(ready_since(&env).await, before);
    env.stop().await;
}

// CL-082
#[tokio::test]
async fn a_process_that_starts_again_goes_on_in_every_step() {
    let env = Env::start().await;
    env.apply_yaml(CLASS).await;
    let stored = env.stored().await;
    let cluster = ClusterOf::new("again", 1, 1);
    cluster.apply(&env).await;
    cluster.wait_running(&env).await;
    let machines = |all: Vec<Machine>| -> Vec<_> { all.into_iter().map(|m| m.metadata.uid).collect() };
    let before = machines(env.list().await);
    let env = env.restart().await;
    cluster.wait_running(&env).await;
    assert_eq!(machines(env.list().await), before, "a start replaces nothing");
    wait_nodes(&env, &cluster).await;

    let cluster = cluster.workers(2);
    cluster.apply(&env).await;
    let env = env.restart().await;
    cluster.wait_running(&env).await;
    let cluster = cluster.version("v1.36.0");
    cluster.apply(&env).await;
    let env = env.restart().await;
    cluster.wait_running(&env).await;
    env.delete("Cluster", "again").await;
    let env = env.restart().await;
    env.wait_gone("again").await;
    assert_eq!(env.stored().await, stored);
    env.stop().await;
}
