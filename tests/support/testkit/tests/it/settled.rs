//! An idle fleet causes no writes.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use windlass_testkit::wait::TIMEOUT;
use windlass_testkit::{CLASS, ClusterOf, Env};

/// Changes of texts in a status are delayed no longer than this: a controller without writes for so long has none left.
const HELD_BACK: Duration = Duration::from_secs(4);

type Writes = BTreeMap<String, u64>;

/// The writes between two snapshots.
fn new(before: &Writes, after: &Writes) -> Vec<(String, u64)> {
    let more = |(what, count): (&String, &u64)| (what.clone(), count - before.get(what).unwrap_or(&0));
    after.iter().map(more).filter(|(_, count)| *count > 0).collect()
}

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
            assert!(begun.elapsed() < TIMEOUT, "still writing: {:?}", new(&before, &now));
            (before, quiet) = (now, Instant::now());
        } else if quiet.elapsed() > HELD_BACK {
            break;
        }
    }
    env.stop().await;
}
