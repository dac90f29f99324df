//! When a changed status is written: at once, soon, or together with the next change. So a burst of events costs one write, and
//! changes that other controllers wait for are not delayed.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;

use crate::object::ObjectKey;

/// The least time between two writes of changes that only inform users.
const LATER: Duration = Duration::from_secs(3);

/// Above this number of objects, records that no longer delay a write are dropped.
const MANY: usize = 256;

/// How urgent the difference between two statuses is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Urgency {
    /// No difference, or only in texts: messages, the reason of a condition that is not true, and `observedGeneration`.
    Later,
    /// A difference that other controllers may act on.
    Soon,
    /// A step of the initialization.
    Step,
}

/// Records when the statuses of objects were written, for as long as that delays the next write.
#[derive(Debug, Default)]
pub struct StatusPace {
    last: Mutex<HashMap<ObjectKey, Instant>>,
}

impl StatusPace {
    /// How long the write of the status `new` has to wait; `None` when it need not wait. `soon` is the least time between two
    /// writes. If `awaited` is set, steps of the initialization do not wait at all. A `fresh` object, which has no conditions,
    /// counts as written when it is first seen, because most changes come right after its creation. `old` is called only if the
    /// status was written recently.
    pub fn wait(
        &self,
        key: &ObjectKey,
        pace: (Duration, bool),
        fresh: bool,
        old: impl FnOnce() -> Value,
        new: &Value,
    ) -> Option<Duration> {
        Self::wait_after(self.elapsed(key, fresh), pace, old, new)
    }

    /// The time since the status of the object was written, as far as it is remembered. A `fresh` object counts as written when it
    /// is first seen.
    pub fn elapsed(&self, key: &ObjectKey, fresh: bool) -> Option<Duration> {
        let mut all = self.last.lock();
        match all.get(key) {
            Some(last) => Some(last.elapsed()),
            None if fresh => Some(all.entry(key.clone()).or_insert_with(Instant::now).elapsed()),
            None => None,
        }
    }

    /// [`Self::wait`] for a status that was written `elapsed` ago: a pure decision, for plans.
    pub fn wait_after(
        elapsed: Option<Duration>,
        (soon, awaited): (Duration, bool),
        old: impl FnOnce() -> Value,
        new: &Value,
    ) -> Option<Duration> {
        let elapsed = elapsed.filter(|elapsed| *elapsed < LATER)?;
        let pace = match urgency(&old(), new) {
            Urgency::Step if awaited => return None,
            Urgency::Step | Urgency::Soon => soon,
            Urgency::Later => LATER,
        };
        pace.checked_sub(elapsed).filter(|wait| !wait.is_zero())
    }

    /// Records that the status of the object was just written.
    pub fn written(&self, key: &ObjectKey) {
        let mut all = self.last.lock();
        if all.len() >= MANY && all.len() == all.capacity() {
            all.retain(|_, last| last.elapsed() < LATER);
        }
        all.insert(key.clone(), Instant::now());
    }

    /// Drops the record of a deleted object.
    pub(crate) fn forget(&self, key: &ObjectKey) {
        self.last.lock().remove(key);
    }
}

fn urgency(old: &Value, new: &Value) -> Urgency {
    if missing(&old["initialization"], &new["initialization"]) {
        return Urgency::Step;
    }
    if missing(old, new) {
        Urgency::Soon
    } else {
        Urgency::Later
    }
}

/// Whether `new` has a value, other than a text, that `old` lacks. Additional values in `old` belong to other managers, or will
/// be removed.
fn missing(old: &Value, new: &Value) -> bool {
    match new {
        Value::Null => false,
        Value::Object(fields) => fields.iter().any(|(name, new)| match (name.as_str(), new) {
            ("conditions", Value::Array(new)) => new.iter().any(|new| tells_more(&old["conditions"], new)),
            ("observedGeneration" | "phase" | "lastUpdated", _) if old[name.as_str()].is_null() => false,
            _ => missing(&old[name.as_str()], new),
        }),
        Value::Array(items) => {
            let old = old.as_array().map_or(&[][..], Vec::as_slice);
            old.len() != items.len() || items.iter().zip(old).any(|(new, old)| missing(old, new))
        }
        _ => old != new,
    }
}

/// Whether a condition differs in more than texts: it is true now, or was before, or it is false and was not there. So an obstacle shows when an object is new. The reason counts while it is true, as it may
/// name the stage of a deletion. The reasons of conditions that are not true are for users.
fn tells_more(conditions: &Value, new: &Value) -> bool {
    let mut all = conditions.as_array().into_iter().flatten();
    let old = all.find(|old| old["type"] == new["type"]);
    let is_true = new["status"] == "True";
    match old {
        Some(old) if is_true => old["status"] != "True" || old["reason"] != new["reason"],
        Some(old) => old["status"] == "True",
        None => is_true || new["status"] == "False",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn condition(type_: &str, status: &str, message: &str) -> Value {
        json!({ "type": type_, "status": status, "reason": "R", "message": message, "observedGeneration": 1 })
    }

    #[test]
    fn steps_of_the_initialization_cannot_wait_and_words_can() {
        let check = |old: Value, new: Value, expect| assert_eq!(urgency(&old, &new), expect, "{old} {new}");
        let with = |conditions: Vec<Value>| json!({ "conditions": conditions, "replicas": 1 });
        check(json!({}), json!({}), Urgency::Later);
        check(
            json!({ "initialization": {} }),
            json!({ "initialization": { "provisioned": true } }),
            Urgency::Step,
        );
        check(
            with(vec![condition("A", "False", "one")]),
            with(vec![condition("A", "False", "two")]),
            Urgency::Later,
        );
        check(
            with(vec![condition("A", "False", "one"), condition("B", "True", "")]),
            with(vec![condition("A", "False", "one")]),
            Urgency::Later,
        );
        check(
            with(vec![condition("A", "False", "one")]),
            with(vec![condition("A", "True", "")]),
            Urgency::Soon,
        );
        check(with(vec![]), with(vec![condition("A", "True", "")]), Urgency::Soon);
        check(with(vec![]), with(vec![condition("A", "Unknown", "")]), Urgency::Later);
        check(with(vec![]), with(vec![condition("A", "False", "")]), Urgency::Soon);
        check(
            with(vec![condition("A", "False", "")]),
            with(vec![condition("A", "Unknown", "")]),
            Urgency::Later,
        );
        check(
            json!({}),
            json!({ "observedGeneration": 1, "phase": "Pending" }),
            Urgency::Later,
        );
        check(
            json!({ "phase": "Pending" }),
            json!({ "phase": "Running" }),
            Urgency::Soon,
        );
        check(
            json!({ "observedGeneration": 1 }),
            json!({ "observedGeneration": 2 }),
            Urgency::Soon,
        );
        check(json!({ "replicas": 1 }), json!({ "replicas": 2 }), Urgency::Soon);
        check(
            json!({ "addresses": [{ "address": "a" }] }),
            json!({ "addresses": [{ "address": "a" }, { "address": "b" }] }),
            Urgency::Soon,
        );
    }

    #[test]
    fn a_new_object_waits_and_one_from_before_a_restart_does_not() {
        let pace = StatusPace::default();
        let (new, old) = (ObjectKey::new("ns", "new"), ObjectKey::new("ns", "old"));
        let hour = (Duration::from_hours(1), true);
        let status = json!({ "conditions": [condition("A", "True", "")] });
        let check = |key: &ObjectKey, fresh: bool, waits: bool| {
            let found = pace.wait(key, hour, fresh, || json!({ "initialization": {} }), &status);
            assert_eq!(found.is_some(), waits, "{key:?}");
        };
        check(&new, true, true);
        check(&old, false, false);
        pace.written(&old);
        check(&old, false, true);
        pace.forget(&old);
        check(&old, false, false);
        pace.written(&old);
        let unasked = || panic!("nothing was written lately");
        assert_eq!(
            pace.wait(&ObjectKey::new("ns", "other"), hour, false, unasked, &status),
            None
        );
    }
}
