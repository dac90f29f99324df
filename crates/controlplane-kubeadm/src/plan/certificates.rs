//! Authorities and the administrator's kubeconfig.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use windlass_controller_runtime::{Moment, Seen};
use windlass_pki::Purpose;

use super::{Action, Plan};
use crate::desired;
use crate::facts::{Control, CpMachine, Facts, Kubeconfig, SecretFacts};

/// Takes over the authorities that have no other controller.
pub(super) fn own_all(facts: &Facts, plan: &mut Plan) {
    for certificate in &facts.certificates {
        let purpose = certificate.purpose;
        match &certificate.secret {
            Seen::Found(secret) if secret.is_to_be_owned() => plan.push(own(facts, purpose, secret)),
            Seen::Found(_) | Seen::NotFound => {}
            Seen::Failed(error) => {
                plan.block(format!(
                    "Secret {}/{}-{} cannot be read: {error}",
                    facts.control_plane.namespace,
                    facts.cluster.name,
                    purpose.suffix()
                ));
            }
        }
    }
}

/// Makes missing authorities, as long as no Machine relies on older ones that were lost.
pub(super) fn make(facts: &Facts, plan: &mut Plan) {
    let missing = facts.certificates.iter().filter(|c| c.secret.is_not_found());
    for certificate in missing.filter(|c| c.can_generate && !are_in_use(facts)) {
        plan.push(Action::CreateCertificate {
            purpose: certificate.purpose,
        });
    }
}

/// Whether Machines have the authorities, also when the status that says so was lost.
fn are_in_use(facts: &Facts) -> bool {
    let uses = |machine: &Arc<CpMachine>| machine.bootstrap_created || machine.has_been_up();
    facts.control_plane.initialized || facts.machines.iter().any(uses)
}

/// Makes the control plane the controller of a Secret. Owners that do not control it stay.
fn own(facts: &Facts, purpose: Purpose, secret: &SecretFacts) -> Action {
    Action::OwnSecret {
        purpose,
        patch: desired::owned(
            &facts.control_plane,
            &secret.uid,
            &secret.resource_version,
            &secret.owners,
        ),
    }
}

/// The purposes that are missing and cannot be generated.
pub fn missing(facts: &Facts) -> Vec<&'static str> {
    let lost = |c: &&crate::facts::Certificate| c.secret.is_not_found() && (are_in_use(facts) || !c.can_generate);
    let lost = facts.certificates.iter().filter(lost);
    lost.map(|c| c.purpose.suffix()).collect()
}

/// Client certificates of administrators are valid for a year, counted from the time at which they are made. They are made again when
/// half of it is left. The beginning of their validity does not count: it is that of the authority.
const RENEWAL: SignedDuration = SignedDuration::from_hours(365 * 24 / 2);

/// Makes the kubeconfig, and makes it again half a year before its client certificate ends.
pub(super) fn kubeconfig(facts: &Facts, (host, port): &(String, i32), now: &Moment, plan: &mut Plan) {
    let (replace, server) = match &facts.kubeconfig {
        Kubeconfig::Missing => (false, None),
        // A user may have changed the address of the API server. A renewal replaces the certificate only.
        Kubeconfig::Found { secret, .. } if secret.is_to_be_owned() => {
            // The write wakes the control plane, which looks then how long it is valid.
            plan.push(own(facts, Purpose::Kubeconfig, secret));
            return;
        }
        Kubeconfig::Found {
            secret,
            expires: Some(end),
            server,
        } if secret.control == Control::Ours && now.reached(end.saturating_sub(RENEWAL).unwrap_or(Timestamp::MIN)) => {
            (true, server.clone())
        }
        // It is valid for long enough, belongs to a user or another controller, or cannot be read: not ours to replace.
        Kubeconfig::Found { .. } => return,
    };
    if !has_authority(facts, plan) {
        // The Secret of an authority that a user brings wakes the control plane when it comes.
        plan.note(format!(
            "the kubeconfig of Cluster {} waits for Secret {}",
            facts.cluster.name,
            Purpose::ClusterCa.secret_name(&facts.cluster.name)
        ));
        return;
    }
    let host = if host.contains(':') && !host.starts_with('[') {
        format!("[{host}]")
    } else {
        host.clone()
    };
    plan.push(Action::WriteKubeconfig {
        server: server.unwrap_or_else(|| format!("https://{host}:{port}")),
        replace,
    });
}

/// Whether the cluster's authority is there, or made by this plan.
fn has_authority(facts: &Facts, plan: &Plan) -> bool {
    let purpose = Purpose::ClusterCa;
    let exists = facts
        .certificates
        .iter()
        .any(|c| c.purpose == purpose && c.secret.found().is_some());
    exists || plan.actions.contains(&Action::CreateCertificate { purpose })
}
