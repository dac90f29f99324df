//! What a controller is.

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
/// A plan that lacks facts asks for them: `plan` -> `answer` (reads) -> `plan`, at most twice. `plan` and `status` are given a
/// [`Moment`]; every deadline that they compare with it is scheduled by the driver. The driver around it does the rest, see the crate's
/// documentation.
pub trait Controller: Send + Sync + 'static {
    /// The kind that is reconciled.
    type Kind: Object + Conditioned;
    /// Everything that was read.
    type Observed: Send + Sync;
    /// Facts that `plan` may ask for; [`NoQuestion`](crate::NoQuestion) when `observe` reads everything at once.
    type Question: Send + Sync;
    /// What is to be done.
    type Plan: Plan;
    /// What was done, and what failed.
    type Done: Done;

    /// Name in logs and metrics, such as `machineset`.
    const NAME: &'static str;
    /// Field manager of the driver's own writes to metadata (the finalizer), such as `capi-machineset`.
    const MANAGER: &'static str;
    /// Field manager of the status, such as `capi-machineset-status`.
    const STATUS_MANAGER: &'static str;
    /// Added by the driver, alone and first, when it is missing; removed by `apply`.
    const FINALIZER: Option<&'static str>;

    /// The least time between two writes of an object's status, so that a burst of events costs one write. What only changes
    /// the words of conditions waits longer.
    const STATUS_PACE: Duration = Duration::from_millis(100);

    /// Whether steps of `status.initialization` are written at once, as others are waiting for them.
    const INITIALIZATION_IS_AWAITED: bool = true;

    /// Which objects of the kind this controller reconciles; all of them when there is no such function. The others are left
    /// alone: their events wake nobody, nothing that is mapped to them does, and a reconcile that was asked for before they
    /// changed ends before it writes anything, the finalizer and the condition Paused included.
    const CONCERNS: Option<fn(&Self::Kind) -> bool> = None;

    /// Whether every write to the object itself carries the resourceVersion that was seen, so that the reconcile ends without
    /// writing when somebody changed the object meanwhile. For kinds with [`Self::CONCERNS`]: a reconcile under way must not
    /// write to an object that has just been taken over by somebody else.
    const LOCKED: bool = false;

    /// Whether objects of the kind can belong to a Cluster that pauses them. Without, nobody watches Clusters on behalf of this
    /// controller, so it runs where that kind is not there yet.
    const FOLLOWS_CLUSTERS: bool = true;

    /// The cluster an object belongs to: its `spec.paused` pauses the object. By default the one named by the label
    /// `cluster.x-k8s.io/cluster-name`.
    fn cluster_of(object: &Self::Kind) -> Option<ObjectKey> {
        let meta = object.meta();
        let name = meta.labels.as_ref()?.get(CLUSTER_NAME)?;
        Some(ObjectKey::new(meta.namespace.as_deref().unwrap_or_default(), name))
    }

    /// Why an object is paused by a field of its own that this controller minds itself. The condition Paused says so; unlike with the
    /// annotation, reconciles go on.
    fn pauses_itself(_object: &Self::Kind) -> Option<String> {
        None
    }

    /// What wakes objects of this kind, besides their own events.
    fn watches(&self) -> Vec<Watch>;

    /// Reads. Total: a read that fails is data. May run twice, when a cache turned out not to have its first list yet.
    fn observe(&self, cx: &Cx, object: Arc<Self::Kind>) -> impl Future<Output = Self::Observed> + Send;

    /// Reads what `plan` asked for, in addition to what was observed. Total, like `observe`: what could not be read is data, and the
    /// next `plan` has to decide without it.
    fn answer(
        &self,
        _cx: &Cx,
        seen: Self::Observed,
        _question: Self::Question,
    ) -> impl Future<Output = Self::Observed> + Send {
        std::future::ready(seen)
    }

    /// Decides everything from what was observed, or asks.
    fn plan(&self, seen: &Self::Observed, now: &Moment) -> Decision<Self::Plan, Self::Question>;

    /// Writes what the plan says; stops at the first failure and says so.
    fn apply(&self, cx: &Cx, seen: &Self::Observed, plan: &Self::Plan) -> impl Future<Output = Self::Done> + Send;

    /// The contents of `.status` as this controller wants them: all fields and condition types that it owns; what it leaves out
    /// is removed if it wrote it before. The driver adds the condition Paused. `None` leaves the status alone.
    fn status(&self, seen: &Self::Observed, plan: &Self::Plan, done: &Self::Done, now: &Moment) -> Option<Value>;

    /// How the reconcile ended. Deadlines of `plan` and `status` are added by the driver.
    fn outcome(&self, _seen: &Self::Observed, plan: &Self::Plan, done: &Self::Done) -> Outcome {
        Outcome::of(plan, done)
    }
}

/// How a reconcile ended.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// Nothing to do until an event comes.
    Settled,
    /// Look again after this time, or when an event comes.
    RequeueAfter(Duration),
    /// Something failed: again after a delay that grows from failure to failure.
    Failed(ReconcileError),
}

impl Outcome {
    /// The more urgent of two: a failure, else the earlier requeue.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Failed(error), _) | (_, Self::Failed(error)) => Self::Failed(error),
            (Self::RequeueAfter(a), Self::RequeueAfter(b)) => Self::RequeueAfter(a.min(b)),
            (Self::RequeueAfter(after), Self::Settled) | (Self::Settled, Self::RequeueAfter(after)) => {
                Self::RequeueAfter(after)
            }
            (Self::Settled, Self::Settled) => Self::Settled,
        }
    }
}
