//! Certificates of a provider's webhooks without cert-manager.
//!
//! [`plan`] finds the requests of a provider's files to cert-manager. [`put`] replaces them: a Secret for each
//! Certificate, and the CA bundle wherever `cert-manager.io/inject-ca-from` requests it. [`stand_in`] does both and
//! issues certificates that are missing, about to expire, or for changed names.
//!
//! Every provider has its own CA, in a Secret beside the others. A new CA is in all bundles some time before it issues
//! certificates, and an old one stays in them until it expires, so that clients trust every certificate. Keys and time
//! are arguments.

mod authority;
mod inject;
mod plan;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use windlass_pki::{Certificate, LeafRequest, LeafUsage, PkiError, PrivateKey};

pub use self::authority::Authorities;
pub use self::inject::{Issued, put};
pub use self::plan::{Injection, Plan, Request, plan};
use crate::customize::Note;

/// The certificate, in Secrets of the type `kubernetes.io/tls`.
pub const CERTIFICATE: &str = "tls.crt";
/// Its key.
pub const KEY: &str = "tls.key";
/// The CA bundle; the issuer of the certificate comes first.
pub const BUNDLE: &str = "ca.crt";

/// Errors of certificates.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    /// The provider's files have requests that only cert-manager can fulfil.
    #[error("cert-manager is not installed, and what the provider asks of it cannot be done without: {}", .0.join("; "))]
    NeedsCertManager(Vec<String>),
    /// A certificate or key could not be created.
    #[error("{what}: {source}")]
    Pki {
        /// Its description.
        what: String,
        /// The cause.
        source: PkiError,
    },
    /// A required certificate is missing.
    #[error("no certificate was issued for Secret {0}")]
    Missing(String),
}

/// The inputs beside the objects.
pub struct Means<'a> {
    /// The namespace of the provider.
    pub namespace: &'a str,
    /// The name of the Secret for the authority, which must belong to this provider alone.
    pub authority: &'a str,
    /// Reads stored data: the name of a Secret, and a key in it.
    pub stored: &'a dyn Fn(&str, &str) -> Option<Vec<u8>>,
    /// Creates a key.
    pub new_key: &'a mut dyn FnMut() -> Result<PrivateKey, PkiError>,
    /// The current time.
    pub now: Timestamp,
}

/// The result of [`stand_in`].
#[derive(Debug, Default)]
pub struct StandIn {
    /// The decisions.
    pub notes: Vec<Note>,
    /// When it must run again; never if the provider has no certificates.
    pub again: Option<Timestamp>,
}

/// Replaces the requests of a provider's objects to cert-manager, and issues due certificates.
///
/// Stored certificates that are still valid are reused, so that the result is the same until a certificate is due.
pub fn stand_in(objects: &mut Vec<Value>, means: &mut Means<'_>) -> Result<StandIn, CertificateError> {
    let plan = plan(objects)?;
    if plan.requests.is_empty() {
        // Without certificates, there still may be unused objects of cert-manager.
        let notes = put(objects, &plan, &BTreeMap::new())?;
        return Ok(StandIn { notes, again: None });
    }
    let made = |what: &str| {
        let what = what.to_owned();
        move |source| CertificateError::Pki { what, source }
    };
    let stored = |key: &str| (means.stored)(means.authority, key);
    let kept = Authorities::read(&stored);
    let (authorities, done) = Authorities::next(kept, means.authority, means.now, means.new_key)
        .map_err(made("making an authority for certificates"))?;
    let mut notes: Vec<Note> = done
        .into_iter()
        .map(|what| Note::done(FIELD, &secret_name(means, means.authority), what))
        .collect();
    let mut again = authorities.due(means.now);
    let mut issued = BTreeMap::new();
    for request in &plan.requests {
        let name = secret_name(means, &request.secret);
        let have = |key: &str| (means.stored)(&request.secret, key);
        let (one, due) = if let Some(kept) = kept_leaf(request, &have, &authorities, means.now) {
            kept
        } else {
            let fresh = issue(request, &authorities, means).map_err(made(&name))?;
            let names = request.names().collect::<Vec<_>>().join(", ");
            notes.push(Note::done(FIELD, &name, format!("issued a certificate for {names}")));
            fresh
        };
        again = again.min(due);
        issued.insert(request.secret.clone(), one);
    }
    notes.extend(put(objects, &plan, &issued)?);
    inject::replace(objects, authorities.secret(means.namespace, means.authority));
    Ok(StandIn {
        notes,
        again: Some(again),
    })
}

/// The subject of notes about certificates.
const FIELD: &str = "certificates";

fn secret_name(means: &Means<'_>, name: &str) -> String {
    format!("Secret {}/{name}", means.namespace)
}

/// When a certificate must be renewed: after two thirds of its life, or at the requested time before its end.
///
/// Certificates are valid from the same time as their authority, so their life is not the difference between their dates.
pub fn renew_at(not_after: Timestamp, life: SignedDuration, before: Option<SignedDuration>) -> Timestamp {
    let third = SignedDuration::from_secs(life.as_secs() / 3);
    let margin = before
        .filter(|before| *before < life && before.is_positive())
        .unwrap_or(third);
    not_after.checked_sub(margin).unwrap_or(Timestamp::MIN)
}

/// The stored certificate of a request and its renewal time; `None` if it must be issued: it is missing, damaged, for
/// other names, of another CA, or due.
fn kept_leaf(
    request: &Request,
    have: &dyn Fn(&str) -> Option<Vec<u8>>,
    authorities: &Authorities,
    now: Timestamp,
) -> Option<(Issued, Timestamp)> {
    let text = |key: &str| String::from_utf8(have(key)?).ok();
    let using = authorities.using();
    if request.authority {
        return Some((authority_itself(authorities), authorities.due(now)));
    }
    let (certificate, key, bundle) = (text(CERTIFICATE)?, text(KEY)?, text(BUNDLE)?);
    let leaf = Certificate::from_pem(&certificate).ok()?;
    let issuer = Certificate::from_pem(&bundle).ok()?;
    let pair = PrivateKey::from_pem(&key).ok()?;
    let mut names: Vec<&str> = leaf.alternative_names().iter().map(String::as_str).collect();
    let mut wanted: Vec<&str> = request.names().collect();
    names.sort_unstable();
    wanted.sort_unstable();
    let due = renew_at(leaf.not_after(), request.life(), request.renew_before);
    let good =
        pair.public_der() == leaf.public_key_der() && issuer == *using.certificate() && names == wanted && now < due;
    good.then(|| {
        let bundle = authorities.bundle();
        let issued = Issued {
            certificate,
            key,
            bundle,
        };
        (issued, due)
    })
}

/// The result for a Certificate that is an authority: the provider's own authority.
fn authority_itself(authorities: &Authorities) -> Issued {
    Issued {
        certificate: authorities.using().certificate().to_pem(),
        key: authorities.using().key().to_pem(),
        bundle: authorities.bundle(),
    }
}

fn issue(request: &Request, authorities: &Authorities, means: &mut Means<'_>) -> Result<(Issued, Timestamp), PkiError> {
    let key = (means.new_key)()?;
    let leaf = LeafRequest {
        common_name: request.common_name.clone(),
        organization: request.organization.clone(),
        alternative_names: request.names().map(str::to_owned).collect(),
        usage: request.usage,
        days: request.days,
    };
    let leaf = authorities.using().issue(&leaf, &key, means.now)?;
    let issued = Issued {
        certificate: leaf.to_pem(),
        key: key.to_pem(),
        bundle: authorities.bundle(),
    };
    Ok((issued, renew_at(leaf.not_after(), request.life(), request.renew_before)))
}

/// Key usages of a certificate, in cert-manager's terms.
fn usage(words: &[&str]) -> LeafUsage {
    match (words.contains(&"client auth"), words.contains(&"server auth")) {
        (true, true) => LeafUsage::Peer,
        (true, false) => LeafUsage::Client,
        (false, _) => LeafUsage::Server,
    }
}
