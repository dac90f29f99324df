//! The sync period: every object is reconciled again after it, though no event asked for it. What changed outside of all watches, or by an event
//! that no rule connects with the object, is mended so. It costs no request as long as nothing differs.
//!
//! Objects have their turns all over the period, each at its own time, so that a large fleet is no burst.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use crate::object::ObjectKey;

/// Parts of a period. One part of the objects has its turn in each.
const TURNS: u64 = 60;

/// The turn of an object.
fn turn_of(key: &ObjectKey) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish() % TURNS
}

/// Calls `add` with each of the keys once in each period. Ends never.
pub(crate) async fn run(period: Duration, keys: impl Fn() -> Vec<ObjectKey>, add: impl Fn(ObjectKey)) {
    let part = (period / u32::try_from(TURNS).unwrap_or(u32::MAX)).max(Duration::from_millis(1));
    for turn in (0..TURNS).cycle() {
        tokio::time::sleep(part).await;
        for key in keys().into_iter().filter(|key| turn_of(key) == turn) {
            add(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use parking_lot::Mutex;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_object_has_one_turn_in_a_period_and_not_all_at_once() {
        let keys: Vec<ObjectKey> = (0..600)
            .map(|number| ObjectKey::new("ns", format!("o{number}")))
            .collect();
        let seen: Arc<Mutex<BTreeMap<ObjectKey, Vec<Duration>>>> = Arc::default();
        let (all, told) = (keys.clone(), seen.clone());
        let started = tokio::time::Instant::now();
        let add = move |key| told.lock().entry(key).or_default().push(started.elapsed());
        let period = Duration::from_mins(10);
        let running = run(period, move || all.clone(), add);
        let two = Duration::from_secs(1205);
        assert!(tokio::time::timeout(two, running).await.is_err());
        let seen = seen.lock();
        assert_eq!(seen.len(), keys.len());
        let mut moments = BTreeMap::<Duration, usize>::new();
        for turns in seen.values() {
            assert_eq!(turns.len(), 2);
            assert_eq!(turns[1], turns[0] + period);
            *moments.entry(turns[0]).or_default() += 1;
        }
        assert!(moments.values().all(|count| *count < 40), "{moments:?}");
    }
}
