//! Notices when something that was installed is no longer as it was left: one watch for each kind that is installed, over the objects
//! with the labels of providers, of which nothing but a hash is kept.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use windlass_api_operator::{Api, ProviderType};
use windlass_kit::{Cache, Change, Cx, Dynamic, Gvk, ObjectKey, Seen, Timestamp, Wake};

use crate::names::SELECTOR;
use crate::objects::{Digest, ObjectRef, Running};

/// How long it counts that something was put back.
const REMEMBERED_SECONDS: i64 = 600;

type Identity = (String, String, String, String);

/// Who is told: a declaration.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
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
}

#[derive(Default)]
struct State {
    objects: HashMap<Identity, Expected>,
    drifted: HashMap<Whose, BTreeSet<ObjectRef>>,
    wakes: HashMap<(Api, ProviderType), Wake>,
    watches: HashMap<Gvk, Cache<Digest>>,
    /// When things were put back lately.
    repairs: HashMap<Whose, Vec<Timestamp>>,
    /// Those whose objects are all tracked.
    whole: BTreeSet<(Api, ProviderType, ObjectKey)>,
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

    /// Watches the kinds of these objects, as far as the server serves them.
    pub async fn watch(&self, cx: &Cx, objects: &[ObjectRef]) {
        let kinds: BTreeSet<_> = objects
            .iter()
            .map(|o| (o.api_version.clone(), o.kind.clone()))
            .collect();
        for (api_version, kind) in kinds {
            let gvk = windlass_kit::gvk_from(&api_version, &kind);
            if self.0.lock().watches.contains_key(&gvk) {
                continue;
            }
            let Seen::Found(cache) = cx.selected::<Digest>(&gvk, SELECTOR).await else {
                continue;
            };
            self.0.lock().watches.insert(gvk.clone(), cache.clone());
            let tracker = self.clone();
            cache.subscribe(move |change| tracker.changed(&gvk, change));
        }
    }

    /// An object was applied, and this is how it was left.
    pub fn left(&self, whose: &Whose, object: &ObjectRef, stored: &Dynamic) {
        let digest = Digest::of(stored);
        let expected = Expected {
            whose: whose.clone(),
            object: object.clone(),
            uid: stored.uid().to_owned(),
            version: digest.version(),
            hash: digest.hash,
        };
        let mut state = self.0.lock();
        if let Some(drifted) = state.drifted.get_mut(whose) {
            drifted.remove(object);
        }
        // Somebody may have changed it between our write and now.
        let seen = state
            .watches
            .get(&object.gvk())
            .and_then(|cache| cache.get(&object.key()));
        if seen.is_some_and(|seen| seen.version() > expected.version && seen.hash != expected.hash) {
            state.drifted.entry(whose.clone()).or_default().insert(object.clone());
        }
        state.objects.insert(object.identity(), expected);
    }

    /// Everything that a declaration is responsible for has been applied.
    pub fn complete(&self, whose: &Whose, objects: &[ObjectRef]) {
        let identities: BTreeSet<_> = objects.iter().map(ObjectRef::identity).collect();
        let mut state = self.0.lock();
        state
            .objects
            .retain(|identity, expected| expected.whose != *whose || identities.contains(identity));
        state.whole.insert((whose.api, whose.type_, whose.key.clone()));
    }

    /// Nobody knows any more how things were left.
    pub fn doubt(&self, whose: &Whose) {
        self.0.lock().whole.remove(&(whose.api, whose.type_, whose.key.clone()));
    }

    /// Leaves everything of a declaration alone.
    pub fn forget(&self, whose: &Whose) {
        let mut state = self.0.lock();
        state.objects.retain(|_, expected| expected.whose != *whose);
        state.drifted.remove(whose);
        state.whole.remove(&(whose.api, whose.type_, whose.key.clone()));
    }

    /// Whether everything of a declaration is followed.
    pub fn is_complete(&self, whose: &Whose) -> bool {
        self.0
            .lock()
            .whole
            .contains(&(whose.api, whose.type_, whose.key.clone()))
    }

    /// What is no longer as it was left.
    pub fn drifted(&self, whose: &Whose) -> BTreeSet<ObjectRef> {
        self.0.lock().drifted.get(whose).cloned().unwrap_or_default()
    }

    /// Things were put back.
    pub fn repaired(&self, whose: &Whose, now: Timestamp) {
        let mut state = self.0.lock();
        let repairs = state.repairs.entry(whose.clone()).or_default();
        repairs.retain(|at| now.duration_since(*at).as_secs() < REMEMBERED_SECONDS);
        repairs.push(now);
    }

    /// How often things were put back lately, and when last.
    pub fn repairs(&self, whose: &Whose, now: Timestamp) -> (usize, Option<Timestamp>) {
        let state = self.0.lock();
        let repairs = state.repairs.get(whose).map_or(&[][..], Vec::as_slice);
        let lately = repairs
            .iter()
            .filter(|at| now.duration_since(**at).as_secs() < REMEMBERED_SECONDS);
        (lately.count(), repairs.last().copied())
    }

    /// How a Deployment is; nothing when it is not there or not watched.
    pub fn running(&self, deployment: &ObjectRef) -> Option<Running> {
        let cache = self.0.lock().watches.get(&deployment.gvk()).cloned()?;
        cache.get(&deployment.key())?.running.clone()
    }

    fn changed(&self, gvk: &Gvk, change: &Change<Digest>) {
        let Some(digest) = change.object() else { return };
        let key = windlass_kit::key_of(windlass_kit::Cached::meta(&**digest));
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
            None => windlass_kit::Cached::meta(&**digest).uid.as_deref() == Some(&expected.uid),
        };
        let health = change.old.as_ref().and_then(|d| d.running.as_ref())
            != change.new.as_ref().and_then(|d| d.running.as_ref());
        let (whose, object) = (expected.whose.clone(), expected.object.clone());
        if drifted {
            state.drifted.entry(whose.clone()).or_default().insert(object);
        }
        if (drifted || health)
            && let Some(wake) = state.wakes.get(&(whose.api, whose.type_))
        {
            wake.add(whose.key);
        }
    }
}
