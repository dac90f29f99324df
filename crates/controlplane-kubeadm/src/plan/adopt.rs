//! Takes Machines over: those whose owner reference was lost or names a control plane that was there before, and those that users made.

use windlass_meta::KubernetesVersion;

use super::{Action, Plan, Step};
use crate::desired;
use crate::facts::{Control, CpMachine, Facts};
use crate::question::Question;

/// Becomes the controller of the Machines that can be taken over. Nothing else begins while a Machine of the control plane has another
/// controller or none: Cluster API refuses this mixed management, too.
pub(super) fn plan(facts: &Facts, plan: &mut Plan, question: &mut Question) -> Step {
    let control_plane = &facts.control_plane;
    if !facts.unowned.is_empty() {
        plan.block(format!(
            "KubeadmControlPlane {}/{}: control plane Machines {} belong to another controller; delete them or let them go",
            control_plane.namespace,
            control_plane.name,
            facts.unowned.join(", "),
        ));
        return Step::Ended;
    }
    let free = facts.machines.iter().filter(|machine| machine.control != Control::Ours);
    let (mut taken, of_users): (Vec<&CpMachine>, Vec<&CpMachine>) = free
        .map(|machine| &**machine)
        .partition(|machine| machine.is_named_after(control_plane));
    if taken.is_empty() && of_users.is_empty() {
        return Step::Rest;
    }
    let refused = refuse(facts, &of_users, plan);
    // All or none: a control plane that a user took together must not be split.
    if !refused {
        taken.extend(of_users);
    }
    if !taken.is_empty() && is_still_here(facts, plan, question) {
        taken.sort_by(|a, b| a.name.cmp(&b.name));
        for machine in taken {
            plan.note(format!("takes over Machine {}", machine.name));
            plan.push(Action::PatchMachine {
                name: machine.name.clone(),
                patch: desired::owned(control_plane, &machine.uid, &machine.resource_version, &machine.owners),
            });
        }
    }
    Step::Ended
}

/// Reports the Machines of users that cannot be adopted; true if there is one.
fn refuse(facts: &Facts, machines: &[&CpMachine], plan: &mut Plan) -> bool {
    let mut refused = false;
    for machine in machines {
        if let Err(why) = adoptable(facts, machine) {
            let why = format!(
                "Could not adopt Machine {}/{}: {why}",
                facts.control_plane.namespace, machine.name
            );
            plan.warn("AdoptionFailed", why.as_str());
            plan.block(why);
            refused = true;
        }
    }
    refused
}

/// Whether the API server still has the control plane. A cache may be late: the garbage collector has just let the Machines go when
/// the control plane was deleted without them.
fn is_still_here(facts: &Facts, plan: &mut Plan, question: &mut Question) -> bool {
    let control_plane = &facts.control_plane;
    let name = format!("KubeadmControlPlane {}/{}", control_plane.namespace, control_plane.name);
    match &facts.answers.deleted {
        None => question.deleted = true,
        Some(Ok(false)) => return true,
        Some(Ok(true)) => plan.block(format!("{name} has just been deleted: it takes no Machine over")),
        Some(Err(why)) => plan.block(format!("Failed to read {name} before it takes Machines over: {why}")),
    }
    false
}

/// Whether a Machine that a user made can become one of the control plane's.
fn adoptable(facts: &Facts, machine: &CpMachine) -> Result<(), String> {
    let control_plane = &facts.control_plane;
    if !facts.cluster.refers_here {
        return Err(format!(
            "spec.controlPlaneRef of Cluster {} does not name KubeadmControlPlane {}",
            facts.cluster.name, control_plane.name
        ));
    }
    let kind = machine.config_ref["kind"].as_str().unwrap_or_default();
    if kind != "KubeadmConfig" {
        return Err(format!(
            "spec.bootstrap.configRef has to be a KubeadmConfig, and its kind is \"{kind}\""
        ));
    }
    // As in Cluster API: users know the version of a Machine that names none.
    if machine.version.is_empty() {
        return Ok(());
    }
    let minor =
        |version: &str| KubernetesVersion::parse_tolerant(version).map(|version| (version.major(), version.minor()));
    let near = match (minor(&control_plane.version), minor(&machine.version)) {
        (Ok((major, minor)), Ok((other, of))) => major == other && minor.abs_diff(of) <= 1,
        _ => false,
    };
    if !near {
        return Err(format!(
            "its version \"{}\" is more than one minor version away from the control plane's \"{}\"",
            machine.version, control_plane.version
        ));
    }
    Ok(())
}
