//! The runtime of a process with controllers: shared ports, start, health, shutdown.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::net::TcpListener;
use windlass_meta::{Clock, NameSource, SystemClock, SystemNames};

use crate::cache::Caches;
use crate::cx::{Cx, Ports};
use crate::driver::ControllerEntry;
use crate::events::Events;
use crate::health;
use crate::metrics::Metrics;
use crate::reader::Discovery;
use crate::scope::Scope;
use crate::tasks::Tasks;
use crate::term::Term;
use crate::transport::Policy;

/// Everything that the controllers of one process share. Cheap to clone.
#[derive(Clone)]
pub struct Runtime {
    ports: Arc<Ports>,
}

impl std::fmt::Debug for Runtime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runtime").finish_non_exhaustive()
    }
}

/// Builds a [`Runtime`].
pub struct RuntimeBuilder {
    client: kube::Client,
    clock: Arc<dyn Clock>,
    names: Arc<dyn NameSource>,
    metrics: Metrics,
    tasks: Tasks,
    term: Term,
    workloads: Policy,
    scope: Scope,
    sync_period: Option<Duration>,
}

impl std::fmt::Debug for RuntimeBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RuntimeBuilder").finish_non_exhaustive()
    }
}

impl RuntimeBuilder {
    /// Sets another clock; for tests.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Sets another source of names; for tests.
    #[must_use]
    pub fn names(mut self, names: impl NameSource + 'static) -> Self {
        self.names = Arc::new(names);
        self
    }

    /// Sets metrics that are shared with other code, such as the client's request counter.
    #[must_use]
    pub fn metrics(mut self, metrics: Metrics) -> Self {
        self.metrics = metrics;
        self
    }

    /// Sets tasks that end together with others.
    #[must_use]
    pub fn tasks(mut self, tasks: Tasks) -> Self {
        self.tasks = tasks;
        self
    }

    /// Limits all writes to a term [default: no limit].
    #[must_use]
    pub fn term(mut self, term: Term) -> Self {
        self.term = term;
        self
    }

    /// Sets which addresses API servers of workload clusters may have, and what they may cost [default: any, and the default limits].
    #[must_use]
    pub fn workloads(mut self, policy: Policy) -> Self {
        self.workloads = policy;
        self
    }

    /// Sets which objects are read and reconciled [default: all]
    #[must_use]
    pub fn scope(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }

    /// Sets after which time every object is reconciled again, though no event asked for it [default: never]
    #[must_use]
    pub fn sync_period(mut self, period: Option<Duration>) -> Self {
        self.sync_period = period;
        self
    }

    /// Builds the kit. No watch starts yet: watches start with the first use of a cache.
    pub fn build(self) -> Runtime {
        let client = self.term.fence(self.client);
        let events = Events::start(client.clone(), self.clock.clone(), self.names.clone(), &self.tasks);
        let ports = Ports {
            caches: Caches::new(client.clone(), self.scope.clone(), self.tasks.clone()),
            discovery: Discovery::default(),
            client,
            clock: self.clock,
            names: self.names,
            events,
            metrics: self.metrics,
            tasks: self.tasks,
            checks: Mutex::default(),
            term: self.term,
            workloads: self.workloads,
            scope: self.scope,
            sync_period: self.sync_period,
        };
        Runtime { ports: Arc::new(ports) }
    }
}

impl Runtime {
    /// Controllers that talk to the API server behind `client`. Needs a tokio runtime.
    pub fn builder(client: kube::Client) -> RuntimeBuilder {
        RuntimeBuilder {
            client,
            clock: Arc::new(SystemClock),
            names: Arc::new(SystemNames),
            metrics: Metrics::new(),
            tasks: Tasks::new(),
            term: Term::endless(),
            workloads: Policy::default(),
            scope: Scope::default(),
            sync_period: None,
        }
    }

    /// Ports for code that is not a controller.
    pub fn cx(&self) -> Cx {
        Cx::new(self.ports.clone(), "none")
    }

    /// Starts controllers; returns at once.
    pub fn start(&self, entries: Vec<ControllerEntry>) {
        for entry in entries {
            let cx = Cx::new(self.ports.clone(), entry.name());
            let running = entry.start(cx);
            self.ports.tasks.spawn_graceful("controller", running);
        }
    }

    /// Serves `/healthz` and `/readyz` until shutdown.
    pub fn serve(&self, listener: TcpListener) {
        let kit = self.clone();
        let ready = Arc::new(move || kit.ready());
        health::serve(listener, ready, &self.ports.tasks);
    }

    /// Adds a condition for [`Self::ready`].
    pub fn check(&self, check: impl Fn() -> Result<(), String> + Send + Sync + 'static) {
        self.ports.checks.lock().push(Arc::new(check));
    }

    /// Ok once the informers of all declared kinds are synced, and as long as all checks are and no task has panicked. Otherwise the error
    /// names what is not.
    pub fn ready(&self) -> Result<(), String> {
        if let Some(panicked) = self.ports.tasks.panicked() {
            return Err(panicked.to_string());
        }
        let checks = self.ports.checks.lock().clone();
        checks.iter().try_for_each(|check| check())?;
        let stores = self.cx().stores();
        let late: Vec<_> = stores
            .iter()
            .filter(|store| !store.is_synced())
            .map(|store| store.gvk().kind.clone())
            .collect();
        if late.is_empty() {
            Ok(())
        } else {
            Err(format!("informer not synced: {}", late.join(", ")))
        }
    }

    /// The metrics of the process.
    pub fn metrics(&self) -> &Metrics {
        &self.ports.metrics
    }

    /// The tasks of the process.
    pub fn tasks(&self) -> &Tasks {
        &self.ports.tasks
    }

    /// Lets running reconciles end, starts no new ones, and stops all watches.
    pub async fn shutdown(&self) {
        self.ports.tasks.shutdown().await;
    }
}
