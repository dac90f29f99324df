//! The status of a MachineHealthCheck: pure.

use jiff::Timestamp;
use windlass_api::core::{
    MachineHealthCheck, MachineHealthCheckDeprecatedStatus, MachineHealthCheckStatus,
    MachineHealthCheckV1Beta1DeprecatedStatus,
};
use windlass_api::kind::Conditioned;
use windlass_conditions::{Builder, Draft};

use crate::machine_health_check::observed::Observed;
use crate::machine_health_check::plan::Plan;
use crate::shared::keys::conditions;
use crate::shared::legacy::{Legacy, LegacyConditions};
use crate::shared::numbers::len_i32;

/// The status as it is, with a condition RemediationAllowed that says why it cannot be told. All of it is applied: a field manager gives up
/// what it leaves out.
fn unknown(check: &MachineHealthCheck, verdict: &Draft, now: Timestamp) -> MachineHealthCheckStatus {
    let mut all = Builder::new(check.conditions(), check.metadata.generation, now);
    all.set(conditions::REMEDIATION_ALLOWED, verdict.clone());
    MachineHealthCheckStatus {
        conditions: all.done(),
        observed_generation: check.metadata.generation,
        ..check.status.clone().unwrap_or_default()
    }
}

/// The status to be applied; `None` when nothing is known.
pub(crate) fn status(seen: &Observed, plan: &Plan, now: Timestamp) -> Option<MachineHealthCheckStatus> {
    let check = &seen.check;
    if plan.blocked.is_some() {
        return Some(unknown(check, plan.unknown.as_ref()?, now));
    }
    let (verdict, old) = if plan.limit.allowed {
        (Draft::yes("RemediationAllowed", ""), Legacy::Good)
    } else {
        let why = plan.limit.why.as_str();
        (
            Draft::no("TooManyUnhealthy", why),
            Legacy::warning("TooManyUnhealthy", why),
        )
    };
    let mut all = Builder::new(check.conditions(), check.metadata.generation, now);
    all.set(conditions::REMEDIATION_ALLOWED, verdict);
    let before = check.status.as_ref().and_then(|status| status.deprecated.as_ref());
    let before = before
        .and_then(|deprecated| deprecated.v1beta1.as_ref())
        .map_or(&[][..], |old| &old.conditions);
    let mut legacy = LegacyConditions::new(before, now);
    legacy.set(conditions::REMEDIATION_ALLOWED, &old);
    Some(MachineHealthCheckStatus {
        expected_machines: Some(len_i32(plan.targets.len())),
        current_healthy: Some(plan.healthy),
        remediations_allowed: Some(if plan.limit.allowed { plan.limit.left } else { 0 }),
        targets: plan.targets.clone(),
        observed_generation: check.metadata.generation,
        conditions: all.done(),
        deprecated: Some(MachineHealthCheckDeprecatedStatus {
            v1beta1: Some(MachineHealthCheckV1Beta1DeprecatedStatus {
                conditions: legacy.done(),
            }),
        }),
    })
}
