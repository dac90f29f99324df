//! Admission webhooks: programs that are asked, over the network, about writes before these are stored.
//!
//! Which there are is read from the stored configurations when one of these is written, never on the way of another write: a server
//! without configurations takes one look at an empty slot. What is asked (`review`), of whom (`matching`, `hook`) and which
//! configurations are in order (`check`) is pure; `run` asks, through `client`. Nothing is locked while a webhook is asked.
//!
//! `CONNECT` is a known operation that never happens: nothing but port-forward connects through this server, and that has no object.

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

/// Where configurations with webhooks that may change objects are stored.
pub(crate) const MUTATING: &str = "mutatingwebhookconfigurations.admissionregistration.k8s.io";
/// Where configurations with webhooks that may only refuse are stored.
pub(crate) const VALIDATING: &str = "validatingwebhookconfigurations.admissionregistration.k8s.io";

/// All webhooks, in the order in which they are asked: by the name of their configuration, then by their place in it.
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

/// The webhooks as they are now; `None` when there are none, which is the usual case.
#[derive(Debug, Default)]
pub(crate) struct Registry(RwLock<Option<Arc<Hooks>>>);

impl Registry {
    /// The webhooks, if there are any.
    pub(crate) fn current(&self) -> Option<Arc<Hooks>> {
        self.0.read().clone()
    }

    /// Takes over what a configuration says. It is read under the lock: the last refresh always sees the last write.
    pub(crate) fn refresh(&self, storage: &'static str, name: &str, read: impl FnOnce() -> Option<Value>) {
        let mut slot = self.0.write();
        let empty = Arc::default();
        let next = slot.as_ref().unwrap_or(&empty).with(storage, name, read().as_ref());
        *slot = (!next.is_empty()).then(|| Arc::new(next));
    }
}
