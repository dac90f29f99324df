//! The ClusterClassRollout controller: gives the Clusters of a class its changes in waves.
//!
//! It keeps the class and its templates as ClusterClassRevisions, and notes on each Cluster which of them it has. The controller of topologies uses
//! that one. Which Clusters get the newest revision, and when, is decided by `topology::waves`.

mod apply;
mod facts;
mod observe;
mod plan;
pub(crate) mod preview;
mod status;
mod watches;

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use windlass_api_ext::rollouts::ClusterClassRollout;
use windlass_controller_runtime::{Controller, Cx, Decision, Moment, NoQuestion, ObjectKey, Watch};

use crate::cluster::memory::Memory;

/// Keeps a rollout until all Clusters have the newest revision, as they would get it at once without it.
const FINALIZER: &str = "windlass.dev/class-rollout";

/// Reconciles ClusterClassRollouts.
#[derive(Debug, Default)]
pub(crate) struct ClassRollouts {
    /// Templates in the versions that classes name.
    memory: Memory,
}

impl Controller for ClassRollouts {
    type Kind = ClusterClassRollout;
    type Observed = observe::Observed;
    type Question = NoQuestion;
    type Plan = plan::Plan;
    type Done = apply::Done;

    const NAME: &'static str = "topology/classrollout";
    const MANAGER: &'static str = apply::MANAGER;
    const STATUS_MANAGER: &'static str = "windlass-class-rollout-status";
    const FINALIZER: Option<&'static str> = Some(FINALIZER);
    // The wave that has begun is in the status.
    const STATUS_PACE: Duration = Duration::ZERO;

    fn cluster_of(_: &ClusterClassRollout) -> Option<ObjectKey> {
        None
    }

    fn watches(&self) -> Vec<Watch> {
        watches::all()
    }

    async fn observe(&self, cx: &Cx, object: Arc<ClusterClassRollout>) -> observe::Observed {
        observe::observe(cx, object, &self.memory).await
    }

    fn plan(&self, seen: &observe::Observed, now: &Moment) -> Decision<plan::Plan, NoQuestion> {
        plan::plan(seen, now).into()
    }

    async fn apply(&self, cx: &Cx, seen: &observe::Observed, plan: &plan::Plan) -> apply::Done {
        apply::apply(cx, seen, plan).await
    }

    fn status(&self, seen: &observe::Observed, plan: &plan::Plan, done: &apply::Done, now: &Moment) -> Option<Value> {
        status::status(seen, plan, done, now.now())
    }
}
