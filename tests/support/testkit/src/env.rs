//! A management cluster for one test.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

use http::HeaderValue;
use http::header::USER_AGENT;
use kube::api::ListParams;
use kube::client::Body;
use serde_json::json;
use tower::ServiceExt as _;
use windlass_controller_runtime::{Cx, Metrics, Runtime, transport};
use windlass_envtest::WriteTo;
use windlass_infra_dev::Cloud;
use windlass_manager::registry::controllers::Ports;
use windlass_manager::registry::helm::HelmUse;
use windlass_manager::registry::kinds::{KINDS, find};
use windlass_manager::up::CONTROLLERS_AGENT;
use windlass_manager::{ClientIdentity, NodeSync, Running, Scope, Selection, controllers};

use crate::faults::Faults;
use crate::keys::keys;
use crate::load::{self, Load};
use crate::objects::{MANAGER, NAMESPACE, Objects};
use crate::server::Server;
use crate::wait;

/// Builds an [`Env`].
#[derive(Debug, Default)]
pub struct EnvBuilder {
    server: Option<Server>,
    faults: Faults,
    cloud: Option<Cloud>,
    helm: Option<HelmUse>,
    scope: Scope,
    nodes: NodeSync,
    identity: Option<ClientIdentity>,
    selection: Option<Selection>,
    idle: bool,
}

impl EnvBuilder {
    /// Adds faults between the controllers and the server. The test's own client has none.
    #[must_use]
    pub fn faults(mut self, faults: &Faults) -> Self {
        self.faults = faults.clone();
        self
    }

    /// Sets existing simulated infrastructure that outlives the controllers; they have the privileges of this handle.
    #[must_use]
    pub fn cloud(mut self, cloud: &Cloud) -> Self {
        self.cloud = Some(cloud.clone());
        self
    }

    /// Sets how charts are fetched and installed.
    #[must_use]
    pub fn helm(mut self, helm: &HelmUse) -> Self {
        self.helm = Some(helm.clone());
        self
    }

    /// Limits which objects the controllers read and reconcile.
    #[must_use]
    pub fn scope(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }

    /// Sets what goes from Machines to their Nodes beside what always does.
    #[must_use]
    pub fn nodes(mut self, nodes: NodeSync) -> Self {
        self.nodes = nodes;
        self
    }

    /// Sets with what the controllers identify themselves to extensions.
    #[must_use]
    pub fn identity(mut self, identity: ClientIdentity) -> Self {
        self.identity = Some(identity);
        self
    }

    /// Runs only these controllers.
    #[must_use]
    pub fn controllers(mut self, selection: Selection) -> Self {
        self.selection = Some(selection);
        self
    }

    /// Starts no controllers yet.
    #[must_use]
    pub fn without_controllers(mut self) -> Self {
        self.idle = true;
        self
    }

    /// Starts the server with all definitions, and the controllers.
    pub async fn start(self) -> Env {
        let server = match self.server {
            Some(server) => server,
            None => Server::with_definitions().await,
        };
        let objects = Objects::new(server.client(MANAGER));
        let mut env = Env {
            server,
            objects,
            cloud: self.cloud,
            helm: self.helm,
            scope: self.scope,
            nodes: self.nodes,
            identity: self.identity,
            selection: self.selection.unwrap_or_else(Selection::all),
            running: None,
        };
        if !self.idle {
            env.start_controllers(&self.faults);
        }
        env
    }
}

/// An API server, a client for it ([`Objects`]), and the controllers.
pub struct Env {
    server: Server,
    objects: Objects,
    cloud: Option<Cloud>,
    helm: Option<HelmUse>,
    scope: Scope,
    nodes: NodeSync,
    identity: Option<ClientIdentity>,
    selection: Selection,
    running: Option<Running>,
}

impl std::fmt::Debug for Env {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Env")
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

impl Deref for Env {
    type Target = Objects;

    fn deref(&self) -> &Objects {
        &self.objects
    }
}

impl Env {
    /// Starts everything that `windlass up` runs, with an empty data folder.
    pub async fn start() -> Self {
        Self::builder().start().await
    }

    /// Builds one with options.
    pub fn builder() -> EnvBuilder {
        EnvBuilder::default()
    }

    /// Starts the controllers, with faults between them and the server.
    pub fn start_controllers(&mut self, faults: &Faults) {
        self.start_part(&self.selection.clone(), faults);
    }

    /// Starts a part of the controllers.
    pub fn start_part(&mut self, selection: &Selection, faults: &Faults) {
        let metrics = Metrics::new();
        let service = faults.wrap(self.server.service(CONTROLLERS_AGENT));
        let named = service.map_request(|mut request: http::Request<Body>| {
            let agent = HeaderValue::from_static(CONTROLLERS_AGENT);
            request.headers_mut().insert(USER_AGENT, agent);
            request
        });
        let client = transport::in_process(named, &metrics);
        let ports = |cx: &Cx| {
            let ports = Ports::new(cx, keys())
                .syncing(self.nodes.clone())
                .identified_to_extensions(self.identity.clone());
            let ports = match &self.cloud {
                Some(cloud) => ports.on(cloud),
                None => ports,
            };
            match &self.helm {
                Some(helm) => ports.charting(helm.clone()),
                None => ports,
            }
        };
        let kit = Runtime::builder(client)
            .metrics(metrics)
            .scope(self.scope.clone())
            .build();
        self.running = Some(controllers::start_with(kit, selection, ports));
    }

    /// Stops all controllers and their simulated infrastructure, as the end of their process does. The server stays.
    pub async fn stop_controllers(&mut self) {
        if let Some(running) = self.running.take() {
            running.shutdown().await;
        }
    }

    /// Stops everything, and starts it again from the stored data.
    pub async fn restart(mut self) -> Self {
        self.stop_controllers().await;
        EnvBuilder {
            server: Some(self.server.restart().await),
            cloud: self.cloud,
            helm: self.helm,
            scope: self.scope,
            nodes: self.nodes,
            identity: self.identity,
            selection: Some(self.selection),
            ..EnvBuilder::default()
        }
        .start()
        .await
    }

    /// Stops everything.
    pub async fn stop(mut self) {
        self.stop_controllers().await;
        self.server.stop().await;
    }

    /// The server.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Access as another user, whose permissions come from Roles for the name and the groups. [`Env`] itself has all permissions.
    pub fn as_user(&self, name: &str, groups: &[&str]) -> Objects {
        Objects::new(self.server.client_of(name, groups))
    }

    /// The simulated infrastructure of the running controllers.
    pub fn cloud(&self) -> Cloud {
        let running = self.running.as_ref().map(|running| running.ports().cloud.clone());
        running.or_else(|| self.cloud.clone()).expect("controllers run")
    }

    /// A value from the metrics of the running controllers, by series and controller. Fails if no series has these names.
    pub fn metric(&self, series: &str, controller: &str) -> f64 {
        let number = load::number(&self.metrics(), series, controller);
        number.unwrap_or_else(|| panic!("there is no series {series} or no controller {controller}"))
    }

    /// All metrics of the running controllers, as text.
    pub fn metrics(&self) -> String {
        let running = self.running.as_ref();
        running
            .map(|running| running.kit().metrics().encode())
            .unwrap_or_default()
    }

    /// The requests of controllers to the management API server so far, without watches.
    pub fn requests(&self) -> u64 {
        let text = self.metrics();
        let sum = |series: &str| -> u64 {
            let lines = text
                .lines()
                .filter(|line| line.starts_with(series) && !line.contains("host=\"127.0.0.1"));
            lines
                .filter_map(|line| line.rsplit_once(' ')?.1.split('.').next()?.parse::<u64>().ok())
                .sum()
        };
        sum("rest_client_requests_total{").saturating_sub(sum("windlass_watches_total{"))
    }

    /// The number of writes by the controllers to an object and its subresources, including refused writes.
    pub fn writes_to(&self, kind: &str, name: &str) -> BTreeMap<WriteTo, u64> {
        let entry = find(kind);
        let plural = entry.map_or("", |entry| entry.plural);
        self.server.counters().of(|write| {
            let object = (write.resource.as_str(), write.namespace.as_str(), write.name.as_str());
            write.agent == CONTROLLERS_AGENT && object == (plural, NAMESPACE, name)
        })
    }

    /// The number of writes by the controllers, by verb and resource, including refused writes and Events.
    pub fn writes_by_kind(&self) -> BTreeMap<String, u64> {
        let mut writes = BTreeMap::new();
        for (write, count) in self.server.counters().of(|write| write.agent == CONTROLLERS_AGENT) {
            let mut what = format!("{} {}", write.verb, write.resource);
            if !write.subresource.is_empty() {
                what = format!("{what}/{}", write.subresource);
            }
            *writes.entry(what).or_default() += count;
        }
        writes
    }

    /// The number of objects of a resource that the controllers created, including those whose answer was lost.
    pub fn created(&self, resource: &str) -> u64 {
        self.created_by_resource().get(resource).copied().unwrap_or_default()
    }

    /// The number of objects that the controllers created, by resource. Events are not among them.
    pub fn created_by_resource(&self) -> BTreeMap<String, u64> {
        let mut created = BTreeMap::new();
        let all = self.server.counters().of(|write| {
            write.agent == CONTROLLERS_AGENT
                && write.subresource.is_empty()
                && write.code == 201
                && write.resource != "events"
        });
        for (write, count) in all {
            *created.entry(write.resource).or_default() += count;
        }
        created
    }

    /// The names of all stored objects, except for Events and objects of the server itself.
    pub async fn stored(&self) -> BTreeSet<String> {
        self.objects.stored().await
    }

    /// Touches every object of our kinds without a change of content, as `kubectl apply` does, and waits until the controllers
    /// have reconciled all of them and are idle.
    pub async fn prod(&self, touch: &str) {
        self.prod_all_but("", touch).await;
    }

    /// [`Self::prod`], except for a controller that ignores objects it has once reconciled.
    pub async fn prod_all_but(&self, controller: &str, touch: &str) {
        let mut before = self.load();
        before.reconciles.remove(controller);
        // It is about definitions, which are not touched.
        before.reconciles.remove("crdmigrator");
        let patch = json!({"metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": touch}}});
        for entry in KINDS {
            let all = self.dynamic(&entry.full_name()).list(&ListParams::default()).await;
            for object in all.unwrap_or_else(|error| panic!("cannot list {}: {error}", entry.plural)) {
                self.merge(&entry.full_name(), &object.metadata.name.unwrap_or_default(), &patch)
                    .await;
            }
        }
        let is_done = || {
            let now = self.load();
            now.busy.is_empty()
                && before
                    .reconciles
                    .iter()
                    .all(|(name, count)| now.reconciles.get(name) > Some(count))
        };
        self.look_until("controllers to look at what was touched and rest", is_done)
            .await;
    }

    /// Waits until each of these controllers has reconciled something since its start, and all are idle.
    pub async fn looked(&self, controllers: &[&str]) {
        let is_done = || {
            let now = self.load();
            now.busy.is_empty() && controllers.iter().all(|name| now.reconciles.contains_key(*name))
        };
        self.look_until(&format!("{controllers:?} to look and rest"), is_done)
            .await;
    }

    /// Polls until a condition holds for which there is no watch, such as a metric.
    pub async fn look_until(&self, what: &str, is_so: impl Fn() -> bool) {
        let mut looks = wait::looks();
        let done = tokio::time::timeout(wait::TIMEOUT, async {
            while !is_so() {
                looks.tick().await;
            }
        });
        if done.await.is_err() {
            self.give_up(what).await;
        }
    }

    /// The load of the controllers.
    pub fn load(&self) -> Load {
        let all = self.running.as_ref().map(|running| running.kit().metrics().loads());
        all.unwrap_or_default().into()
    }
}
