//! The status of a MachineHealthCheck: pure.

use jiff::Timestamp;
use windlass_api::core::{
    MachineHealthCheck, MachineHealthCheckDeprecatedStatus, MachineHealthCheckStatus,
    MachineHealthCheckV1Beta1DeprecatedStatus, V1Beta1Condition,
};
use windlass_api::kind::Conditioned;
use windlass_api::v1beta1::{conditions as types, reasons};
use windlass_conditions::{Builder, Draft};
use windlass_controller_runtime::Seen;

use crate::machine_health_check::apply::Done;
use crate::machine_health_check::observed::Observed;
use crate::machine_health_check::plan::{Action, Plan};
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

/// What the older generation says about external remediation: why it fails, and then that it does no more.
fn external(
    seen: &Observed,
    plan: &Plan,
    done: &Done,
    before: &[V1Beta1Condition],
) -> impl Iterator<Item = (&'static str, Legacy)> {
    let is_used = seen.request_template.is_some();
    let has_template = matches!(seen.request_template, Some(Seen::Found(_)));
    let requests = plan
        .actions
        .iter()
        .any(|action| matches!(action, Action::Request { .. }));
    let template = plan
        .no_template
        .as_ref()
        .map(|why| Legacy::error(reasons::EXTERNAL_REMEDIATION_TEMPLATE_NOT_FOUND, why.as_str()));
    let request = done
        .request_failed
        .as_ref()
        .map(|why| Legacy::error(reasons::EXTERNAL_REMEDIATION_REQUEST_CREATION_FAILED, why.as_str()));
    let said = |type_: &str| {
        before
            .iter()
            .find(|condition| condition.type_ == type_)
            .and_then(Legacy::read)
    };
    let states = [
        (types::EXTERNAL_REMEDIATION_TEMPLATE_AVAILABLE, template, has_template),
        (types::EXTERNAL_REMEDIATION_REQUEST_AVAILABLE, request, requests),
    ]
    .map(|(type_, failed, works)| {
        let state = failed.or_else(|| said(type_).map(|old| if works { Legacy::Good } else { old }));
        Some((type_, state?)).filter(|_| is_used)
    });
    states.into_iter().flatten()
}

/// The status to be applied; `None` when nothing is known.
pub(crate) fn status(seen: &Observed, plan: &Plan, done: &Done, now: Timestamp) -> Option<MachineHealthCheckStatus> {
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
    for (type_, state) in external(seen, plan, done, before) {
        legacy.set(type_, &state);
    }
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
