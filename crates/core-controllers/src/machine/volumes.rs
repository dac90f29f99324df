//! Which volumes have to be detached from a Node before its machine may go, and the words for them. Pure.

use std::collections::BTreeSet;

use windlass_api::k8s::{Node, PersistentVolume, VolumeAttachment};
use windlass_controller_runtime::ObjectKey;

/// How many volumes a line names before it counts the rest.
const NAMED: usize = 5;

/// The volumes that are still attached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Attached {
    claims: BTreeSet<String>,
    unclaimed: BTreeSet<String>,
    unknown_to_node: BTreeSet<String>,
    unknown_to_attachments: BTreeSet<String>,
}

impl Attached {
    /// Whether none is.
    pub(crate) fn is_empty(&self) -> bool {
        self.lines().is_empty()
    }

    /// A line for each sort of volume, for the Deleting condition. The words are those of Cluster API.
    pub(crate) fn lines(&self) -> Vec<String> {
        [
            ("PersistentVolumeClaims", &self.claims),
            (
                "PersistentVolumes without a .spec.claimRef to a PersistentVolumeClaim",
                &self.unclaimed,
            ),
            (
                "Node with .status.volumesAttached entries not matching a PersistentVolume",
                &self.unknown_to_node,
            ),
            (
                "VolumeAttachment with .spec.source.persistentVolumeName not matching a PersistentVolume",
                &self.unknown_to_attachments,
            ),
        ]
        .into_iter()
        .filter(|(_, names)| !names.is_empty())
        .map(|(what, names)| {
            let names: Vec<&String> = names.iter().collect();
            format!("* {what}: {}", windlass_conditions::listed(&names, NAMED))
        })
        .collect()
    }
}

/// Whether anything is attached, by the Node's own report or by an attachment to it.
pub(crate) fn is_any(node: &Node, attachments: &[VolumeAttachment]) -> bool {
    !reported(node).is_empty() || attachments.iter().any(|attachment| attachment.status.attached)
}

/// The names of attached volumes that the Node reports.
fn reported(node: &Node) -> BTreeSet<String> {
    let status = node.status.iter();
    status
        .flat_map(|status| status.volumes_attached.iter().flatten())
        .map(|volume| volume.name.clone())
        .collect()
}

/// The volumes to wait for. Those of claims that are `kept`, because their Pods stay, are not waited for. An error says why the answer is
/// unknown.
pub(crate) fn attached(
    node: &Node,
    attachments: &[VolumeAttachment],
    volumes: &[PersistentVolume],
    kept: &BTreeSet<ObjectKey>,
) -> Result<Attached, String> {
    let mut unknown_to_node = reported(node);
    let mut unknown_to_attachments = BTreeSet::new();
    for attachment in attachments.iter().filter(|attachment| attachment.status.attached) {
        let volume = attachment.spec.source.persistent_volume_name.clone();
        let named = attachment.metadata.name.as_deref().unwrap_or_default();
        unknown_to_attachments.insert(
            volume
                .ok_or_else(|| format!("spec.source.persistentVolumeName for VolumeAttachment {named} is not set"))?,
        );
    }
    let mut found = Attached::default();
    for volume in volumes {
        let name = volume.metadata.name.clone().unwrap_or_default();
        let on_node = volume.spec.csi.as_ref().is_some_and(|csi| {
            let handle = format!("kubernetes.io/csi/{}^{}", csi.driver, csi.volume_handle);
            unknown_to_node.remove(&handle)
        });
        if !unknown_to_attachments.remove(&name) && !on_node {
            continue;
        }
        let claim = volume.spec.claim_ref.as_ref();
        match claim.filter(|claim| claim.kind.as_deref() == Some("PersistentVolumeClaim")) {
            None => {
                found.unclaimed.insert(name);
            }
            Some(claim) => {
                let part = |part: &Option<String>| part.clone().unwrap_or_default();
                let claim = ObjectKey::new(part(&claim.namespace), part(&claim.name));
                if !kept.contains(&claim) {
                    found.claims.insert(claim.to_string());
                }
            }
        }
    }
    Ok(Attached {
        unknown_to_node,
        unknown_to_attachments,
        ..found
    })
}

#[cfg(test)]
#[allow(clippy::needless_pass_by_value, reason = "cases hand in literals")]
mod tests;
