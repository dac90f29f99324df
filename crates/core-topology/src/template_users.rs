//! Deletes the templates of a MachineDeployment or MachineSet of a topology when it goes and nothing else uses them.

use std::sync::Arc;

use serde_json::Value;
use windlass_api::core::{MachineDeployment, MachineSet, MachineSpec};
use windlass_api::finalizers;
use windlass_api::kind::Conditioned;
use windlass_kit::{Controller, Cx, Decision, Moment, NoQuestion, Object, Watch};

use crate::cleanup::{self, Done, Plan};

/// A kind that makes Machines from templates.
pub(crate) trait TemplateUser: Object + Conditioned {
    /// The name of the controller.
    const NAME: &'static str;
    /// Who would write status.
    const STATUS_MANAGER: &'static str;
    /// Holds an object back until its templates are gone.
    const FINALIZER: &'static str;

    /// What its Machines are made of.
    fn machine(&self) -> &MachineSpec;
}

impl TemplateUser for MachineDeployment {
    const NAME: &'static str = "topology/machinedeployment";
    const STATUS_MANAGER: &'static str = "capi-topology-machinedeployment-status";
    const FINALIZER: &'static str = finalizers::MACHINE_DEPLOYMENT_TOPOLOGY;

    fn machine(&self) -> &MachineSpec {
        &self.spec.template.spec
    }
}

impl TemplateUser for MachineSet {
    const NAME: &'static str = "topology/machineset";
    const STATUS_MANAGER: &'static str = "capi-topology-machineset-status";
    const FINALIZER: &'static str = finalizers::MACHINE_SET_TOPOLOGY;

    fn machine(&self) -> &MachineSpec {
        &self.spec.template.spec
    }
}

/// Reconciles the templates of one kind.
#[derive(Debug)]
pub(crate) struct Templates<K>(std::marker::PhantomData<fn() -> K>);

impl<K> Default for Templates<K> {
    fn default() -> Self {
        Self(std::marker::PhantomData)
    }
}

/// What was read.
#[derive(Debug)]
pub(crate) struct Observed<K> {
    object: Arc<K>,
    /// Specs of everything else in the Cluster that is not being deleted and makes Machines.
    staying: Vec<MachineSpec>,
}

impl<K: TemplateUser> Controller for Templates<K> {
    type Kind = K;
    type Observed = Observed<K>;
    type Question = NoQuestion;
    type Plan = Plan;
    type Done = Done;

    const NAME: &'static str = K::NAME;
    const MANAGER: &'static str = "capi-topology";
    const STATUS_MANAGER: &'static str = K::STATUS_MANAGER;
    // Only objects of a topology get it, so it is not the driver's to add.
    const FINALIZER: Option<&'static str> = None;

    fn watches(&self) -> Vec<Watch> {
        vec![Watch::read::<MachineDeployment>(), Watch::read::<MachineSet>()]
    }

    async fn observe(&self, cx: &Cx, object: Arc<K>) -> Observed<K> {
        let staying = if object.meta().deletion_timestamp.is_some() {
            cleanup::users(cx, object.meta(), &object.machine().cluster_name)
        } else {
            Vec::new()
        };
        Observed { object, staying }
    }

    fn plan(&self, seen: &Observed<K>, _now: &Moment) -> Decision<Plan, NoQuestion> {
        cleanup::plan(seen.object.meta(), K::FINALIZER, seen.object.machine(), &seen.staying).into()
    }

    async fn apply(&self, cx: &Cx, seen: &Observed<K>, plan: &Plan) -> Done {
        cleanup::apply(cx, &*seen.object, Self::MANAGER, K::FINALIZER, plan).await
    }

    fn status(&self, _: &Observed<K>, _: &Plan, _: &Done, _: &Moment) -> Option<Value> {
        None
    }
}
