//! The DevCluster controller: the infrastructure of a simulated workload cluster, which is a port on the loopback interface.
//!
//! The port is chosen once and written to `spec.controlPlaneEndpoint`. Connections are refused there until the first control plane
//! machine runs.
//!
//! An external system manages a DevCluster with the annotation `cluster.x-k8s.io/managed-by`: this controller neither writes to it nor
//! does anything for it.

mod apply;
mod observe;
mod plan;
mod status;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde_json::Value;
use windlass_api::core::Cluster;
use windlass_api::kind::ApiKind as _;
use windlass_api::resource_is_not_externally_managed;
use windlass_api_ext::finalizers;
use windlass_api_ext::infrastructure::DevCluster;
use windlass_controller_runtime::{Controller, ControllerEntry, Cx, Decision, Moment, ObjectKey, Part as _, Watch};

use crate::backend::Cloud;
use crate::dev_machine::MANAGER;
use apply::Done;
use observe::{Observed, Question};
use plan::Plan;

/// The host of simulated clusters.
const HOST: &str = "127.0.0.1";
/// Reason when the credentials do not allow a call to the cloud.
const NOT_ALLOWED: &str = "NotAllowed";
/// Reason when the cloud cannot provide a port.
const PORT_UNAVAILABLE: &str = "PortUnavailable";

/// Reconciles DevClusters.
#[derive(Debug)]
struct DevClusters {
    cloud: Cloud,
}

/// The controller, to run.
pub fn entry(cloud: Cloud) -> ControllerEntry {
    ControllerEntry::of(DevClusters { cloud })
}

impl Controller for DevClusters {
    type Kind = DevCluster;
    type Observed = Observed;
    type Question = Question;
    type Plan = Plan;
    type Done = Done;
    const NAME: &'static str = "devcluster";
    const MANAGER: &'static str = MANAGER;
    const STATUS_MANAGER: &'static str = "capd-manager-status";
    const FINALIZER: Option<&'static str> = Some(finalizers::DEV_CLUSTER);
    const CONCERNS: Option<fn(&DevCluster) -> bool> = Some(concerns);
    // The annotation may come while a reconcile is under way.
    const LOCKED: bool = true;

    fn watches(&self) -> Vec<Watch> {
        vec![Watch::map::<Cluster>(|_, old, new| begins_to_refer(old, new))]
    }

    async fn observe(&self, cx: &Cx, object: Arc<DevCluster>) -> Observed {
        observe::observe(cx, &self.cloud, object)
    }

    async fn answer(&self, cx: &Cx, seen: Observed, question: Question) -> Observed {
        observe::answer(cx, seen, question)
    }

    fn plan(&self, seen: &Observed, _: &Moment) -> Decision<Plan, Question> {
        plan::plan(seen)
    }

    async fn apply(&self, cx: &Cx, seen: &Observed, plan: &Plan) -> Done {
        apply::apply(cx, &self.cloud, seen, plan).await
    }

    fn status(&self, seen: &Observed, _: &Plan, done: &Done, now: &Moment) -> Option<Value> {
        (!done.gone).then(|| status::status(seen, done, now.now()).to_json())
    }
}

/// Nothing is done for a DevCluster before a Cluster owns it.
fn concerns(object: &DevCluster) -> bool {
    let metadata = &object.metadata;
    let mut present = metadata.finalizers.iter().flatten();
    let is_known = observe::owner_key(metadata).is_some() || present.any(|one| one == finalizers::DEV_CLUSTER);
    is_known && resource_is_not_externally_managed(object)
}

/// The DevCluster of a Cluster that appears, or that begins to refer to it: it may be older than the Cluster.
fn begins_to_refer(old: Option<&Cluster>, new: Option<&Cluster>) -> Vec<ObjectKey> {
    let refers = |cluster: &Cluster| {
        let to = cluster.spec.infrastructure_ref.clone()?;
        let is_ours = to.api_group == DevCluster::GROUP && to.kind == DevCluster::KIND;
        is_ours.then(|| ObjectKey::new(cluster.metadata.namespace.as_deref().unwrap_or_default(), to.name))
    };
    let (before, now) = (old.and_then(refers), new.and_then(refers));
    now.filter(|now| before.as_ref() != Some(now)).into_iter().collect()
}
