//! A year in fast forward: nothing but time passes, and what ends in it is renewed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use windlass_api::core::v1beta2::Machine;
use windlass_meta::FakeClock;
use windlass_testkit::Kind;

use crate::server::{CONTROLLER, World};

/// A little more than the longest timer of the driver.
const STEP: Duration = Duration::from_hours(13);

/// Moves the clock and all timers.
pub(crate) async fn pass(clock: &FakeClock, time: Duration) {
    clock.advance(SignedDuration::try_from(time).unwrap());
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

/// The writes of the controller, by what is written.
fn writes(world: &World) -> BTreeMap<String, u64> {
    let all = world.server.counters();
    let ours = all.of(|write| write.agent == CONTROLLER && write.resource != "events");
    let mut writes = BTreeMap::new();
    for (write, count) in ours {
        let what = format!("{} {}/{}", write.verb, write.resource, write.subresource);
        *writes.entry(what.trim_end_matches('/').to_owned()).or_default() += count;
    }
    writes
}

pub(crate) fn reconciles(world: &World) -> u64 {
    let metrics = world.kit.metrics();
    ["success", "requeue_after", "error"]
        .iter()
        .map(|result| metrics.reconciles("kubeadmcontrolplane", result))
        .sum()
}

/// Waits until there has been a reconcile after `before` others, and nothing happens for a moment.
async fn rests(world: &World, before: u64) {
    let (mut last, mut same) = ((reconciles(world), writes(world)), 0);
    while last.0 == before || same < 3 {
        tokio::time::sleep(Duration::from_millis(2)).await;
        let now = (reconciles(world), writes(world));
        same = if now == last { same + 1 } else { 0 };
        last = now;
    }
}

#[tokio::test]
async fn a_year_without_events_renews_what_ends_and_writes_nothing_else() {
    let why = "requests to other processes time out while the timers of this one move";
    if Kind::leaves_out(&[Kind::Embedded], why) {
        return;
    }
    let clock = FakeClock::new(Timestamp::now());
    let rollout = json!({ "before": { "certificatesExpiryDays": 30 } });
    let world = World::start_at(clock.clone(), 1, rollout).await;
    world.settled(1, "v1.35.0").await;
    rests(&world, 0).await;
    let first = world.list::<Machine>().await;
    let begun = writes(&world);
    let (mut before, mut changes) = (begun.clone(), BTreeMap::<i64, BTreeSet<String>>::new());
    let mut statuses = BTreeSet::new();
    let steps = 400 * 24 / 13;
    for step in 1..=steps {
        let reconciled = reconciles(&world);
        pass(&clock, STEP).await;
        rests(&world, reconciled).await;
        let now = writes(&world);
        let changed = now.iter().filter(|(what, count)| before.get(*what) != Some(count));
        for (what, _) in changed {
            let day = step * 13 / 24;
            if what.ends_with("/status") {
                statuses.insert(day);
            } else {
                changes.entry(day).or_default().insert(what.clone());
            }
        }
        before = now;
    }
    world.settled(1, "v1.35.0").await;

    // The kubeconfig is renewed every half a year, and nothing else is written then.
    let secret = BTreeSet::from(["patch secrets".to_owned()]);
    let renewals: Vec<i64> = changes
        .iter()
        .filter(|(_, what)| **what == secret)
        .map(|(day, _)| *day)
        .collect();
    assert!(matches!(renewals[..], [182..=184, 365..=367]), "{changes:?}");
    // The Machine is replaced a month before its certificates end, once. On a busy machine more steps pass before the host has answered.
    let machines: Vec<i64> = changes.keys().copied().filter(|day| !renewals.contains(day)).collect();
    assert!(matches!(machines.first(), Some(334..=336)), "{changes:?}");
    assert!(machines.iter().all(|day| (334..=350).contains(day)), "{changes:?}");
    let last = world.list::<Machine>().await;
    assert_eq!(last.len(), 1);
    assert_ne!(last[0]["metadata"]["uid"], first[0]["metadata"]["uid"], "{changes:?}");
    // Texts of a status that change with the replacement are written later.
    assert!(
        statuses.len() <= 8 && statuses.iter().all(|day| *day < 30 || (334..366).contains(day)),
        "{statuses:?}"
    );
    let made = |writes: &BTreeMap<String, u64>| writes.get("delete machines").copied().unwrap_or_default();
    assert_eq!((made(&begun), made(&before)), (0, 1), "{before:?}");
}
