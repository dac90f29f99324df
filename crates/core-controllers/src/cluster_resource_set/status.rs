//! The status of a ClusterResourceSet: pure.

use jiff::Timestamp;
use windlass_api::addons::conditions::RESOURCES_APPLIED;
use windlass_api::addons::reasons;
use windlass_api::addons::{
    ClusterResourceSetDeprecatedStatus, ClusterResourceSetStatus, ClusterResourceSetV1Beta1DeprecatedStatus,
};
use windlass_api::kind::Conditioned as _;
use windlass_conditions::{Builder, Draft};

use super::apply::Done;
use super::observed::Observed;
use super::plan::{Plan, Problem};
use crate::shared::legacy::{Legacy, LegacyConditions};

/// Problems that are listed.
const MOST_PROBLEMS: usize = 5;
/// Bytes of a message.
const MOST_MESSAGE: usize = 12_000;

/// Reasons, the most important first.
const BY_WEIGHT: [&str; 3] = [
    reasons::WRONG_SECRET_TYPE,
    reasons::INTERNAL_ERROR,
    reasons::NOT_APPLIED,
];

/// The status to be applied. Without a Cluster there is nothing to say of resources.
pub(super) fn status(seen: &Observed, plan: &Plan, done: &Done, now: Timestamp) -> ClusterResourceSetStatus {
    let set = &seen.set;
    let generation = set.metadata.generation;
    let before = set.status.as_ref().and_then(|status| status.deprecated.as_ref());
    let before = before
        .and_then(|deprecated| deprecated.v1beta1.as_ref())
        .map_or(&[][..], |old| &old.conditions);
    let mut all = Builder::new(set.conditions(), generation, now);
    let mut legacy = LegacyConditions::new(before, now);
    let problems: Vec<&Problem> = plan.problems.iter().chain(&done.problems).collect();
    let weight = |problem: &&&Problem| BY_WEIGHT.iter().position(|reason| *reason == problem.reason);
    let has_clusters = seen.chosen.as_ref().is_ok_and(|chosen| !chosen.is_empty());
    match problems.iter().min_by_key(weight) {
        Some(worst) => {
            all.set(RESOURCES_APPLIED, Draft::no(worst.reason, bounded(told(&problems))));
            legacy.set(RESOURCES_APPLIED, &worst.legacy);
        }
        None if has_clusters => {
            all.set(RESOURCES_APPLIED, Draft::yes(reasons::APPLIED, ""));
            legacy.set(RESOURCES_APPLIED, &Legacy::Good);
        }
        None => {}
    }
    let conditions = legacy.done();
    let deprecated = (!conditions.is_empty()).then_some(ClusterResourceSetDeprecatedStatus {
        v1beta1: Some(ClusterResourceSetV1Beta1DeprecatedStatus { conditions }),
    });
    ClusterResourceSetStatus {
        conditions: all.done(),
        deprecated,
        observed_generation: generation,
    }
}

fn told(problems: &[&Problem]) -> String {
    if let [only] = problems {
        return only.message.clone();
    }
    let told = problems.iter().take(MOST_PROBLEMS);
    let mut lines: Vec<String> = told.map(|problem| format!("* {}", problem.message)).collect();
    let rest = problems.len().saturating_sub(MOST_PROBLEMS);
    if rest > 0 {
        lines.push(format!("And {rest} more"));
    }
    lines.join("\n")
}

/// A longer message would make the status invalid.
fn bounded(mut message: String) -> String {
    if message.len() > MOST_MESSAGE {
        let end = (0..=MOST_MESSAGE).rev().find(|end| message.is_char_boundary(*end));
        message.truncate(end.unwrap_or_default());
        message.push_str(" ...");
    }
    message
}
