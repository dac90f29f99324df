//! When a changed status is written: at once, soon, or together with what follows. A burst of events then costs one write,
//! and what others wait for is not held up.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::Value;

use crate::object::ObjectKey;

/// The least time between two writes that tell people more, but that nothing waits for.
const LATER: Duration = Duration::from_secs(3);

/// How many objects are remembered before those that need not be are dropped.
const MANY: usize = 256;

/// How urgent the difference between two statuses is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Urgency {
    /// Nothing differs, or only words: messages, why something is still not true, and the generation that is spoken of.
    Later,
    /// Something that other controllers may act on.
    Soon,
    /// A step of the initialization.
    Step,
}

/// Remembers when the statuses of objects were written, for as long as that keeps the next write waiting.
#[derive(Debug, Default)]
pub struct StatusPace {
    last: Mutex<HashMap<ObjectKey, Instant>>,
}

impl StatusPace {
    /// How long the write of the status `new` has to wait when `soon` is the least time between two writes, and `awaited` says
    /// that steps of the initialization do not wait at all; `None` when it need not wait. A `fresh` object, which has no
    /// conditions, counts as written when it is first seen: right after its creation most is going to change. `old` is asked for
    /// only when something was written lately.
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

    /// The status of the object was just written.
    pub fn written(&self, key: &ObjectKey) {
        let mut all = self.last.lock();
        if all.len() >= MANY && all.len() == all.capacity() {
            all.retain(|_, last| last.elapsed() < LATER);
        }
        all.insert(key.clone(), Instant::now());
    }

    /// The object is gone.
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

/// Whether something of `new` that is more than words is absent from `old`. What `old` has in addition belongs to others, or is
/// going to be removed.
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

/// A condition that is true now, or was before. Its reason counts while it is true: it may name the stage of a deletion. Why another one
/// is still not true, or that it is not, is for people.
fn tells_more(conditions: &Value, new: &Value) -> bool {
    let mut all = conditions.as_array().into_iter().flatten();
    let old = all.find(|old| old["type"] == new["type"]);
    let is_true = new["status"] == "True";
    match old {
        Some(old) if is_true => old["status"] != "True" || old["reason"] != new["reason"],
        Some(old) => old["status"] == "True",
        None => is_true,
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
