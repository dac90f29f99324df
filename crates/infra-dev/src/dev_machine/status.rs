//! The status of a DevMachine, from what was seen and decided: pure.

use jiff::Timestamp;
use windlass_api::Condition;
use windlass_api::conditions::READY;
use windlass_api::reasons as core_reasons;
use windlass_api_ext::infrastructure::{
    DevMachineDeprecatedStatus, DevMachineInitializationStatus, DevMachineStatus, DevMachineV1Beta1DeprecatedStatus,
};
use windlass_api_ext::{conditions as types, reasons};
use windlass_conditions::{self as conditions, Reasons, Status, Summary, condition};

use super::observe::Observed;
use super::plan::Plan;
use crate::legacy;

/// What became of a plan, as far as the status tells it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Report<'a> {
    /// The generation that our own write to the specification made.
    pub(crate) generation: Option<i64>,
    /// Why the API server of the machine did not start.
    pub(crate) not_serving: Option<&'a str>,
}

/// Computes the status.
pub(crate) fn status(seen: &Observed, plan: &Plan, report: Report<'_>, now: Timestamp) -> DevMachineStatus {
    let before = seen.machine.status.clone().unwrap_or_default();
    if seen.deleting() {
        return before;
    }
    let generation = report.generation.or(seen.machine.metadata.generation);
    let mut plan = plan.clone();
    if let Some(why) = report.not_serving {
        for stage in &mut plan.stages {
            if stage.type_ == types::API_SERVER_PROVISIONED {
                stage.waiting = Some(reasons::FAILED);
                why.clone_into(&mut stage.message);
            }
        }
    }
    let mut all: Vec<Condition> = before.conditions.clone();
    for stage in &plan.stages {
        let new = match stage.waiting {
            None => condition(stage.type_, Status::True, reasons::PROVISIONED, "", now, generation),
            Some(reason) => condition(
                stage.type_,
                Status::False,
                reason,
                stage.message.clone(),
                now,
                generation,
            ),
        };
        conditions::set(&mut all, new);
    }
    let stages: Vec<&str> = plan.stages.iter().map(|stage| stage.type_).collect();
    let rule = Summary {
        reasons: Reasons {
            issue: core_reasons::NOT_READY,
            unknown: core_reasons::READY_UNKNOWN,
            info: core_reasons::READY,
        },
        ..Summary::new(READY, &stages)
    };
    let summary = conditions::summary(&worded(&all), &rule, now, generation);
    conditions::set(&mut all, summary);
    all.retain(|condition| condition.type_ == READY || stages.contains(&condition.type_.as_str()));

    let old = before.deprecated.as_ref().and_then(|block| block.v1beta1.as_ref());
    let old = old.map_or(&[][..], |block| &block.conditions);
    // A part whose turn has not come has no old condition.
    let behind = [
        reasons::WAITING_FOR_VM_PROVISIONED,
        reasons::WAITING_FOR_NODE_PROVISIONED,
    ];
    let reported = all
        .iter()
        .filter(|condition| !behind.contains(&condition.reason.as_str()));
    let restated = reported.map(|condition| {
        let mut old_style = legacy::restated(condition, old, now);
        if condition.type_ == READY && condition.status != "True" {
            let done = plan.stages.iter().filter(|stage| stage.waiting.is_none()).count();
            old_style.reason = plan.stages.iter().find_map(|stage| stage.waiting).map(str::to_owned);
            old_style.message = Some(format!("{done} of {} completed", plan.stages.len()));
            if let Some(previous) = old.iter().find(|previous| previous.type_ == READY)
                && previous.reason == old_style.reason
                && previous.message == old_style.message
            {
                old_style.last_transition_time = previous.last_transition_time.clone();
            }
        }
        old_style
    });
    // The contract's signal is the virtual machine: what runs on it reports by conditions.
    let provisioned = before.initialization.as_ref().and_then(|done| done.provisioned) == Some(true)
        || all
            .iter()
            .any(|condition| condition.type_ == types::VM_PROVISIONED && condition.status == "True");
    DevMachineStatus {
        deprecated: Some(DevMachineDeprecatedStatus {
            v1beta1: Some(DevMachineV1Beta1DeprecatedStatus {
                conditions: legacy::sorted(restated.collect()),
            }),
        }),
        initialization: provisioned.then_some(DevMachineInitializationStatus {
            provisioned: Some(true),
        }),
        conditions: all,
        // The machine is where its Machine asks for.
        failure_domain: seen
            .owner
            .as_ref()
            .and_then(|owner| owner.spec.failure_domain.clone())
            .filter(|_| provisioned)
            .or(before.failure_domain),
        ..DevMachineStatus::default()
    }
}

/// A stage without a message is summed up by its reason.
fn worded(all: &[Condition]) -> Vec<Condition> {
    all.iter()
        .cloned()
        .map(|mut condition| {
            if condition.status != "True" && condition.message.is_empty() {
                condition.message.clone_from(&condition.reason);
            }
            condition
        })
        .collect()
}
