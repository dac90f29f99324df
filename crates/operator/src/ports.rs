//! What the controllers of all declared kinds share.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Semaphore;
use windlass_components::images::Overrides;
use windlass_pki::KeyPool;
use windlass_repository::Client;

use crate::kept::Kept;
use crate::tracker::Tracker;

/// What the controllers of all declared kinds share. Cheap to clone.
#[derive(Clone)]
pub struct Operator(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) client: Client,
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) overrides: Overrides,
    pub(crate) keys: KeyPool,
    pub(crate) tracker: Tracker,
    /// What is kept of providers, by the uid of their declarations, so that it is not read again with every look.
    pub(crate) kept: Mutex<HashMap<String, Arc<Kept>>>,
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
            keys,
            tracker: Tracker::default(),
            kept: Mutex::default(),
            turn: Semaphore::new(1),
        }))
    }

    /// With variables that count where a Secret has none of the name. Whoever may declare a provider can have all of them in its objects.
    #[must_use]
    pub fn environment(self, variables: BTreeMap<String, String>) -> Self {
        self.with(|inner| inner.environment = variables)
    }

    /// With images from other places.
    #[must_use]
    pub fn overrides(self, overrides: Overrides) -> Self {
        self.with(|inner| inner.overrides = overrides)
    }

    /// Only before anybody else has it.
    fn with(mut self, change: impl FnOnce(&mut Inner)) -> Self {
        if let Some(inner) = Arc::get_mut(&mut self.0) {
            change(inner);
        }
        self
    }
}
