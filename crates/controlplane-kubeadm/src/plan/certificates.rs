//! Authorities and the administrator's kubeconfig.

use jiff::Timestamp;

use super::{Action, Plan};
use crate::facts::{Facts, Kubeconfig, Lookup};

/// Makes missing authorities, as long as no Machine relies on older ones that were lost.
pub(super) fn plan(facts: &Facts, plan: &mut Plan) {
    for certificate in &facts.certificates {
        let purpose = certificate.purpose;
        match &certificate.secret {
            Lookup::Missing if certificate.can_generate && !facts.control_plane.initialized => {
                plan.push(Action::CreateCertificate { purpose });
            }
            Lookup::Found(secret) if secret.generated && !secret.ours && (secret.uncontrolled || secret.of_config) => {
                plan.push(Action::AdoptCertificate {
                    purpose,
                    uid: secret.uid.clone(),
                });
            }
            Lookup::Found(_) | Lookup::Missing => {}
            Lookup::Failed(error) => {
                plan.error = Some(format!(
                    "Secret {}/{}-{} cannot be read: {error}",
                    facts.control_plane.namespace,
                    facts.cluster.name,
                    purpose.suffix()
                ));
            }
        }
    }
}

/// The purposes that are missing and cannot be made any more.
pub fn missing(facts: &Facts) -> Vec<&'static str> {
    let lost =
        |c: &&crate::facts::Certificate| c.secret.is_missing() && (facts.control_plane.initialized || !c.can_generate);
    let lost = facts.certificates.iter().filter(lost);
    lost.map(|c| c.purpose.suffix()).collect()
}

/// Makes the kubeconfig, and makes it anew when half of its client certificate's life is over.
pub(super) fn kubeconfig(facts: &Facts, now: Timestamp, plan: &mut Plan) {
    let write = match &facts.kubeconfig {
        Kubeconfig::Missing => true,
        Kubeconfig::Found {
            ours: true,
            validity: Some((begin, end)),
        } => {
            let life = end.duration_since(*begin);
            end.duration_since(now) < life / 2
        }
        // Somebody else's, or one that cannot be read: not ours to replace.
        Kubeconfig::Found { .. } | Kubeconfig::Failed(_) => false,
    };
    if write {
        plan.push(Action::WriteKubeconfig);
    }
}
