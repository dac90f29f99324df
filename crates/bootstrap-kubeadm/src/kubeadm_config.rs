//! Reconciles KubeadmConfigs: makes the data with which a Machine boots, and keeps its bootstrap token alive until the
//! Machine has become a node. The token of a MachinePool is replaced before it ends, as machines may join at any time, and its data is made
//! again when the cluster gets another authority.
//!
//! - Reads its Machine or MachinePool and its Cluster, and, when the plan asks for them, the cluster's certificates, the Secrets that its files
//!   refer to, the init lock, its bootstrap token, and who set the pins in its spec (from its managed fields, which caches leave out).
//! - Writes the data Secret `<name>`, the init lock `<cluster>-lock`, a bootstrap token in the workload cluster, and, in a
//!   cluster without a control plane object, the certificates. What it found out about the cluster goes into its own spec.
//! - Data of a Machine is made once; a change of the spec afterwards changes nothing. Deletion is never blocked.

mod apply;
mod desired;
mod observe;
mod observed;
mod owner;
mod plan;
mod question;
mod status;
mod token;
mod watches;

use std::sync::Arc;

use jiff::SignedDuration;
use serde_json::Value;
use windlass_api_kubeadm::bootstrap::KubeadmConfig;
use windlass_controller_runtime::{Controller, Cx, Decision, Moment, Watch};
use windlass_pki::KeyPool;

use crate::workload::WorkloadClusters;

use observed::{Observed, ReleasedLocks};
use plan::Plan;
use question::Question;
use status::Done;

/// Field manager of specs and Secrets: the name under which Cluster API's own bootstrap provider writes, so that either
/// can take over from the other.
const MANAGER: &str = "cabpk-manager";

/// The controller of KubeadmConfigs.
pub(crate) struct KubeadmConfigController {
    clusters: Arc<dyn WorkloadClusters>,
    keys: KeyPool,
    /// How long a bootstrap token lives unless it is extended.
    token_ttl: SignedDuration,
    released: ReleasedLocks,
}

impl std::fmt::Debug for KubeadmConfigController {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KubeadmConfigController").finish_non_exhaustive()
    }
}

impl KubeadmConfigController {
    /// A controller that reaches workload clusters through `clusters` and takes keys from `keys`.
    pub(crate) fn new(clusters: Arc<dyn WorkloadClusters>, keys: KeyPool, token_ttl: SignedDuration) -> Self {
        Self {
            clusters,
            keys,
            token_ttl,
            released: ReleasedLocks::default(),
        }
    }
}

impl Controller for KubeadmConfigController {
    type Kind = KubeadmConfig;
    type Observed = Observed;
    type Question = Question;
    type Plan = Plan;
    type Done = Done;

    const NAME: &'static str = "kubeadmconfig";
    const MANAGER: &'static str = MANAGER;
    const STATUS_MANAGER: &'static str = "capi-kubeadmconfig-status";
    const FINALIZER: Option<&'static str> = None;

    fn watches(&self) -> Vec<Watch> {
        watches::watches(Arc::clone(&self.clusters))
    }

    async fn observe(&self, cx: &Cx, object: Arc<KubeadmConfig>) -> Observed {
        observe::observe(cx, self.token_ttl, &self.released, object)
    }

    async fn answer(&self, cx: &Cx, seen: Observed, question: Question) -> Observed {
        observe::answer(cx, &*self.clusters, &self.released, seen, question).await
    }

    fn plan(&self, seen: &Observed, now: &Moment) -> Decision<Plan, Question> {
        plan::plan(seen, now)
    }

    async fn apply(&self, cx: &Cx, seen: &Observed, plan: &Plan) -> Done {
        apply::apply(cx, &*self.clusters, &self.keys, seen, plan).await
    }

    fn status(&self, seen: &Observed, plan: &Plan, done: &Done, now: &Moment) -> Option<Value> {
        status::status(seen, plan, done, now)
    }
}
