//! The authorities of a provider's certificates: the current one, the next one, and former ones.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use windlass_pki::{BACKDATED, CaRequest, Certificate, CertificateAuthority, PkiError, PrivateKey};

use super::inject::tls_secret;
use super::{BUNDLE, CERTIFICATE, KEY, renew_at};

/// The Secret of the next CA.
const NEXT_CERTIFICATE: &str = "next.crt";
/// Its key.
const NEXT_KEY: &str = "next.key";
/// Time that a CA is in all bundles before it issues certificates. API servers take seconds to read a bundle, Pods
/// about a minute to see a Secret, and applies of the operator may need retries.
const TRUSTED_AFTER: SignedDuration = SignedDuration::from_mins(30);

/// The authorities of one provider.
#[derive(Debug, Clone)]
pub struct Authorities {
    using: CertificateAuthority,
    next: Option<CertificateAuthority>,
    /// Former ones that are still trusted, because their certificates may be in use.
    past: Vec<Certificate>,
}

impl Authorities {
    /// Parses the data of [`Self::secret`]; `None` if it is missing or damaged.
    pub fn read(stored: &dyn Fn(&str) -> Option<Vec<u8>>) -> Option<Self> {
        let text = |key: &str| String::from_utf8(stored(key)?).ok();
        let pair = |certificate, key| CertificateAuthority::from_pem(&text(certificate)?, &text(key)?).ok();
        let using = pair(CERTIFICATE, KEY).filter(|using| using.certificate().is_ca())?;
        let next = pair(NEXT_CERTIFICATE, NEXT_KEY).filter(|next| next.certificate().is_ca());
        let bundle = text(BUNDLE).unwrap_or_default();
        let mut past = Certificate::all_from_pem(&bundle).unwrap_or_default();
        past.retain(|one| {
            one != using.certificate() && Some(one) != next.as_ref().map(CertificateAuthority::certificate)
        });
        Some(Self { using, next, past })
    }

    /// The new CAs, and the changes.
    ///
    /// After two thirds of the life of the current CA, the next one is created. It takes over once all clients have had
    /// the time to trust it.
    pub fn next(
        kept: Option<Self>,
        name: &str,
        now: Timestamp,
        new_key: &mut dyn FnMut() -> Result<PrivateKey, PkiError>,
    ) -> Result<(Self, Vec<&'static str>), PkiError> {
        let mut made = || CertificateAuthority::self_signed(&CaRequest::new(name), new_key()?, now);
        let valid = |authority: &CertificateAuthority| authority.certificate().not_after() > now;
        let mut done = Vec::new();
        let Some(mut all) = kept.filter(|all| valid(&all.using)) else {
            let all = Self {
                using: made()?,
                next: None,
                past: Vec::new(),
            };
            return Ok((all, vec!["made an authority for certificates"]));
        };
        if let Some(next) = all.next.take_if(|next| trusted_at(next.certificate()) <= now) {
            if valid(&next) {
                let old = std::mem::replace(&mut all.using, next);
                all.past.push(old.certificate().clone());
                done.push("issues by the next authority from now on; the old one stays trusted until it ends");
            } else {
                done.push("dropped the next authority, which has ended");
            }
        }
        if all.next.is_none() && due(all.using.certificate()) <= now {
            all.next = Some(made()?);
            done.push("made the next authority, which is trusted from now on and issues later");
        }
        let before = all.past.len();
        all.past.retain(|one| one.not_after() > now);
        if all.past.len() < before {
            done.push("dropped an old authority, which has ended");
        }
        Ok((all, done))
    }

    /// The current authority.
    pub fn using(&self) -> &CertificateAuthority {
        &self.using
    }

    /// All trusted authorities as PEM, the current one first.
    pub fn bundle(&self) -> String {
        let next = self.next.as_ref().map(CertificateAuthority::certificate);
        let all = std::iter::once(self.using.certificate()).chain(next).chain(&self.past);
        all.map(Certificate::to_pem).collect()
    }

    /// When a change is due. The end of a former authority is not: it is dropped with the next change.
    pub(super) fn due(&self, now: Timestamp) -> Timestamp {
        match &self.next {
            Some(next) => trusted_at(next.certificate()).max(now),
            None => due(self.using.certificate()),
        }
    }

    /// The Secret with the authorities.
    pub(super) fn secret(&self, namespace: &str, name: &str) -> Value {
        let (certificate, key, bundle) = (
            self.using.certificate().to_pem(),
            self.using.key().to_pem(),
            self.bundle(),
        );
        let next = self
            .next
            .as_ref()
            .map(|next| (next.certificate().to_pem(), next.key().to_pem()));
        let mut data = vec![(CERTIFICATE, &certificate), (KEY, &key), (BUNDLE, &bundle)];
        if let Some((certificate, key)) = &next {
            data.extend([(NEXT_CERTIFICATE, certificate), (NEXT_KEY, key)]);
        }
        tls_secret(namespace, name, &data)
    }
}

fn due(certificate: &Certificate) -> Timestamp {
    let life = certificate.not_after().duration_since(certificate.not_before());
    renew_at(certificate.not_after(), life, None)
}

fn trusted_at(certificate: &Certificate) -> Timestamp {
    let made = certificate.not_before().checked_add(BACKDATED);
    made.and_then(|made| made.checked_add(TRUSTED_AFTER))
        .unwrap_or(Timestamp::MAX)
}
