//! Runs one controller: takes keys from its queue and leads each through the steps of a reconcile. Uses no types of the
//! controller, so that it is compiled once; [`typed`] does.

mod notes;
mod typed;

use std::collections::{BTreeSet, HashMap};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tracing::Instrument;
use windlass_api::core::Cluster;

use crate::backoff::Backoff;
use crate::controller::{Controller, Outcome};
use crate::cx::Cx;
use crate::error::{ErrorKind, ReconcileError, Triage};
use crate::failing::Failures;
use crate::guard::Latch;
use crate::journal::{Journal, Unsure, Wrote};
use crate::metrics::ControllerMetrics;
use crate::object::{GroupKind, ObjectKey, gvk_of, key_of};
use crate::pace::StatusPace;
use crate::pause;
use crate::queue::Queue;
use crate::resync;
use crate::tasks::panic_text;
use crate::watch::{Wake, Watch};
use crate::writer::{Target, Write, look};
use notes::Notes;
use typed::{AnyController, Subject, Traits};

/// How long a key waits for the caches to see its last reconcile's writes. Longer than a watch can be silent before it counts as dead,
/// with a list after it. So only a watch that keeps failing takes longer.
const UNSEEN: Duration = Duration::from_mins(10);

/// The default number of concurrent reconciles of one controller.
const CONCURRENCY: usize = 10;
/// A reconcile that runs longer than this is logged, repeatedly.
const LONG: Duration = Duration::from_mins(1);

/// The most that a requeue is delayed to spread the load. So deadlines are at most this late.
const SPREAD: Duration = Duration::from_secs(2);
/// The longest timer. Timers do not run while a machine sleeps and do not follow corrections of its clock. So a deadline that is
/// farther away is checked again after this time.
const LONGEST_TIMER: Duration = Duration::from_hours(12);
/// The number of conflicts in a row after which the status shows them. The next attempts come within a fifth of a second.
const CONFLICTS: u32 = 5;

type Start = Box<dyn FnOnce(&Cx) -> Arc<dyn AnyController> + Send>;

/// A controller as data: `manager` lists the entries, and a process starts them.
pub struct ControllerEntry {
    name: &'static str,
    kind: GroupKind,
    manager: &'static str,
    status_manager: &'static str,
    finalizer: Option<&'static str>,
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
            manager: C::MANAGER,
            status_manager: C::STATUS_MANAGER,
            finalizer: C::FINALIZER,
            concurrency: CONCURRENCY,
            start: Box::new(move |cx| typed::erase(controller, cx)),
        }
    }

    /// Sets the number of concurrent reconciles.
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

    /// The field manager of its writes to metadata.
    pub fn manager(&self) -> &'static str {
        self.manager
    }

    /// The field manager of its status.
    pub fn status_manager(&self) -> &'static str {
        self.status_manager
    }

    /// Its finalizer.
    pub fn finalizer(&self) -> Option<&'static str> {
        self.finalizer
    }

    /// Runs until shutdown.
    pub(crate) fn start(self, cx: Cx) -> BoxFuture<'static, ()> {
        let driver = Driver::new((self.start)(&cx), &cx);
        driver.run(cx, self.concurrency).boxed()
    }
}

/// One running controller.
struct Driver {
    controller: Arc<dyn AnyController>,
    queue: Arc<Queue<ObjectKey>>,
    metrics: ControllerMetrics,
    /// Writes whose outcome must be found out before the key's next reconcile.
    unsure: Mutex<HashMap<ObjectKey, Vec<Unsure>>>,
    pace: Arc<StatusPace>,
    notes: Arc<Notes>,
    failures: Arc<Failures>,
}

impl Driver {
    fn new(controller: Arc<dyn AnyController>, cx: &Cx) -> Arc<Self> {
        let name = controller.traits().name;
        let queue_metrics = cx.metrics().queue(name);
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
            queue,
            metrics: cx.metrics().controller(name),
            unsure: Mutex::new(HashMap::new()),
            pace: Arc::default(),
            notes: Arc::default(),
            failures: Arc::default(),
        })
    }

    fn traits(&self) -> &Traits {
        self.controller.traits()
    }

    async fn run(self: Arc<Self>, cx: Cx, concurrency: usize) {
        self.watch(&cx);
        if !cx.all_synced().await {
            return;
        }
        self.metrics
            .concurrency
            .set(i64::try_from(concurrency).unwrap_or(i64::MAX));
        if let Some(period) = cx.ports.sync_period {
            let (controller, queue) = (self.controller.clone(), self.queue.clone());
            let again = resync::run(period, move || controller.keys(), move |key| queue.add(key));
            cx.tasks().spawn("sync period", again);
        }
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
                // Running reconciles are finished, and no new ones are started.
                workers.await;
            }
            _ = &mut workers => {}
        }
    }

    /// Starts all sources of wake-ups.
    fn watch(&self, cx: &Cx) {
        let (queue, pace, notes) = (self.queue.clone(), self.pace.clone(), self.notes.clone());
        let failures = self.failures.clone();
        self.controller.subscribe(Box::new(move |key, concerns, effect| {
            if concerns {
                queue.add_for(key, effect);
            } else {
                pace.forget(&key);
                notes.forget(&key);
                failures.forget(&key);
            }
        }));
        let kind = self.traits().gvk().group_kind();
        let wake = Wake::new(self.queue.clone(), kind, self.controller.filter());
        let pausing = self.traits().follows_clusters.then(|| self.pausing());
        for watch in pausing.into_iter().chain(self.controller.watches()) {
            watch.start(cx, wake.clone());
        }
    }

    /// Wakes the objects of a cluster when it is paused or no longer paused.
    fn pausing(&self) -> Watch {
        let of_cluster = self.controller.of_cluster();
        Watch::map::<Cluster>(move |_, old, new| {
            let paused = |cluster: Option<&Cluster>| cluster.is_some_and(|c| c.spec.paused.unwrap_or(false));
            let Some(cluster) = new.filter(|_| paused(old) != paused(new)) else {
                return Vec::new();
            };
            of_cluster(&key_of(&cluster.metadata))
        })
    }

    async fn work(self: Arc<Self>, cx: &Cx) {
        while let Some(key) = self.queue.next().await {
            let cx = cx.fresh();
            let id: u64 = rand::random();
            let span = tracing::info_span!(
                "reconcile",
                controller = self.traits().name,
                object = %format_args!("{} {key}", self.traits().gvk().kind),
                namespace = &*key.namespace,
                name = &*key.name,
                // Recorded once the object is read.
                Cluster = tracing::field::Empty,
                reconcile_id = %format_args!("{id:016x}"),
            );
            self.one(&cx, &key).instrument(span).await;
        }
    }

    /// One reconcile, with all steps of the driver around it.
    async fn one(self: &Arc<Self>, cx: &Cx, key: &ObjectKey) {
        let started = Instant::now();
        self.metrics.active.inc();
        let running = told_of(self.reconcile(cx, key), started);
        let outcome = match AssertUnwindSafe(running).catch_unwind().await {
            Ok(outcome) => outcome,
            Err(panic) => {
                self.metrics.panics.inc();
                let text = format!("the reconcile panicked: {}", panic_text(&*panic));
                if let Some(repeated) = self.failures.grave(key, &text, Instant::now()) {
                    tracing::error!(repeated, "{text}");
                }
                Some(Outcome::Failed(ReconcileError::new("Panic", text)))
            }
        };
        self.metrics.active.dec();
        self.metrics.time.observe(started.elapsed().as_secs_f64());
        let wrote = cx.journal.take_wrote();
        match outcome {
            // The queue holds the key until the caches have seen what was found. This is neither a success nor a failure.
            None => {
                self.metrics.result("requeue");
                self.queue.add(key.clone());
            }
            Some(outcome) => self.end(key, outcome, &wrote),
        }
        let unsure = cx.journal.take_unsure();
        if !unsure.is_empty() {
            self.unsure.lock().insert(key.clone(), unsure);
        }
        self.release(cx, key, wrote);
    }

    /// Schedules and logs what follows from the end of a reconcile.
    fn end(&self, key: &ObjectKey, outcome: Outcome, wrote: &[Wrote]) {
        match outcome {
            Outcome::Settled => {
                self.metrics.result("success");
                self.recovered(key, self.queue.forget(key));
                self.queue.cancel_delayed(key);
            }
            Outcome::RequeueAfter(after) => {
                self.metrics.result("requeue_after");
                self.recovered(key, self.queue.polled(key, after));
                self.queue.add_after(key.clone(), jittered(after));
            }
            Outcome::Failed(error) => {
                self.metrics.result("error");
                self.metrics.failure(error.reason());
                let own = wrote.iter().map(Wrote::effect).collect();
                let failure = self.queue.fail(key.clone(), own, error.most());
                let retry_in = format!("{:.1?}", failure.again_in);
                let (reason, failures) = (error.reason(), failure.count);
                let text = error.to_string();
                if let Some(repeated) = self.failures.failed(key, &text, failure.delay, Instant::now()) {
                    tracing::warn!(%error, reason, retry_in, failures, repeated, "reconcile failed");
                } else {
                    tracing::debug!(%error, reason, retry_in, failures, "reconcile failed");
                }
            }
        }
    }

    /// Logs the end of failures that were logged.
    fn recovered(&self, key: &ObjectKey, failures: Option<u32>) {
        if let Some(failures) = failures
            && self.failures.ended(key, Instant::now())
        {
            tracing::info!(failures, "the reconcile succeeds again");
        }
    }

    /// Returns the key to the queue as soon as the caches have seen the reconcile's writes.
    fn release(&self, cx: &Cx, key: &ObjectKey, wrote: Vec<Wrote>) {
        let needs: Vec<_> = wrote
            .into_iter()
            .flat_map(|wrote| {
                let stores = cx.ports.caches.holding(&wrote.gvk.group_kind());
                stores.into_iter().map(move |store| (store, wrote.clone()))
            })
            .collect();
        let (queue, key) = (self.queue.clone(), key.clone());
        let latch = Latch::new(needs.len(), move || queue.done(&key));
        for (store, wrote) in &needs {
            store.when(&wrote.key, wrote.need.clone(), latch.clone());
        }
        if latch.is_open() {
            let waiting = async move {
                if !latch.fired_within(UNSEEN).await {
                    let kinds: BTreeSet<_> = needs.iter().map(|(store, _)| store.kind()).collect();
                    tracing::warn!(
                        ?kinds,
                        "the caches have not seen this reconcile's writes: do the watches of these kinds fail?"
                    );
                }
            };
            cx.tasks().spawn("own-writes guard", waiting.in_current_span());
        }
    }

    /// `None` when the caches must see something before the object can be reconciled.
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Option<Outcome> {
        let outcome = match self.settle_doubts(cx, key).await {
            Ok(true) => self.steps(cx, key).await,
            Ok(false) => return None,
            Err(error) => Err(error),
        };
        Some(outcome.unwrap_or_else(Outcome::Failed))
    }

    /// Drops the records of an object that is gone, or that this controller no longer reconciles.
    fn forget(&self, key: &ObjectKey) {
        self.pace.forget(key);
        self.notes.forget(key);
        self.failures.forget(key);
    }

    async fn steps(&self, cx: &Cx, key: &ObjectKey) -> Result<Outcome, ReconcileError> {
        let Some(mut object) = self.controller.clone().get(key) else {
            self.forget(key);
            return Ok(Outcome::Settled);
        };
        if let Some(cluster) = object.cluster() {
            tracing::Span::current().record("Cluster", tracing::field::display(cluster));
        }
        // The object may have been taken over after this reconcile was queued.
        if !object.is_concerned() {
            tracing::debug!("left alone: this object is none of this controller's");
            self.forget(key);
            return Ok(Outcome::Settled);
        }
        let traits = self.traits();
        let target = traits.target.at(key);
        if traits.locked {
            let version = object.meta().resource_version.as_deref().unwrap_or_default();
            cx.journal.lock(&target.gvk, key, version);
        }
        if let Some(finalizer) = traits.finalizer
            && object.meta().deletion_timestamp.is_none()
            && !object.meta().finalizers.iter().flatten().any(|f| f == finalizer)
        {
            let added = cx
                .writer()
                .add_finalizer(traits.manager, &target, object.meta(), finalizer);
            object = match added.await {
                Err(error) if error.is_not_found() => return Ok(Outcome::Settled),
                answer => self.controller.clone().decode(&target, &answer?)?,
            };
        }
        if let Some(why) = self.paused(cx, &*object) {
            self.notes.forget(key);
            self.show_paused(cx, &target, &*object, &why).await?;
            return Ok(Outcome::Settled);
        }
        if let Some(cluster) = object.cluster().filter(|_| traits.follows_clusters) {
            nothing_unreadable(cx, &cluster)?;
        }
        let ended = object.reconcile(cx).await;
        if let Some(planned) = &ended.planned {
            self.notes.show(cx, key, &*object, planned);
        }
        let outcome = match ended.deadline {
            Some(deadline) => ended.outcome.within(until(deadline, cx.now())),
            None => ended.outcome,
        };
        match ended.status {
            Some(status) => Ok(self.write_status(cx, &target, &*object, outcome, status).await),
            None => Ok(outcome),
        }
    }

    /// Writes a status, with the condition Paused if this controller shows it, unless the write can wait.
    async fn write_status(
        &self,
        cx: &Cx,
        target: &Target,
        object: &dyn Subject,
        outcome: Outcome,
        mut status: Value,
    ) -> Outcome {
        let traits = self.traits();
        // A controller that wrote its own spec sets the generation that its status is about. For a locked object, the answers to
        // the writes have the generation.
        let said = status.get("observedGeneration").and_then(Value::as_i64);
        let said = said.or_else(|| cx.journal.generation());
        let (present, generation) = (object.conditions(), said.or(object.meta().generation));
        if traits.shows_paused {
            let why = object.pauses_itself();
            let condition = pause::condition(present, why.as_deref(), generation, cx.now());
            pause::add_to(&mut status, &condition);
        }
        if traits.observed_by_success && matches!(outcome, Outcome::Failed(_)) {
            keep_observed_generation(&object.status(), &mut status);
        }
        let (key, fresh) = (&target.key, present.is_empty());
        // Nothing is wrong with an object that another client changed after it was read.
        if let Outcome::Failed(error) = &outcome
            && error.reason() == ErrorKind::Conflict.reason()
            && self.queue.failures(key) < CONFLICTS
        {
            return outcome;
        }
        let old = || object.status();
        if let Some(wait) = self.pace.wait(key, traits.status_pace, fresh, old, &status) {
            // The backoff of a failure may be far longer than a status can wait.
            return outcome.within(wait);
        }
        let uid = object.meta().uid.as_deref();
        match cx
            .writer()
            .write_status(traits.status_manager, target, uid, status)
            .await
        {
            Ok(Write::Changed) => self.pace.written(key),
            Ok(_) => {}
            Err(error) if error.is_not_found() => {}
            Err(error) => return outcome.or(Outcome::Failed(error.into())),
        }
        outcome
    }

    /// Finds out whether writes without a clear answer have happened. Whether the caches show the result, so that the object can be
    /// reconciled.
    async fn settle_doubts(&self, cx: &Cx, key: &ObjectKey) -> Result<bool, ReconcileError> {
        let Some(doubts) = self.unsure.lock().remove(key) else {
            return Ok(true);
        };
        let journal: &Journal = &cx.journal;
        let mut is_seen = true;
        for doubt in &doubts {
            match look(cx.client(), &doubt.gvk, &doubt.key, &doubt.url).await {
                Ok(Some(need)) => {
                    let stores = cx.ports.caches.holding(&doubt.gvk.group_kind());
                    is_seen &= stores.iter().all(|store| store.has_seen(&doubt.key, &need));
                    journal.wrote(&doubt.gvk, &doubt.key, need);
                }
                Ok(None) => {}
                Err(error) => {
                    self.unsure.lock().insert(key.clone(), doubts);
                    return Err(error.into());
                }
            }
        }
        Ok(is_seen)
    }

    /// The reason why the object is paused, if it is.
    fn paused(&self, cx: &Cx, object: &dyn Subject) -> Option<String> {
        let traits = self.traits();
        let of = traits.follows_clusters.then(|| object.cluster()).flatten();
        let cluster = of.and_then(|key| cx.cache::<Cluster>().get(&key));
        let paused = cluster.is_some_and(|c| c.spec.paused.unwrap_or(false));
        pause::why(&traits.gvk().kind, object.meta(), paused)
    }

    /// Updates the condition Paused, which is the only write to a paused object. A separate field manager takes over the
    /// condition, so that the rest of the status stays as it is. The controller's own status takes it back later. A kind without
    /// conditions does not show it.
    async fn show_paused(
        &self,
        cx: &Cx,
        target: &Target,
        object: &dyn Subject,
        why: &str,
    ) -> Result<(), ReconcileError> {
        if !self.traits().has_conditions {
            return Ok(());
        }
        let meta = object.meta();
        let present = object.conditions();
        let stopped = object.false_while_paused();
        let stopped = stopped.map(|type_| pause::stopped(present, type_, why, meta.generation, cx.now()));
        let shows = self.traits().shows_paused;
        if !shows && stopped.is_none() {
            return Ok(());
        }
        let manager = format!("{}-paused", self.traits().status_manager);
        let mut status = json!({ "conditions": stopped.into_iter().collect::<Vec<_>>() });
        if shows {
            let condition = pause::condition(present, Some(why), meta.generation, cx.now());
            pause::add_to(&mut status, &condition);
        }
        let written = cx.writer().write_status(&manager, target, meta.uid.as_deref(), status);
        match written.await {
            Err(error) if !error.is_not_found() => Err(error.into()),
            _ => Ok(()),
        }
    }
}

/// Logs a reconcile that runs too long. Every step has a time limit, so either something is wrong, or the server is very slow.
async fn told_of<T>(reconcile: impl Future<Output = T>, started: Instant) -> T {
    tokio::pin!(reconcile);
    loop {
        tokio::select! {
            biased;
            done = &mut reconcile => return done,
            () = tokio::time::sleep(LONG) => {
                tracing::warn!(since = %format_args!("{:.0?}", started.elapsed()), "this reconcile is still running");
            }
        }
    }
}

/// A delay extended by up to a twentieth, and by no more than [`SPREAD`], so that many objects are not reconciled at the same
/// moment.
fn jittered(after: Duration) -> Duration {
    after + after.mul_f64(0.05).min(SPREAD).mul_f64(rand::random())
}

/// The time until a deadline, limited to the longest timer.
fn until(deadline: Timestamp, now: Timestamp) -> Duration {
    // It may have passed while the plan was applied.
    let left = Duration::try_from(deadline.duration_since(now)).unwrap_or(Duration::ZERO);
    left.min(LONGEST_TIMER)
}

/// Fails if an object of the cluster exists and cannot be decoded: a controller would take it for missing, and replace it or what depends
/// on it.
fn nothing_unreadable(cx: &Cx, cluster: &ObjectKey) -> Result<(), ReconcileError> {
    let Some((kind, key)) = cx.ports.caches.unreadable(cluster) else {
        return Ok(());
    };
    Err(ReconcileError::new(
        "CannotDecode",
        format!(
            "nothing is decided about Cluster {cluster}: {kind} {key} exists and cannot be decoded, see the log for the field"
        ),
    ))
}

/// Puts the generation that the present status is about in place of that of a new status.
fn keep_observed_generation(present: &Value, new: &mut Value) {
    const FIELD: &str = "observedGeneration";
    let Some(fields) = new.as_object_mut().filter(|fields| fields.contains_key(FIELD)) else {
        return;
    };
    match present.get(FIELD) {
        Some(before) => fields.insert(FIELD.to_owned(), before.clone()),
        None => fields.remove(FIELD),
    };
}
