//! What a rotation waits for before a step that cannot be taken back.

use std::collections::BTreeSet;

use jiff::Timestamp;
use windlass_controller_runtime::Moment;
use windlass_meta::label_or_hash;
use windlass_pki::Purpose;
use windlass_pki::rotation::{ROTATION_HOLDS, blocks};

use super::{rotating, secret};
use crate::facts::{Facts, Kubeconfig};
use crate::finding::listed;
use crate::rotation::{Data, Rotation, Worker};

/// A Secret that was changed since its stage began: machines made of it would not be trusted.
pub(super) fn altered(facts: &Facts, rotation: &Rotation) -> Option<String> {
    let found = rotating(rotation).find_map(|one| Some((one, one.altered()?)));
    found.map(|(one, why)| {
        let stage = one.state.as_ref().map_or("", |state| state.stage.as_str());
        format!(
            "{} was changed in stage {stage} of the rotation: {why}; bring its content of before back, which control plane machines of this \
             stage have in their folder of certificates, or take {ROTATION_HOLDS} off where it is as it shall be",
            secret(facts, one)
        )
    })
}

/// Control plane Machines whose bootstrap data is still to come: it has to be made of the same authorities as the configuration in the cluster
/// that they join by.
pub(super) fn without_data(facts: &Facts, rotation: &Rotation) -> Option<String> {
    let is_without = |name: &str| matches!(rotation.machines.get(name), None | Some(Data::Coming));
    let machines = facts.machines.iter().filter(|machine| !machine.deleting());
    let names = machines.map(|machine| machine.name.as_str());
    let names: Vec<&str> = names.filter(|name| is_without(name)).collect();
    (!names.is_empty()).then(|| {
        format!(
            "Waiting for the bootstrap data of Machines {}, before the rotation is taken back; or delete them",
            listed(&names)
        )
    })
}

/// Why it is not known which workers joined before.
pub(super) fn unknown_workers(rotation: &Rotation) -> Option<String> {
    let ageless: Vec<&str> = rotation.ageless().map(|worker| worker.name.as_str()).collect();
    let machines = (!ageless.is_empty()).then(|| listed(&ageless))?;
    Some(match &rotation.unread {
        Some(why) => format!("When Machines {machines} joined is not known, as their Nodes cannot be read: {why}"),
        None => format!(
            "When Machines {machines} joined is not known, as they have no Nodes: wait for these, or delete the Machines"
        ),
    })
}

/// MachineDeployments of outdated workers that roll nothing out before a time that a user chose.
pub(super) fn held_back(rotation: &Rotation, before: Timestamp, now: &Moment) -> Option<String> {
    let left = rotation
        .workers
        .iter()
        .filter(|worker| rotation.precedes(worker, before));
    let left: BTreeSet<&str> = left.filter_map(|worker| worker.deployment.as_deref()).collect();
    let held = rotation.deployments.iter().filter_map(|(name, after)| {
        let after = (*after)?;
        let holds = left.contains(label_or_hash(name).as_str()) && !now.reached(after);
        holds.then(|| format!("{name} ({after})"))
    });
    let held: Vec<String> = held.collect();
    let held: Vec<&str> = held.iter().map(String::as_str).collect();
    (!held.is_empty()).then(|| {
        format!(
            "spec.rollout.after of MachineDeployments {} is still to come",
            listed(&held)
        )
    })
}

/// A kubeconfig that another keeps, with which this program would not reach the cluster any more.
pub(super) fn untrusting_kubeconfig(facts: &Facts, rotation: &Rotation) -> Option<String> {
    let trusted = &rotation.foreign_kubeconfig.as_ref()?.trusts;
    let Kubeconfig::Found { .. } = &facts.kubeconfig else {
        return None;
    };
    let next = rotation.authority(Purpose::ClusterCa)?.next.as_ref()?;
    let is_known = blocks(trusted).is_ok_and(|known| known.contains(next));
    (!is_known).then(|| {
        format!(
            "Secret {}/{} is not of this control plane and does not trust the new authority, by which this program would lose the cluster: put \
             all of tls.crt of Secret {} into its certificate-authority-data",
            facts.control_plane.namespace,
            Purpose::Kubeconfig.secret_name(&facts.cluster.name),
            Purpose::ClusterCa.secret_name(&facts.cluster.name)
        )
    })
}

/// A kubeconfig that another keeps, and that API servers will not know any more.
pub(super) fn outdated_kubeconfig(facts: &Facts, rotation: &Rotation) -> Option<String> {
    let is_older = rotation.foreign_kubeconfig.as_ref()?.is_older;
    is_older.then(|| {
        format!(
            "Secret {}/{} is not of this control plane, and its client certificate is older than the new authority: put one there that the \
             new authority has signed",
            facts.control_plane.namespace,
            Purpose::Kubeconfig.secret_name(&facts.cluster.name)
        )
    })
}

/// Workers that another program makes data for.
pub(super) fn unmarked_workers(rotation: &Rotation, before: Timestamp) -> Option<String> {
    let unmarked = |worker: &&Worker| worker.data == Data::Unmarked && !rotation.is_older(worker, before);
    let unmarked = rotation.workers.iter().filter(unmarked);
    let names: Vec<&str> = unmarked.map(|worker| worker.name.as_str()).collect();
    (!names.is_empty()).then(|| {
        format!(
            "the bootstrap data of Machines {} does not tell of which authorities it was made: another program reconciles their \
             KubeadmConfigs; let Windlass do it",
            listed(&names)
        )
    })
}
