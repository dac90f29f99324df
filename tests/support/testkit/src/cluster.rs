//! Clusters of the example class.

use serde_json::{Value, json};
use windlass_api::core::{Cluster, Machine};
use windlass_api::{Condition, labels};
use windlass_meta::ObjectKey;

use crate::objects::{NAMESPACE, Objects};

/// A Cluster of the example class: its manifest, and the expected result.
#[derive(Clone, Debug)]
pub struct ClusterOf {
    /// Its name.
    pub name: String,
    /// Control plane machines.
    pub control_plane: usize,
    /// Workers of the MachineDeployment topology `md-0`.
    pub workers: usize,
    /// The Kubernetes version.
    pub version: String,
}

impl ClusterOf {
    /// A cluster at v1.35.0 with this many control plane machines and workers.
    pub fn new(name: &str, control_plane: usize, workers: usize) -> Self {
        Self {
            name: name.to_owned(),
            control_plane,
            workers,
            version: "v1.35.0".to_owned(),
        }
    }

    /// The same cluster with another number of workers.
    #[must_use]
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers;
        self
    }

    /// The same cluster at another version.
    #[must_use]
    pub fn version(mut self, version: &str) -> Self {
        version.clone_into(&mut self.version);
        self
    }

    /// Its key.
    pub fn key(&self) -> ObjectKey {
        ObjectKey::new(NAMESPACE, &self.name)
    }

    /// The object.
    pub fn object(&self) -> Value {
        json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2",
            "kind": "Cluster",
            "metadata": {"name": self.name, "namespace": NAMESPACE},
            "spec": {
                "clusterNetwork": {
                    "services": {"cidrBlocks": ["10.128.0.0/12"]},
                    "pods": {"cidrBlocks": ["192.168.0.0/16"]},
                },
                "topology": {
                    "classRef": {"name": "quick-start"},
                    "version": self.version,
                    "controlPlane": {"replicas": self.control_plane},
                    "workers": {"machineDeployments": [
                        {"class": "default-worker", "name": "md-0", "replicas": self.workers},
                    ]},
                },
            },
        })
    }

    /// Applies it.
    pub async fn apply(&self, objects: &Objects) {
        objects.apply(&self.object()).await;
    }

    /// Waits until it is as desired: Available, no rollout in progress, all its Machines Running at its version.
    pub async fn wait_running(&self, objects: &Objects) -> Cluster {
        // The state of the Machines may change while the Cluster is checked: both must hold one after the other.
        loop {
            objects
                .wait_all::<Machine>("all Machines running", |machines| self.is_right(machines))
                .await;
            let cluster = objects
                .wait_for::<Cluster>(&self.key(), "available and at rest", is_at_rest)
                .await;
            if self.is_right(&objects.list::<Machine>().await) {
                return cluster;
            }
        }
    }

    /// The Machines of the cluster, either control plane machines or workers.
    pub fn machines<'a>(&self, machines: &'a [Machine], control_plane: bool) -> Vec<&'a Machine> {
        let is_ours = |machine: &&Machine| {
            let found = machine.metadata.labels.iter().flatten();
            let mut labels = found.map(|(key, value)| (key.as_str(), value.as_str()));
            let is_control_plane = labels.clone().any(|(key, _)| key == labels::CONTROL_PLANE);
            labels.any(|label| label == (labels::CLUSTER_NAME, &self.name)) && is_control_plane == control_plane
        };
        machines.iter().filter(is_ours).collect()
    }

    fn is_right(&self, machines: &[Machine]) -> bool {
        [(true, self.control_plane), (false, self.workers)]
            .into_iter()
            .all(|(control_plane, wanted)| {
                let machines = self.machines(machines, control_plane);
                machines.len() == wanted && machines.iter().all(|machine| is_running(machine, &self.version))
            })
    }
}

fn is_running(machine: &Machine, version: &str) -> bool {
    let at_version = machine.spec.version.as_deref() == Some(version);
    machine.metadata.deletion_timestamp.is_none()
        && at_version
        && machine.status.as_ref().is_some_and(|status| {
            let well = |kind| has(&status.conditions, kind, "True");
            status.phase.as_deref() == Some("Running") && well("Available") && well("UpToDate")
        })
}

/// Whether a Cluster is available, and its last change is rolled out.
fn is_at_rest(cluster: &Cluster) -> bool {
    let generation = cluster.metadata.generation;
    cluster.status.as_ref().is_some_and(|status| {
        let now = status
            .conditions
            .iter()
            .all(|condition| condition.observed_generation == generation);
        let quiet = ["RollingOut", "ScalingUp", "ScalingDown"];
        now && has(&status.conditions, "Available", "True")
            && quiet.iter().all(|kind| has(&status.conditions, kind, "False"))
    })
}

fn has(conditions: &[Condition], kind: &str, value: &str) -> bool {
    conditions
        .iter()
        .any(|condition| condition.type_ == kind && condition.status == value)
}
