//! Generated certificates: a CA and the server's certificate. Decides what must be renewed; time is an
//! argument.

use jiff::{SignedDuration, Timestamp};
use windlass_pki::authority::{DEFAULT_CA_DAYS, DEFAULT_LEAF_DAYS};
use windlass_pki::{CaRequest, Certificate, CertificateAuthority, KeyAlgorithm, LeafRequest, PkiError, PrivateKey};

use crate::certified::accepted;

/// The limit of additional names in the certificate; far more than there are.
const MAX_NAMES: usize = 16;
/// Number of trusted CAs: the current one and its predecessor.
const MAX_AUTHORITIES: usize = 2;

/// Certificates and keys, PEM.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Material {
    /// The authorities to trust, the one in use first.
    pub(crate) authorities: String,
    /// The key of the authority in use.
    pub(crate) authority_key: String,
    /// The server's certificate.
    pub(crate) certificate: String,
    /// Its key.
    pub(crate) key: String,
}

impl std::fmt::Debug for Material {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Material").finish_non_exhaustive()
    }
}

/// The parts to renew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    Nothing,
    Certificate,
    Everything,
}

/// When two thirds of a certificate's validity in days have passed.
fn renewal(certificate: &Certificate, days: i32) -> Timestamp {
    let third = SignedDuration::from_hours(i64::from(days) * 24 / 3);
    certificate.not_after().checked_sub(third).unwrap_or(Timestamp::MIN)
}

impl Material {
    /// The parts to renew for a server of these names.
    pub(crate) fn due(&self, names: &[String], now: Timestamp) -> Due {
        let Ok(authority) = CertificateAuthority::from_pem(&self.authorities, &self.authority_key) else {
            return Due::Everything;
        };
        if now >= renewal(authority.certificate(), DEFAULT_CA_DAYS) {
            return Due::Everything;
        }
        if self.is_good(authority.certificate(), names, now) {
            Due::Nothing
        } else {
            Due::Certificate
        }
    }

    fn is_good(&self, authority: &Certificate, names: &[String], now: Timestamp) -> bool {
        let (Ok(certificate), Ok(key)) = (
            Certificate::from_pem(&self.certificate),
            PrivateKey::from_pem(&self.key),
        ) else {
            return false;
        };
        let trusted = std::slice::from_ref(authority);
        let chain = std::slice::from_ref(&certificate);
        certificate.public_key_der() == key.public_der()
            && now < renewal(&certificate, DEFAULT_LEAF_DAYS)
            && names.iter().all(|name| accepted(trusted, chain, name, now).is_ok())
    }

    /// The next time at which a part must be renewed.
    pub(crate) fn renewal(&self) -> Option<Timestamp> {
        let authority = Certificate::from_pem(&self.authorities).ok()?;
        let certificate = Certificate::from_pem(&self.certificate).ok()?;
        Some(renewal(&authority, DEFAULT_CA_DAYS).min(renewal(&certificate, DEFAULT_LEAF_DAYS)))
    }

    /// Material for a server of these names. Valid existing parts are kept, and so are the names of the certificate, because
    /// another process may use them.
    pub(crate) fn make(existing: Option<&Self>, names: &[String], now: Timestamp) -> Result<Self, PkiError> {
        let due = existing.map_or(Due::Everything, |material| material.due(names, now));
        if let (Some(material), Due::Nothing) = (existing, due) {
            return Ok(material.clone());
        }
        let (authority, authorities) = match existing {
            Some(material) if due == Due::Certificate => {
                let authority = CertificateAuthority::from_pem(&material.authorities, &material.authority_key)?;
                (authority, material.authorities.clone())
            }
            _ => {
                let request = CaRequest::new("windlass-webhook");
                let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256)?;
                let authority = CertificateAuthority::self_signed(&request, key, now)?;
                let mut all = vec![authority.certificate().to_pem()];
                // Other processes use certificates of the old CA until they have seen the new one.
                let old = existing.and_then(|material| Certificate::all_from_pem(&material.authorities).ok());
                let valid = old.into_iter().flatten().filter(|old| old.not_after() > now);
                all.extend(valid.map(|old| old.to_pem()));
                all.truncate(MAX_AUTHORITIES);
                (authority, all.concat())
            }
        };
        let mut all_names = names.to_vec();
        let others = existing.and_then(|material| Certificate::from_pem(&material.certificate).ok());
        for name in others.iter().flat_map(Certificate::alternative_names) {
            if !all_names.contains(name) && all_names.len() < MAX_NAMES {
                all_names.push(name.clone());
            }
        }
        let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256)?;
        let certificate = authority.issue(&LeafRequest::server("windlass-webhook", all_names), &key, now)?;
        Ok(Self {
            authorities,
            authority_key: authority.key().to_pem(),
            certificate: certificate.to_pem(),
            key: key.to_pem(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2026-01-02T03:04:05Z".parse().unwrap()
    }

    fn days(days: i64) -> SignedDuration {
        SignedDuration::from_hours(24 * days)
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn certificates_are_renewed_after_two_thirds_of_their_life() {
        let names = names(&["a.b.svc", "127.0.0.1"]);
        let first = Material::make(None, &names, now()).unwrap();
        let check = |after: i64, expect: Due| assert_eq!(first.due(&names, now() + days(after)), expect, "{after}");
        check(0, Due::Nothing);
        check(240, Due::Nothing);
        check(245, Due::Certificate);
        check(2400, Due::Certificate);
        check(2440, Due::Everything);
        check(5000, Due::Everything);
        let renewal = first.renewal().unwrap();
        assert!(renewal > now() + days(240) && renewal < now() + days(245), "{renewal}");
        assert_eq!(Material::make(Some(&first), &names, now()).unwrap(), first);
    }

    #[test]
    fn the_authority_stays_when_only_the_certificate_is_due_and_is_trusted_on_when_it_goes() {
        let names = names(&["a.b.svc"]);
        let first = Material::make(None, &names, now()).unwrap();
        let later = now() + days(250);
        let renewed = Material::make(Some(&first), &names, later).unwrap();
        assert_eq!(
            (&renewed.authorities, &renewed.authority_key),
            (&first.authorities, &first.authority_key)
        );
        assert_ne!(renewed.certificate, first.certificate);
        assert_eq!(renewed.due(&names, later), Due::Nothing);

        let much_later = now() + days(2500);
        let replaced = Material::make(Some(&renewed), &names, much_later).unwrap();
        let trusted = Certificate::all_from_pem(&replaced.authorities).unwrap();
        assert_eq!(trusted.len(), 2);
        assert_eq!(trusted[1].to_pem(), first.authorities);
        assert_eq!(replaced.due(&names, much_later), Due::Nothing);
        let old = Certificate::all_from_pem(&renewed.certificate).unwrap();
        assert!(accepted(&trusted, &old, "a.b.svc", later).is_ok());
    }

    #[test]
    fn processes_of_different_names_share_one_certificate() {
        let (one, other) = (names(&["a.b.svc"]), names(&["127.0.0.1"]));
        let first = Material::make(None, &one, now()).unwrap();
        assert_eq!(first.due(&other, now()), Due::Certificate);
        let both = Material::make(Some(&first), &other, now()).unwrap();
        assert_eq!(both.due(&one, now()), Due::Nothing);
        assert_eq!(both.due(&other, now()), Due::Nothing);
    }

    #[test]
    fn what_is_damaged_or_does_not_belong_together_is_made_again() {
        let names = names(&["a.b.svc"]);
        let good = Material::make(None, &names, now()).unwrap();
        let other = Material::make(None, &names, now()).unwrap();
        let check = |change: &dyn Fn(&mut Material), expect: Due| {
            let mut material = good.clone();
            change(&mut material);
            assert_eq!(material.due(&names, now()), expect);
        };
        check(&|material| material.authorities.clear(), Due::Everything);
        check(
            &|material| material.authority_key.clone_from(&other.authority_key),
            Due::Everything,
        );
        check(
            &|material| material.certificate = "rubbish".to_owned(),
            Due::Certificate,
        );
        check(&|material| material.key.clone_from(&other.key), Due::Certificate);
        check(
            &|material| {
                material.certificate.clone_from(&other.certificate);
                material.key.clone_from(&other.key);
            },
            Due::Certificate,
        );
        assert!(!format!("{good:?}").contains("KEY"));
    }
}
