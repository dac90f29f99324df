//! Clusters go with clusterctl from one management cluster to another, and through files; their Machines run on.
//!
//! The simulated infrastructure is that of neither management cluster, as a real one is.

use std::collections::BTreeSet;

use kube::api::ListParams;
use windlass_infra_dev::{Call, Cloud};
use windlass_manager::registry::kinds::find;
use windlass_testkit::{CLASS, ClusterOf, Env, NAMESPACE};

use super::{Clusterctl, hosts, with_inventory};

/// What was called for, and must not be called for again when a cluster moves.
fn calls(cloud: &Cloud) -> Vec<(Call, u64)> {
    let all = cloud.calls().into_iter();
    let lasting = all.filter(|(key, _)| {
        matches!(
            key.call,
            Call::DeleteMachine | Call::DeleteLoadBalancer | Call::DeregisterMember
        )
    });
    lasting.map(|(key, count)| (key.call, count.allowed)).collect()
}

/// The objects of our kinds and the Secrets, as `Kind name`, without what every management cluster has.
async fn objects(env: &Env) -> BTreeSet<String> {
    let of_its_own = [
        "serviceaccounts ",
        "configmaps ",
        "services ",
        "secrets default/windlass-webhook-certificate",
        "clusterclassrevisions.",
    ];
    let stored = env.stored().await.into_iter();
    let mine = stored.filter_map(|line| {
        let (resource, name) = line.split_once(&format!(" {NAMESPACE}/"))?;
        let is_mine = !of_its_own.iter().any(|other| line.starts_with(other));
        is_mine.then(|| format!("{} {name}", resource.split('.').next().unwrap_or_default()))
    });
    mine.collect()
}

/// The objects in lines such as `Creating Machine="a" Namespace="default"`.
fn created(log: &str) -> BTreeSet<String> {
    let lines = log.lines().filter_map(|line| line.strip_prefix("Creating "));
    let objects = lines.filter_map(|line| line.split_once(' ')?.0.split_once('='));
    let objects = objects.filter(|(kind, _)| *kind != "ClusterClassRevision");
    let named = objects.map(|(kind, name)| {
        let plural = find(kind).map_or("secrets", |entry| entry.plural);
        format!("{plural} {}", name.trim_matches('"'))
    });
    named.collect()
}

// TO-376
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clusters_move_to_another_server_and_through_files_and_no_machine_is_replaced() {
    let Some(clusterctl) = Clusterctl::required() else {
        return;
    };
    let cloud = Cloud::new();
    let first = Env::builder().cloud(&cloud).start().await;
    let mut second = Env::builder().cloud(&cloud).start().await;
    first.apply_yaml(CLASS).await;
    let cluster = ClusterOf::new("moved", 1, 2);
    cluster.apply(&first).await;
    cluster.wait_running(&first).await;
    for env in [&first, &second] {
        with_inventory(env).await;
    }
    first.rest().await;
    let (machines, before, ours) = (hosts(&first).await, calls(&cloud), objects(&first).await);

    let (done, _, log) = clusterctl.run(&first, &["move", "--dry-run", "--v", "1"]).await;
    assert!(done, "{log}");
    assert_eq!(
        created(&log),
        ours,
        "a trial finds everything of the cluster and its class"
    );
    assert_eq!(hosts(&first).await, machines);
    assert_eq!(objects(&first).await, ours, "a trial changes nothing");

    let target = second.server().kubeconfig();
    clusterctl
        .ok(&first, &["move", "--to-kubeconfig", target.to_str().unwrap()])
        .await;
    assert_eq!(objects(&first).await, BTreeSet::new(), "nothing is left behind");
    cluster.wait_running(&second).await;
    second.rest().await;
    assert_eq!(hosts(&second).await, machines, "no Machine was replaced");
    assert_eq!(calls(&cloud), before, "nothing was deleted");
    assert_eq!(objects(&second).await, ours);

    // The target manages what it got.
    let grown = cluster.clone().workers(3);
    grown.apply(&second).await;
    grown.wait_running(&second).await;
    second.rest().await;
    let machines = hosts(&second).await;

    let folder = clusterctl.home.path().join("objects");
    std::fs::create_dir(&folder).unwrap();
    let folder = folder.to_str().unwrap();
    clusterctl.ok(&second, &["move", "--to-directory", folder]).await;
    let stored = objects(&second).await;
    // As if the second management cluster were lost.
    second.stop_controllers().await;
    let third = Env::builder().cloud(&cloud).start().await;
    with_inventory(&third).await;
    clusterctl.ok(&third, &["move", "--from-directory", folder]).await;
    grown.wait_running(&third).await;
    third.rest().await;
    assert_eq!(hosts(&third).await, machines, "no Machine was replaced");
    assert_eq!(objects(&third).await, stored);
    assert_eq!(calls(&cloud), before, "nothing was deleted");
    let paused = third.dynamic("Cluster").list(&ListParams::default()).await.unwrap();
    assert!(paused.iter().all(|cluster| cluster.data["spec"]["paused"] != true));

    third.delete("Cluster", &cluster.name).await;
    third.wait_gone(&cluster.name).await;
    for env in [first, second, third] {
        env.stop().await;
    }
}
