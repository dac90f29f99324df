//! The ClusterResourceSet controller: gives the Clusters that a selector selects the objects in Secrets and ConfigMaps.
//!
//! Watches ClusterResourceSets, Clusters, the records of what was applied (ClusterResourceSetBindings), and the metadata of ConfigMaps and
//! of Secrets of its type. Reads the contents of a resource when a Cluster needs it. Writes objects of workload clusters, the records, an
//! owner reference on each resource, and its own status.
//!
//! - ApplyOnce creates what is not there, once per Cluster, and changes nothing that is there. Reconcile applies a resource again when its
//!   contents change.
//! - What was applied is never deleted.
//! - A resource with an error, or a Cluster that does not answer, does not keep others waiting. A resource is applied when all of it can
//!   be read.
//! - Several sets share the record of a Cluster: writes to it are conditional on its resourceVersion.

mod apply;
mod contents;
mod observe;
mod observed;
mod plan;
mod remote;
mod status;
#[cfg(test)]
mod tests;
mod watches;

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use windlass_api::addons::{CLUSTER_RESOURCE_SET_FINALIZER, ClusterResourceSet};
use windlass_cluster_cache::Clusters;
use windlass_controller_runtime::{
    Controller, ControllerEntry, Cx, Decision, Moment, ObjectKey, Outcome, Part as _, Watch,
};

pub use apply::Done;
pub use observed::Observed;
pub use plan::{Action, Plan};

use crate::shared::keys::managers;

/// How long a set waits at most before it tries again to write a record that another set has just written.
const AFTER_CONFLICT: Duration = Duration::from_secs(2);

/// The ClusterResourceSet controller.
pub struct ClusterResourceSetController {
    clusters: Clusters,
}

impl std::fmt::Debug for ClusterResourceSetController {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ClusterResourceSetController")
    }
}

/// The controller, ready to be run.
pub fn entry(clusters: Clusters) -> ControllerEntry {
    ControllerEntry::of(ClusterResourceSetController { clusters })
}

/// A question of the plan: the contents of these resources, by their places in the list of the set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContentsOf(Vec<usize>);

impl Controller for ClusterResourceSetController {
    type Kind = ClusterResourceSet;
    type Observed = Observed;
    type Question = ContentsOf;
    type Plan = Plan;
    type Done = Done;

    const NAME: &'static str = "clusterresourceset";
    const MANAGER: &'static str = managers::CLUSTER_RESOURCE_SET;
    const STATUS_MANAGER: &'static str = "capi-clusterresourceset-status";
    const FINALIZER: Option<&'static str> = Some(CLUSTER_RESOURCE_SET_FINALIZER);
    const FOLLOWS_CLUSTERS: bool = false;

    fn cluster_of(_: &ClusterResourceSet) -> Option<ObjectKey> {
        None
    }

    fn watches(&self) -> Vec<Watch> {
        watches::watches(&self.clusters)
    }

    async fn observe(&self, cx: &Cx, object: Arc<ClusterResourceSet>) -> Observed {
        observe::observe(cx, &self.clusters, &object).await
    }

    async fn answer(&self, cx: &Cx, seen: Observed, ContentsOf(asked): ContentsOf) -> Observed {
        observe::read(cx, seen, &asked).await
    }

    fn plan(&self, seen: &Observed, _: &Moment) -> Decision<Plan, ContentsOf> {
        plan::plan(seen)
    }

    async fn apply(&self, cx: &Cx, seen: &Observed, plan: &Plan) -> Done {
        apply::apply(cx, &self.clusters, seen, plan).await
    }

    fn status(&self, seen: &Observed, plan: &Plan, done: &Done, now: &Moment) -> Option<Value> {
        let is_released = plan.actions.contains(&Action::RemoveFinalizer) && done.failed.is_none();
        // A record that another set has changed meanwhile is written by the next reconcile.
        if is_released || (done.has_conflict && done.problems.is_empty()) {
            return None;
        }
        Some(status::status(seen, plan, done, now.now()).to_json())
    }

    fn outcome(&self, _: &Observed, plan: &Plan, done: &Done) -> Outcome {
        let outcome = Outcome::of(plan, done);
        if done.has_conflict {
            return outcome.within(AFTER_CONFLICT);
        }
        outcome
    }
}
