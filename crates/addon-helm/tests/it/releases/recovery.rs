//! What crashes and people leave is brought back.

use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use windlass_helm::{Status, values};
use windlass_testkit::faults::Faults;

use super::env::{Env, condition, web};
use super::fake::Trouble;

fn long_ago() -> Timestamp {
    Timestamp::now() - SignedDuration::from_hours(1)
}

// AD-102: forced to be pending, it ends deployed, by one new revision.
#[tokio::test]
async fn a_release_that_is_stuck_is_deployed_again_by_one_new_revision() {
    let env = Env::start().await;
    let workload = env.cluster("c1").await;
    env.proxy("web", "c1", json!({})).await;
    env.deployed("web", 1).await;
    let release = web(&workload);
    let mut stuck = release.newest().await.unwrap();
    stuck.status = Status::PendingUpgrade;
    stuck.since = long_ago();
    release.store(&stuck).await;
    env.deployed("web", 2).await;
    assert_eq!(env.helm.calls(), ["install apps/web 1.0.0", "rollback apps/web 1"]);
}

// AD-102: back to what was deployed, and from there to the desired state.
#[tokio::test]
async fn an_upgrade_that_was_broken_off_is_rolled_back_and_made_again() {
    let mut env = Env::start().await;
    let workload = env.cluster("c1").await;
    env.proxy("web", "c1", json!({})).await;
    env.deployed("web", 1).await;
    let release = web(&workload);
    let mut broken = release.newest().await.unwrap();
    broken.revision = 2;
    broken.status = Status::PendingUpgrade;
    broken.since = long_ago();
    broken.values = values::parse("replicas: 2").unwrap();
    env.stop_operating().await;
    release.store(&broken).await;
    env.proxy("web", "c1", json!({"values": "replicas: 2"})).await;
    env.operate(&Faults::none());
    env.deployed("web", 4).await;
    assert_eq!(release.newest().await.unwrap().values, broken.values);
}

// AD-078, AD-102: a manager that is killed in the middle of an installation leaves nothing that the next one cannot mend.
#[tokio::test]
async fn an_installation_that_was_killed_is_made_again_by_the_next_manager() {
    let mut env = Env::start().await;
    let workload = env.cluster("c1").await;
    env.helm.next("install", Trouble::Hangs);
    env.proxy("web", "c1", json!({"options": {"timeout": "2s"}})).await;
    let release = web(&workload);
    env.until("it has begun", async || release.newest().await.is_some())
        .await;
    env.stop_operating().await;
    env.operate(&Faults::none());
    env.deployed("web", 1).await;
    let calls = ["install apps/web 1.0.0", "uninstall apps/web", "install apps/web 1.0.0"];
    assert_eq!(env.helm.calls(), calls);
}

// AD-078, AD-102
#[tokio::test]
async fn a_process_that_is_elected_takes_over_at_once_what_its_predecessor_had_begun() {
    let mut env = Env::start().await;
    let workload = env.cluster("c1").await;
    env.helm.next("install", Trouble::Hangs);
    // Nothing waits for this timeout.
    env.proxy("web", "c1", json!({"options": {"timeout": "10h"}})).await;
    let release = web(&workload);
    env.until("it has begun", async || release.newest().await.is_some())
        .await;
    env.stop_operating().await;
    env.operate_elected().await;
    env.deployed("web", 1).await;
    let calls = ["install apps/web 1.0.0", "uninstall apps/web", "install apps/web 1.0.0"];
    assert_eq!(env.helm.calls(), calls);
}

#[tokio::test]
async fn an_operation_of_another_process_is_not_disturbed() {
    let env = Env::start().await;
    let workload = env.cluster("c1").await;
    env.proxy("web", "c1", json!({})).await;
    env.deployed("web", 1).await;
    let release = web(&workload);
    let mut theirs = release.newest().await.unwrap();
    theirs.revision = 2;
    theirs.status = Status::PendingUpgrade;
    theirs.since = Timestamp::now();
    theirs.values = values::parse("replicas: 5").unwrap();
    release.store(&theirs).await;
    let pending = env
        .blocked("web", "HelmReleaseReady", "HelmReleasePending", "pending-upgrade")
        .await;
    assert_eq!(condition(&pending, "Ready")["reason"], "HelmReleasePending");
    env.poke("web", 3).await;
    assert_eq!(env.helm.calls().len(), 1);
    // They are done: now it is put back.
    theirs.status = Status::Deployed;
    release.store(&theirs).await;
    env.deployed("web", 3).await;
    assert_eq!(
        release.newest().await.unwrap().values,
        values::parse("replicas: 1").unwrap()
    );
}

#[tokio::test]
async fn what_was_uninstalled_with_its_history_is_installed_over_it() {
    let env = Env::start().await;
    let workload = env.cluster("c1").await;
    env.proxy("web", "c1", json!({})).await;
    env.deployed("web", 1).await;
    let release = web(&workload);
    let mut gone = release.newest().await.unwrap();
    gone.status = Status::Uninstalled;
    release.store(&gone).await;
    env.deployed("web", 2).await;
}
