//! The DevMachine controller: a machine of the in-memory backend.
//!
//! Its parts start one after another, each in the time its spec says; the provider ID is known and the machine provisioned when
//! its virtual machine runs. It owns the conditions Ready, VMProvisioned, NodeProvisioned and, for control plane machines,
//! EtcdProvisioned and APIServerProvisioned.

mod apply;
mod observe;
mod plan;
mod status;
#[cfg(test)]
mod tests;
mod timeline;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use serde_json::Value;
use windlass_api::Condition;
use windlass_api::core::{Cluster, Machine};
use windlass_api_ext::finalizers;
use windlass_api_ext::infrastructure::DevMachine;
use windlass_kit::{Controller, ControllerEntry, Cx, ObjectKey, Outcome, Watch, key_of};

use crate::backend::Cloud;
use apply::Done;
use observe::Observed;
use plan::Plan;

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
    type Plan = Plan;
    type Done = Done;
    const NAME: &'static str = "devmachine";
    const MANAGER: &'static str = MANAGER;
    const STATUS_MANAGER: &'static str = "capd-manager-status";
    const FINALIZER: Option<&'static str> = Some(finalizers::DEV_MACHINE);

    fn conditions(object: &DevMachine) -> &[Condition] {
        object.status.as_ref().map_or(&[], |status| &status.conditions)
    }

    fn watches(&self) -> Vec<Watch> {
        let cloud = self.cloud.clone();
        vec![
            Watch::map::<Machine>(|_, _, new| new.map_or_else(Vec::new, machine_of)),
            Watch::map::<Cluster>(machines_of_cluster),
            Watch::read::<Secret>(),
            // Workers wait for the first API server of their cluster, which is no object of this one.
            Watch::source(move |cx, wake| {
                cloud.on_up(move |cluster| {
                    for machine in cx.cache::<DevMachine>().by_cluster(&cluster.namespace, &cluster.name) {
                        wake.add(key_of(&machine.metadata));
                    }
                });
            }),
        ]
    }

    async fn observe(&self, cx: &Cx, object: Arc<DevMachine>) -> Observed {
        observe::observe(cx, &self.cloud, object)
    }

    fn plan(&self, seen: &Observed, now: Timestamp) -> Plan {
        plan::plan(seen, now)
    }

    async fn apply(&self, cx: &Cx, seen: &Observed, plan: &Plan) -> Done {
        apply::apply(cx, &self.cloud, seen, plan).await
    }

    fn status(&self, seen: &Observed, plan: &Plan, done: &Done, now: Timestamp) -> Option<Value> {
        let report = !done.gone && done.failed.is_none();
        report.then(|| serde_json::to_value(status::status(seen, plan, done.generation, now)).unwrap_or_default())
    }

    fn outcome(&self, _: &Observed, plan: &Plan, done: &Done) -> Outcome {
        match (&done.failed, plan.requeue) {
            (Some(error), _) => Outcome::Failed(error.clone()),
            (None, Some(after)) => Outcome::RequeueAfter(after),
            (None, None) if done.moved => Outcome::RequeueAfter(Duration::ZERO),
            (None, None) => Outcome::Settled,
        }
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

/// Machines wait for their Cluster's infrastructure and control plane.
fn machines_of_cluster(cx: &Cx, old: Option<&Cluster>, new: Option<&Cluster>) -> Vec<ObjectKey> {
    let Some(new) = new else { return Vec::new() };
    let marks = |cluster: &Cluster| cluster.status.as_ref().and_then(|status| status.initialization.clone());
    if old.is_some_and(|old| marks(old) == marks(new)) {
        return Vec::new();
    }
    let key = key_of(&new.metadata);
    let machines = cx.cache::<DevMachine>().by_cluster(&key.namespace, &key.name);
    machines.iter().map(|machine| key_of(&machine.metadata)).collect()
}
