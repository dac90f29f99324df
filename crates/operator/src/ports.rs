//! What the controllers of all declared kinds share.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Once};

use parking_lot::Mutex;
use tokio::sync::Semaphore;
use windlass_controller_runtime::Cx;
use windlass_pki::KeyPool;
use windlass_provider_components::images::Overrides;
use windlass_provider_repository::Client;

use crate::awaited::Waits;
use crate::built_in::BuiltIns;
use crate::claims::Claims;
use crate::inventory;
use crate::kept::Kept;
use crate::metrics::Told;
use crate::peers::Peer;
use crate::tracker::{Tracker, Whose};

/// What the controllers of all declared kinds share. Cheap to clone.
#[derive(Clone)]
pub struct Operator(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) client: Client,
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) overrides: Overrides,
    pub(crate) built_ins: Arc<BuiltIns>,
    pub(crate) keys: KeyPool,
    pub(crate) tracker: Tracker,
    pub(crate) waits: Waits,
    pub(crate) claims: Claims,
    /// What is kept of providers, by the uid of their declarations, so that it is not read again with every reconcile.
    pub(crate) kept: Mutex<HashMap<String, Arc<Kept>>>,
    /// Installed providers, for the metrics.
    pub(crate) told: Mutex<BTreeMap<Whose, Told>>,
    /// Metrics are added once.
    pub(crate) measured: Once,
    /// The entries of built-in providers are kept by one task.
    pub(crate) inventoried: Once,
    /// Only one component file at a time is taken apart, as that takes many times its size.
    pub(crate) turn: Semaphore,
}

impl std::fmt::Debug for Operator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Operator").finish_non_exhaustive()
    }
}

impl Operator {
    /// An operator that fetches with `client`, and issues certificates with keys of this pool. There are no variables but those of
    /// Secrets.
    pub fn new(client: Client, keys: KeyPool) -> Self {
        Self(Arc::new(Inner {
            client,
            environment: BTreeMap::new(),
            overrides: Overrides::default(),
            built_ins: Arc::default(),
            keys,
            tracker: Tracker::default(),
            waits: Waits::default(),
            claims: Claims::default(),
            kept: Mutex::default(),
            told: Mutex::default(),
            measured: Once::new(),
            inventoried: Once::new(),
            turn: Semaphore::new(1),
        }))
    }

    /// With variables that count when a Secret has none of the name. A user who may declare a provider can put all of them into its objects.
    #[must_use]
    pub fn environment(self, variables: BTreeMap<String, String>) -> Self {
        self.with(|inner| inner.environment = variables)
    }

    /// With images from other places.
    #[must_use]
    pub fn overrides(self, overrides: Overrides) -> Self {
        self.with(|inner| inner.overrides = overrides)
    }

    /// With providers that are built in.
    #[must_use]
    pub fn having(self, built_ins: BuiltIns) -> Self {
        self.with(|inner| inner.built_ins = Arc::new(built_ins))
    }

    /// Keeps the entries of built-in providers in the inventory, if there are any. Only the first call counts.
    pub(crate) fn keep_inventory(&self, cx: &Cx) {
        if !self.0.built_ins.is_empty() {
            self.0
                .inventoried
                .call_once(|| inventory::keep(cx, self.0.built_ins.clone()));
        }
    }

    /// Drops everything that is remembered of a declaration that is gone.
    pub(crate) fn forget(&self, gone: &Peer) {
        let whose = Whose {
            api: gone.api,
            type_: gone.type_,
            key: gone.key.clone(),
        };
        self.0.kept.lock().remove(&gone.uid);
        self.0.tracker.forget(&whose);
        self.0.waits.forget(&whose);
        self.0.claims.forget(&gone.uid);
        self.tell(&whose, None);
    }

    /// Only before the operator is shared.
    fn with(mut self, change: impl FnOnce(&mut Inner)) -> Self {
        if let Some(inner) = Arc::get_mut(&mut self.0) {
            change(inner);
        }
        self
    }
}
