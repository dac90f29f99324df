//! The manager restarts, and the infrastructure runs on.

use windlass_infra_dev::Cloud;
use windlass_testkit::faults::Faults;
use windlass_testkit::{ClusterOf, Env, seeds};

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
