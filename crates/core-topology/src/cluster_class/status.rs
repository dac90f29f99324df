//! The status of a class.

use jiff::Timestamp;
use serde_json::{Value, json};
use windlass_api::conditions::{REF_VERSIONS_UP_TO_DATE, VARIABLES_READY};
use windlass_api::core::V1Beta1Condition;
use windlass_api::kind::{ApiKind as _, Conditioned as _};
use windlass_api::reasons;
use windlass_conditions::legacy::{self, Severity};
use windlass_conditions::{Status, condition, set};

use super::observe::Observed;
use super::plan::Plan;

/// Reason when it is unknown whether references are up to date.
const UNKNOWN: &str = "InternalError";
/// Conditions of the previous API generation and their reasons, where these differ from today's.
const OLD_VARIABLES: &str = "VariablesReconciled";
const OLD_OUTDATED: &str = "OutdatedRefVersions";

pub(super) fn status(seen: &Observed, plan: &Plan, now: Timestamp) -> Option<Value> {
    if seen.class.is_deleting() {
        return None;
    }
    let generation = seen.class.metadata.generation;
    let (refs, reason, message) = if !plan.missing.is_empty() {
        (Status::Unknown, UNKNOWN, plan.missing.join("\n"))
    } else if plan.outdated.is_empty() {
        (Status::True, reasons::REF_VERSIONS_UP_TO_DATE, String::new())
    } else {
        (Status::False, reasons::REF_VERSIONS_NOT_UP_TO_DATE, plan.outdated())
    };
    let mut conditions = seen.class.conditions().to_vec();
    set(
        &mut conditions,
        condition(REF_VERSIONS_UP_TO_DATE, refs, reason, message, now, generation),
    );
    let (ready, reason) = if plan.variable_faults.is_empty() {
        (Status::True, reasons::VARIABLES_READY)
    } else {
        (Status::False, reasons::VARIABLE_DISCOVERY_FAILED)
    };
    let message = plan.variable_faults.join("; ");
    set(
        &mut conditions,
        condition(VARIABLES_READY, ready, reason, message, now, generation),
    );
    conditions.retain(|c| c.type_ == REF_VERSIONS_UP_TO_DATE || c.type_ == VARIABLES_READY);
    let mut out = json!({"conditions": conditions, "deprecated": {"v1beta1": {"conditions": old(seen, plan, now)}}});
    if !plan.variables.is_empty() {
        out["variables"] = plan.variables.clone().into();
    }
    // Only a pass that found everything has seen the class; the driver sees to those whose writes failed.
    let complete = plan.missing.is_empty() && plan.variable_faults.is_empty();
    let before = seen.class.status.as_ref().and_then(|s| s.observed_generation);
    let observed = if complete { generation } else { before };
    if let Some(observed) = observed.filter(|o| *o > 0) {
        out["observedGeneration"] = observed.into();
    }
    Some(out)
}

/// The conditions of the previous API generation, from the same facts.
fn old(seen: &Observed, plan: &Plan, now: Timestamp) -> Vec<V1Beta1Condition> {
    let block = seen.class.status.as_ref().and_then(|status| status.deprecated.as_ref());
    let mut list = block
        .and_then(|block| block.v1beta1.as_ref())
        .map_or_else(Vec::new, |old| old.conditions.clone());
    let refs = if !plan.missing.is_empty() {
        legacy::unknown(REF_VERSIONS_UP_TO_DATE, UNKNOWN, &plan.missing.join("\n"), now)
    } else if plan.outdated.is_empty() {
        legacy::truth(REF_VERSIONS_UP_TO_DATE, now)
    } else {
        let message = plan.outdated();
        legacy::falsehood(REF_VERSIONS_UP_TO_DATE, OLD_OUTDATED, Severity::Warning, &message, now)
    };
    let variables = if plan.variable_faults.is_empty() {
        legacy::truth(OLD_VARIABLES, now)
    } else {
        let message = plan.variable_faults.join("; ");
        legacy::falsehood(
            OLD_VARIABLES,
            reasons::VARIABLE_DISCOVERY_FAILED,
            Severity::Error,
            &message,
            now,
        )
    };
    list.retain(|condition| [&refs, &variables].iter().any(|new| new.type_ == condition.type_));
    legacy::set(&mut list, refs);
    legacy::set(&mut list, variables);
    list
}
