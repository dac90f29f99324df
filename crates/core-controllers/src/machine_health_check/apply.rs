//! Carries out the plan of a MachineHealthCheck: the only file of it that writes.

use serde_json::{Value, json};
use windlass_api::meta::MetaExt as _;
use windlass_conditions::Builder;
use windlass_controller_runtime::{Cx, EventType, ReconcileError};

use crate::machine_health_check::plan::{Action, Plan, Saying};
use crate::shared::keys::{conditions, managers};
use crate::shared::machines::conditions_of;

/// What became of a plan.
#[derive(Clone, Debug, Default)]
pub struct Done {
    /// The first action that failed. No Machine waits for what fails for another one.
    pub failed: Option<ReconcileError>,
    /// Why a remediation request could not be made.
    pub request_failed: Option<String>,
}

pub(super) async fn apply(cx: &Cx, plan: &Plan) -> Done {
    let mut done = Done::default();
    for action in &plan.actions {
        if let Err(error) = carry_out(cx, action).await {
            if matches!(action, Action::Request { .. }) {
                done.request_failed.get_or_insert_with(|| error.to_string());
            }
            done.failed.get_or_insert(error);
        }
    }
    done
}

async fn carry_out(cx: &Cx, action: &Action) -> Result<(), ReconcileError> {
    let writer = cx.writer();
    match action {
        Action::ApplySelf(object) => {
            writer.apply_value(managers::MACHINE_HEALTH_CHECK, object).await?;
        }
        Action::Request { object, saying } => request(cx, object, saying).await?,
        Action::Say(saying) => say(cx, saying).await?,
        Action::Withdraw(request) => {
            writer.delete_value(request).await?;
        }
    }
    Ok(())
}

/// Makes a remediation request, and says on its Machine whether there is one.
async fn request(cx: &Cx, object: &Value, saying: &Saying) -> Result<(), ReconcileError> {
    let made = cx.writer().apply_value(managers::MACHINE_HEALTH_CHECK, object).await;
    let (saying, failed) = match made {
        Ok(_) => (saying.clone(), None),
        Err(error) => {
            let kind = object["kind"].as_str().unwrap_or_default();
            let why = format!("Could not create {kind}: {}", error.message());
            (saying.without_request(&why), Some(error))
        }
    };
    if !saying.is_said() {
        say(cx, &saying).await?;
    }
    failed.map_or(Ok(()), |error| Err(error.into()))
}

async fn say(cx: &Cx, saying: &Saying) -> Result<(), ReconcileError> {
    let machine = &*saying.machine;
    let mut all = Builder::new(conditions_of(machine), machine.metadata.generation, cx.now());
    all.set(conditions::HEALTH_CHECK_SUCCEEDED, saying.health.clone());
    let others = [
        (conditions::OWNER_REMEDIATED, &saying.owner_remediated),
        (conditions::EXTERNALLY_REMEDIATED, &saying.externally_remediated),
    ];
    for (type_, verdict) in others {
        if let Some(verdict) = verdict {
            all.set(type_, verdict.clone());
        }
    }
    let status = json!({ "conditions": all.done() });
    cx.writer()
        .apply_status(managers::MACHINE_HEALTH_CHECK, machine, status)
        .await?;
    if saying.is_news {
        let message = format!(
            "Machine {} has been marked as unhealthy: {}",
            machine.metadata.name(),
            saying.health.message
        );
        cx.event(machine, EventType::Normal, "MachineMarkedUnhealthy", message);
    }
    Ok(())
}

impl windlass_controller_runtime::Done for Done {
    fn failed(&self) -> Option<&windlass_controller_runtime::ReconcileError> {
        self.failed.as_ref()
    }
}
