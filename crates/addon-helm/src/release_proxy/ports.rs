//! The state that the controller of HelmReleaseProxies shares with its tasks.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use windlass_api_ext::addons::HelmReleaseProxy;
use windlass_cluster_cache::Clusters;
use windlass_controller_runtime::{Backoff, Cache, Cx, ObjectKey, Repeats, Wake};
use windlass_helm::Engine;

use super::charts::{Charts, Waker};
use super::fetches::Fetches;
use super::index;
use super::known::Known;
use super::operations::{Operations, Patience, Place};
use super::releases::{Releases, UserWaker};

/// How releases are kept.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How often repositories are asked for newer versions of charts whose version is not pinned.
    pub ask_every: Duration,
    /// How many operations of Helm go on at a time; those that wait for what they installed count apart, and may be four times as many.
    pub at_a_time: usize,
    /// Delays after failures that may pass by themselves.
    pub retry: Backoff,
    /// Delays after failures that last until a user changes something.
    pub retry_lasting: Backoff,
}

impl Settings {
    /// How many operations of Helm go on at a time, with those that wait for what they installed.
    pub fn most_operations(&self) -> usize {
        self.at_a_time.saturating_mul(1 + WAITING)
    }
}

/// How many operations that wait there may be for each that does not: they do nothing most of the time.
pub(super) const WAITING: usize = 4;

impl Default for Settings {
    fn default() -> Self {
        Self {
            ask_every: Duration::from_mins(10),
            at_a_time: 10,
            retry: Backoff::new(Duration::from_secs(5), Duration::from_mins(5)),
            retry_lasting: Backoff::new(Duration::from_mins(1), Duration::from_mins(30)),
        }
    }
}

/// What the controller of HelmReleaseProxies needs beyond the kit. Cheap to clone.
#[derive(Clone)]
pub struct HelmReleases(pub(super) Arc<Inner>);

pub(super) struct Inner {
    pub(super) engine: Arc<dyn Engine>,
    pub(super) clusters: Clusters,
    pub(super) operations: Arc<Operations>,
    pub(super) releases: Releases,
    pub(super) charts: Arc<Charts>,
    pub(super) fetches: Arc<Fetches>,
    pub(super) known: Known,
    /// What was logged of operations that failed.
    pub(super) said: Repeats,
    listener: OnceLock<Listener>,
}

/// The queue of the controller, and its objects.
struct Listener {
    wake: Wake,
    proxies: Cache<HelmReleaseProxy>,
}

impl std::fmt::Debug for HelmReleases {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HelmReleases").finish_non_exhaustive()
    }
}

impl HelmReleases {
    /// Releases that this engine makes on these clusters.
    pub fn new(engine: Arc<dyn Engine>, clusters: Clusters, settings: Settings) -> Self {
        let patience = Patience {
            passing: settings.retry,
            lasting: settings.retry_lasting,
        };
        Self(Arc::new(Inner {
            charts: Arc::new(Charts::new(engine.clone(), settings.ask_every, settings.retry)),
            fetches: Arc::new(Fetches::new(engine.clone(), settings.retry)),
            operations: Arc::new(Operations::new(patience, settings.at_a_time)),
            releases: Releases::default(),
            known: Known::default(),
            said: Repeats::default(),
            listener: OnceLock::new(),
            engine,
            clusters,
        }))
    }

    /// Connects the queue of the controller: objects are woken from now on.
    pub(super) fn listen(&self, cx: &Cx, wake: Wake) {
        let proxies = cx.cache::<HelmReleaseProxy>();
        let _ = self.0.listener.set(Listener { wake, proxies });
    }

    /// Wakes the objects of a release that has changed.
    pub(super) fn wake_users(&self, place: &Place) {
        if let Some(listener) = self.0.listener.get() {
            let found = listener.proxies.by_index(index::BY_PLACE, &index::place(place));
            listener.wake.add_all(
                found
                    .iter()
                    .map(|proxy| windlass_controller_runtime::key_of(&proxy.metadata)),
            );
        }
    }

    /// Wakes an object.
    pub(super) fn wake(&self, key: ObjectKey) {
        if let Some(listener) = self.0.listener.get() {
            listener.wake.add(key);
        }
    }

    /// [`Self::wake_users`], for tasks that outlive a reconcile but not the process.
    pub(super) fn user_waker(&self) -> UserWaker {
        let inner = Arc::downgrade(&self.0);
        Arc::new(move |place| {
            if let Some(inner) = inner.upgrade() {
                Self(inner).wake_users(place);
            }
        })
    }

    /// [`Self::wake`], likewise.
    pub(super) fn waker(&self) -> Waker {
        let inner = Arc::downgrade(&self.0);
        Arc::new(move |key| {
            if let Some(inner) = inner.upgrade() {
                Self(inner).wake(key);
            }
        })
    }

    /// Drops the data of an object that is gone.
    pub(super) fn forget(&self, gone: &HelmReleaseProxy) {
        let key = windlass_controller_runtime::key_of(&gone.metadata);
        self.0.operations.forget(&key);
        self.0.charts.forget(&key);
        self.0.known.forget(&key);
        self.0.releases.forget(&key, index::place_of(gone).as_ref());
    }
}
