//! Replaces Machines that are not what is asked for, one at a time.

use windlass_meta::KubernetesVersion;

use super::{Action, Plan, Step, scale_down, scale_up};
use crate::desired;
use crate::facts::Facts;
use crate::health::Health;

/// The Machines to be replaced.
pub(super) fn outdated(health: &Health) -> Vec<&str> {
    let views = health.machines.iter();
    let outdated = views.filter(|v| !v.up_to_date.holds() && !v.facts.deleting());
    outdated.map(|v| v.facts.name.as_str()).collect()
}

/// Whether a Machine is to be replaced that has not joined: it may never do so, and nothing else can change before it is gone. The first
/// Machine may come up all the same, unless it has another version.
fn is_stuck(facts: &Facts, health: &Health) -> bool {
    let outdated = health.machines.iter().filter(|view| !view.up_to_date.holds());
    let mut joining = outdated
        .map(|view| &view.facts)
        .filter(|m| m.node.is_none() && !m.deleting());
    joining.any(|m| facts.initialized() || m.version != facts.control_plane.version)
}

pub(super) fn plan(facts: &Facts, health: &Health, plan: &mut Plan) -> Step {
    let outdated = outdated(health);
    if outdated.is_empty() {
        return Step::Rest;
    }
    let control_plane = &facts.control_plane;
    let most = control_plane.replicas.saturating_add(control_plane.max_surge);
    let most = usize::try_from(most).unwrap_or_default();
    if facts.machines.len() >= most || is_stuck(facts, health) {
        return scale_down::plan(facts, health, &outdated, "rollout", plan);
    }
    let before = plan.actions.len();
    scale_up::plan(facts, health, plan);
    if plan.actions.len() > before {
        // A Machine that joins reads kubeadm's configuration from the cluster: that has to be the new one first.
        let configuration = desired::kubeadm_spec(control_plane, true)["clusterConfiguration"].clone();
        let mut preparations = vec![Action::UpdateKubeadmConfig {
            configuration,
            version: control_plane.version.clone(),
        }];
        // Later versions of kubeadm make the role binding themselves.
        let version = KubernetesVersion::parse_tolerant(&control_plane.version);
        if version.is_ok_and(|v| !v.at_least_minor(1, 38)) {
            preparations.push(Action::EnsureRbac);
        }
        plan.actions.splice(before..before, preparations);
    }
    Step::Ended
}
