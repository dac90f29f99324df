//! What blocked declarations wait for: objects of which only the metadata is kept, watched one selection at a time and only as long as
//! a declaration waits.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::json;
use windlass_controller_runtime::{Cache, Codec, Cx, Gvk, ObjectKey, Seen, Selection, Stored, Timestamp, gvk_from};

use crate::tracker::{Tracker, Whose};

/// Age at which files outside the cluster are read again although the release made of them does not work.
pub const REMOTE: SignedDuration = SignedDuration::from_hours(1);

/// Objects whose change may remove what is in the way.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Awaited {
    /// Group and version.
    api_version: String,
    /// The kind.
    kind: String,
    /// Which of them.
    which: Selection,
}

impl Awaited {
    /// One object, whether it is there or not.
    pub fn one(api_version: &str, kind: &str, key: &ObjectKey) -> Self {
        Self::some(api_version, kind, Selection::one(key))
    }

    /// Objects with these labels in a namespace, now and later.
    pub fn labelled(api_version: &str, kind: &str, namespace: &str, labels: &str) -> Self {
        let which = Selection {
            namespace: namespace.to_owned(),
            ..Selection::labelled(labels)
        };
        Self::some(api_version, kind, which)
    }

    fn some(api_version: &str, kind: &str, which: Selection) -> Self {
        Self {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            which,
        }
    }

    fn gvk(&self) -> Gvk {
        gvk_from(&self.api_version, &self.kind)
    }
}

/// What is kept of an object that is waited for.
#[derive(Clone, Debug)]
struct Trace(ObjectMeta);

impl Stored for Trace {
    fn metadata(&self) -> &ObjectMeta {
        &self.0
    }

    fn encode(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(&json!({ "metadata": self.0 }))
    }
}

impl Codec for Trace {
    fn decode(json: &[u8]) -> serde_json::Result<Self> {
        #[derive(Deserialize)]
        struct Whole {
            metadata: ObjectMeta,
        }
        let meta = serde_json::from_slice::<Whole>(json)?.metadata;
        Ok(Self(ObjectMeta {
            name: meta.name,
            namespace: meta.namespace,
            uid: meta.uid,
            resource_version: meta.resource_version,
            ..ObjectMeta::default()
        }))
    }
}

#[derive(Default)]
struct State {
    waiting: HashMap<Whose, BTreeMap<Awaited, Cache<Trace>>>,
    /// How often something changed that a declaration waits for, since it was looked at last.
    stirred: HashMap<Whose, usize>,
    /// When what a declaration is made of was looked at last.
    looked: HashMap<Whose, Timestamp>,
}

/// Who waits for what. Cheap to clone.
#[derive(Clone, Default)]
pub struct Waits(Arc<Mutex<State>>);

impl std::fmt::Debug for Waits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let waiting = self.0.lock().waiting.len();
        f.debug_struct("Waits")
            .field("waiting", &waiting)
            .finish_non_exhaustive()
    }
}

impl Waits {
    /// From now on a declaration waits for these, and for nothing else. An object that was not watched before may have changed just
    /// now, so the declaration is woken once more when its watch has begun. False when a watch could not be started.
    pub async fn set(&self, cx: &Cx, tracker: &Tracker, whose: &Whose, awaited: &[Awaited]) -> bool {
        let missing: Vec<_> = {
            let mut state = self.0.lock();
            if awaited.is_empty() {
                state.waiting.remove(whose);
                return true;
            }
            let waiting = state.waiting.entry(whose.clone()).or_default();
            waiting.retain(|one, _| awaited.contains(one));
            let missing = awaited.iter().filter(|one| !waiting.contains_key(one));
            missing.cloned().collect()
        };
        let mut all = true;
        for one in missing {
            match cx.selected::<Trace>(&one.gvk(), &one.which).await {
                Seen::Found(cache) => self.watch(cx, tracker, whose, one, &cache),
                Seen::NotFound => {}
                Seen::Failed(_) => all = false,
            }
        }
        all
    }

    fn watch(&self, cx: &Cx, tracker: &Tracker, whose: &Whose, one: Awaited, cache: &Cache<Trace>) {
        let state = Arc::downgrade(&self.0);
        let (tracker, of, what) = (tracker.clone(), whose.clone(), one.clone());
        let wake = move || {
            let Some(state) = state.upgrade() else { return };
            {
                let mut state = state.lock();
                // Others may still have the watch that this one no longer needs.
                if !state
                    .waiting
                    .get(&of)
                    .is_some_and(|waiting| waiting.contains_key(&what))
                {
                    return;
                }
                *state.stirred.entry(of.clone()).or_default() += 1;
            }
            tracker.wake(&of);
        };
        let listed = cache.listed();
        self.0
            .lock()
            .waiting
            .entry(whose.clone())
            .or_default()
            .insert(one, cache.clone());
        let first = wake.clone();
        cx.tasks().spawn("awaited", async move {
            if listed.await {
                first();
            }
        });
        cache.subscribe(move |_| wake());
    }

    /// How often the objects that a declaration waits for have changed since it was looked at last; none when they have not.
    pub fn stirred(&self, whose: &Whose) -> Option<usize> {
        self.0.lock().stirred.get(whose).copied()
    }

    /// When the objects and files that a declaration is made of were read last.
    pub fn looked_at(&self, whose: &Whose) -> Option<Timestamp> {
        self.0.lock().looked.get(whose).copied()
    }

    /// The objects and files were read, with this number of changes known before.
    pub fn looked(&self, whose: &Whose, stirred: Option<usize>, now: Timestamp) {
        let mut state = self.0.lock();
        if state.stirred.get(whose).copied() == stirred {
            state.stirred.remove(whose);
        }
        state.looked.insert(whose.clone(), now);
    }

    /// A declaration is gone.
    pub fn forget(&self, whose: &Whose) {
        let mut state = self.0.lock();
        state.stirred.remove(whose);
        state.looked.remove(whose);
        state.waiting.remove(whose);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_identity_of_an_object_is_kept() {
        let trace = Trace::from_json(&json!({
            "apiVersion": "v1", "kind": "Secret", "data": {"a": "b"},
            "metadata": {"name": "n", "namespace": "s", "uid": "u", "resourceVersion": "7", "annotations": {"c": "d"}},
        }))
        .unwrap();
        let kept = json!({"metadata": {"name": "n", "namespace": "s", "uid": "u", "resourceVersion": "7"}});
        assert_eq!(trace.to_json(), kept);
    }
}
