//! Joining where some API servers show certificates of another authority than the one that signs on the machine.

use windlass_api_kubeadm::bootstrap::{JoinConfiguration, KubeadmConfigSpec};

use crate::render;
use crate::{KubeadmError, WriteFile};

/// The phase of `kubeadm join` that makes the kubeconfigs of a control plane machine.
pub const KUBECONFIG_PHASE: &str = "control-plane-prepare/kubeconfig";
/// The kubeconfig that `kubeadm join` uses.
const ADMINISTRATOR: &str = "/etc/kubernetes/admin.conf";
/// The phase that it is a part of.
const PREPARE: &str = "control-plane-prepare";

/// Lets the administrator of `kubeadm join` trust every authority in a file of the machine.
///
/// The `admin.conf` that kubeadm makes trusts the first certificate of `ca.crt` only. With it kubeadm looks for the members of etcd by the
/// address of the cluster. While authorities are rotated an API server may answer there whose certificate is of another one. So the machine
/// makes its kubeconfigs before, and gives this one the whole bundle.
pub fn trust_bundle(
    spec: &mut KubeadmConfigSpec,
    join: &mut JoinConfiguration,
    bundle: &WriteFile,
) -> Result<(), KubeadmError> {
    // A user who leaves the phase out brings the kubeconfigs.
    let is_theirs = |phase: &String| phase == KUBECONFIG_PHASE || phase == PREPARE;
    if join.skip_phases.iter().any(is_theirs) {
        return Ok(());
    }
    let file = render::join_file(spec)?;
    let phase = KUBECONFIG_PHASE.replace('/', " ");
    let key = "certificate-authority-data:";
    // A script that was interrupted runs again, and kubeadm takes no kubeconfig that has another bundle than its own. Nothing follows what
    // fails: without these kubeconfigs, kubeadm would end in the middle.
    let command = format!(
        "rm -f {ADMINISTRATOR} && kubeadm join phase {phase} --config {file} && sed -i \"s|{key}.*|{key} $(base64 < {} | tr -d \
         '\\n')|\" {ADMINISTRATOR} || exit 1",
        bundle.path
    );
    spec.pre_kubeadm_commands.push(command);
    join.skip_phases.push(KUBECONFIG_PHASE.to_owned());
    Ok(())
}
