//! The trait [`Controller`] and the outcome of a reconcile.

use std::sync::Arc;
use std::time::Duration;

use kube::Resource;
use serde_json::Value;
use windlass_api::kind::Conditioned;
use windlass_api::labels::CLUSTER_NAME;
use windlass_meta::Moment;

use crate::cx::Cx;
use crate::error::ReconcileError;
use crate::object::{Object, ObjectKey};
use crate::plan::{Decision, Done, Plan};
use crate::watch::Watch;

/// A controller: `observe` (the only reader) -> `plan` (pure) -> `apply` (the only writer) -> `status` (pure).
///
/// A plan that lacks facts asks for them: `plan` -> `answer` (reads) -> `plan`, at most [`Self::QUESTIONS`] times. `plan` and `status` are given a
/// [`Moment`]; every deadline that they compare with it is scheduled by the driver. The driver around it does the rest, see the crate's
/// documentation.
pub trait Controller: Send + Sync + 'static {
    /// The kind that is reconciled.
    type Kind: Object + Conditioned;
    /// The observation: everything that was read.
    type Observed: Send + Sync;
    /// Facts that `plan` may ask for; [`NoQuestion`](crate::NoQuestion) when `observe` reads everything at once.
    type Question: Send + Sync;
    /// The actions to take.
    type Plan: Plan;
    /// The actions that were done, and the one that failed.
    type Done: Done;

    /// Name in logs and metrics, such as `machineset`.
    const NAME: &'static str;
    /// Field manager of the driver's own writes to metadata (the finalizer), such as `capi-machineset`.
    const MANAGER: &'static str;
    /// Field manager of the status, such as `capi-machineset-status`.
    const STATUS_MANAGER: &'static str;
    /// The finalizer. The driver adds it, alone and first, when it is missing; `apply` removes it.
    const FINALIZER: Option<&'static str>;

    /// The least time between two writes of an object's status, so that a burst of events costs one write. A change in nothing
    /// but the messages of conditions waits longer.
    const STATUS_PACE: Duration = Duration::from_millis(100);

    /// Whether steps of `status.initialization` are written at once, because other controllers wait for them.
    const INITIALIZATION_IS_AWAITED: bool = true;

    /// Whether a reconcile that failed keeps the `status.observedGeneration` of the last one that succeeded, so that a client that
    /// waits for a generation does not take a failed attempt for the result. The providers of Cluster API do so; the Helm add-on
    /// provider does not.
    const OBSERVED_BY_SUCCESS: bool = true;

    /// Selects the objects of the kind that this controller reconciles; all of them when unset. The driver ignores the others:
    /// their events and the events of related objects add nothing to the queue. A reconcile that was queued before an object
    /// changed ends before it writes anything, the finalizer and the condition Paused included.
    const CONCERNS: Option<fn(&Self::Kind) -> bool> = None;

    /// How often a plan may ask. A plan that asks once more is a defect, and the reconcile fails.
    const QUESTIONS: usize = 2;

    /// Whether every write to the object itself carries the resourceVersion that was read, so that the write fails when another
    /// client has changed the object since. For kinds with [`Self::CONCERNS`]: a running reconcile must not write to an object
    /// that another system has just taken over.
    const LOCKED: bool = false;

    /// Whether a Cluster can pause objects of the kind. When false, the driver does not watch Clusters for this controller, so it
    /// also runs where that kind is not installed yet.
    const FOLLOWS_CLUSTERS: bool = true;

    /// Whether this controller writes the condition Paused. Of several controllers of a kind, one does. Two writers of a condition
    /// take its fields from each other, and which of them owns a field at rest would depend on their timing.
    const SHOWS_PAUSED: bool = true;

    /// The cluster of an object: its `spec.paused` pauses the object. Defaults to the cluster in the label
    /// `cluster.x-k8s.io/cluster-name`.
    fn cluster_of(object: &Self::Kind) -> Option<ObjectKey> {
        let meta = object.meta();
        let name = meta.labels.as_ref()?.get(CLUSTER_NAME)?;
        Some(ObjectKey::new(meta.namespace.as_deref().unwrap_or_default(), name))
    }

    /// The reason why an object is paused by a field of its own that this controller handles itself. The driver sets the
    /// condition Paused with it, but still runs reconciles, unlike with the annotation.
    fn pauses_itself(_object: &Self::Kind) -> Option<String> {
        None
    }

    /// The type of a condition that is False with reason Paused while the object is paused. `None` if the conditions of a paused
    /// object stay as they are.
    fn false_while_paused(_object: &Self::Kind) -> Option<&'static str> {
        None
    }

    /// The sources of wake-ups, besides the objects' own events.
    fn watches(&self) -> Vec<Watch>;

    /// Reads. Total: a failed read is data. May run twice, if a cache did not have its first list yet.
    fn observe(&self, cx: &Cx, object: Arc<Self::Kind>) -> impl Future<Output = Self::Observed> + Send;

    /// Reads the facts that `plan` asked for, in addition to the observation. Total, like `observe`: a failed read is data, and
    /// the next `plan` has to decide without it.
    fn answer(
        &self,
        _cx: &Cx,
        seen: Self::Observed,
        _question: Self::Question,
    ) -> impl Future<Output = Self::Observed> + Send {
        std::future::ready(seen)
    }

    /// Decides on all actions from the observation, or asks a question.
    fn plan(&self, seen: &Self::Observed, now: &Moment) -> Decision<Self::Plan, Self::Question>;

    /// Carries out the plan. Stops at the first failure and returns it in `Done`.
    fn apply(&self, cx: &Cx, seen: &Self::Observed, plan: &Self::Plan) -> impl Future<Output = Self::Done> + Send;

    /// The desired contents of `.status`: all fields and condition types that this controller owns. A field that it wrote before
    /// and now leaves out is removed. The driver adds the condition Paused. `None` leaves the status as it is.
    fn status(&self, seen: &Self::Observed, plan: &Self::Plan, done: &Self::Done, now: &Moment) -> Option<Value>;

    /// How the reconcile ended. Deadlines of `plan` and `status` are added by the driver.
    fn outcome(&self, _seen: &Self::Observed, plan: &Self::Plan, done: &Self::Done) -> Outcome {
        Outcome::of(plan, done)
    }
}

/// The result of a reconcile.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// Nothing to do until an event comes.
    Settled,
    /// Reconcile again after this time, or when an event comes.
    RequeueAfter(Duration),
    /// A failure: reconcile again with backoff.
    Failed(ReconcileError),
}

impl Outcome {
    /// The more urgent of two: a failure, else the earlier requeue. A failure keeps the other one's requeue as the limit of its
    /// backoff.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Failed(first), Self::Failed(second)) => Self::Failed(match second.most() {
                Some(most) => first.within(most),
                None => first,
            }),
            (Self::Failed(error), Self::RequeueAfter(after)) | (Self::RequeueAfter(after), Self::Failed(error)) => {
                Self::Failed(error.within(after))
            }
            (Self::Failed(error), Self::Settled) | (Self::Settled, Self::Failed(error)) => Self::Failed(error),
            (Self::RequeueAfter(a), Self::RequeueAfter(b)) => Self::RequeueAfter(a.min(b)),
            (Self::RequeueAfter(after), Self::Settled) | (Self::Settled, Self::RequeueAfter(after)) => {
                Self::RequeueAfter(after)
            }
            (Self::Settled, Self::Settled) => Self::Settled,
        }
    }
}
