//! The manager restarts, and the infrastructure runs on.

use windlass_infra_dev::Cloud;
use windlass_testkit::faults::Faults;
use windlass_testkit::{ClusterOf, Env};

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
