//! The server: its state, and its start.

use std::sync::Arc;

use futures::future::BoxFuture;
use parking_lot::{Mutex, RwLock};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use windlass_store::{Change, Expect, Key, Record, Store, Write};

use crate::admission::webhook;
use crate::auth::authorizer::{Authorization, Authorizer};
use crate::auth::rbac;
use crate::auth::rbac::Rbac;
use crate::auth::tokens::Tokens;
use crate::crds::definition::Definition;
use crate::crds::registry::Custom;
use crate::error::ApiError;
use crate::http::connections::Connections;
use crate::http::counters::Counters;
use crate::http::documents::Documents;
use crate::http::heavy::Heavy;
use crate::http::service::ClientService;
use crate::objects::encoding::{decode, draft};
use crate::objects::forms::Forms;
use crate::objects::resource::Resource;
use crate::objects::service_index::Services;
use crate::objects::stored;
use crate::state::Inner;
use crate::state::Options;
use crate::verbs::watch_lines::{Lines, Parts};
use crate::{builtin, controllers, crds};
use windlass_builtin_kinds::Special;
use windlass_objects::metadata::seconds;
use windlass_rbac::user::UserInfo;

/// A running server. A clone is another handle to it.
#[derive(Clone)]
pub struct ApiServer {
    pub(crate) inner: Arc<Inner>,
}

impl std::fmt::Debug for ApiServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApiServer").finish_non_exhaustive()
    }
}

impl ApiServer {
    /// Starts a server. Creates the default namespaces and, with RBAC, the default roles, reads the stored definitions, and
    /// starts the task of the built-in controllers. Must be called within a tokio runtime.
    // Boxed, like all futures that leave this crate: otherwise the whole server is compiled again in the crate that polls them.
    pub fn start(options: Options) -> BoxFuture<'static, Result<Self, ApiError>> {
        Box::pin(Self::begin(options))
    }

    async fn begin(options: Options) -> Result<Self, ApiError> {
        let authorizer = match options.authorization {
            Authorization::AllowAuthenticated => Authorizer::AllowAuthenticated,
            Authorization::Rbac => {
                rbac::make_defaults(&options.store, options.clock.now()).await?;
                Authorizer::Rbac(Rbac::load(&options.store))
            }
        };
        let inner = Arc::new_cyclic(|this| Inner {
            this: this.clone(),
            store: options.store.clone(),
            authorizer: Arc::new(authorizer),
            tokens: Tokens::new(&options.tokens),
            kubernetes_version: RwLock::new(options.kubernetes_version.clone()),
            heavy: Heavy::new(options.limits_masters),
            options,
            custom: RwLock::default(),
            counters: Counters::default(),
            documents: Documents::default(),
            watches: Arc::default(),
            connections: Arc::<Connections>::default(),
            shutdown: CancellationToken::new(),
            crd_writes: tokio::sync::Mutex::new(()),
            service_writes: tokio::sync::Mutex::new(()),
            services: Services::default(),
            webhooks: webhook::Registry::default(),
            lines: Lines::default(),
            said: windlass_meta::repeats::Repeats::default(),
            parts: Parts::default(),
            forms: Forms::default(),
            names: Mutex::default(),
        });
        inner.load_definitions();
        crate::controllers::definitions::settle_all(&inner).await?;
        inner.load_webhooks();
        inner.make_namespaces().await?;
        crate::controllers::role_aggregation::settle(&inner).await;
        if inner.options.collects_garbage {
            controllers::start(&inner);
        }
        if inner.store.is_durable() {
            let (store, shutdown) = (inner.store.clone(), inner.shutdown.clone());
            tokio::spawn(async move {
                shutdown.run_until_cancelled(store.keep_trying()).await;
            });
        }
        Ok(Self { inner })
    }

    /// A service that handles requests in this process for an authenticated user, for
    /// `kube::Client::new(server.client_service(user), "default")`.
    pub fn client_service(&self, user: UserInfo) -> ClientService {
        ClientService::new(Arc::clone(&self.inner), user)
    }

    /// The store.
    pub fn store(&self) -> &Store {
        &self.inner.store
    }

    /// Sets the version that clients see, for example after an upgrade of a simulated control plane.
    pub fn set_kubernetes_version(&self, version: &str) {
        version.clone_into(&mut self.inner.kubernetes_version.write());
    }

    /// Counters of requests.
    pub fn counters(&self) -> &Counters {
        &self.inner.counters
    }

    /// Ends watches, refuses new ones, and ends listeners. [`Store::close`] releases data folders.
    pub fn shutdown(&self) {
        self.inner.shutdown.cancel();
    }
}

impl Inner {
    /// Whether the server has state of its own that follows from objects of a kind.
    pub(crate) fn follows(resource: &Resource) -> bool {
        resource.group == windlass_rbac::GROUP || matches!(resource.special, Special::Crd | Special::Webhooks)
    }

    /// Updates the server's own state after an object was written or deleted.
    pub(crate) fn written(&self, resource: &Resource, namespace: &str, name: &str) {
        if resource.group == windlass_rbac::GROUP
            && let Some(roles) = self.authorizer.rbac()
        {
            roles.refresh(&self.store, &resource.storage, namespace, name);
        }
        match resource.special {
            Special::Crd => self.refresh_definition(name),
            Special::Webhooks => {
                for storage in [webhook::MUTATING, webhook::VALIDATING] {
                    if storage == resource.storage.as_ref() {
                        self.refresh_webhooks(storage, name);
                    }
                }
            }
            _ => {}
        }
    }

    fn refresh_webhooks(&self, storage: &'static str, name: &str) {
        let read = || {
            self.store
                .get(storage, "", name)
                .and_then(|record| decode(&record).ok())
        };
        self.webhooks.refresh(storage, name, read);
    }

    fn load_webhooks(&self) {
        for storage in [webhook::MUTATING, webhook::VALIDATING] {
            for record in stored::all(&self.store, storage, None) {
                self.refresh_webhooks(storage, record.key.name());
            }
        }
    }

    /// Reloads a definition after it was written or deleted.
    fn refresh_definition(&self, name: &str) {
        // The stored definition is read under the lock, so the last refresh always sees the last write.
        let mut custom = self.custom.write();
        let record = self.store.get(crds::STORAGE, "", name);
        let stored = record.and_then(|record| Some((decode(&record).ok()?, record.revision)));
        let before = custom.definition(name);
        if let (Some((definition, _)), Some(before)) = (&stored, before)
            && before.fingerprint == crds::fingerprint(definition)
        {
            let labels = crds::labels(definition);
            if before.labels != labels {
                let relabelled = Definition {
                    labels,
                    ..before.clone()
                };
                let mut next = Custom::clone(&custom);
                next.set(name, Some(relabelled));
                *custom = Arc::new(next);
            }
            return;
        }
        let converter = self.options.converter.as_ref();
        let definition =
            stored.map(|(definition, revision)| crds::definition(&definition, revision, before, converter));
        if let Some(before) = before {
            before.retire();
        }
        let mut next = Custom::clone(&custom);
        next.set(name, definition);
        *custom = Arc::new(next);
    }

    /// The stored definitions, of one group or of all.
    pub(crate) fn definitions(&self, group: Option<&str>) -> Vec<Value> {
        let is_in = |record: &Record| {
            let (_, its) = record.key.name().split_once('.').unwrap_or_default();
            group.is_none_or(|group| group == its)
        };
        let all = stored::all(&self.store, crds::STORAGE, None);
        all.iter()
            .filter(|record| is_in(record))
            .filter_map(|record| decode(record).ok())
            .collect()
    }

    fn load_definitions(&self) {
        let mut custom = Custom::default();
        for definition in self.definitions(None) {
            let name = windlass_objects::metadata::meta(&definition, "name");
            let revision = windlass_objects::metadata::meta(&definition, "resourceVersion")
                .parse()
                .unwrap_or(0);
            custom.set(
                name,
                Some(crds::definition(
                    &definition,
                    revision,
                    None,
                    self.options.converter.as_ref(),
                )),
            );
        }
        *self.custom.write() = Arc::new(custom);
    }

    async fn make_namespaces(&self) -> Result<(), ApiError> {
        let storage = self.storage_name("namespaces");
        let now = seconds(self.now());
        let mut writes = Vec::new();
        for name in ["default", "kube-system", "kube-public", "kube-node-lease"] {
            if self.store.get(&storage, "", name).is_some() {
                continue;
            }
            let object = json!({
                "apiVersion": "v1", "kind": "Namespace",
                "metadata": {
                    "name": name, "uid": uuid::Uuid::new_v4().to_string(), "creationTimestamp": now,
                    "labels": {"kubernetes.io/metadata.name": name},
                },
                "spec": {"finalizers": ["kubernetes"]},
                "status": {"phase": "Active"},
            });
            writes.push(Write {
                key: Key::new(&storage, "", name),
                expect: Expect::Absent,
                change: Change::Put(draft(&object)),
            });
        }
        if !writes.is_empty() {
            self.store.commit(writes).await.map_err(ApiError::internal)?;
        }
        debug_assert!(!builtin::resources().is_empty());
        Ok(())
    }
}
