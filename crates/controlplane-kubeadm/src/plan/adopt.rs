//! Takes Machines over: those whose owner reference was lost or names a control plane that was there before, and those that users made.

use windlass_meta::KubernetesVersion;

use super::{Action, Plan, Step};
use crate::desired;
use crate::facts::{Control, CpMachine, Facts};

/// Becomes the controller of the Machines that can be taken over. Nothing else begins while a Machine of the control plane has another
/// controller or none: Cluster API refuses this mixed management, too.
pub(super) fn plan(facts: &Facts, plan: &mut Plan) -> Step {
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
    let mut step = Step::Rest;
    for machine in facts.machines.iter().filter(|machine| machine.control != Control::Ours) {
        step = Step::Ended;
        if !machine.is_named_after(control_plane)
            && let Err(why) = adoptable(facts, machine)
        {
            let why = format!(
                "Could not adopt Machine {}/{}: {why}",
                control_plane.namespace, machine.name
            );
            plan.warn("AdoptionFailed", why.as_str());
            plan.block(why);
            continue;
        }
        plan.note(format!("takes over Machine {}", machine.name));
        plan.push(Action::PatchMachine {
            name: machine.name.clone(),
            patch: desired::owned(control_plane, &machine.uid, &machine.resource_version, &machine.owners),
        });
    }
    step
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
