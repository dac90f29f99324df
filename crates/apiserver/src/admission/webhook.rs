//! Admission webhooks: HTTP servers that review writes before they are stored.
//!
//! The stored configurations are parsed when one of them is written, never during another write: without configurations, a write
//! only checks an empty slot. The content of a review (`review`), the selection of webhooks (`matching`, `hook`) and the
//! validation of configurations (`check`) are pure. `run` calls the webhooks through `client`. No lock is held during a call.
//!
//! `CONNECT` is a known operation that never occurs: only port-forward connects through this server, and it has no object.

mod check;
pub(crate) mod hook;
pub(crate) mod matching;
pub(crate) mod review;

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::RwLock;
use serde_json::Value;

pub(crate) use self::check::{client as check_client, errors};
use self::hook::Hook;
pub(crate) use self::matching::Operation;
pub(crate) use self::review::KindName;

/// The storage name of MutatingWebhookConfigurations.
pub(crate) const MUTATING: &str = "mutatingwebhookconfigurations.admissionregistration.k8s.io";
/// The storage name of ValidatingWebhookConfigurations.
pub(crate) const VALIDATING: &str = "validatingwebhookconfigurations.admissionregistration.k8s.io";

/// All webhooks in call order: by the name of their configuration, then by their position in it.
#[derive(Debug, Default)]
pub(crate) struct Hooks {
    configurations: BTreeMap<(&'static str, String), Vec<Arc<Hook>>>,
    pub(crate) mutating: Vec<Arc<Hook>>,
    pub(crate) validating: Vec<Arc<Hook>>,
}

impl Hooks {
    /// The webhooks after a configuration was written or, with `None`, removed.
    fn with(&self, storage: &'static str, name: &str, configuration: Option<&Value>) -> Self {
        let mut configurations = self.configurations.clone();
        let before = configurations.remove(&(storage, name.to_owned())).unwrap_or_default();
        if let Some(configuration) = configuration {
            let hooks = hook::parse(configuration, &before);
            configurations.insert((storage, name.to_owned()), hooks);
        }
        let all = |wanted: &str| {
            configurations
                .iter()
                .filter(|((storage, _), _)| *storage == wanted)
                .flat_map(|(_, hooks)| hooks.iter().map(Arc::clone))
                .collect()
        };
        Self {
            mutating: all(MUTATING),
            validating: all(VALIDATING),
            configurations,
        }
    }

    fn is_empty(&self) -> bool {
        self.mutating.is_empty() && self.validating.is_empty()
    }
}

/// The current webhooks; `None` when there are none, which is the usual case.
#[derive(Debug, Default)]
pub(crate) struct Registry(RwLock<Option<Arc<Hooks>>>);

impl Registry {
    /// The webhooks, if there are any.
    pub(crate) fn current(&self) -> Option<Arc<Hooks>> {
        self.0.read().clone()
    }

    /// Reloads a configuration. It is read under the lock, so that the last refresh sees the last write.
    pub(crate) fn refresh(&self, storage: &'static str, name: &str, read: impl FnOnce() -> Option<Value>) {
        let mut slot = self.0.write();
        let empty = Arc::default();
        let next = slot.as_ref().unwrap_or(&empty).with(storage, name, read().as_ref());
        *slot = (!next.is_empty()).then(|| Arc::new(next));
    }
}
