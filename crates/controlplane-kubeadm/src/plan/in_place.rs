//! Machines that are updated instead of replaced, if an extension can make every change. One at a time, and only where a Machine would be
//! deleted otherwise: the control plane bears its loss, should the update fail.

use serde_json::{Value, json};
use windlass_api::annotations::{PENDING_HOOKS, UPDATE_IN_PROGRESS};
use windlass_runtime_client::in_place::InPlace;
use windlass_runtime_client::marks;

use super::preflight::{self, Purpose};
use super::{Action, Plan, Step, scale_up};
use crate::desired;
use crate::facts::{CpMachine, Facts};
use crate::health::{Health, View};
use crate::names::{CLONED_FROM_NAME, DELETE_MACHINE, REMEDIATE_MACHINE};
use crate::question::Question;

/// An update of a Machine, in the order in which it is written.
#[derive(Clone, Debug, PartialEq)]
pub struct Update {
    /// Name of the Machine.
    pub name: String,
    /// A merge patch with the mark; absent when the Machine has it. From then on the update is decided.
    pub mark: Option<Value>,
    /// The infrastructure machine as it is to be. It comes first: a webhook may refuse it.
    pub infra: Value,
    /// The KubeadmConfig as it is to be.
    pub config: Value,
    /// The KubeadmConfig is that of the first Machine, which did not join: what it was made with goes.
    pub drops_init: bool,
    /// The Machine as it is to be.
    pub machine: Value,
    /// A merge patch with the hook. From then on the Machine's controller calls the extension.
    pub hook: Value,
}

/// What becomes of a Machine that is to be replaced.
pub(super) enum Instead {
    /// It is replaced.
    Replace,
    /// Something else is done, or waited for.
    Ended,
}

/// Goes on with an update that was decided and has not begun.
pub(super) fn begin(facts: &Facts, plan: &mut Plan) -> Step {
    let decided = facts.machines.iter().find(|m| m.is_to_be_updated() && !m.deleting());
    let Some(machine) = decided else {
        return Step::Rest;
    };
    start(facts, machine, plan);
    Step::Ended
}

/// Waits while a Machine is updated.
pub(super) fn wait(facts: &Facts, plan: &mut Plan) -> Step {
    let updating = facts.machines.iter().find(|m| m.is_updating() && !m.deleting());
    let Some(machine) = updating else {
        return Step::Rest;
    };
    plan.note(format!(
        "Machines wait for the in-place update of Machine {}",
        machine.name
    ));
    Step::Ended
}

/// Updates a Machine that would be deleted otherwise, if that is possible.
pub(super) fn instead(
    facts: &Facts,
    health: &Health,
    view: &View,
    plan: &mut Plan,
    question: &mut Question,
) -> Instead {
    let machine = &view.facts;
    let current = health.machines.iter().filter(|view| view.up_to_date.holds()).count();
    let wanted = usize::try_from(facts.control_plane.replicas).unwrap_or_default();
    let is_asked_away = [DELETE_MACHINE, REMEDIATE_MACHINE]
        .iter()
        .any(|key| machine.annotations.contains_key(*key));
    let is_gone = machine.config.is_not_found() || machine.infra.is_not_found();
    if !view.up_to_date.in_place || is_asked_away || machine.deleting() || is_gone || current >= wanted {
        return Instead::Replace;
    }
    // An infrastructure machine that was not made from a template is the work of a user, and would become another one.
    let is_cloned = |infra: &Value| infra["metadata"]["annotations"][CLONED_FROM_NAME].is_string();
    if machine.infra.found().is_some_and(|infra| !is_cloned(infra)) {
        return Instead::Replace;
    }
    // A Machine with issues of its own is replaced: it is not known whether an update would end them.
    if !preflight::passes(facts, health, Purpose::Update, &mut Plan::default()) {
        return Instead::Replace;
    }
    match &facts.answers.in_place {
        None => {
            question.in_place = Some(machine.name.clone());
            Instead::Ended
        }
        Some(InPlace::Possible) => {
            if facts.initialized() {
                plan.actions.extend(scale_up::preparations(facts));
            }
            start(facts, machine, plan);
            Instead::Ended
        }
        Some(InPlace::Impossible(why)) => {
            plan.note(format!("Machine {} is replaced: {why}", machine.name));
            Instead::Replace
        }
        Some(InPlace::Unknown(why)) => {
            let name = &machine.name;
            let why = format!("it cannot be told whether Machine {name} can be updated in place: {why}");
            plan.blockers.undecided = Some(why.clone());
            plan.block(why);
            Instead::Ended
        }
    }
}

fn start(facts: &Facts, machine: &CpMachine, plan: &mut Plan) {
    match update(facts, machine) {
        Ok(update) => {
            plan.note(format!("the update of Machine {} in place begins", machine.name));
            plan.push(Action::BeginUpdate(Box::new(update)));
        }
        Err(why) => {
            plan.block(format!(
                "the update of Machine {} in place cannot begin: {why}",
                machine.name
            ));
        }
    }
}

/// Everything that is written for an update.
fn update(facts: &Facts, machine: &CpMachine) -> Result<Update, String> {
    let annotated = |annotations: Value| json!({ "metadata": { "uid": machine.uid, "annotations": annotations } });
    let (Some(have_infra), Some(have_config)) = (machine.infra.found(), machine.config.found()) else {
        let missing = machine.infra.failure().or(machine.config.failure());
        return Err(missing.map_or_else(|| "what it refers to does not exist".to_owned(), str::to_owned));
    };
    let marked = |mut object: Value, have: &Value| {
        let metadata = &mut object["metadata"];
        metadata["name"] = have["metadata"]["name"].clone();
        metadata["uid"] = have["metadata"]["uid"].clone();
        metadata["ownerReferences"] = json!([desired::machine_owner(&machine.name, &machine.uid)]);
        metadata["annotations"][UPDATE_IN_PROGRESS] = json!("");
        object
    };
    let hook = marks::with_hook(Some(&machine.annotations));
    Ok(Update {
        name: machine.name.clone(),
        mark: (!machine.is_updating()).then(|| annotated(json!({ (UPDATE_IN_PROGRESS): "" }))),
        infra: marked(infra(facts, machine)?, have_infra),
        config: marked(desired::kubeadm_config(facts, &machine.name, true), have_config),
        drops_init: !have_config["spec"]["initConfiguration"].is_null(),
        machine: desired::updated_machine(facts, machine),
        hook: annotated(json!({ (PENDING_HOOKS): hook })),
    })
}

/// The infrastructure machine as the template wants it. An error when the template is not there or cannot be read.
fn infra(facts: &Facts, machine: &CpMachine) -> Result<Value, String> {
    let infra = desired::infra_machine(facts, &machine.name)?;
    match other_kind(&infra, machine) {
        Some(why) => Err(why),
        None => Ok(infra),
    }
}

/// That an infrastructure machine would have to become one of another kind.
pub(crate) fn other_kind(wanted: &Value, machine: &CpMachine) -> Option<String> {
    let kind = wanted["kind"].as_str().unwrap_or_default();
    let have = machine.infra_kind();
    (kind != have).then(|| format!("{have} {} cannot become a {kind}", machine.name))
}
