//! The state of a server: its options, the store, and derived data in memory.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Weak};

use parking_lot::{Mutex, RwLock};
use tokio_util::sync::CancellationToken;
use windlass_meta::repeats::Repeats;
use windlass_meta::{Clock, NameSource, SystemClock, SystemNames};
use windlass_store::Store;

use crate::admission::hook::AdmissionHook;
use crate::admission::webhook;
use crate::auth::authorizer::{Authorization, Authorizer};
use crate::auth::tokens::Tokens;
use crate::crds::registry::Custom;
use crate::http::connections::Connections;
use crate::http::counters::Counters;
use crate::http::documents::Documents;
use crate::http::heavy::Heavy;
use crate::http::per_user::PerUser;
use crate::http::pod_tunnel::PodTunnel;
use crate::http::webhook_client::WebhookServices;
use crate::objects::converter::Converter;
use crate::objects::forms::Forms;
use crate::objects::service_index::Services;
use crate::verbs::watch_lines::{Lines, Parts};
use windlass_rbac::user::UserInfo;

/// The configuration of a server.
#[derive(Clone)]
pub struct Options {
    /// The store of objects.
    pub store: Store,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Generates suffixes for `generateName`.
    pub names: Arc<dyn NameSource>,
    /// In-process admission hooks, in order.
    pub admission: Vec<Arc<dyn AdmissionHook>>,
    /// Converts objects between versions in this process.
    pub converter: Option<Arc<dyn Converter>>,
    /// The authorization mode.
    pub authorization: Authorization,
    /// Opens connections to pods.
    pub pod_tunnel: Option<Arc<dyn PodTunnel>>,
    /// Bearer tokens and their users.
    pub tokens: BTreeMap<String, UserInfo>,
    /// The version in `/version`, until [`crate::ApiServer::set_kubernetes_version`] sets another one.
    pub kubernetes_version: String,
    /// Whether pods on a node stay until their kubelet has stopped them. Without kubelets they are deleted at once.
    pub graceful_pods: bool,
    /// The addresses of services that admission webhooks name.
    pub webhook_services: WebhookServices,
    /// Whether the limits of a user hold for members of `system:masters`, too. For servers whose administrators are not those of this process.
    pub limits_masters: bool,
    /// Whether objects go with their owners, namespaces and definitions. Not in a copy of a server that lacks some of the owners.
    pub collects_garbage: bool,
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("authorization", &self.authorization)
            .field("kubernetes_version", &self.kubernetes_version)
            .field("graceful_pods", &self.graceful_pods)
            .finish_non_exhaustive()
    }
}

impl Options {
    /// The default options for a store.
    pub fn new(store: Store) -> Self {
        Self {
            store,
            clock: Arc::new(SystemClock),
            names: Arc::new(SystemNames),
            admission: Vec::new(),
            converter: None,
            authorization: Authorization::default(),
            pod_tunnel: None,
            tokens: BTreeMap::new(),
            kubernetes_version: "v1.36.0".to_owned(),
            graceful_pods: false,
            webhook_services: WebhookServices::default(),
            limits_masters: false,
            collects_garbage: true,
        }
    }
}

pub(crate) struct Inner {
    /// Itself, for work that goes on when a request does not.
    pub(crate) this: Weak<Self>,
    pub(crate) store: Store,
    pub(crate) options: Options,
    pub(crate) kubernetes_version: RwLock<String>,
    pub(crate) authorizer: Arc<Authorizer>,
    pub(crate) custom: RwLock<Arc<Custom>>,
    pub(crate) counters: Counters,
    pub(crate) heavy: Heavy,
    pub(crate) documents: Documents,
    pub(crate) watches: Arc<PerUser<()>>,
    pub(crate) connections: Arc<Connections>,
    pub(crate) shutdown: CancellationToken,
    pub(crate) tokens: Tokens,
    pub(crate) crd_writes: tokio::sync::Mutex<()>,
    /// Held while a service is written, because its addresses and ports must be unique.
    pub(crate) service_writes: tokio::sync::Mutex<()>,
    pub(crate) services: Services,
    pub(crate) webhooks: webhook::Registry,
    pub(crate) lines: Lines,
    /// The failures of webhooks, as far as they were logged.
    pub(crate) said: Repeats,
    pub(crate) parts: Parts,
    pub(crate) forms: Forms,
    pub(crate) names: Mutex<HashMap<&'static str, Arc<str>>>,
}

impl Inner {
    pub(crate) fn now(&self) -> jiff::Timestamp {
        self.options.clock.now()
    }

    /// The current registry.
    pub(crate) fn registry(&self) -> Arc<Custom> {
        Arc::clone(&self.custom.read())
    }

    /// The shared storage name of a built-in resource.
    pub(crate) fn storage_name(&self, name: &'static str) -> Arc<str> {
        Arc::clone(self.names.lock().entry(name).or_insert_with(|| Arc::from(name)))
    }
}
