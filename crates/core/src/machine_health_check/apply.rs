//! Carries out the plan of a MachineHealthCheck: the only file of it that writes.

use std::sync::Arc;

use serde_json::json;
use windlass_api::core::Machine;
use windlass_api::meta::MetaExt as _;
use windlass_conditions::Builder;
use windlass_kit::{Cx, EventType, ReconcileError, Seen};

use crate::machine_health_check::observed::{Observed, Target};
use crate::machine_health_check::plan::{Action, Plan, Saying};
use crate::shared::keys::{conditions, managers};
use crate::shared::machines::conditions_of;

/// What came of a plan.
#[derive(Clone, Debug, Default)]
pub struct Done {
    /// What failed; nothing was tried after it.
    pub failed: Option<ReconcileError>,
}

pub(super) async fn apply(cx: &Cx, seen: &Observed, plan: &Plan) -> Done {
    for action in &plan.actions {
        if let Err(error) = carry_out(cx, seen, action).await {
            return Done { failed: Some(error) };
        }
    }
    Done::default()
}

fn target<'a>(seen: &'a Observed, machine: &str) -> Option<&'a Target> {
    seen.targets
        .iter()
        .find(|target| target.machine.metadata.name() == machine)
}

async fn carry_out(cx: &Cx, seen: &Observed, action: &Action) -> Result<(), ReconcileError> {
    let writer = cx.writer();
    match action {
        Action::ApplySelf(patch) => {
            writer.apply_value(managers::MACHINE_HEALTH_CHECK, patch).await?;
        }
        Action::Say(saying) => {
            if let Some(target) = target(seen, &saying.machine) {
                say(cx, &target.machine, saying).await?;
            }
        }
        Action::Request { machine, object } => {
            writer.apply_value(managers::MACHINE_HEALTH_CHECK, object).await?;
            tracing::info!(machine, "asked for external remediation");
        }
        Action::Withdraw { machine } => {
            if let Some(Some(Seen::Found(request))) = target(seen, machine).map(|target| &target.request) {
                writer.delete_value(request).await?;
            }
        }
        Action::Restricted(why) => {
            cx.event(&*seen.check, EventType::Warning, "RemediationRestricted", why.as_str());
        }
    }
    Ok(())
}

async fn say(cx: &Cx, machine: &Arc<Machine>, saying: &Saying) -> Result<(), ReconcileError> {
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
        .apply_status(managers::MACHINE_HEALTH_CHECK, &**machine, status)
        .await?;
    if saying.is_news {
        let message = format!(
            "Machine {} has been marked as unhealthy: {}",
            machine.metadata.name(),
            saying.health.message
        );
        cx.event(&**machine, EventType::Normal, "MachineMarkedUnhealthy", message);
    }
    Ok(())
}

impl windlass_kit::Done for Done {
    fn failed(&self) -> Option<&windlass_kit::ReconcileError> {
        self.failed.as_ref()
    }
}
