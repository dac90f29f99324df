//! One more Machine, which runs `kubeadm join`.

use std::collections::BTreeMap;

use windlass_meta::KubernetesVersion;

use super::preflight::{self, Purpose};
use super::{Action, NewMachine, Plan, Step, WorkloadChange};
use crate::desired;
use crate::facts::Facts;
use crate::health::{Health, View};
use crate::rotation::Rotation;

pub(super) fn plan(facts: &Facts, health: &Health, plan: &mut Plan) -> Step {
    if preflight::passes(facts, health, Purpose::ScaleUp, plan) {
        create(facts, &health.machines, true, plan);
    }
    Step::Ended
}

/// Plans a new Machine with all that belongs to it.
pub(super) fn create(facts: &Facts, machines: &[View], join: bool, plan: &mut Plan) {
    let domain = next_domain(facts, machines);
    let new = desired::machine_name(facts).and_then(|name| {
        Ok(NewMachine {
            machine: Some(desired::machine(facts, &name, None, domain)),
            uid: None,
            config: Some(desired::kubeadm_config(facts, &name, join)),
            infra: Some(desired::infra_machine(facts, &name)?),
            name,
        })
    });
    match new {
        Ok(new) => {
            if join {
                plan.actions.extend(preparations(facts));
            }
            plan.push(Action::CreateMachine(Box::new(new)));
        }
        Err(error) => {
            let reason = if join { "FailedScaleUp" } else { "FailedInitialization" };
            plan.warn(reason, error.clone());
            plan.block(error);
        }
    }
}

/// What has to be in the cluster before a Machine joins, which reads kubeadm's configuration there. A change that was taken back may have
/// left its configuration.
pub(super) fn preparations(facts: &Facts) -> Vec<Action> {
    let control_plane = &facts.control_plane;
    let mut configuration = desired::kubeadm_spec(control_plane, true)["clusterConfiguration"].clone();
    if facts.rotation.as_ref().is_some_and(Rotation::trusts_both) {
        desired::sign_alone(&mut configuration);
    }
    let mut preparations = vec![Action::Workload(WorkloadChange::KubeadmConfig {
        configuration,
        version: control_plane.version.clone(),
    })];
    // Later versions of kubeadm make the role binding themselves.
    let version = KubernetesVersion::parse_tolerant(&control_plane.version);
    if version.is_ok_and(|v| !v.at_least_minor(1, 38)) {
        preparations.push(Action::Workload(WorkloadChange::Rbac {
            version: control_plane.version.clone(),
        }));
    }
    preparations
}

/// The failure domain with the fewest Machines, up-to-date ones counting first.
fn next_domain<'f>(facts: &'f Facts, machines: &[View]) -> Option<&'f str> {
    let mut counts: BTreeMap<&str, (usize, usize)> = facts
        .cluster
        .failure_domains
        .iter()
        .map(|d| (d.as_str(), (0, 0)))
        .collect();
    for view in machines {
        let domain = view.facts.failure_domain.as_deref();
        if let Some(count) = domain.and_then(|d| counts.get_mut(d)) {
            count.0 += usize::from(view.up_to_date.holds() && !view.facts.deleting());
            count.1 += 1;
        }
    }
    let fewest = counts.into_iter().min_by_key(|(_, count)| *count);
    fewest.map(|(domain, _)| domain)
}
