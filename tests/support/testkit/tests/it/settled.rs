//! An idle fleet causes no writes.

use std::time::Instant;

use windlass_testkit::rest::{HELD_BACK, more};
use windlass_testkit::wait::TIMEOUT;
use windlass_testkit::{CLASS, ClusterOf, Env};

#[tokio::test]
async fn a_settled_fleet_writes_nothing_whatever_wakes_the_controllers() {
    let env = Env::start().await;
    env.apply_yaml(CLASS).await;
    let cluster = ClusterOf::new("rest", 1, 2);
    cluster.apply(&env).await;
    cluster.wait_running(&env).await;
    let begun = Instant::now();
    let (mut before, mut quiet) = (env.writes_by_kind(), Instant::now());
    for round in 0.. {
        env.prod(&format!("look {round}")).await;
        let now = env.writes_by_kind();
        if now != before {
            assert!(begun.elapsed() < TIMEOUT, "still writing: {:?}", more(&before, &now));
            (before, quiet) = (now, Instant::now());
        } else if quiet.elapsed() > HELD_BACK {
            break;
        }
    }
    env.stop().await;
}
