//! The pins of the cluster's authority, which joining machines check. They follow the authority, unless a user set them.

use std::collections::BTreeSet;

use windlass_controller_runtime::Seen;
use windlass_pki::{Certificate, KeyMaterial, Purpose};

use super::super::observed::{Material, Observed, SetBy, spec_pins};

/// What is said of pins that no machine will join with.
pub(super) const FOREIGN: &str = "spec.joinConfiguration.discovery.bootstrapToken.caCertHashes has no pin of the certificate that signs in the cluster; \
     it was not set by this controller and is kept";

/// How the pins in the spec are, compared with the authority as it is now.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Pins {
    /// They stay: they are those of the authority, a user's, or none that can be compared.
    Kept,
    /// They stay, as a user set them, though the certificate that signs has none of them.
    Foreign,
    /// This controller set them, for another authority.
    Outdated,
    /// They differ, and who set them is not known yet.
    Ask,
    /// They differ, and who set them cannot be read.
    Unknown(String),
}

/// Compares the pins in the spec with the authority.
pub(super) fn judge(seen: &Observed, material: &Material) -> Pins {
    let pins = spec_pins(&seen.config);
    let Some(Seen::Found(authority)) = material.certificates.get(&Purpose::ClusterCa) else {
        return Pins::Kept;
    };
    let (false, Ok(current)) = (pins.is_empty(), of(authority)) else {
        return Pins::Kept;
    };
    // The certificate that signs may change places with another.
    let set = |pins: &[String]| pins.iter().cloned().collect::<BTreeSet<_>>();
    if set(pins) == set(&current) {
        return Pins::Kept;
    }
    match &seen.pins_set_by {
        None => Pins::Ask,
        Some(Seen::Found(SetBy::Controller)) => Pins::Outdated,
        Some(Seen::Found(SetBy::User)) if current.first().is_some_and(|signer| !pins.contains(signer)) => Pins::Foreign,
        Some(Seen::Found(SetBy::User) | Seen::NotFound) => Pins::Kept,
        Some(Seen::Failed(why)) => Pins::Unknown(format!("Failed to read who set the pins of the authority: {why}")),
    }
}

/// One pin a certificate: during a rotation, joining machines trust the old and the new authority.
pub(super) fn of(authority: &KeyMaterial) -> Result<Vec<String>, String> {
    Certificate::all_from_pem(&authority.crt)
        .map(|all| all.iter().map(Certificate::public_key_pin).collect())
        .map_err(|error| format!("Failed to read the authority of the cluster: {error}"))
}
