//! Notices when something that was installed is no longer as it was left: one watch for each kind that is installed, over the objects
//! with the labels of providers, of which nothing but a hash is kept.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use parking_lot::Mutex;
use serde_json::Value;
use windlass_api_operator::{Api, ProviderType};
use windlass_controller_runtime::{Cache, Change, Cx, Gvk, ObjectKey, Seen, Selection, Timestamp, Wake};

use crate::names::SELECTOR;
use crate::objects::{Digest, ObjectRef, Running, hex};

/// How long first lists may take before what is installed is applied instead of compared.
const FIRST_LISTS: Duration = Duration::from_secs(15);
/// How long a repair counts.
pub const REMEMBERED: SignedDuration = SignedDuration::from_mins(10);

type Identity = (String, String, String, String);

/// The declaration that objects belong to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Whose {
    /// The API of the declaration.
    pub api: Api,
    /// Its type.
    pub type_: ProviderType,
    /// Its namespace and name.
    pub key: ObjectKey,
}

/// How an object was left.
#[derive(Clone, Debug)]
struct Expected {
    whose: Whose,
    object: ObjectRef,
    uid: String,
    version: u64,
    hash: [u8; 16],
    /// What was applied, where this process did it.
    applied: Option<[u8; 16]>,
}

#[derive(Default)]
struct State {
    objects: HashMap<Identity, Expected>,
    drifted: HashMap<Whose, BTreeMap<Identity, ObjectRef>>,
    wakes: HashMap<(Api, ProviderType), Wake>,
    watches: HashMap<Gvk, Cache<Digest>>,
    /// When things were put back lately.
    repairs: HashMap<Whose, Vec<Timestamp>>,
    /// How often things were put back since the process began.
    repaired: BTreeMap<Whose, u64>,
    /// Those whose objects are all tracked.
    whole: BTreeSet<Whose>,
    /// Those of which this process has changed something, and not finished.
    doubted: BTreeSet<Whose>,
}

/// Follows what is installed. Cheap to clone.
#[derive(Clone, Default)]
pub struct Tracker(Arc<Mutex<State>>);

impl std::fmt::Debug for Tracker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let objects = self.0.lock().objects.len();
        f.debug_struct("Tracker")
            .field("objects", &objects)
            .finish_non_exhaustive()
    }
}

impl Tracker {
    /// Wakes declarations of this kind through `wake`.
    pub fn listen(&self, api: Api, type_: ProviderType, wake: Wake) {
        self.0.lock().wakes.insert((api, type_), wake);
    }

    /// Has a declaration reconciled.
    pub fn wake(&self, whose: &Whose) {
        if let Some(wake) = self.0.lock().wakes.get(&(whose.api, whose.type_)) {
            wake.add(whose.key.clone());
        }
    }

    /// Watches the kinds of these objects, as far as the server serves them.
    pub async fn watch(&self, cx: &Cx, objects: &[ObjectRef]) {
        let kinds: BTreeSet<_> = objects
            .iter()
            .map(|o| (o.api_version.clone(), o.kind.clone()))
            .collect();
        for (api_version, kind) in kinds {
            let gvk = windlass_controller_runtime::gvk_from(&api_version, &kind);
            if self.0.lock().watches.contains_key(&gvk) {
                continue;
            }
            let Seen::Found(cache) = cx.selected::<Digest>(&gvk, &Selection::labelled(SELECTOR)).await else {
                continue;
            };
            self.0.lock().watches.insert(gvk.clone(), cache.clone());
            // The tracker has the cache, so the cache must not have the tracker.
            let tracker = Arc::downgrade(&self.0);
            cache.subscribe(move |change| {
                if let Some(state) = tracker.upgrade() {
                    Self(state).changed(&gvk, change);
                }
            });
        }
    }

    /// Watches the kinds of these objects and compares what is stored with how it was left, instead of applying all of it once more: for
    /// a process that has just begun. When first lists do not come, the objects are doubted.
    pub async fn take_up(&self, cx: &Cx, whose: &Whose, objects: &[ObjectRef], left: &[String]) {
        self.watch(cx, objects).await;
        let kinds: BTreeSet<_> = objects.iter().map(ObjectRef::gvk).collect();
        let listed: Vec<_> = {
            let state = self.0.lock();
            let caches = kinds.iter().filter_map(|gvk| state.watches.get(gvk));
            caches.map(Cache::listed).collect()
        };
        let all = async {
            for listed in listed {
                listed.await;
            }
        };
        if tokio::time::timeout(FIRST_LISTS, all).await.is_err() {
            self.doubt(whose);
            return;
        }
        let mut state = self.0.lock();
        let mut drifted = BTreeMap::new();
        for (object, left) in objects.iter().zip(left) {
            let cache = state.watches.get(&object.gvk());
            let found = cache.and_then(|cache| cache.get(&object.key()));
            let Some(found) = found.filter(|found| hex(&found.hash) == *left) else {
                drifted.insert(object.identity(), object.clone());
                continue;
            };
            let expected = Expected {
                whose: whose.clone(),
                object: object.clone(),
                uid: found.uid().to_owned(),
                version: found.version(),
                hash: found.hash,
                applied: None,
            };
            state.objects.insert(object.identity(), expected);
        }
        state.drifted.insert(whose.clone(), drifted);
        state.whole.insert(whose.clone());
    }

    /// How these objects were left, when all of them are followed.
    pub fn hashes(&self, whose: &Whose, objects: &[ObjectRef]) -> Option<Vec<String>> {
        let state = self.0.lock();
        let each = objects.iter().map(|object| {
            let expected = state.objects.get(&object.identity());
            expected.filter(|expected| expected.whose == *whose)
        });
        each.map(|expected| Some(hex(&expected?.hash))).collect()
    }

    /// How often things were put back since the process began.
    pub fn totals(&self) -> BTreeMap<Whose, u64> {
        self.0.lock().repaired.clone()
    }

    /// An object was applied, and this is how it was left.
    pub fn left(&self, whose: &Whose, object: &ObjectRef, applied: [u8; 16], stored: &Value) {
        let digest = Digest::of(stored);
        let expected = Expected {
            whose: whose.clone(),
            object: object.clone(),
            uid: digest.uid().to_owned(),
            version: digest.version(),
            hash: digest.hash,
            applied: Some(applied),
        };
        let identity = object.identity();
        let mut state = self.0.lock();
        if let Some(drifted) = state.drifted.get_mut(whose) {
            drifted.remove(&identity);
        }
        // Another field manager may have changed it between our write and now.
        let seen = state
            .watches
            .get(&object.gvk())
            .and_then(|cache| cache.get(&object.key()));
        if seen.is_some_and(|seen| seen.version() > expected.version && seen.hash != expected.hash) {
            let drifted = state.drifted.entry(whose.clone()).or_default();
            drifted.insert(identity.clone(), object.clone());
        }
        state.objects.insert(identity, expected);
    }

    /// Whether this was applied by this process, and what is stored is as it was left then. An attempt that is cut short again and
    /// again gets further each time.
    pub fn is_as_left(&self, whose: &Whose, object: &ObjectRef, applied: [u8; 16]) -> bool {
        let state = self.0.lock();
        let identity = object.identity();
        let drifted = state.drifted.get(whose);
        let drifted = drifted.is_some_and(|drifted| drifted.contains_key(&identity));
        let expected = state.objects.get(&identity);
        let Some(expected) = expected.filter(|e| !drifted && e.whose == *whose && e.applied == Some(applied)) else {
            return false;
        };
        let cache = state.watches.get(&object.gvk());
        let seen = cache.and_then(|cache| cache.get(&object.key()));
        seen.is_some_and(|seen| {
            (seen.uid(), seen.hash) == (expected.uid.as_str(), expected.hash) && seen.version() >= expected.version
        })
    }

    /// A declaration is no longer responsible for an object: it was deleted, or is no longer the provider's.
    pub fn dropped(&self, whose: &Whose, object: &ObjectRef) {
        let mut state = self.0.lock();
        let identity = object.identity();
        if state
            .objects
            .get(&identity)
            .is_some_and(|expected| expected.whose == *whose)
        {
            state.objects.remove(&identity);
        }
        if let Some(drifted) = state.drifted.get_mut(whose) {
            drifted.remove(&identity);
        }
    }

    /// Everything that a declaration is responsible for has been applied.
    pub fn complete(&self, whose: &Whose, objects: &[ObjectRef]) {
        let identities: BTreeSet<_> = objects.iter().map(ObjectRef::identity).collect();
        let mut state = self.0.lock();
        state
            .objects
            .retain(|identity, expected| expected.whose != *whose || identities.contains(identity));
        if let Some(drifted) = state.drifted.get_mut(whose) {
            drifted.retain(|identity, _| identities.contains(identity));
        }
        state.doubted.remove(whose);
        state.whole.insert(whose.clone());
    }

    /// It is no longer known how the objects of a declaration were left.
    pub fn doubt(&self, whose: &Whose) {
        let mut state = self.0.lock();
        state.whole.remove(whose);
        state.doubted.insert(whose.clone());
    }

    /// Leaves everything of a declaration alone.
    pub fn forget(&self, whose: &Whose) {
        let mut state = self.0.lock();
        state.objects.retain(|_, expected| expected.whose != *whose);
        state.drifted.remove(whose);
        state.repairs.remove(whose);
        state.repaired.remove(whose);
        state.whole.remove(whose);
        state.doubted.remove(whose);
        // Kinds that no release has any more need no watch; their definitions may go next.
        let used: BTreeSet<_> = state.objects.values().map(|expected| expected.object.gvk()).collect();
        state.watches.retain(|gvk, _| used.contains(gvk));
    }

    /// Whether everything of a declaration is followed.
    pub fn is_complete(&self, whose: &Whose) -> bool {
        self.0.lock().whole.contains(whose)
    }

    /// Whether this process has changed something of a declaration and not finished.
    pub fn is_doubted(&self, whose: &Whose) -> bool {
        self.0.lock().doubted.contains(whose)
    }

    /// What is no longer as it was left.
    pub fn drifted(&self, whose: &Whose) -> BTreeSet<ObjectRef> {
        let state = self.0.lock();
        let drifted = state.drifted.get(whose).into_iter().flat_map(BTreeMap::values);
        drifted.cloned().collect()
    }

    /// Things were put back.
    pub fn repaired(&self, whose: &Whose, now: Timestamp) {
        let mut state = self.0.lock();
        let repairs = state.repairs.entry(whose.clone()).or_default();
        let oldest = now.saturating_sub(REMEMBERED).unwrap_or(Timestamp::MIN);
        repairs.retain(|at| *at > oldest);
        repairs.push(now);
        *state.repaired.entry(whose.clone()).or_default() += 1;
    }

    /// When things were put back lately, in this order.
    pub fn repairs(&self, whose: &Whose) -> Vec<Timestamp> {
        self.0.lock().repairs.get(whose).cloned().unwrap_or_default()
    }

    /// How a Deployment is; nothing when it is not there or not watched.
    pub fn running(&self, deployment: &ObjectRef) -> Option<Running> {
        let cache = self.0.lock().watches.get(&deployment.gvk()).cloned()?;
        cache.get(&deployment.key())?.running.clone()
    }

    fn changed(&self, gvk: &Gvk, change: &Change<Digest>) {
        let Some(digest) = change.object() else { return };
        let key = windlass_controller_runtime::key_of(windlass_controller_runtime::Stored::metadata(&**digest));
        let identity = (gvk.group.clone(), gvk.kind.clone(), key.namespace, key.name);
        let mut state = self.0.lock();
        let Some(expected) = state.objects.get_mut(&identity) else {
            return;
        };
        let drifted = match &change.new {
            Some(new) if new.version() <= expected.version => false,
            Some(new) => {
                let same = new.hash == expected.hash;
                if same {
                    expected.version = new.version();
                }
                !same
            }
            None => windlass_controller_runtime::Stored::metadata(&**digest).uid.as_deref() == Some(&expected.uid),
        };
        let health = change.old.as_ref().and_then(|d| d.running.as_ref())
            != change.new.as_ref().and_then(|d| d.running.as_ref());
        let (whose, object) = (expected.whose.clone(), expected.object.clone());
        if drifted {
            state.drifted.entry(whose.clone()).or_default().insert(identity, object);
        }
        if (drifted || health)
            && let Some(wake) = state.wakes.get(&(whose.api, whose.type_))
        {
            wake.add(whose.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const CLUSTER: &str = "infrastructure.cluster.x-k8s.io";

    fn object(version: &str) -> ObjectRef {
        ObjectRef::of(&json!({
            "apiVersion": format!("{CLUSTER}/{version}"), "kind": "Template", "metadata": {"namespace": "n", "name": "a"},
        }))
    }

    fn stored(uid: &str) -> Value {
        json!({"metadata": {"namespace": "n", "name": "a", "uid": uid, "resourceVersion": "1"}})
    }

    /// A tracker of an object that was deleted by another field manager.
    fn drifted(whose: &Whose) -> Tracker {
        let tracker = Tracker::default();
        tracker.left(whose, &object("v1beta1"), [1; 16], &stored("u"));
        let gone = Change {
            old: Some(Arc::new(Digest::of(&stored("u")))),
            new: None,
        };
        tracker.changed(&object("v1beta1").gvk(), &gone);
        assert_eq!(tracker.drifted(whose), [object("v1beta1")].into());
        tracker
    }

    #[test]
    fn a_drift_ends_with_what_it_was_about() {
        let whose = Whose {
            api: Api::V1Alpha2,
            type_: ProviderType::Infrastructure,
            key: ObjectKey::new("n", "rig"),
        };
        // It was applied again, as the next release has it: in another version.
        let tracker = drifted(&whose);
        tracker.left(&whose, &object("v1beta2"), [2; 16], &stored("v"));
        assert_eq!(tracker.drifted(&whose), BTreeSet::new());
        // The provider no longer has it.
        let tracker = drifted(&whose);
        tracker.dropped(&whose, &object("v1beta2"));
        assert_eq!(tracker.drifted(&whose), BTreeSet::new());
        // The release that was applied does not have it.
        let tracker = drifted(&whose);
        tracker.complete(&whose, &[object("v1beta2")]);
        assert_eq!(tracker.drifted(&whose), [object("v1beta1")].into());
        tracker.complete(&whose, &[]);
        assert_eq!(tracker.drifted(&whose), BTreeSet::new());
    }
}
