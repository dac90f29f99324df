//! What a KubeadmControlPlane is about to do with its Machines, for previews: the rules of the plan, without its steps and without a
//! connection to the workload cluster.

use std::sync::Arc;

use serde_json::Value;
use windlass_api_kubeadm::controlplane::v1beta2::KubeadmControlPlane;
use windlass_cluster_cache::Workload;
use windlass_controller_runtime::{Cx, Moment, ObjectKey, StatusPace};
use windlass_runtime_client::Extensions;
use windlass_runtime_hooks::in_place::CanUpdateMachine;

use crate::up_to_date::{UpToDate, judge};
use crate::workload::{WorkloadCluster, WorkloadClusters};
use crate::{desired, observe};

/// What becomes of the Machines of a control plane.
#[derive(Clone, Debug, Default)]
pub struct Rollout {
    /// Machines wanted.
    pub replicas: i32,
    /// Machines more than wanted while it lasts: 0 or 1.
    pub max_surge: i32,
    /// The Machines by name, and how they differ from what is asked for.
    pub machines: Vec<(String, UpToDate)>,
    /// The handlers of extensions that may be able to update Machines in place.
    pub in_place: Vec<String>,
    /// The specification of the KubeadmConfig of a Machine that joins now.
    pub config: Value,
}

/// No connection is made.
struct Unconnected;

impl WorkloadClusters for Unconnected {
    fn workload(&self, _: &ObjectKey) -> Workload<Box<dyn WorkloadCluster>> {
        Workload::NotTried("a preview connects to no workload cluster".into())
    }

    fn subscribe(&self, _: Arc<dyn Fn(&ObjectKey) + Send + Sync>) {}
}

/// Looks at the Machines of a control plane as the controller does. None while no Cluster is named.
pub async fn rollout(
    cx: &Cx,
    extensions: &Extensions,
    control_plane: Arc<KubeadmControlPlane>,
    now: &Moment,
) -> Option<Rollout> {
    let seen = observe::observe(cx, &Unconnected, &StatusPace::default(), control_plane).await;
    let facts = seen.facts?;
    let living = facts.machines.iter().filter(|machine| !machine.deleting());
    let machines: Vec<_> = living
        .map(|machine| (machine.name.clone(), judge(&facts, machine, now)))
        .collect();
    let mut in_place = Vec::new();
    if machines.iter().any(|(_, judged)| !judged.holds() && judged.in_place) {
        let handlers = extensions
            .handlers::<CanUpdateMachine>(&facts.control_plane.namespace)
            .await;
        in_place.extend(handlers.iter().flatten().map(|handler| handler.name().to_owned()));
    }
    Some(Rollout {
        replicas: facts.control_plane.replicas,
        max_surge: facts.control_plane.max_surge,
        config: desired::kubeadm_spec(&facts.control_plane, true),
        machines,
        in_place,
    })
}
