//! The operations in the life of a cluster, of which each is disturbed in its middle.

use std::collections::BTreeMap;

use serde_json::json;
use windlass_api::core::{Cluster, Machine};
use windlass_testkit::{CLASS, ClusterOf, Env};

use super::{hosts, running};

/// An operation on a cluster with one control plane Machine and two workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Creation,
    Scaling,
    Upgrade,
    Remediation,
    Deletion,
}

/// An operation that has begun.
#[derive(Debug)]
pub(super) struct Underway {
    phase: Phase,
    /// The cluster as it shall be.
    pub(super) cluster: ClusterOf,
    /// The Machines that may not be replaced by it, with their hosts.
    kept: BTreeMap<String, String>,
    /// The number of Machines that are ever created for the cluster.
    machines: u64,
}

impl Phase {
    /// Begins it, and waits until it is under way.
    pub(super) async fn begin(self, env: &Env) -> Underway {
        let cluster = ClusterOf::new("disturbed", 1, 2);
        if self == Self::Creation {
            return create(env, cluster).await;
        }
        running(env, &cluster).await;
        let mut kept = hosts(env).await;
        let (cluster, machines) = match self {
            Self::Creation | Self::Deletion => (cluster, 3),
            Self::Scaling => (cluster.workers(4), 5),
            Self::Upgrade => (cluster.version("v1.36.0"), 6),
            Self::Remediation => (cluster, 4),
        };
        match self {
            Self::Creation => {}
            Self::Scaling | Self::Upgrade => {
                cluster.apply(env).await;
                env.wait_all::<Machine>("a Machine more", |machines| machines.len() > kept.len())
                    .await;
            }
            Self::Remediation => {
                let all = env.list::<Machine>().await;
                let sick = cluster.machines(&all, false)[0].metadata.name.clone().unwrap();
                remediate(env, &cluster, &sick).await;
                kept.remove(&sick);
            }
            Self::Deletion => {
                env.delete("Cluster", &cluster.name).await;
                env.wait_all::<Machine>("a Machine on its way", |machines| {
                    machines.len() < kept.len() || machines.iter().any(is_going)
                })
                .await;
            }
        }
        if matches!(self, Self::Upgrade | Self::Deletion) {
            kept.clear();
        }
        Underway {
            phase: self,
            cluster,
            kept,
            machines,
        }
    }
}

impl Underway {
    /// Waits for the end of the operation: as desired, with no Machine more than it needs, and none replaced.
    pub(super) async fn finish(&self, env: &Env) {
        if self.phase == Phase::Deletion {
            env.wait_gone(&self.cluster.name).await;
        } else {
            self.cluster.wait_running(env).await;
            let now = hosts(env).await;
            assert!(
                self.kept.iter().all(|host| now.get(host.0) == Some(host.1)),
                "{:?}: of {:?} these are left: {now:?}",
                self.phase,
                self.kept
            );
        }
        for resource in ["machines", "devmachines", "kubeadmconfigs"] {
            assert_eq!(env.created(resource), self.machines, "{:?}: {resource}", self.phase);
        }
    }
}

/// The names of the Machines that are not being deleted.
pub(super) async fn staying(env: &Env) -> Vec<String> {
    let machines = env.list::<Machine>().await;
    let staying = machines.into_iter().filter(|machine| !is_going(machine));
    staying.filter_map(|machine| machine.metadata.name).collect()
}

fn is_going(machine: &Machine) -> bool {
    machine.metadata.deletion_timestamp.is_some()
}

async fn create(env: &Env, cluster: ClusterOf) -> Underway {
    env.apply_yaml(CLASS).await;
    cluster.apply(env).await;
    env.wait_for::<Cluster>(&cluster.key(), "with a first control plane Machine", |cluster| {
        let status = cluster.status.as_ref();
        let steps = status.and_then(|status| status.initialization.as_ref());
        steps.and_then(|steps| steps.control_plane_initialized) == Some(true)
    })
    .await;
    Underway {
        phase: Phase::Creation,
        cluster,
        kept: BTreeMap::new(),
        machines: 3,
    }
}

/// Marks a worker for a MachineHealthCheck, and waits until it goes.
async fn remediate(env: &Env, cluster: &ClusterOf, machine: &str) {
    env.apply(&json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "MachineHealthCheck",
        "metadata": {"name": "workers", "namespace": cluster.key().namespace},
        "spec": {
            "clusterName": cluster.name,
            "selector": {"matchLabels": {"topology.cluster.x-k8s.io/deployment-name": "md-0"}},
            "checks": {"unhealthyNodeConditions": [{"type": "Ready", "status": "False", "timeoutSeconds": 300}]},
        },
    }))
    .await;
    let mark = json!({"metadata": {"annotations": {"cluster.x-k8s.io/remediate-machine": ""}}});
    env.merge("Machine", machine, &mark).await;
    env.wait_all::<Machine>("the marked Machine on its way", |machines| {
        let marked = machines
            .iter()
            .find(|found| found.metadata.name.as_deref() == Some(machine));
        marked.is_none_or(is_going)
    })
    .await;
}
