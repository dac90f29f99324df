//! All workload clusters: the state of each connection, and the subscribers to its changes.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use parking_lot::{Mutex, RwLock};
use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;
use windlass_api::core::Cluster;
use windlass_api::labels;
use windlass_controller_runtime::transport::{Bounds, Held, Refusal};
use windlass_controller_runtime::{Backoff, Cache, CountedHost, Cx, Failing, ObjectKey, Tasks, Watch, key_of};
use windlass_pki::Purpose;

use crate::connection::{Nodes, RemoteCluster};
use crate::error::{NotConnected, RemoteError};
use crate::events::RemoteEvent;
use crate::health::{Health, Probe, Verdict};
use crate::metrics::{self, Checks, Measured, Refusals};
use crate::next::{Next, SETTLED, next};
use crate::options::Options;
use crate::workload::{Outage, Workload};

/// Why there is no connection to the workload cluster of a Cluster that does not exist.
const NO_CLUSTER: &str = "there is no such Cluster";

/// How many workload clusters list their Nodes for the first time at once.
const FIRST_LISTS: usize = 10;
/// What is said of Nodes that are not listed yet.
const AWAITED: &str = "the Nodes of the workload cluster are not listed yet";
/// What is said of Nodes that were not listed in time.
const LATE: &str = "the Nodes of the workload cluster cannot be listed";

/// The reason while a connection has failed probes, and is not lost yet.
const UNANSWERED: &str = "the last probe failed";

type Subscriber = Arc<dyn Fn(&RemoteEvent) + Send + Sync>;

/// The connections to all workload clusters. Cheap to clone.
#[derive(Clone)]
pub struct Clusters(Arc<Inner>);

struct Inner {
    cx: Cx,
    options: Options,
    secrets: Cache<Secret>,
    clusters: Cache<Cluster>,
    entries: Mutex<HashMap<ObjectKey, Arc<Entry>>>,
    refusals: Arc<Refusals>,
    subscribers: RwLock<Vec<Subscriber>>,
    /// What all API servers together hold.
    held: Held,
    /// One for each first list of Nodes that may run.
    turns: Arc<Semaphore>,
}

/// One workload cluster.
struct Entry {
    key: ObjectKey,
    health: Arc<RwLock<Health>>,
    checks: Mutex<Checks>,
    bounds: Bounds,
    link: RwLock<Link>,
    /// An event that may let an attempt succeed, or require a new connection.
    wake: Notify,
    tasks: Tasks,
    /// Keeps the metrics of the API server's host as long as the Cluster exists, also between attempts to connect.
    host: Mutex<Option<CountedHost>>,
}

/// The state of the connection to a workload cluster.
enum Link {
    Down(String),
    Up(Arc<RemoteCluster>),
}

impl std::fmt::Debug for Clusters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Clusters").finish_non_exhaustive()
    }
}

impl Clusters {
    /// Watches all Clusters: connects to each as soon as its infrastructure is provisioned and its kubeconfig Secret
    /// exists.
    pub fn new(cx: &Cx, options: Options) -> Self {
        let inner = Arc::new(Inner {
            cx: cx.clone(),
            options,
            secrets: cx.cache(),
            clusters: cx.cache(),
            entries: Mutex::default(),
            refusals: Arc::default(),
            subscribers: RwLock::default(),
            held: Held::default(),
            turns: Arc::new(Semaphore::new(FIRST_LISTS)),
        });
        let follow = Arc::downgrade(&inner);
        inner.clusters.subscribe(move |change| {
            let Some(inner) = follow.upgrade() else { return };
            let is_ours = |cluster: &Cluster| inner.cx.scope().reconciles(&cluster.metadata);
            match (&change.old, &change.new) {
                (_, Some(new)) if !is_ours(new) => inner.forget(&key_of(&new.metadata)),
                (old, Some(new)) => {
                    // Only this decides whether an attempt can succeed. Other changes must not shorten a backoff: some report its failures.
                    let matters = old
                        .as_deref()
                        .is_none_or(|old| !is_ours(old) || is_provisioned(old) != is_provisioned(new));
                    if matters {
                        inner.ensure(key_of(&new.metadata));
                    }
                }
                (Some(old), None) => inner.forget(&key_of(&old.metadata)),
                (None, None) => {}
            }
        });
        let follow = Arc::downgrade(&inner);
        inner.secrets.subscribe(move |change| {
            let Some(inner) = follow.upgrade() else { return };
            let Some(secret) = change.object() else { return };
            // Only another kubeconfig lets an attempt succeed. Other changes, such as ours of its metadata, must not shorten a backoff.
            if kubeconfig_in(change.old.as_deref()) == kubeconfig_in(change.new.as_deref()) {
                return;
            }
            let key = key_of(&secret.metadata);
            if let Some(cluster) = key.name.strip_suffix("-kubeconfig") {
                inner.wake(&ObjectKey::new(key.namespace.as_str(), cluster));
            }
        });
        let of = Arc::downgrade(&inner);
        metrics::measure(cx.metrics(), inner.refusals.clone(), move || {
            of.upgrade().map(|inner| inner.measured()).unwrap_or_default()
        });
        Self(inner)
    }

    /// The connection to a workload cluster. Asking does not make the next attempt come sooner: callers ask after every failure.
    pub fn get(&self, cluster: &ObjectKey) -> Result<Arc<RemoteCluster>, NotConnected> {
        let entry = self.0.entries.lock().get(cluster).cloned();
        let why = match entry {
            None => self.0.why_unknown(cluster),
            Some(entry) => match &*entry.link.read() {
                Link::Up(connection) => return Ok(connection.clone()),
                Link::Down(why) => why.clone(),
            },
        };
        Err(NotConnected {
            cluster: cluster.clone(),
            why,
        })
    }

    /// The connection to a workload cluster, or why there is none.
    pub fn workload(&self, cluster: &ObjectKey) -> Workload<Arc<RemoteCluster>> {
        match self.get(cluster) {
            Ok(connection) => Workload::Up(connection),
            Err(missing) => Workload::without_connection(&self.health(cluster), missing.why, self.0.options.grace),
        }
    }

    /// Whether the API server of a workload cluster answers the probes. The first that fails begins an outage, before the connection counts as
    /// lost.
    pub fn probe(&self, cluster: &ObjectKey) -> Workload<()> {
        let health = self.health(cluster);
        match self.workload(cluster) {
            Workload::Up(_) if health.failing_since.is_some() => {
                Workload::without_connection(&health, UNANSWERED.to_owned(), self.0.options.grace)
            }
            workload => workload.map(drop),
        }
    }

    /// The connection to a workload cluster whose Nodes are known. While they are listed for the first time, nothing is known of them, and
    /// when that takes too long, they are out of reach.
    pub fn with_nodes(&self, cluster: &ObjectKey) -> Workload<Arc<RemoteCluster>> {
        let workload = self.workload(cluster);
        let Workload::Up(connection) = &workload else {
            return workload;
        };
        match connection.nodes_known() {
            Nodes::Listed => workload,
            Nodes::Awaited => Workload::NotTried(AWAITED.to_owned()),
            Nodes::Late => Workload::Down(Outage {
                since: connection.since(),
                last_success: None,
                why: LATE.to_owned(),
                grace: self.0.options.grace,
            }),
        }
    }

    /// Records that a request to a workload cluster was not answered, between two probes. That begins an outage, which is returned; the probe
    /// that ends it is an event.
    pub fn unanswered(&self, cluster: &ObjectKey, why: String) -> Workload<()> {
        let entry = self.0.entries.lock().get(cluster).cloned();
        if let Some(entry) = entry {
            entry.health.write().silent(self.0.cx.now());
        }
        Workload::without_connection(&self.health(cluster), why, self.0.options.grace)
    }

    /// Whether an attempt to connect to a workload cluster can be made: its infrastructure is provisioned, and its kubeconfig Secret has
    /// what connections need.
    pub fn can_try(&self, cluster: &ObjectKey) -> bool {
        self.0.kubeconfig(cluster).is_ok()
    }

    /// When the API server of a workload cluster last answered a probe, connected or not.
    pub fn last_probe_success(&self, cluster: &ObjectKey) -> Option<Timestamp> {
        self.health(cluster).last_success
    }

    /// The health of the connection to a workload cluster.
    pub fn health(&self, cluster: &ObjectKey) -> Health {
        let entries = self.0.entries.lock();
        let entry = entries.get(cluster);
        entry.map(|e| e.health.read().clone()).unwrap_or_default()
    }

    /// Why this process refuses the API server of a workload cluster, if it does.
    pub fn refusal(&self, cluster: &ObjectKey) -> Option<String> {
        self.health(cluster).refused
    }

    /// Calls `f` for all events from now on. `f` must not block.
    pub fn subscribe(&self, f: impl Fn(&RemoteEvent) + Send + Sync + 'static) {
        self.0.subscribers.write().push(Arc::new(f));
    }

    /// A source of wake-ups for a controller.
    pub fn watch(&self, map: impl Fn(&Cx, &RemoteEvent) -> Vec<ObjectKey> + Send + Sync + 'static) -> Watch {
        let clusters = self.clone();
        Watch::source(move |cx, wake| {
            clusters.subscribe(move |event| wake.add_all(map(&cx, event)));
        })
    }
}

impl Inner {
    fn ensure(self: &Arc<Self>, key: ObjectKey) {
        let mut entries = self.entries.lock();
        if let Some(entry) = entries.get(&key) {
            // Whether its infrastructure is provisioned may have changed.
            entry.wake.notify_one();
            return;
        }
        let entry = Arc::new(Entry {
            key: key.clone(),
            health: Arc::default(),
            checks: Mutex::default(),
            bounds: Bounds::new(self.cx.workloads().clone(), self.held.clone()),
            link: RwLock::new(Link::Down("no attempt was made yet".to_owned())),
            wake: Notify::new(),
            tasks: self.cx.tasks().child(),
            host: Mutex::default(),
        });
        entries.insert(key, entry.clone());
        drop(entries);
        let inner = self.clone();
        let tasks = entry.tasks.clone();
        tasks.spawn("remote cluster", async move { inner.run(&entry).await });
    }

    fn forget(&self, key: &ObjectKey) {
        let entry = self.entries.lock().remove(key);
        if let Some(entry) = entry {
            entry.tasks.stop();
            self.set_down(&entry, "the Cluster is gone".to_owned());
        }
    }

    /// What is known of each workload cluster, for the metrics.
    fn measured(&self) -> Vec<Measured> {
        let entries = self.entries.lock();
        let measured = |entry: &Arc<Entry>| Measured {
            cluster: entry.key.clone(),
            is_connected: matches!(&*entry.link.read(), Link::Up(_)),
            was_tried: {
                let health = entry.health.read();
                health.last_probe.is_some() || health.failing_since.is_some()
            },
            checks: *entry.checks.lock(),
        };
        entries.values().map(measured).collect()
    }

    fn wake(&self, key: &ObjectKey) {
        if let Some(entry) = self.entries.lock().get(key) {
            entry.wake.notify_one();
        }
    }

    fn tell(&self, event: &RemoteEvent) {
        let subscribers = self.subscribers.read().clone();
        for subscriber in &subscribers {
            subscriber(event);
        }
    }

    fn set_down(&self, entry: &Entry, why: String) {
        let old = std::mem::replace(&mut *entry.link.write(), Link::Down(why));
        if matches!(old, Link::Up(_)) {
            self.tell(&RemoteEvent::Disconnected(entry.key.clone()));
        }
    }

    /// Connects and reconnects as long as the Cluster exists.
    async fn run(self: Arc<Self>, entry: &Arc<Entry>) {
        let (mut failures, mut failing) = (0, Failing::default());
        let mut excesses = 0;
        // Before the first list, a kubeconfig that exists would count as missing.
        self.secrets.synced().await;
        loop {
            let kubeconfig = match self.kubeconfig(&entry.key) {
                Ok(kubeconfig) => kubeconfig,
                Err(why) => {
                    self.stand_still(entry, why);
                    entry.wake.notified().await;
                    continue;
                }
            };
            entry.bounds.begin();
            let connected = self.connect(entry, &kubeconfig).await;
            let mut lasted = Duration::ZERO;
            let failed = match connected {
                Ok(connection) if entry.bounds.refusal().is_none() => {
                    if excesses == 0 {
                        entry.health.write().accept();
                    }
                    lasted = self.stay(entry, &connection, &kubeconfig).await;
                    None
                }
                Ok(_) => None,
                Err(why) => Some(why),
            };
            if lasted >= SETTLED {
                excesses = 0;
            }
            match next(failed, entry.bounds.refusal(), lasted) {
                Next::Again => {
                    failures = 0;
                    failing.ended(Instant::now().into_std());
                }
                Next::Wait(why) => {
                    failures += 1;
                    entry.health.write().accept();
                    self.wait(entry, failures, &mut failing, why).await;
                }
                Next::Deny { refusal, again } => {
                    failures = if again { failures + 1 } else { 1 };
                    self.refusals.add(&refusal);
                    entry.health.write().refuse(refusal.why());
                    self.wait(entry, failures, &mut failing, refusal.why().to_owned()).await;
                }
                Next::Punish(refusal) => {
                    excesses += 1;
                    self.punish(entry, excesses, &refusal).await;
                }
            }
        }
    }

    /// Waits before the next attempt to connect to an API server that sent too much. Nothing ends that sooner: it would send as much again.
    async fn punish(&self, entry: &Entry, excesses: u32, refusal: &Refusal) {
        let (cluster, why) = (&entry.key, refusal.why());
        let delay = self.options.penalty.jittered(excesses);
        tracing::warn!(%cluster, reason = why, retry_in = ?delay, excesses, "the workload cluster is refused for a while");
        self.refusals.add(refusal);
        {
            let mut health = entry.health.write();
            health.refuse(why);
            health.connect_failed(self.cx.now());
        }
        self.set_down(entry, why.to_owned());
        self.tell(&RemoteEvent::Probed(entry.key.clone()));
        tokio::time::sleep(delay).await;
    }

    /// Why there is no connection to a Cluster, and no attempt.
    fn why_unknown(&self, cluster: &ObjectKey) -> String {
        match (&self.cx.scope().watch_filter, self.clusters.get(cluster)) {
            (Some(value), Some(_)) => format!(
                "the Cluster has no label {}={value}, so this manager does not connect to it (option --watch-filter)",
                labels::WATCH_FILTER
            ),
            _ => NO_CLUSTER.to_owned(),
        }
    }

    /// Records that no attempt can be made. When the infrastructure is provisioned, the missing kubeconfig is a failure like others: a
    /// cluster that had one is not reachable, and callers must not wait for an attempt that never comes.
    fn stand_still(&self, entry: &Entry, why: String) {
        self.set_down(entry, why);
        entry.health.write().accept();
        let cluster = self.clusters.get(&entry.key);
        if cluster.is_some_and(|cluster| is_provisioned(&cluster)) {
            entry.health.write().silent(self.cx.now());
            self.tell(&RemoteEvent::Probed(entry.key.clone()));
        }
    }

    /// The kubeconfig, or the reason why it is not usable yet.
    fn kubeconfig(&self, cluster: &ObjectKey) -> Result<ByteString, String> {
        let Some(object) = self.clusters.get(cluster) else {
            return Err("the Cluster is gone".to_owned());
        };
        if !is_provisioned(&object) {
            return Err("its infrastructure is not provisioned yet".to_owned());
        }
        let name = Purpose::Kubeconfig.secret_name(&cluster.name);
        let key = ObjectKey::new(cluster.namespace.as_str(), name.as_str());
        let secret = self.secrets.get(&key);
        kubeconfig_in(secret.as_deref())
            .cloned()
            .ok_or_else(|| match object.metadata.deletion_timestamp {
                Some(_) => "the Cluster is being deleted".to_owned(),
                None => format!("Secret {name} with key \"value\" does not exist yet"),
            })
    }

    async fn connect(&self, entry: &Arc<Entry>, kubeconfig: &ByteString) -> Result<Arc<RemoteCluster>, String> {
        let health = entry.health.clone();
        let of = (health, &entry.host, &entry.bounds);
        let connecting = RemoteCluster::connect(&self.cx, &entry.key, &kubeconfig.0, of, &self.options, &self.turns);
        // The user who writes the kubeconfig chooses what is tried: at most this cluster is lost.
        let connected = AssertUnwindSafe(connecting).catch_unwind().await;
        let connected = connected.unwrap_or_else(|_| {
            let why = "this program has a bug: the attempt panicked, see the log".to_owned();
            Err(RemoteError::new(&entry.key, "connect", why))
        });
        match connected {
            Ok(connection) => {
                let (now, threshold) = (self.cx.now(), self.options.threshold);
                let mut health = entry.health.write();
                health.probed(&Probe::Answered, now, threshold);
                Ok(connection)
            }
            Err(error) => {
                entry.health.write().connect_failed(self.cx.now());
                Err(error.why)
            }
        }
    }

    /// Waits before the next attempt, for the backoff or for a relevant event, whichever comes first.
    async fn wait(&self, entry: &Entry, failures: u32, failing: &mut Failing, why: String) {
        let delay = self.options.backoff.jittered(failures);
        let cluster = &entry.key;
        let is_said = failing.failed(&why, delay, Instant::now().into_std());
        // A new cluster takes its time.
        let is_known = entry.health.read().last_success.is_some();
        match (is_said, is_known) {
            (Some(repeated), true) => {
                tracing::warn!(%cluster, reason = why, failures, retry_in = ?delay, repeated, "cannot connect to the workload cluster");
            }
            (Some(repeated), false) => {
                tracing::info!(%cluster, reason = why, failures, retry_in = ?delay, repeated, "cannot connect to the workload cluster");
            }
            (None, _) => {
                tracing::debug!(%cluster, reason = why, failures, retry_in = ?delay, "cannot connect to the workload cluster");
            }
        }
        self.set_down(entry, why);
        self.tell(&RemoteEvent::Probed(entry.key.clone()));
        let floor = self.options.backoff.delay(1, 0.0);
        tokio::time::sleep(floor).await;
        tokio::select! {
            () = tokio::time::sleep(delay.saturating_sub(floor)) => {}
            () = entry.wake.notified() => {}
        }
    }

    /// Probes the connection until it is lost, or the kubeconfig changes. Returns how long it lasted.
    async fn stay(
        self: &Arc<Self>,
        entry: &Arc<Entry>,
        connection: &Arc<RemoteCluster>,
        kubeconfig: &ByteString,
    ) -> Duration {
        let began = Instant::now();
        *entry.link.write() = Link::Up(connection.clone());
        tracing::info!(cluster = %entry.key, "connected to the workload cluster");
        self.tell(&RemoteEvent::Connected(entry.key.clone()));
        let (teller, cluster) = (Arc::downgrade(self), entry.key.clone());
        connection.nodes().subscribe(move |change| {
            if let Some(teller) = teller.upgrade() {
                teller.tell(&RemoteEvent::Node {
                    cluster: cluster.clone(),
                    old: change.old.clone(),
                    new: change.new.clone(),
                });
            }
        });
        let (teller, cluster) = (Arc::downgrade(self), entry.key.clone());
        connection.on_list(self.options.first_list, move || {
            if let Some(teller) = teller.upgrade() {
                teller.tell(&RemoteEvent::Listed(cluster.clone()));
            }
        });
        // A quarter of jitter spreads the probes of many clusters.
        let next = || Instant::now() + Backoff::new(self.options.interval, self.options.interval).jittered(1);
        let mut due = next();
        let why = loop {
            tokio::select! {
                () = tokio::time::sleep_until(due) => {}
                refusal = entry.bounds.refused() => break refusal.why().to_owned(),
                () = entry.wake.notified() => {
                    if matches!(*entry.link.read(), Link::Down(_)) {
                        break "it was ended on purpose".to_owned();
                    }
                    match self.kubeconfig(&entry.key) {
                        Ok(now) if now == *kubeconfig => continue,
                        Ok(_) => break "its kubeconfig changed".to_owned(),
                        Err(why) => break why,
                    }
                }
            }
            let probe = connection.probe(self.options.timeout).await;
            due = next();
            entry.checks.lock().add(&probe);
            let (verdict, failed_before) = {
                let mut health = entry.health.write();
                let mut before = health.failing_since.is_some();
                // One that sends too much does so soon.
                if began.elapsed() >= self.options.penalty.delay(1, 0.0) {
                    before |= health.accept();
                }
                let verdict = health.probed(&probe, self.cx.now(), self.options.threshold);
                (verdict, before)
            };
            if failed_before || probe != Probe::Answered {
                self.tell(&RemoteEvent::Probed(entry.key.clone()));
            }
            if verdict == Verdict::Disconnect {
                break match probe {
                    Probe::Failed(why) => why,
                    _ => "the API server refuses the kubeconfig's credentials".to_owned(),
                };
            }
        };
        tracing::info!(cluster = %entry.key, reason = why, "disconnected from the workload cluster");
        self.set_down(entry, why);
        began.elapsed()
    }
}

fn kubeconfig_in(secret: Option<&Secret>) -> Option<&ByteString> {
    secret?.data.as_ref()?.get("value")
}

fn is_provisioned(cluster: &Cluster) -> bool {
    let status = cluster.status.as_ref();
    let initialization = status.and_then(|s| s.initialization.as_ref());
    initialization.and_then(|i| i.infrastructure_provisioned) == Some(true)
}
