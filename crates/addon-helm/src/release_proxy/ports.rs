//! What the controller of HelmReleaseProxies shares with what runs beside it.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use windlass_api_ext::addons::HelmReleaseProxy;
use windlass_helm::Engine;
use windlass_kit::{Backoff, Cache, Cx, ObjectKey, Wake};
use windlass_remote::Clusters;

use super::charts::{Charts, Waker};
use super::index;
use super::known::Known;
use super::operations::{Operations, Patience, Place};
use super::releases::{Releases, Teller};

/// How releases are kept.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How often repositories are asked for newer versions of charts whose version is not pinned.
    pub ask_every: Duration,
    /// How many operations of Helm go on at a time; those that wait for what they installed count apart, and may be four times as many.
    pub at_a_time: usize,
    /// Delays after failures that may pass by themselves.
    pub retry: Backoff,
    /// Delays after failures that last until somebody changes something.
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
    pub(super) known: Known,
    voice: OnceLock<Voice>,
}

/// Who is told that something happened.
struct Voice {
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
            operations: Arc::new(Operations::new(patience, settings.at_a_time)),
            releases: Releases::default(),
            known: Known::default(),
            voice: OnceLock::new(),
            engine,
            clusters,
        }))
    }

    /// From now on objects are woken that something happened to.
    pub(super) fn listen(&self, cx: &Cx, wake: Wake) {
        let proxies = cx.cache::<HelmReleaseProxy>();
        let _ = self.0.voice.set(Voice { wake, proxies });
    }

    /// Something happened to a release.
    pub(super) fn tell(&self, place: &Place) {
        if let Some(voice) = self.0.voice.get() {
            let found = voice.proxies.by_index(index::BY_PLACE, &index::place(place));
            voice
                .wake
                .add_all(found.iter().map(|proxy| windlass_kit::key_of(&proxy.metadata)));
        }
    }

    /// Something happened to what an object waits for.
    pub(super) fn wake(&self, key: ObjectKey) {
        if let Some(voice) = self.0.voice.get() {
            voice.wake.add(key);
        }
    }

    /// [`Self::tell`], for those that outlive a reconcile but not all of this.
    pub(super) fn teller(&self) -> Teller {
        let inner = Arc::downgrade(&self.0);
        Arc::new(move |place| {
            if let Some(inner) = inner.upgrade() {
                Self(inner).tell(place);
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

    /// Nothing is remembered of an object that is gone.
    pub(super) fn forget(&self, gone: &HelmReleaseProxy) {
        let key = windlass_kit::key_of(&gone.metadata);
        self.0.operations.forget(&key);
        self.0.charts.forget(&key);
        self.0.known.forget(&key);
        self.0.releases.forget(&key, index::place_of(gone).as_ref());
    }
}
