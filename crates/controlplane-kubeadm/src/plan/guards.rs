//! What a specification cannot ask of a control plane. Admission may not have refused it, so that nothing is begun while it is asked: no
//! Machine is created, replaced or deleted. What has begun is finished.

use windlass_meta::KubernetesVersion;

use super::{Plan, Step, remediate};
use crate::facts::Facts;
use crate::health::Health;

/// Ends the plan while the specification asks for what cannot be.
pub(super) fn plan(facts: &Facts, health: &Health, plan: &mut Plan) -> Step {
    let refused = refused(facts);
    if refused.is_empty() {
        return Step::Rest;
    }
    let control_plane = &facts.control_plane;
    let why = format!(
        "KubeadmControlPlane {}/{} is left as it is: {}",
        control_plane.namespace,
        control_plane.name,
        refused.join("; ")
    );
    remediate::defer(health, &why, plan);
    plan.warn("InvalidSpec", why.as_str());
    plan.block(why);
    plan.blockers.refused = refused;
    Step::Ended
}

/// The fields that cannot be followed, each with the reason and the remedy.
fn refused(facts: &Facts) -> Vec<String> {
    let rules = [replicas(facts), surge(facts), version(facts), etcd(facts)];
    rules.into_iter().flatten().collect()
}

fn replicas(facts: &Facts) -> Option<String> {
    let replicas = facts.control_plane.replicas;
    if replicas <= 0 {
        return Some(format!(
            "spec.replicas is {replicas}, but a control plane has at least one Machine: set it to 1 or more, or delete the \
             KubeadmControlPlane"
        ));
    }
    let is_even = facts.control_plane.managed_etcd && replicas % 2 == 0;
    is_even.then(|| {
        format!(
            "spec.replicas is {replicas}, but etcd on the Machines needs an odd number: set it to {} or {}",
            replicas - 1,
            replicas.saturating_add(1)
        )
    })
}

fn surge(facts: &Facts) -> Option<String> {
    const FIELD: &str = "spec.rollout.strategy.rollingUpdate.maxSurge";
    match facts.control_plane.max_surge {
        1 => None,
        0 if facts.control_plane.replicas >= 3 => None,
        0 => Some(format!(
            "{FIELD} is 0, which needs 3 replicas: set it to 1, or spec.replicas to 3 or more"
        )),
        other => Some(format!("{FIELD} is {other}: set it to 0 or 1")),
    }
}

/// kubeadm upgrades by one minor version, and never goes back one.
fn version(facts: &Facts) -> Option<String> {
    let wanted = &facts.control_plane.version;
    // As it was written: only numbers get a `v` put before them.
    let word = wanted
        .strip_prefix('v')
        .filter(|word| !word.starts_with(|c: char| c.is_ascii_digit()));
    let target: KubernetesVersion = match word.unwrap_or(wanted).parse() {
        Ok(version) => version,
        Err(error) => return Some(format!("spec.version: {error}; correct it")),
    };
    // What did not join runs nothing, and may be there because of a version that was corrected since.
    let joined = facts.machines.iter().filter(|m| m.node.is_some() && !m.deleting());
    let versions = joined.filter_map(|m| KubernetesVersion::parse_tolerant(&m.version).ok());
    let lowest = versions.min()?;
    let (target, from) = ((target.major(), target.minor()), (lowest.major(), lowest.minor()));
    if target < from {
        return Some(format!(
            "spec.version is {wanted}, older than {lowest} of the Machines, and kubeadm does not go back: set it to a v{}.{} version",
            from.0, from.1
        ));
    }
    (target > (from.0, from.1 + 1)).then(|| {
        format!(
            "spec.version is {wanted}, but a Machine is at {lowest} and kubeadm upgrades by one minor version: set it to a v{}.{} version \
             first",
            from.0,
            from.1 + 1
        )
    })
}

fn etcd(facts: &Facts) -> Option<String> {
    const FIELD: &str = "spec.kubeadmConfigSpec.clusterConfiguration.etcd.external";
    let control_plane = &facts.control_plane;
    if !control_plane.etcd_switched {
        return None;
    }
    Some(if control_plane.managed_etcd {
        format!("{FIELD} is set, but the members of etcd run on the Machines: remove it, or create a new cluster")
    } else {
        format!("{FIELD} is not set, but the Machines use an external etcd: set it again, or create a new cluster")
    })
}
