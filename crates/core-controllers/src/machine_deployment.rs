//! The MachineDeployment controller: rolls Machines from one template to the next.
//!
//! Watches MachineDeployments, their MachineSets and Machines, the Cluster and the templates. Writes MachineSets (whole, by
//! server-side apply), its own owner, revision and status.
//!
//! - How many replicas each set gets is pure arithmetic (`plan_rollout`), with a simulation behind it.
//! - Machines are updated in place instead of replaced when an extension can make every change (`in_place`).
//! - What decides about replacing Machines is in `shared::templates`; everything else of the template goes in place.

mod apply;
mod desired;
mod in_place;
mod observe;
mod observed;
mod plan;
mod plan_rollout;
pub mod preview;
pub(crate) mod settings;
mod status;
mod watches;

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use windlass_api::core::MachineDeployment;
use windlass_api::meta::MetaExt as _;
use windlass_controller_runtime::{Controller, ControllerEntry, Cx, Decision, Moment, ObjectKey, Part as _, Watch};
use windlass_runtime_client::Extensions;

pub(crate) use desired::revision;
pub use in_place::Question;
pub use observed::Observed;
pub use plan::{Action, Plan};
pub use status::Done;

use crate::shared::keys::{finalizers, managers};

/// The MachineDeployment controller.
#[derive(Debug)]
struct MachineDeploymentController {
    extensions: Extensions,
}

/// The controller, ready to be run. `extensions` are asked whether Machines can be updated in place.
pub fn entry(extensions: Extensions) -> ControllerEntry {
    ControllerEntry::of(MachineDeploymentController { extensions })
}

impl Controller for MachineDeploymentController {
    type Kind = MachineDeployment;
    type Observed = Observed;
    type Question = Question;
    type Plan = Plan;
    type Done = Done;

    const NAME: &'static str = "machinedeployment";
    const MANAGER: &'static str = managers::MACHINE_DEPLOYMENT;
    const STATUS_MANAGER: &'static str = "capi-machinedeployment-status";
    const FINALIZER: Option<&'static str> = Some(finalizers::MACHINE_DEPLOYMENT);
    const STATUS_PACE: Duration = Duration::from_millis(300);

    fn cluster_of(object: &MachineDeployment) -> Option<ObjectKey> {
        Some(ObjectKey::new(
            object.metadata.namespace(),
            object.spec.cluster_name.as_str(),
        ))
    }

    fn watches(&self) -> Vec<Watch> {
        watches::watches()
    }

    async fn observe(&self, cx: &Cx, object: Arc<MachineDeployment>) -> Observed {
        observe::observe(cx, object).await
    }

    async fn answer(&self, cx: &Cx, seen: Observed, question: Question) -> Observed {
        in_place::ask(cx, &self.extensions, seen, question).await
    }

    fn plan(&self, seen: &Observed, now: &Moment) -> Decision<Plan, Question> {
        plan::plan(seen, now)
    }

    async fn apply(&self, cx: &Cx, seen: &Observed, plan: &Plan) -> Done {
        apply::apply(cx, seen, plan).await
    }

    fn status(&self, seen: &Observed, plan: &Plan, done: &Done, now: &Moment) -> Option<Value> {
        let released = plan.actions.contains(&Action::RemoveFinalizer) && done.failed.is_none();
        if released || seen.awaits_replicas() {
            return None;
        }
        Some(status::status(seen, plan, now).to_json())
    }
}
