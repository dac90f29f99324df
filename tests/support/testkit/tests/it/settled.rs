//! A fleet at rest costs nothing.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use windlass_testkit::wait::TIMEOUT;
use windlass_testkit::{CLASS, ClusterOf, Env};

/// Words of a status are held back no longer than this: whoever writes nothing for so long has nothing left to write.
const HELD_BACK: Duration = Duration::from_secs(4);

type Writes = BTreeMap<String, u64>;

/// What was written in between.
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
