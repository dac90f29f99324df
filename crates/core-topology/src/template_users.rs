//! Deletes the templates of a MachineDeployment or MachineSet of a topology with it, unless something else uses them.

mod apply;
mod facts;
mod observe;
mod plan;

use std::sync::Arc;

use serde_json::Value;
use windlass_api::core::{MachineDeployment, MachineSet, MachineSpec};
use windlass_api::finalizers;
use windlass_api::kind::Conditioned;
use windlass_controller_runtime::{Controller, Cx, Decision, Moment, NoQuestion, Object, Watch};

use apply::Done;
use observe::Observed;
use plan::Plan;

/// Field manager of the finalizers.
const MANAGER: &str = "capi-topology";
/// Reason of all failures of these controllers.
const FAILED: &str = "Cleanup";

/// A kind that makes Machines from templates.
pub(crate) trait TemplateUser: Object + Conditioned {
    /// The name of the controller.
    const NAME: &'static str;
    /// The field manager of a status. These controllers write none: the condition Paused is of the controllers of the core.
    const STATUS_MANAGER: &'static str;
    /// Keeps an object until its templates are deleted.
    const FINALIZER: &'static str;

    /// The spec of its Machines.
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

impl<K: TemplateUser> Controller for Templates<K> {
    type Kind = K;
    type Observed = Observed<K>;
    type Question = NoQuestion;
    type Plan = Plan;
    type Done = Done;

    const NAME: &'static str = K::NAME;
    const MANAGER: &'static str = MANAGER;
    const STATUS_MANAGER: &'static str = K::STATUS_MANAGER;
    // Only objects of a topology get it, so it is not the driver's to add.
    const FINALIZER: Option<&'static str> = None;
    // The controller of the kind in the core does.
    const SHOWS_PAUSED: bool = false;

    fn watches(&self) -> Vec<Watch> {
        vec![Watch::read::<MachineDeployment>(), Watch::read::<MachineSet>()]
    }

    async fn observe(&self, cx: &Cx, object: Arc<K>) -> Observed<K> {
        observe::observe(cx, object).await
    }

    fn plan(&self, seen: &Observed<K>, _: &Moment) -> Decision<Plan, NoQuestion> {
        let object = &seen.object;
        plan::plan(object.meta(), K::FINALIZER, object.machine(), &seen.deletion).into()
    }

    async fn apply(&self, cx: &Cx, seen: &Observed<K>, plan: &Plan) -> Done {
        apply::apply(cx, &*seen.object, plan).await
    }

    fn status(&self, _: &Observed<K>, _: &Plan, _: &Done, _: &Moment) -> Option<Value> {
        None
    }
}
