//! The status of a declared provider, computed from what was known, decided and done.

use serde_json::{Value, json};
use windlass_api_operator::{Api, BuiltIn, conditions as types, reasons as known};
use windlass_conditions::{self as conditions, Draft, Status};
use windlass_controller_runtime::{ReconcileError, Timestamp};

use super::blocked::{Blocked, Stage};
use super::facts::Facts;
use super::plan::Plan;
use crate::health::Health;
use crate::kept::{Kept, Release};
use crate::names::reasons;
use crate::objects::Running;

/// What was done.
#[derive(Clone, Debug, Default)]
pub(super) struct Done {
    /// What is kept now.
    pub(super) kept: Kept,
    /// The actions that failed; what depends on them was not tried.
    pub(super) failed: Option<ReconcileError>,
    /// The same, or what an action found, as an obstacle. It replaces that of the plan.
    pub(super) problem: Option<Blocked>,
    /// The generation of the declaration after the operator wrote to it.
    pub(super) generation: Option<i64>,
    /// Whether the declaration was let go.
    pub(super) released: bool,
    /// The Deployments as they are now.
    pub(super) running: Vec<(String, Option<Running>)>,
    /// Whether watches were started for everything that the declaration waits for.
    pub(super) watches_started: bool,
}

/// The whole status.
pub(super) fn status(facts: &Facts, plan: &Plan, done: &Done, now: Timestamp) -> Option<Value> {
    if done.released {
        return None;
    }
    let generation = done.generation.unwrap_or(facts.generation);
    let problem = done.problem.as_ref().or(plan.blocked.as_ref());
    let current = done.kept.current.as_ref();
    let built_in = facts.built_in();
    let mut all = facts.conditions.clone();
    // Those that are set below have to be among them, as they keep their times. What is built in is never upgraded.
    all.retain(|condition| is_present(&condition.type_));
    all.retain(|condition| built_in.is_none() || condition.type_ != types::PROVIDER_UPGRADED);
    let mut set = |type_: &str, draft: Draft| {
        let condition = draft.stamp(type_, &all, Some(generation), now);
        conditions::set(&mut all, condition);
    };
    set(types::PREFLIGHT_CHECK_PASSED, preflight(problem));
    if let Some(built_in) = built_in {
        set(types::PROVIDER_INSTALLED, built_in_draft(built_in, problem, plan));
        set(types::READY, built_in_draft(built_in, problem, &Plan::default()));
    } else {
        set(types::PROVIDER_INSTALLED, installed(current, problem, plan));
        if let Some(finding) = upgraded(facts, current, problem) {
            set(types::PROVIDER_UPGRADED, finding);
        }
        set(types::READY, ready(current, problem, done));
    }
    if facts.me.deleting {
        set(types::DELETING, deleting(problem));
    }
    let mut status = json!({ "observedGeneration": generation, "conditions": all });
    if let Some(built_in) = built_in {
        // It is there, also when this declaration asks for another version of it.
        if facts.me.key.name == built_in.name {
            status["contract"] = json!(built_in.contract);
            if facts.me.api == Api::V1Alpha2 {
                status["installedVersion"] = json!(built_in.version);
            }
        }
    } else if let Some(current) = current {
        status["contract"] = json!(current.contract);
        if facts.me.api == Api::V1Alpha2 {
            status["installedVersion"] = json!(current.version);
        }
    } else if !done.kept.strange.is_empty() || done.kept.next.is_some() {
        // What was installed is still there, or the next release is taking its place.
        if let Some(contract) = &facts.me.contract {
            status["contract"] = json!(contract);
        }
        if let (Api::V1Alpha2, Some(version)) = (facts.me.api, &facts.version) {
            status["installedVersion"] = json!(version);
        }
    }
    Some(status)
}

fn is_present(type_: &str) -> bool {
    let known = [
        types::PREFLIGHT_CHECK_PASSED,
        types::PROVIDER_INSTALLED,
        types::PROVIDER_UPGRADED,
        types::READY,
        types::DELETING,
    ];
    known.contains(&type_)
}

/// Whether a status is stored already, with the condition Paused and nothing else beside it. The driver's writer skips a status only when
/// it remembers having written it; without this, a new process would write every status once.
pub(super) fn is_stored(stored: &Value, status: &Value, paused: bool) -> bool {
    let mut stored = stored.clone();
    let Some(conditions) = stored["conditions"].as_array_mut() else {
        return false;
    };
    let expect = if paused { "True" } else { "False" };
    let before = conditions.len();
    conditions.retain(|condition| condition["type"] != PAUSED || condition["status"] != expect);
    let mut desired = status.clone();
    for conditions in [&mut stored, &mut desired] {
        if let Some(conditions) = conditions["conditions"].as_array_mut() {
            conditions.sort_by_key(|condition| condition["type"].to_string());
        }
    }
    stored["conditions"].as_array().map_or(0, Vec::len) + 1 == before && stored == desired
}

/// The condition that the driver keeps.
const PAUSED: &str = "Paused";

/// What is built in is installed and ready, unless it is declared as something else.
fn built_in_draft(built_in: &BuiltIn, problem: Option<&Blocked>, plan: &Plan) -> Draft {
    if let Some(problem) = problem {
        return refusal(problem);
    }
    let mut message = format!(
        "Windlass has this provider built in, as version {}; nothing is installed",
        built_in.version
    );
    for note in plan.notes.iter().filter(|note| note.event.is_none()) {
        message.push_str("; ");
        message.push_str(&note.message);
    }
    Draft::new(Status::True, reasons::BUILT_IN, message)
}

fn refusal(problem: &Blocked) -> Draft {
    Draft::no(problem.reason, problem.message.as_str())
}

fn preflight(problem: Option<&Blocked>) -> Draft {
    match problem {
        Some(problem) if problem.stage == Stage::Preflight => refusal(problem),
        _ => Draft::new(Status::True, reasons::PASSED, ""),
    }
}

fn installed(current: Option<&Release>, problem: Option<&Blocked>, plan: &Plan) -> Draft {
    match (current, problem) {
        (Some(current), _) => {
            let mut message = format!("version {} is installed", current.version);
            let notes = plan.notes.iter().filter(|note| note.event.is_none());
            for note in current.notes.iter().chain(notes.map(|note| &note.message)) {
                message.push_str("; ");
                message.push_str(note);
            }
            Draft::new(Status::True, reasons::INSTALLED, message)
        }
        (None, Some(problem)) => refusal(problem),
        (None, None) => Draft::new(Status::False, reasons::NOT_INSTALLED, "nothing is installed"),
    }
}

/// Only there once something was to be replaced.
fn upgraded(facts: &Facts, current: Option<&Release>, problem: Option<&Blocked>) -> Option<Draft> {
    let current = current?;
    if let Some(problem) = problem.filter(|problem| matches!(problem.stage, Stage::Preflight | Stage::Install)) {
        return Some(refusal(problem));
    }
    if let Some(failure) = &current.failure {
        return Some(Draft::new(
            Status::False,
            known::COMPONENTS_UPGRADE_ERROR,
            failure.message.as_str(),
        ));
    }
    let was_there = conditions::get(&facts.conditions, types::PROVIDER_UPGRADED).is_some();
    // What is kept says it, not what this reconcile did: its status may never be written, when another one follows closely.
    (was_there || current.replaces).then(|| {
        let message = format!("version {} is installed", current.version);
        Draft::new(Status::True, reasons::UPGRADED, message)
    })
}

fn ready(current: Option<&Release>, problem: Option<&Blocked>, done: &Done) -> Draft {
    let Some(current) = current else {
        return match problem {
            Some(problem) => refusal(problem),
            None => Draft::new(Status::False, reasons::NOT_INSTALLED, "nothing is installed"),
        };
    };
    if let Some(problem) = problem.filter(|problem| problem.stage == Stage::Unpause) {
        return refusal(problem);
    }
    if current.paused {
        let message = "the provider is paused: its Deployments have no replicas";
        return Draft::new(Status::False, reasons::PAUSED, message);
    }
    let health = Health::of(&done.running);
    Draft::new(health.status, health.reason, health.message)
}

fn deleting(problem: Option<&Blocked>) -> Draft {
    match problem {
        Some(problem) => Draft::new(Status::True, problem.reason, problem.message.as_str()),
        None => Draft::new(Status::True, reasons::REMOVING, "the provider is being removed"),
    }
}

impl windlass_controller_runtime::Done for Done {
    fn failed(&self) -> Option<&ReconcileError> {
        self.failed.as_ref()
    }
}

#[cfg(test)]
mod tests;
