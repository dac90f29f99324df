//! When a connection exists, what it offers, and when it ends.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;
use tokio::net::TcpStream;
use windlass_cluster_cache::{Options, OwnPod, Policy, RemoteEvent, Workload as Known};
use windlass_controller_runtime::{Backoff, Scope};

use crate::slow::Gate;
use crate::world::{Workload, World, eventually, key};

#[tokio::test]
async fn connects_as_soon_as_infrastructure_and_kubeconfig_are_there() {
    let world = World::start().await;
    assert_eq!(
        world.clusters.get(&key("c1")).unwrap_err().why,
        "there is no such Cluster"
    );
    world.make_cluster("c1").await;
    world.reason("c1", "infrastructure is not provisioned").await;
    assert!(!world.clusters.can_try(&key("c1")));
    let untried = world.clusters.workload(&key("c1"));
    assert!(matches!(untried, Known::NotTried(_)), "{untried:?}");
    world.provision("c1").await;
    // Without a kubeconfig there is never an attempt: that is an outage with a beginning.
    eventually("the cluster is down", async || {
        match world.clusters.workload(&key("c1")) {
            Known::Down(outage) => outage.why.contains("Secret c1-kubeconfig").then_some(()),
            _ => None,
        }
    })
    .await;
    assert_eq!(world.clusters.health(&key("c1")).failures, 0);
    world.put_secret("c1-kubeconfig", &[("other", "x")]).await;
    world.reason("c1", "with key \"value\"").await;
    assert!(!world.clusters.can_try(&key("c1")));
    let workload = Workload::start(None).await;
    workload.add_node("n1", "dev:///n1").await;
    world
        .put_secret("c1-kubeconfig", &[("value", &workload.kubeconfig())])
        .await;
    let connection = world.connected("c1").await;
    assert!(world.clusters.can_try(&key("c1")));
    let listed = eventually("the Nodes are listed", async || {
        world.clusters.with_nodes(&key("c1")).up().cloned()
    })
    .await;
    assert!(listed.node("n1").is_some());
    assert!(connection.last_probe_success().is_some());
    let namespaces: Api<Namespace> = Api::all(connection.client().clone());
    assert!(namespaces.get("kube-system").await.is_ok());
}

// As in Cluster API v1.14, whose cache of clusters has the predicate for the label, too.
#[tokio::test]
async fn only_clusters_with_the_label_of_the_watch_filter_are_connected_to() {
    let scope = Scope {
        watch_filter: Some("east".to_owned()),
        ..Scope::default()
    };
    let world = World::start_within(Options::default(), Policy::default(), scope).await;
    let workload = Workload::start(None).await;
    world.make_cluster("c1").await;
    world.provision("c1").await;
    world
        .put_secret("c1-kubeconfig", &[("value", &workload.kubeconfig())])
        .await;
    world.reason("c1", "cluster.x-k8s.io/watch-filter=east").await;
    let label = async |value: &str| {
        let patch = json!({"metadata": {"labels": {"cluster.x-k8s.io/watch-filter": value}}});
        let api = world.clusters_api();
        api.patch("c1", &PatchParams::default(), &Patch::Merge(patch))
            .await
            .unwrap();
    };
    label("east").await;
    world.connected("c1").await;
    label("west").await;
    world.reason("c1", "cluster.x-k8s.io/watch-filter=east").await;
    label("east").await;
    world.connected("c1").await;
}

#[tokio::test]
async fn nodes_are_found_by_provider_id_and_their_changes_are_reported() {
    let world = World::start().await;
    let workload = Workload::start(None).await;
    let told = Arc::new(Mutex::new(Vec::new()));
    let t = told.clone();
    world.clusters.subscribe(move |event| {
        let line = match event {
            RemoteEvent::Connected(cluster) => format!("connected {cluster}"),
            RemoteEvent::Disconnected(cluster) => format!("disconnected {cluster}"),
            RemoteEvent::Listed(cluster) => format!("listed {cluster}"),
            RemoteEvent::Probed(cluster) => format!("probed {cluster}"),
            RemoteEvent::Node { old, new, .. } => {
                let name = new.as_ref().or(old.as_ref()).and_then(|n| n.metadata.name.clone());
                format!("node {} {} {}", name.unwrap_or_default(), old.is_some(), new.is_some())
            }
        };
        t.lock().unwrap().push(line);
    });
    world
        .put_secret("c1-kubeconfig", &[("value", &workload.kubeconfig())])
        .await;
    world.make_cluster("c1").await;
    world.provision("c1").await;
    let connection = world.connected("c1").await;
    workload.add_node("n1", "dev:///n1").await;
    let node = eventually("the node is indexed", async || {
        connection.node_by_provider_id("dev:///n1")
    })
    .await;
    assert_eq!(node.metadata.name.as_deref(), Some("n1"));
    workload.add_node("n2", "dev:///n1").await;
    eventually("both are there", async || connection.node("n2")).await;
    assert!(
        connection.node_by_provider_id("dev:///n1").is_none(),
        "which of them is it?"
    );
    Api::<k8s_openapi::api::core::v1::Node>::all(workload.admin.clone())
        .delete("n1", &DeleteParams::default())
        .await
        .unwrap();
    eventually("the deletion is reported", async || {
        told.lock()
            .unwrap()
            .contains(&"node n1 true false".to_owned())
            .then_some(())
    })
    .await;
    let told = told.lock().unwrap().clone();
    assert!(told.contains(&"connected default/c1".to_owned()), "{told:?}");
    assert!(told.contains(&"node n1 false true".to_owned()), "{told:?}");
}

#[tokio::test]
async fn a_lost_server_is_given_up_and_connected_again_when_it_is_back() {
    let world = World::start().await;
    let workload = Workload::start(None).await;
    let kubeconfig = workload.kubeconfig();
    world.put_secret("c1-kubeconfig", &[("value", &kubeconfig)]).await;
    world.make_cluster("c1").await;
    world.provision("c1").await;
    world.connected("c1").await;
    world.told("windlass_remote_clusters{connected=\"true\"} 1").await;
    let of = "cluster_name=\"c1\",cluster_namespace=\"default\"";
    world.told(&format!("capi_cluster_cache_connection_up{{{of}}} 1")).await;
    world.told(&format!("capi_cluster_cache_healthcheck{{{of}}} 1")).await;
    workload.server.shutdown();
    world.disconnected("c1").await;
    world.told("windlass_remote_clusters{connected=\"false\"} 1").await;
    world.told(&format!("capi_cluster_cache_connection_up{{{of}}} 0")).await;
    world.told(&format!("capi_cluster_cache_healthcheck{{{of}}} 0")).await;
    let failed = format!("capi_cluster_cache_healthchecks_total{{{of},status=\"error\"}} 3");
    world.told(&failed).await;
    let success = world.clusters.last_probe_success(&key("c1"));
    assert!(success.is_some(), "the last success is remembered");
    assert!(world.clusters.health(&key("c1")).failures >= 3);
    let workload = Workload::restart(workload).await;
    let connection = world.connected("c1").await;
    assert_eq!(world.clusters.health(&key("c1")).failures, 0);
    assert!(connection.last_probe_success() >= success);
    drop(workload);
}

#[tokio::test]
async fn callers_do_not_shorten_the_backoff_of_a_server_that_refuses_connections() {
    let first = Duration::from_millis(50);
    let world = World::start_with(Backoff::new(first, Duration::from_mins(1))).await;
    let workload = Workload::start(None).await;
    let (kubeconfig, address) = (workload.kubeconfig(), workload.address);
    drop(workload);
    eventually("connections are refused", async || {
        TcpStream::connect(address).await.is_err().then_some(())
    })
    .await;
    world.put_secret("c1-kubeconfig", &[("value", &kubeconfig)]).await;
    world.make_cluster("c1").await;
    let began = Instant::now();
    world.provision("c1").await;
    eventually("there were six attempts", async || {
        // Controllers ask all the time, and the Cluster changes with the failures.
        assert!(world.clusters.get(&key("c1")).is_err());
        let failures = world.clusters.health(&key("c1")).failures;
        world.annotate("c1", &format!("{failures} failures")).await;
        world
            .annotate_secret("c1-kubeconfig", &format!("{failures} failures"))
            .await;
        (failures >= 6).then_some(())
    })
    .await;
    let delays = first * (1 + 2 + 4 + 8 + 16);
    assert!(began.elapsed() >= delays, "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_new_kubeconfig_leads_to_the_new_server() {
    let world = World::start().await;
    let (one, two) = (Workload::start(None).await, Workload::start(None).await);
    two.add_node("second", "x").await;
    world.put_secret("c1-kubeconfig", &[("value", &one.kubeconfig())]).await;
    world.make_cluster("c1").await;
    world.provision("c1").await;
    world.connected("c1").await;
    world.put_secret("c1-kubeconfig", &[("value", &two.kubeconfig())]).await;
    eventually("the second server is reached", async || {
        world
            .clusters
            .get(&key("c1"))
            .ok()
            .filter(|c| c.node("second").is_some())
    })
    .await;
}

#[tokio::test]
async fn a_bad_kubeconfig_is_a_reason_without_its_contents() {
    let world = World::start().await;
    world
        .put_secret("c1-kubeconfig", &[("value", "users: [{secret-token: hunter2")])
        .await;
    world.make_cluster("c1").await;
    world.provision("c1").await;
    world.reason("c1", "it is not a valid kubeconfig").await;
    let why = world.disconnected("c1").await;
    assert!(!why.contains("hunter2"), "{why}");
}

#[tokio::test]
async fn a_connection_ends_with_the_kubeconfig_of_a_cluster_that_is_being_deleted() {
    let world = World::start().await;
    let workload = Workload::start(None).await;
    world
        .put_secret("c1-kubeconfig", &[("value", &workload.kubeconfig())])
        .await;
    world.make_cluster("c1").await;
    world.provision("c1").await;
    drop(world.connected("c1").await);
    let held = Patch::Merge(json!({ "metadata": { "finalizers": ["example.com/hold"] } }));
    let clusters = world.clusters_api();
    clusters.patch("c1", &PatchParams::default(), &held).await.unwrap();
    clusters.delete("c1", &DeleteParams::default()).await.unwrap();
    world
        .secrets()
        .delete("c1-kubeconfig", &DeleteParams::default())
        .await
        .unwrap();
    world.reason("c1", "the Cluster is being deleted").await;
}

#[tokio::test]
async fn a_deleted_cluster_is_forgotten() {
    let world = World::start().await;
    let workload = Workload::start(None).await;
    world
        .put_secret("c1-kubeconfig", &[("value", &workload.kubeconfig())])
        .await;
    world.make_cluster("c1").await;
    world.provision("c1").await;
    drop(world.connected("c1").await);
    let metrics = world.kit.metrics();
    let (host, cluster) = (format!("host=\"{}\"", workload.address), "cluster_name=\"c1\"");
    let has = |part: &str| metrics.encode().contains(part);
    assert!(has(&host) && has(cluster));
    world
        .clusters_api()
        .delete("c1", &DeleteParams::default())
        .await
        .unwrap();
    world.reason("c1", "there is no such Cluster").await;
    eventually("its metrics are gone", async || {
        (!has(&host) && !has(cluster)).then_some(())
    })
    .await;
    assert_eq!(world.clusters.last_probe_success(&key("c1")), None);
}

#[tokio::test]
async fn the_kubeconfig_is_given_to_others_only_when_it_holds_all_it_needs() {
    let world = World::start().await;
    let workload = Workload::start(None).await;
    let text = workload.kubeconfig();
    world.put_secret("c1-kubeconfig", &[("value", &text)]).await;
    world.make_cluster("c1").await;
    world.provision("c1").await;
    let connection = world.connected("c1").await;
    assert_eq!(connection.kubeconfig().await.unwrap(), text.as_bytes());
    let runs = "{clusters: [], contexts: [], users: [{name: u, user: {exec: {command: sh}}}]}";
    world.put_secret("c1-kubeconfig", &[("value", runs)]).await;
    let why = eventually("it is refused", async || connection.kubeconfig().await.err()).await;
    assert!(why.to_string().contains("user.exec is not allowed"), "{why}");
}

/// Where the connection of a manager in that pod leads: the Node that it sees.
async fn seen_from(pod: OwnPod, workload: &Workload) -> (String, String) {
    let world = World::start_in(pod).await;
    connect(&world, "c1", workload).await;
    let connection = world.connected("c1").await;
    let nodes = eventually("it has Nodes", async || {
        let nodes = connection.nodes().all();
        (!nodes.is_empty()).then_some(nodes)
    })
    .await;
    let authority = connection.config().cluster_url.authority().unwrap().to_string();
    (nodes[0].metadata.name.clone().unwrap_or_default(), authority)
}

#[tokio::test]
async fn the_cluster_that_the_manager_runs_in_is_reached_from_inside() {
    let outside = Workload::start(None).await;
    let inside = Workload::start_beside(&outside).await;
    outside.add_node("seen-from-outside", "x://1").await;
    inside.add_node("seen-from-inside", "x://1").await;
    let own = outside.add_pod("manager", &inside).await;
    assert_eq!(
        seen_from(own.clone(), &outside).await,
        ("seen-from-inside".to_owned(), inside.address.to_string())
    );
    let expect = ("seen-from-outside".to_owned(), outside.address.to_string());
    let mut another = own.clone();
    another.uid = "another".to_owned();
    assert_eq!(seen_from(another, &outside).await, expect, "a pod of the same name");
    let mut absent = own;
    absent.name = "absent".to_owned();
    assert_eq!(seen_from(absent, &outside).await, expect, "no such pod");
}

#[tokio::test]
async fn the_address_outside_need_not_answer() {
    let outside = Workload::start(None).await;
    let inside = Workload::start_beside(&outside).await;
    inside.add_node("seen-from-inside", "x://1").await;
    let own = inside.add_pod("manager", &inside).await;
    outside.server.shutdown();
    let expect = ("seen-from-inside".to_owned(), inside.address.to_string());
    assert_eq!(seen_from(own.clone(), &outside).await, expect);

    // A cluster that is out of reach is no other one: neither by the uid, nor by its authority.
    let mut another = own.clone();
    another.uid = "another".to_owned();
    let stranger = Workload::start(None).await;
    stranger.server.shutdown();
    for (pod, workload) in [(another, &outside), (own, &stranger)] {
        let world = World::start_in(pod).await;
        connect(&world, "c1", workload).await;
        world
            .told("capi_cluster_cache_connection_up{cluster_name=\"c1\",cluster_namespace=\"default\"} 0")
            .await;
        assert!(world.clusters.get(&key("c1")).is_err());
    }
}

#[tokio::test]
async fn a_cluster_that_does_not_say_whether_the_manager_runs_in_it_is_asked_again() {
    let workload = Workload::start(None).await;
    let mut own = workload.add_pod("manager", &workload).await;
    own.namespace = "not a namespace".to_owned();
    let world = World::start_in(own).await;
    connect(&world, "c1", &workload).await;
    world
        .reason(
            "c1",
            "whether this manager runs in the cluster: Pod not a namespace/manager: ",
        )
        .await;
}

#[tokio::test]
async fn an_outage_begins_before_the_connection_counts_as_lost() {
    let options = Options {
        threshold: u32::MAX,
        ..World::options(Backoff::new(Duration::from_millis(20), Duration::from_millis(100)))
    };
    let world = World::start_for(options).await;
    let workload = Workload::start(None).await;
    connect(&world, "c1", &workload).await;
    world.connected("c1").await;
    assert_eq!(world.clusters.probe(&key("c1")), Known::Up(()));
    workload.server.shutdown();
    let outage = eventually("a probe fails", async || match world.clusters.probe(&key("c1")) {
        Known::Down(outage) => Some(outage),
        _ => None,
    });
    let outage = outage.await;
    assert!(
        outage.last_success.is_some_and(|success| success <= outage.since),
        "{outage:?}"
    );
    assert!(
        world.clusters.workload(&key("c1")).up().is_some(),
        "it is still connected"
    );
    let workload = Workload::restart(workload).await;
    let answers = async || world.clusters.probe(&key("c1")).up().copied();
    eventually("the probes are answered again", answers).await;
    drop(workload);
}

#[tokio::test]
async fn a_request_that_is_not_answered_begins_an_outage() {
    let options = World::options(Backoff::new(Duration::from_millis(20), Duration::from_millis(100)));
    let world = World::start_for(options).await;
    let workload = Workload::start(None).await;
    connect(&world, "c1", &workload).await;
    world.connected("c1").await;
    let probed = async || world.clusters.last_probe_success(&key("c1"));
    eventually("it is probed", probed).await;
    let Known::Down(outage) = world.clusters.unanswered(&key("c1"), "no".to_owned()) else {
        panic!("the outage has begun");
    };
    assert_eq!(outage.why, "no");
    let answers = async || world.clusters.probe(&key("c1")).up().copied();
    eventually("the next probe ends it", answers).await;
    drop(workload);
}

/// Waits until this many probes were answered: so much time has passed over open connections.
async fn probed(world: &World, times: u64) {
    let metrics = world.kit.cx().metrics().clone();
    let answered = || {
        let text = metrics.encode();
        let checks = text
            .lines()
            .filter(|line| line.starts_with("capi_cluster_cache_healthchecks_total{") && line.contains("\"success\""));
        let counts = checks.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
        counts.sum::<u64>()
    };
    let enough = answered() + times;
    eventually("it is probed", async || (answered() >= enough).then_some(())).await;
}

async fn connect(world: &World, name: &str, workload: &Workload) {
    let secret = format!("{name}-kubeconfig");
    world.put_secret(&secret, &[("value", &workload.kubeconfig())]).await;
    world.make_cluster(name).await;
    world.provision(name).await;
}

#[tokio::test]
async fn a_cluster_that_sends_its_nodes_slowly_is_connected_and_its_nodes_are_unknown_until_they_are_there() {
    let world = World::start_for(Options {
        interval: Duration::from_millis(40),
        timeout: Duration::from_secs(1),
        first_list: Duration::from_secs(3),
        ..Options::default()
    })
    .await;
    let gate = Arc::<Gate>::default();
    let workload = Workload::start_slow(&gate).await;
    workload.add_node("n1", "dev:///n1").await;
    connect(&world, "c1", &workload).await;
    let connection = world.connected("c1").await;
    let known = || world.clusters.with_nodes(&key("c1"));
    assert!(matches!(known(), Known::NotTried(_)), "{:?}", known());
    // Longer than an answer may take, and then longer than a list may take.
    eventually("the Nodes are out of reach", async || {
        matches!(known(), Known::Down(_)).then_some(())
    })
    .await;
    assert_eq!(
        known().unknown().unwrap(),
        "the Nodes of the workload cluster cannot be listed"
    );
    assert!(
        Arc::ptr_eq(&connection, &world.connected("c1").await),
        "it stays connected"
    );
    assert_eq!(world.clusters.health(&key("c1")).failures, 0);
    let told = Arc::new(Mutex::new(Vec::new()));
    let t = told.clone();
    world.clusters.subscribe(move |event| {
        if let RemoteEvent::Listed(cluster) = event {
            t.lock().unwrap().push(cluster.to_string());
        }
    });
    gate.open();
    eventually("the Nodes are known", async || known().up()?.node("n1")).await;
    assert_eq!(gate.asked(), 1, "the list was not begun again");
    eventually("the list is reported", async || {
        (!told.lock().unwrap().is_empty()).then_some(())
    })
    .await;
    assert_eq!(*told.lock().unwrap(), ["default/c1"]);
}

#[tokio::test]
async fn only_some_clusters_list_their_nodes_at_once() {
    let world = World::start().await;
    let gate = Arc::<Gate>::default();
    let mut workloads = Vec::new();
    for number in 0..12 {
        let workload = Workload::start_slow(&gate).await;
        connect(&world, &format!("c{number}"), &workload).await;
        workloads.push(workload);
    }
    for number in 0..12 {
        world.connected(&format!("c{number}")).await;
    }
    probed(&world, 24).await;
    assert_eq!(gate.asked(), 10);
    gate.open();
    for number in 0..12 {
        eventually("the Nodes are known", async || {
            world.clusters.with_nodes(&key(&format!("c{number}"))).up().cloned()
        })
        .await;
    }
}
