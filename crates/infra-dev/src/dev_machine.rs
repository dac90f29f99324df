//! The DevMachine controller: a machine of the in-memory backend.
//!
//! Its parts start one after another, each in the time its spec says; the provider ID is known and the machine provisioned when
//! its virtual machine runs. It owns the conditions Ready, VMProvisioned, NodeProvisioned and, for control plane machines,
//! EtcdProvisioned and APIServerProvisioned.
//!
//! # What it needs of the DevCluster
//!
//! No more than the contract has, with any system that manages the DevCluster, and it writes nothing there:
//!
//! - `status.initialization.provisioned`, by way of the Cluster's `status.initialization.infrastructureProvisioned`: no machine
//!   starts before;
//! - for control plane machines `spec.controlPlaneEndpoint`, host and port, by way of the Cluster's field of that name: there
//!   their API server serves, through the load balancer of the cluster where the cloud has one, else at the address itself. It
//!   has to be a loopback address or `localhost` then, and its port free.
//!
//! What is missing is named by path in the condition VMProvisioned; what cannot be listened on, there or in
//! APIServerProvisioned.

mod apply;
mod bootstrap;
mod observe;
mod plan;
mod status;
#[cfg(test)]
mod tests;
mod timeline;

use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use serde_json::Value;
use windlass_api::core::{Cluster, Machine};
use windlass_api::labels;
use windlass_api_ext::finalizers;
use windlass_api_ext::infrastructure::{DevCluster, DevMachine};
use windlass_controller_runtime::{
    Controller, ControllerEntry, Cx, Decision, Moment, ObjectKey, Part as _, Watch, key_of,
};

use crate::backend::Cloud;
use apply::Done;
use observe::{Observed, Question};
use plan::Plan;
use status::Report;

pub(crate) use apply::MANAGER;

/// Reconciles DevMachines.
#[derive(Debug)]
struct DevMachines {
    cloud: Cloud,
}

/// The controller, to run.
pub fn entry(cloud: Cloud) -> ControllerEntry {
    ControllerEntry::of(DevMachines { cloud })
}

impl Controller for DevMachines {
    type Kind = DevMachine;
    type Observed = Observed;
    type Question = Question;
    type Plan = Plan;
    type Done = Done;
    const NAME: &'static str = "devmachine";
    const MANAGER: &'static str = MANAGER;
    const STATUS_MANAGER: &'static str = "capd-manager-status";
    const FINALIZER: Option<&'static str> = Some(finalizers::DEV_MACHINE);

    fn watches(&self) -> Vec<Watch> {
        let cloud = self.cloud.clone();
        vec![
            Watch::map::<DevCluster>(machines_of_infrastructure),
            Watch::map::<Machine>(|_, _, new| new.map_or_else(Vec::new, machine_of)),
            Watch::map::<Cluster>(machines_of_cluster),
            Watch::read::<Secret>(),
            // Workers wait for the first API server of their cluster, control plane machines may wait for a load balancer. Neither is an
            // object of this API server.
            Watch::source(move |cx, wake| {
                cloud.on_change(move |cluster| {
                    wake.add_all(machines_of(&cx, cluster));
                });
            }),
        ]
    }

    async fn observe(&self, cx: &Cx, object: Arc<DevMachine>) -> Observed {
        observe::observe(cx, &self.cloud, object)
    }

    async fn answer(&self, cx: &Cx, seen: Observed, question: Question) -> Observed {
        observe::answer(cx, seen, question)
    }

    fn plan(&self, seen: &Observed, now: &Moment) -> Decision<Plan, Question> {
        plan::plan(seen, now)
    }

    async fn apply(&self, cx: &Cx, seen: &Observed, plan: &Plan) -> Done {
        apply::apply(cx, &self.cloud, seen, plan).await
    }

    fn status(&self, seen: &Observed, plan: &Plan, done: &Done, now: &Moment) -> Option<Value> {
        let is_written = !done.gone && (done.failed.is_none() || done.not_serving.is_some());
        let report = Report {
            generation: done.generation,
            not_serving: done.not_serving.as_deref(),
        };
        is_written.then(|| status::status(seen, plan, report, now.now()).to_json())
    }
}

/// The DevMachine that a Machine references.
fn machine_of(machine: &Machine) -> Vec<ObjectKey> {
    let reference = &machine.spec.infrastructure_ref;
    if reference.kind != "DevMachine" {
        return Vec::new();
    }
    vec![ObjectKey::new(
        machine.metadata.namespace.as_deref().unwrap_or_default(),
        &reference.name,
    )]
}

/// Machines wait for their Cluster's infrastructure, its endpoint and its control plane.
fn machines_of_cluster(cx: &Cx, old: Option<&Cluster>, new: Option<&Cluster>) -> Vec<ObjectKey> {
    let Some(new) = new else { return Vec::new() };
    let marks = |cluster: &Cluster| {
        let done = cluster.status.as_ref().and_then(|status| status.initialization.clone());
        (done, cluster.spec.control_plane_endpoint.clone())
    };
    if old.is_some_and(|old| marks(old) == marks(new)) {
        return Vec::new();
    }
    machines_of(cx, &key_of(&new.metadata))
}

/// Machines report what is missing in the present state of a DevCluster.
fn machines_of_infrastructure(cx: &Cx, old: Option<&DevCluster>, new: Option<&DevCluster>) -> Vec<ObjectKey> {
    let Some(new) = new else { return Vec::new() };
    let endpoint = |object: &DevCluster| {
        object
            .spec
            .as_ref()
            .and_then(|spec| spec.control_plane_endpoint.clone())
    };
    let label = new
        .metadata
        .labels
        .as_ref()
        .and_then(|all| all.get(labels::CLUSTER_NAME));
    match label {
        Some(cluster) if old.is_none_or(|old| endpoint(old) != endpoint(new)) => {
            let namespace = new.metadata.namespace.as_deref().unwrap_or_default();
            machines_of(cx, &ObjectKey::new(namespace, cluster))
        }
        _ => Vec::new(),
    }
}

fn machines_of(cx: &Cx, cluster: &ObjectKey) -> Vec<ObjectKey> {
    let machines = cx.cache::<DevMachine>().by_cluster(&cluster.namespace, &cluster.name);
    machines.iter().map(|machine| key_of(&machine.metadata)).collect()
}
