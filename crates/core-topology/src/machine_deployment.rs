//! Deletes the templates of a MachineDeployment of a topology when it goes and nothing else uses them.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;
use windlass_api::Condition;
use windlass_api::core::{MachineDeployment, MachineSet, MachineSpec};
use windlass_api::finalizers::MACHINE_DEPLOYMENT_TOPOLOGY as FINALIZER;
use windlass_api::kind::{ApiKind as _, Conditioned as _};
use windlass_kit::{Controller, Cx, Outcome, Watch};

use crate::cleanup::{self, Done, Plan};

/// Reconciles the templates of MachineDeployments.
#[derive(Debug, Default)]
pub struct MachineDeploymentTemplates;

/// What was read.
#[derive(Debug)]
pub struct Observed {
    object: Arc<MachineDeployment>,
    /// Specs of everything else in the Cluster that is not being deleted and makes Machines.
    staying: Vec<MachineSpec>,
}

impl Controller for MachineDeploymentTemplates {
    type Kind = MachineDeployment;
    type Observed = Observed;
    type Plan = Plan;
    type Done = Done;

    const NAME: &'static str = "topology/machinedeployment";
    const MANAGER: &'static str = "capi-topology";
    const STATUS_MANAGER: &'static str = "capi-topology-machinedeployment-status";
    // Only objects of a topology get it, so it is not the driver's to add.
    const FINALIZER: Option<&'static str> = None;

    fn conditions(object: &MachineDeployment) -> &[Condition] {
        object.conditions()
    }

    fn watches(&self) -> Vec<Watch> {
        vec![Watch::read::<MachineDeployment>(), Watch::read::<MachineSet>()]
    }

    async fn observe(&self, cx: &Cx, object: Arc<MachineDeployment>) -> Observed {
        let staying = if object.is_deleting() {
            cleanup::users(cx, &object.metadata, &object.spec.cluster_name)
        } else {
            Vec::new()
        };
        Observed { object, staying }
    }

    fn plan(&self, seen: &Observed, _now: Timestamp) -> Plan {
        let going = &seen.object.spec.template.spec;
        cleanup::plan(&seen.object.metadata, FINALIZER, going, &seen.staying)
    }

    async fn apply(&self, cx: &Cx, seen: &Observed, plan: &Plan) -> Done {
        cleanup::apply(cx, &*seen.object, Self::MANAGER, FINALIZER, plan).await
    }

    fn status(&self, _: &Observed, _: &Plan, _: &Done, _: Timestamp) -> Option<Value> {
        None
    }

    fn outcome(&self, _: &Observed, _: &Plan, done: &Done) -> Outcome {
        done.outcome()
    }
}
