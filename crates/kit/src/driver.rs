//! Runs one controller: takes keys from its queue and leads each through the steps of a reconcile.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::BoxFuture;
use kube::Resource;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tracing::Instrument;
use windlass_api::core::Cluster;

use crate::backoff::Backoff;
use crate::cache::Cache;
use crate::controller::{Controller, Outcome};
use crate::cx::{Cx, Reads};
use crate::error::{ReconcileError, Triage};
use crate::guard::Latch;
use crate::journal::{Journal, Unsure};
use crate::metrics::ControllerMetrics;
use crate::object::{GroupKind, ObjectKey, gvk_of, key_of};
use crate::pace::StatusPace;
use crate::pause;
use crate::queue::Queue;
use crate::watch::{Filter, Wake, Watch};
use crate::writer::{Write, look};

/// Reconciles of one controller that run at a time, unless it says otherwise.
const CONCURRENCY: usize = 10;
/// From this back-off on, a failure is worth somebody's attention.
const LASTING: Duration = Duration::from_millis(500);

type Start = Box<dyn FnOnce(Cx, usize) -> BoxFuture<'static, ()> + Send>;

/// A controller as data: what `suite` lists and a process starts.
pub struct ControllerEntry {
    name: &'static str,
    kind: GroupKind,
    concurrency: usize,
    start: Start,
}

impl std::fmt::Debug for ControllerEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ControllerEntry")
            .field("name", &self.name)
            .field("kind", &self.kind)
            .field("concurrency", &self.concurrency)
            .finish_non_exhaustive()
    }
}

impl ControllerEntry {
    /// The entry of a controller.
    pub fn of<C: Controller>(controller: C) -> Self {
        Self {
            name: C::NAME,
            kind: gvk_of::<C::Kind>().group_kind(),
            concurrency: CONCURRENCY,
            start: Box::new(move |cx, concurrency| Driver::new(controller, &cx).run(cx, concurrency).boxed()),
        }
    }

    /// Changes how many objects are reconciled at a time.
    #[must_use]
    pub fn with_concurrency(mut self, concurrency: usize) -> Self {
        self.concurrency = concurrency.max(1);
        self
    }

    /// The controller's name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The kind it reconciles.
    pub fn kind(&self) -> &GroupKind {
        &self.kind
    }

    /// Runs until shutdown.
    pub(crate) fn start(self, cx: Cx) -> BoxFuture<'static, ()> {
        (self.start)(cx, self.concurrency)
    }
}

/// One running controller.
struct Driver<C: Controller> {
    controller: C,
    objects: Cache<C::Kind>,
    queue: Arc<Queue<ObjectKey>>,
    metrics: ControllerMetrics,
    /// Writes whose outcome has to be found out before the key's next reconcile.
    unsure: Mutex<HashMap<ObjectKey, Vec<Unsure>>>,
    pace: Arc<StatusPace>,
}

impl<C: Controller> Driver<C> {
    fn new(controller: C, cx: &Cx) -> Arc<Self> {
        let queue_metrics = cx.metrics().queue(C::NAME);
        let (unfinished, longest) = (queue_metrics.unfinished.clone(), queue_metrics.longest.clone());
        let queue = Arc::new(Queue::build(Backoff::per_object(), Some(queue_metrics)));
        let scraped = queue.clone();
        cx.metrics().on_scrape(move || {
            let (sum, most) = scraped.unfinished();
            unfinished.set(sum);
            longest.set(most);
        });
        Arc::new(Self {
            controller,
            objects: cx.fresh().cache(),
            queue,
            metrics: cx.metrics().controller(C::NAME),
            unsure: Mutex::new(HashMap::new()),
            pace: Arc::default(),
        })
    }

    async fn run(self: Arc<Self>, cx: Cx, concurrency: usize) {
        self.watch(&cx);
        if !cx.all_synced().await {
            return;
        }
        self.metrics
            .concurrency
            .set(i64::try_from(concurrency).unwrap_or(i64::MAX));
        let stopping = cx.tasks().stopping();
        let queue = self.queue.clone();
        let workers = futures::future::join_all((0..concurrency).map(|_| {
            let driver = self.clone();
            let cx = cx.clone();
            let (done, finished) = tokio::sync::oneshot::channel::<()>();
            cx.tasks().clone().spawn_graceful("reconcile", async move {
                driver.work(&cx).await;
                drop(done);
            });
            finished
        }));
        tokio::pin!(workers);
        tokio::select! {
            () = stopping => {
                queue.close();
                // What runs is finished, nothing new is started.
                workers.await;
            }
            _ = &mut workers => {}
        }
    }

    /// Starts everything that wakes objects.
    fn watch(&self, cx: &Cx) {
        let kind = gvk_of::<C::Kind>().group_kind();
        let (queue, pace) = (self.queue.clone(), self.pace.clone());
        self.objects.subscribe(move |change| {
            let Some(object) = change.object() else { return };
            let key = key_of(object.meta());
            if concerns::<C>(object) {
                queue.add(key);
            } else {
                pace.forget(&key);
            }
        });
        let wake = Wake::new(self.queue.clone(), kind, filter::<C>(cx));
        let objects = self.objects.clone();
        let pausing = Watch::map::<Cluster>(move |_, old, new| {
            let paused = |cluster: Option<&Cluster>| cluster.is_some_and(|c| c.spec.paused.unwrap_or(false));
            let Some(cluster) = new.filter(|_| paused(old) != paused(new)) else {
                return Vec::new();
            };
            let meta = &cluster.metadata;
            let (namespace, name) = (meta.namespace.as_deref(), meta.name.as_deref());
            objects
                .by_cluster(namespace.unwrap_or_default(), name.unwrap_or_default())
                .iter()
                .map(|object| key_of(object.meta()))
                .collect()
        });
        let pausing = C::FOLLOWS_CLUSTERS.then_some(pausing);
        for watch in pausing.into_iter().chain(self.controller.watches()) {
            watch.start(cx, wake.clone());
        }
    }

    async fn work(self: Arc<Self>, cx: &Cx) {
        let kind = gvk_of::<C::Kind>().kind;
        while let Some(key) = self.queue.next().await {
            let cx = cx.fresh();
            let id: u64 = rand::random();
            let span = tracing::info_span!(
                "reconcile",
                controller = C::NAME,
                object = %format_args!("{kind} {key}"),
                reconcile_id = %format_args!("{id:016x}"),
            );
            self.one(&cx, &key).instrument(span).await;
        }
    }

    /// One reconcile with everything around it.
    async fn one(self: &Arc<Self>, cx: &Cx, key: &ObjectKey) {
        let started = Instant::now();
        self.metrics.active.inc();
        let outcome = match AssertUnwindSafe(self.reconcile(cx, key)).catch_unwind().await {
            Ok(outcome) => outcome,
            Err(panic) => {
                self.metrics.panics.inc();
                let text = panic_text(&*panic);
                tracing::error!("{text}");
                Outcome::Failed(ReconcileError::new("Panic", text))
            }
        };
        self.metrics.active.dec();
        self.metrics.time.observe(started.elapsed().as_secs_f64());
        match outcome {
            Outcome::Settled => {
                self.metrics.result("success");
                self.queue.forget(key);
                self.queue.cancel_delayed(key);
            }
            Outcome::RequeueAfter(after) => {
                self.metrics.result("requeue_after");
                self.queue.forget(key);
                self.queue.add_after(key.clone(), jittered(after));
            }
            Outcome::Failed(error) => {
                self.metrics.result("error");
                self.metrics.failure(error.reason());
                let again_in = self.queue.add_failed(key.clone());
                // What passes by itself in a moment is nothing to look at.
                if again_in < LASTING {
                    tracing::debug!(%error, reason = error.reason(), ?again_in, "reconcile failed");
                } else {
                    tracing::warn!(%error, reason = error.reason(), again_in = %format_args!("{again_in:.1?}"), "reconcile failed");
                }
            }
        }
        let unsure = cx.journal.take_unsure();
        if !unsure.is_empty() {
            self.unsure.lock().insert(key.clone(), unsure);
        }
        self.release(cx, key);
    }

    /// Hands the key back to the queue as soon as the caches have seen what was written.
    fn release(&self, cx: &Cx, key: &ObjectKey) {
        let needs: Vec<_> = cx
            .journal
            .take_wrote()
            .into_iter()
            .flat_map(|wrote| {
                let stores = cx.ports.caches.holding(&wrote.gvk.group_kind());
                stores.into_iter().map(move |store| (store, wrote.clone()))
            })
            .collect();
        let (queue, key) = (self.queue.clone(), key.clone());
        let latch = Latch::new(needs.len(), move || queue.done(&key));
        for (store, wrote) in needs {
            store.when(&wrote.key, wrote.need, latch.clone());
        }
    }

    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Outcome {
        match self.steps(cx, key).await {
            Ok(outcome) => outcome,
            Err(error) => Outcome::Failed(error),
        }
    }

    async fn steps(&self, cx: &Cx, key: &ObjectKey) -> Result<Outcome, ReconcileError> {
        if let Some(outcome) = self.settle_doubts(cx, key).await? {
            return Ok(outcome);
        }
        let Some(mut object) = self.objects.get(key) else {
            self.pace.forget(key);
            return Ok(Outcome::Settled);
        };
        // Whoever asked for this reconcile may have done so before the object became somebody else's.
        if !concerns::<C>(&object) {
            tracing::debug!("left alone: this object is none of this controller's");
            self.pace.forget(key);
            return Ok(Outcome::Settled);
        }
        if C::LOCKED {
            let version = object.meta().resource_version.as_deref().unwrap_or_default();
            cx.journal.lock(&gvk_of::<C::Kind>(), key, version);
        }
        if let Some(finalizer) = C::FINALIZER
            && object.meta().deletion_timestamp.is_none()
            && !object.meta().finalizers.iter().flatten().any(|f| f == finalizer)
        {
            let added = cx.writer().ensure_finalizer(C::MANAGER, &*object, finalizer).await;
            object = match added {
                Err(error) if error.is_not_found() => return Ok(Outcome::Settled),
                other => other?,
            };
        }
        if let Some(why) = Self::paused(cx, &object) {
            self.show_paused(cx, &object, &why).await?;
            return Ok(Outcome::Settled);
        }
        let seen = loop {
            let seen = self.controller.observe(cx, object.clone()).await;
            match cx.settle_reads().await {
                Reads::Good => break seen,
                Reads::Again => {}
                Reads::Stopping => return Ok(Outcome::Settled),
            }
        };
        let plan = self.controller.plan(&seen, cx.now());
        let done = self.controller.apply(cx, &seen, &plan).await;
        let outcome = self.controller.outcome(&seen, &plan, &done);
        let status = self.controller.status(&seen, &plan, &done, cx.now());
        if let Some(mut status) = status {
            // A controller that wrote its own spec says which generation its status is about; of a locked object the answers say it.
            let said = status.get("observedGeneration").and_then(Value::as_i64);
            let said = said.or_else(|| cx.journal.generation());
            let (present, generation) = (C::conditions(&object), said.or(object.meta().generation));
            let why = C::pauses_itself(&object);
            let condition = pause::condition(present, why.as_deref(), generation, cx.now());
            pause::add_to(&mut status, &condition);
            let pace = (C::STATUS_PACE, C::INITIALIZATION_IS_AWAITED);
            let old = || serde_json::to_value(&*object).map_or(Value::Null, |mut object| object["status"].take());
            if let Some(wait) = self.pace.wait(key, pace, present.is_empty(), old, &status) {
                return Ok(outcome.or(Outcome::RequeueAfter(wait)));
            }
            let applied = cx.writer().apply_status(C::STATUS_MANAGER, &*object, status).await;
            match applied {
                Ok(applied) if applied.outcome == Write::Changed => {
                    self.pace.written(key);
                }
                Ok(_) => {}
                Err(error) if error.is_not_found() => {}
                Err(error) => return Ok(outcome.or(Outcome::Failed(error.into()))),
            }
        }
        Ok(outcome)
    }

    /// Finds out what became of writes that were not answered. `Some` when the caches have to see something first.
    async fn settle_doubts(&self, cx: &Cx, key: &ObjectKey) -> Result<Option<Outcome>, ReconcileError> {
        let Some(doubts) = self.unsure.lock().remove(key) else {
            return Ok(None);
        };
        let journal: &Journal = &cx.journal;
        let mut found = false;
        for doubt in &doubts {
            match look(cx.client(), &doubt.gvk, &doubt.key, &doubt.url).await {
                Ok(Some(need)) => {
                    found = true;
                    journal.wrote(&doubt.gvk, &doubt.key, need);
                }
                Ok(None) => {}
                Err(error) => {
                    self.unsure.lock().insert(key.clone(), doubts);
                    return Err(error.into());
                }
            }
        }
        if !found {
            return Ok(None);
        }
        // Come again at once; the queue holds the key until the caches have seen it.
        self.queue.add(key.clone());
        Ok(Some(Outcome::Settled))
    }

    /// Why the object is paused, if it is.
    fn paused(cx: &Cx, object: &C::Kind) -> Option<String> {
        let of = C::FOLLOWS_CLUSTERS.then(|| C::cluster_of(object)).flatten();
        let cluster = of.and_then(|key| cx.cache::<Cluster>().get(&key));
        let paused = cluster.is_some_and(|c| c.spec.paused.unwrap_or(false));
        pause::why(&C::Kind::kind(&()), object.meta(), paused)
    }

    /// The only thing that is kept up to date on a paused object. A field manager of its own takes the condition over, so that
    /// the rest of the status stays as it is; the controller's own status takes it back.
    async fn show_paused(&self, cx: &Cx, object: &C::Kind, why: &str) -> Result<(), ReconcileError> {
        let (present, generation) = (C::conditions(object), object.meta().generation);
        let condition = pause::condition(present, Some(why), generation, cx.now());
        let manager = format!("{}-paused", C::STATUS_MANAGER);
        let status = json!({ "conditions": [condition] });
        match cx.writer().apply_status(&manager, object, status).await {
            Err(error) if !error.is_not_found() => Err(error.into()),
            _ => Ok(()),
        }
    }
}

fn concerns<C: Controller>(object: &C::Kind) -> bool {
    C::CONCERNS.is_none_or(|concerns| concerns(object))
}

/// Drops wake-ups of objects that are none of the controller's. What is not cached passes: it may be gone, and something of it left.
fn filter<C: Controller>(cx: &Cx) -> Option<Filter> {
    let concerns = C::CONCERNS?;
    let objects: Cache<C::Kind> = Cache::new(cx.ports.caches.typed(), None, None);
    Some(Arc::new(move |key| {
        objects.get(key).is_none_or(|object| concerns(&object))
    }))
}

/// Up to a twentieth more, so that many objects do not come at the same moment.
fn jittered(after: Duration) -> Duration {
    after.mul_f64(1.0 + 0.05 * rand::random::<f64>())
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .map(|s| (*s).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned());
    format!("the reconcile panicked: {text}")
}
