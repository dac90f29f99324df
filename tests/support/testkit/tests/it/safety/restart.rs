//! The manager restarts, and the infrastructure runs on.

use std::collections::BTreeSet;

use serde_json::json;
use windlass_api::core::Machine;
use windlass_api_ext::infrastructure::DevMachine;
use windlass_api_kubeadm::annotations::PRE_TERMINATE_CLEANUP;
use windlass_infra_dev::Cloud;
use windlass_testkit::faults::{Fault, Faults};
use windlass_testkit::rest::differences;
use windlass_testkit::{ClusterOf, Env, seeds};

use super::dark::cut;
use super::lost::pause;
use super::phases::Phase;
use super::{hosts, running};

#[tokio::test]
async fn what_changed_while_no_manager_ran_is_carried_out_without_replacing_the_rest() {
    let cloud = Cloud::new();
    let mut env = Env::builder().cloud(&cloud).start().await;
    let cluster = ClusterOf::new("gap", 1, 1);
    running(&env, &cluster).await;
    let before = hosts(&env).await;
    env.stop_controllers().await;
    let grown = cluster.workers(3);
    grown.apply(&env).await;
    env.start_controllers(&Faults::none());
    grown.wait_running(&env).await;
    let after = hosts(&env).await;
    assert!(
        before.iter().all(|host| after.get(host.0) == Some(host.1)),
        "{before:?} became {after:?}"
    );
    assert_eq!(env.created("machines"), 4);
    env.stop().await;
}

/// All controllers start again, look at everything, and rest: no object has another version.
async fn is_left_alone(env: &mut Env) {
    let before = env.all().await;
    let busy: BTreeSet<String> = env.load().reconciles.into_keys().collect();
    let busy: Vec<&str> = busy.iter().map(String::as_str).collect();
    env.stop_controllers().await;
    env.start_controllers(&Faults::none());
    env.looked(&busy).await;
    env.rest().await;
    let found = differences(&before, &env.all().await, &[]);
    assert!(found.is_empty(), "changed by a restart:\n{}", found.join("\n"));
}

/// A cluster with a MachineHealthCheck, at rest.
async fn at_rest(env: &Env) -> ClusterOf {
    let cluster = ClusterOf::new("calm", 3, 2);
    running(env, &cluster).await;
    env.apply(&json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "MachineHealthCheck",
        "metadata": {"name": "workers", "namespace": cluster.key().namespace},
        "spec": {
            "clusterName": cluster.name,
            "selector": {"matchLabels": {"topology.cluster.x-k8s.io/deployment-name": "md-0"}},
            "checks": {"unhealthyNodeConditions": [{"type": "Ready", "status": "False", "timeoutSeconds": 300}]},
        },
    }))
    .await;
    env.rest().await;
    cluster
}

#[tokio::test]
async fn a_restart_at_rest_changes_nothing() {
    let cloud = Cloud::new();
    let mut env = Env::builder().cloud(&cloud).start().await;
    at_rest(&env).await;
    is_left_alone(&mut env).await;
    env.stop().await;
}

/// The new process has no connection, as the one before: what was known stays known.
#[tokio::test]
async fn a_restart_during_an_outage_changes_nothing() {
    let cloud = Cloud::new();
    let mut env = Env::builder().cloud(&cloud).start().await;
    let cluster = at_rest(&env).await;
    cut(&env, &cluster).await;
    env.rest().await;
    is_left_alone(&mut env).await;
    env.stop().await;
}

#[tokio::test]
async fn a_restart_of_a_paused_cluster_changes_nothing() {
    let cloud = Cloud::new();
    let mut env = Env::builder().cloud(&cloud).start().await;
    let cluster = at_rest(&env).await;
    pause(&env, &cluster, true).await;
    env.rest().await;
    is_left_alone(&mut env).await;
    env.stop().await;
}

/// The process dies in the middle of an operation, during a write that the seed decides, and another one finishes it.
async fn in_the_middle_of(phase: Phase) {
    let seed = seeds::given().unwrap_or_default();
    let _shown = seeds::Shown(seed);
    let cloud = Cloud::new();
    let faults = Faults::none();
    let mut env = Env::builder().cloud(&cloud).faults(&faults).start().await;
    let underway = phase.begin(&env).await;
    faults.die_after(1 + usize::try_from(seed % 20).unwrap_or_default());
    tokio::select! {
        () = faults.died() => {}
        // Fewer writes were left: the manager restarts at rest.
        () = underway.finish(&env) => {}
    }
    env.stop_controllers().await;
    env.start_controllers(&Faults::none());
    underway.finish(&env).await;
    env.stop().await;
}

#[tokio::test]
async fn a_creation_goes_on() {
    in_the_middle_of(Phase::Creation).await;
}

#[tokio::test]
async fn scaling_goes_on() {
    in_the_middle_of(Phase::Scaling).await;
}

#[tokio::test]
async fn an_upgrade_goes_on() {
    in_the_middle_of(Phase::Upgrade).await;
}

#[tokio::test]
async fn a_remediation_goes_on() {
    in_the_middle_of(Phase::Remediation).await;
}

#[tokio::test]
async fn a_deletion_goes_on() {
    in_the_middle_of(Phase::Deletion).await;
}

// The simulated infrastructure is lost with the manager here: what its machines did before is all in the objects.
#[tokio::test]
async fn an_etcd_member_that_left_before_a_restart_is_not_missed_after_it() {
    let mut env = Env::builder().without_controllers().start().await;
    let held = Faults::when(|seen| {
        let deletes = seen.method == "DELETE" && seen.path.contains("/devmachines/");
        deletes.then_some(Fault::Refused(500))
    });
    env.start_controllers(&held);
    let cluster = ClusterOf::new("left", 1, 0);
    running(&env, &cluster).await;
    let before = hosts(&env).await;
    let cluster = cluster.version("v1.36.0");
    cluster.apply(&env).await;
    env.wait_all::<Machine>("the old Machine has no hook left", |machines| {
        machines.iter().any(|machine| {
            let annotations = machine.metadata.annotations.as_ref();
            let hooked = annotations.is_some_and(|all| all.contains_key(PRE_TERMINATE_CLEANUP));
            machine.metadata.deletion_timestamp.is_some() && !hooked
        })
    })
    .await;
    env.stop_controllers().await;
    let machines = env.list::<DevMachine>().await;
    assert_eq!(machines.len(), 2);
    assert!(machines.iter().all(|m| m.metadata.deletion_timestamp.is_none()));
    env.start_controllers(&Faults::none());
    cluster.wait_running(&env).await;
    let after = hosts(&env).await;
    assert!(
        before.keys().all(|name| !after.contains_key(name)),
        "{before:?} became {after:?}"
    );
    let etcd = env.cloud().etcd(&cluster.key()).expect("etcd runs");
    assert_eq!(etcd.members.into_values().collect::<Vec<_>>(), [true]);
    env.stop().await;
}
