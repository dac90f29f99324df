//! Which Clusters go next, where a HelmChartProxy goes in steps. Pure, and without memory: where a rollout is follows from how many
//! Clusters have gone, so a restart, or a Cluster that comes or goes in between, changes nothing.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::json;
use windlass_api_ext::addons::{Rollout, RolloutSteps};
use windlass_schema::FieldError;

/// A Cluster that waits for its turn.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Waiting {
    /// Those whose API server does not answer yet go last: they would hold up all others.
    pub(crate) is_late: bool,
    /// The name.
    pub(crate) cluster: String,
}

/// How far a rollout is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Gone {
    /// How many Clusters are as they should be, or on their way there.
    pub(crate) started: usize,
    /// Whether all of these are ready.
    pub(crate) all_ready: bool,
}

/// The Clusters that may go now. `total` is how many there are altogether: percentages are of it.
pub(crate) fn next(steps: Option<&RolloutSteps>, total: usize, gone: Gone, mut waiting: Vec<Waiting>) -> Vec<String> {
    waiting.sort();
    let room = match steps.filter(|steps| steps.step_init.is_some()) {
        None => waiting.len(),
        Some(steps) => border(steps, total, gone).saturating_sub(gone.started),
    };
    waiting.truncate(room);
    waiting.into_iter().map(|one| one.cluster).collect()
}

/// How many Clusters may have gone altogether. A step that has begun is completed even if some are not ready. The next one waits for all.
fn border(steps: &RolloutSteps, total: usize, gone: Gone) -> usize {
    let number = |value: &Option<IntOrString>| value.as_ref().and_then(|value| resolve(value, total));
    let limit = number(&steps.step_limit).unwrap_or(total).max(1);
    let increment = number(&steps.step_increment).unwrap_or(0);
    let mut step = number(&steps.step_init).unwrap_or(total).clamp(1, limit);
    let mut border = step;
    while border < gone.started || (border == gone.started && gone.all_ready) {
        step = step.saturating_add(increment).min(limit);
        border = border.saturating_add(step);
    }
    border
}

/// The number that is meant; a percentage is rounded up. `None` when it is neither.
fn resolve(value: &IntOrString, total: usize) -> Option<usize> {
    match value {
        IntOrString::Int(number) => usize::try_from(*number).ok(),
        IntOrString::String(text) => {
            let percent: usize = text.strip_suffix('%')?.parse().ok()?;
            Some(percent.checked_mul(total)?.div_ceil(100))
        }
    }
}

/// What is wrong with the steps of a HelmChartProxy.
pub(crate) fn problems(rollout: Option<&Rollout>) -> Vec<FieldError> {
    let Some(rollout) = rollout else { return Vec::new() };
    let kinds = [("install", &rollout.install), ("upgrade", &rollout.upgrade)];
    let all = kinds
        .into_iter()
        .filter_map(|(kind, steps)| Some((kind, steps.as_ref()?)));
    all.flat_map(|(kind, steps)| of_kind(&format!("spec.rollout.{kind}"), steps))
        .collect()
}

fn of_kind(path: &str, steps: &RolloutSteps) -> Vec<FieldError> {
    let fields = [
        ("stepInit", &steps.step_init, 1),
        ("stepIncrement", &steps.step_increment, 0),
        ("stepLimit", &steps.step_limit, 1),
    ];
    let mut errors = Vec::new();
    for (field, value, least) in fields {
        let Some(value) = value else { continue };
        let meant = resolve(value, 100);
        let is_percentage_of_more = matches!(value, IntOrString::String(_)) && meant.is_some_and(|meant| meant > 100);
        if meant.is_none_or(|meant| meant < least) || is_percentage_of_more {
            let why = format!("expected a number from {least} on, or a percentage such as 25%");
            errors.push(FieldError::invalid(format!("{path}.{field}"), json!(value), why));
        }
    }
    if steps.step_init.is_none() && (steps.step_increment.is_some() || steps.step_limit.is_some()) {
        errors.push(FieldError::required(
            format!("{path}.stepInit"),
            "expected how many Clusters go first",
        ));
    }
    errors
}

#[cfg(test)]
mod tests;
