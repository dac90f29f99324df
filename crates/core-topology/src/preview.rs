//! Single reconciles for previews, on a copy of the management cluster.
//!
//! What is observed, planned and written is what the controllers observe, plan and write, patches and variables of extensions included. Only
//! lifecycle hooks are not called: what they would hold back is planned as if they had passed, and they are named.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use windlass_api::core::ClusterClass;
use windlass_api_ext::rollouts::ClusterClassRollout;
use windlass_controller_runtime::{Cx, Moment, ObjectKey};
use windlass_runtime_client::{Callable, Extensions};
use windlass_topology::plan::Step;
use windlass_topology::status::Progress;

pub use windlass_conditions::Draft;
pub use windlass_topology::hooks::{Blocking, Call};

use crate::cluster::ClusterTopology;
use crate::cluster::memory::Memory;
use crate::cluster_class::ClusterClasses;
use crate::{class_rollout, cluster, cluster_class};

pub use class_rollout::preview::{Wave, Waves};

/// The controllers of topologies, for previews.
#[derive(Debug)]
pub struct Topologies {
    controller: ClusterTopology,
    classes: ClusterClasses,
    /// What the controller of rollouts has read.
    kept: Memory,
}

/// One reconcile of a topology.
#[derive(Debug, Default)]
pub struct Round {
    /// The steps that were planned, in order.
    pub steps: Vec<Step>,
    /// Why some changes wait.
    pub notes: Vec<String>,
    /// The hooks that would be called, in order, and were taken to pass.
    pub hooks: Vec<Call>,
    /// What keeps the plan from going further.
    pub blocked: Option<String>,
    /// Why a step was not done.
    pub failed: Option<String>,
    /// The condition TopologyReconciled.
    pub report: Option<Draft>,
    /// The progress of an upgrade.
    pub progress: Option<Progress>,
}

impl Topologies {
    /// Extensions are those of `cx`.
    pub fn new(cx: &Cx) -> Self {
        let extensions = Extensions::new(cx, None, Callable::default());
        cluster::watches::index(cx);
        Self {
            classes: ClusterClasses::new(extensions.clone()),
            controller: ClusterTopology::new(extensions),
            kept: Memory::default(),
        }
    }

    /// Reconciles the topology of a Cluster once; none if there is no such Cluster.
    pub async fn reconcile(&self, cx: &Cx, cluster: &ObjectKey, now: &Moment) -> Option<Round> {
        let object = cx.cache::<windlass_api::core::Cluster>().get(cluster)?;
        Some(cluster::preview::reconcile(&self.controller, cx, object, now).await)
    }

    /// The waves in which the Clusters of a class get a change of it, with the `revisions` that they have now. The error says which setting cannot be
    /// used.
    pub async fn waves(
        &self,
        cx: &Cx,
        rollout: Arc<ClusterClassRollout>,
        revisions: &BTreeMap<ObjectKey, String>,
    ) -> Result<Waves, String> {
        class_rollout::preview::waves(cx, rollout, revisions, &self.kept).await
    }

    /// Reconciles a class once. Gives its status, which the caller stores; none if it stays as it is.
    pub async fn class_status(&self, cx: &Cx, class: Arc<ClusterClass>, now: &Moment) -> Option<Value> {
        cluster_class::preview::status(&self.classes, cx, class, now).await
    }
}
