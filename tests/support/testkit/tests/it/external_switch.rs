//! Managed infrastructure is handed over to an external system while it is in use, and during other operations.

use std::sync::Arc;

use futures::FutureExt as _;
use serde_json::json;
use tokio::sync::{Notify, Semaphore};
use windlass_api::annotations::MANAGED_BY;
use windlass_api::core::{Cluster, Machine};
use windlass_infra_dev::{Call, Cloud};
use windlass_testkit::faults::Faults;
use windlass_testkit::{ByHand, Env, ExternalSystem, Life, Version};

const FINALIZER: &str = "dockercluster.infrastructure.cluster.x-k8s.io";

/// The number of successful writes by our provider.
fn provider_writes(env: &Env, name: &str) -> u64 {
    let writes = env.writes_to("DevCluster", name);
    let ours = writes
        .iter()
        .filter(|(write, _)| write.manager.starts_with("capd-manager") && write.succeeded());
    ours.map(|(_, count)| count).sum()
}

async fn hand_over(system: &ExternalSystem, life: &Life, name: &str) -> Version {
    let annotation = json!({"metadata": {"annotations": {(MANAGED_BY): ExternalSystem::MANAGER}}});
    system.merge(name, &annotation).await;
    life.until("handed over", |version| version.annotation(MANAGED_BY).is_some())
        .await
}

// T7, T8. EX-023, EX-082, EX-085
#[tokio::test]
async fn a_cluster_in_use_is_handed_over_and_the_provider_falls_silent() {
    let cloud = Cloud::new();
    let mut env = Env::builder().cloud(&cloud).start().await;
    let system = ExternalSystem::new(&env);
    let cluster = ByHand::new("over", 1, 1).managed();
    let life = env.record("DevCluster", "over").await;
    cluster.apply(&env).await;
    cluster.wait_running(&env).await;
    let machines = |all: Vec<Machine>| -> Vec<_> { all.into_iter().map(|machine| machine.metadata.uid).collect() };
    let before = machines(env.list().await);
    env.prod("rest").await;
    let balancer = cloud.load_balancer(&cluster.key());
    assert!(balancer.is_some());
    let cluster_calls = || -> u64 {
        let counts = cloud.calls();
        let found = counts.iter().filter(|(key, _)| key.call.is_cluster_level());
        found.map(|(_, count)| count.allowed + count.refused).sum()
    };
    let (writes, calls) = (provider_writes(&env, "over"), cluster_calls());
    let over = hand_over(&system, &life, "over").await;
    assert_eq!(over.finalizers(), [FINALIZER]);
    // A reconcile that was due before may still run once, but not after a restart.
    env.stop_controllers().await;
    env.start_controllers(&Faults::none());
    env.looked(&["cluster", "machine", "devmachine"]).await;

    // Machines keep running, and new ones are created.
    assert_eq!(machines(env.list().await), before);
    let cluster = cluster.workers(3);
    env.apply(&cluster.object("MachineDeployment")).await;
    cluster.wait_running(&env).await;
    for paused in [true, false] {
        env.merge("Cluster", "over", &json!({"spec": {"paused": paused}})).await;
    }
    system
        .merge("over", &json!({"metadata": {"labels": {"team": "network"}}}))
        .await;

    // The external system must remove the provider's finalizer.
    env.delete("Cluster", "over").await;
    env.wait_for::<Cluster>(&cluster.key(), "waits for the infrastructure", |cluster| {
        let status = cluster.status.as_ref();
        status.is_some_and(|status| {
            let mut conditions = status.conditions.iter();
            conditions.any(|condition| condition.reason == "WaitingForInfrastructureDeletion")
        })
    })
    .await;
    let held = life
        .until("deleted", |version| {
            version.object.metadata.deletion_timestamp.is_some()
        })
        .await;
    assert_eq!(held.finalizers(), [FINALIZER]);
    assert_eq!(
        held.status(),
        over.status(),
        "what the provider wrote before stays as it was"
    );
    system.release("over").await;
    life.until_gone().await;
    env.wait_gone("over").await;
    assert_eq!(provider_writes(&env, "over"), writes);
    assert_eq!(cluster_calls(), calls);
    let added = env.metric("workqueue_adds_total", "devcluster");
    assert!(added.abs() < f64::EPSILON, "{added} wake-ups");
    assert_eq!(cloud.load_balancer(&cluster.key()), balancer, "what is outside stays");
    env.stop().await;
}

// EX-029, EX-086
#[tokio::test]
async fn what_is_under_way_when_a_cluster_is_handed_over_writes_nothing_any_more() {
    let cloud = Cloud::new();
    let (entered, gate) = (Arc::new(Notify::new()), Arc::new(Semaphore::new(0)));
    let (tell, wait) = (entered.clone(), gate.clone());
    cloud.delay(move |call, _| {
        let (tell, wait) = (tell.clone(), wait.clone());
        async move {
            if call == Call::CreateLoadBalancer {
                tell.notify_one();
                drop(wait.acquire().await);
            }
        }
        .boxed()
    });
    let env = Env::builder().cloud(&cloud).start().await;
    let system = ExternalSystem::new(&env);
    let cluster = ByHand::new("race", 1, 0).managed();
    let life = env.record("DevCluster", "race").await;
    cluster.apply(&env).await;
    entered.notified().await;
    let over = hand_over(&system, &life, "race").await;
    let writes = provider_writes(&env, "race");
    gate.close();
    env.look_until("the reconcile under way ends", || {
        let refused = env.writes_to("DevCluster", "race");
        let refused = refused
            .keys()
            .any(|write| write.manager.starts_with("capd-manager") && write.code == 409);
        refused && env.metric("controller_runtime_active_workers", "devcluster").abs() < f64::EPSILON
    })
    .await;
    system.set_provisioned("race").await;
    env.prod_all_but("devcluster", "after").await;
    let last = life.now().await;
    assert_eq!(provider_writes(&env, "race"), writes);
    assert_eq!(last.spec(), over.spec());
    // A reconcile before the Cluster had adopted the object may have written a status.
    let mut status = over.status().clone();
    status["initialization"] = json!({"provisioned": true});
    assert_eq!(last.status(), &status);
    assert_eq!(last.finalizers(), [FINALIZER], "it was there before");
    env.stop().await;
}
