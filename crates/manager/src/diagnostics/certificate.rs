//! The certificate of the diagnostics server: it signs itself, is only in memory, and is made again before it expires.

use std::sync::Arc;
use std::time::Instant;

use jiff::{SignedDuration, Timestamp};
use parking_lot::RwLock;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use windlass_meta::Clock;
use windlass_meta::repeats::Repeats;
use windlass_pki::authority::DEFAULT_LEAF_DAYS;
use windlass_pki::{CaRequest, CertificateAuthority, KeyAlgorithm, LeafRequest, PrivateKey};

use crate::identity::Pair;

/// The names in the certificate. Clients that check it cannot know its authority.
const NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// A certificate, with the time at which a new one is due.
pub(super) struct SelfSigned {
    clock: Arc<dyn Clock>,
    current: RwLock<(Arc<CertifiedKey>, Timestamp)>,
    /// What was logged of certificates that could not be made.
    said: Repeats,
}

impl std::fmt::Debug for SelfSigned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SelfSigned").finish_non_exhaustive()
    }
}

fn make(now: Timestamp) -> Result<(Arc<CertifiedKey>, Timestamp), String> {
    let text = |error: windlass_pki::PkiError| error.to_string();
    let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256).map_err(text)?;
    let request = CaRequest::new("windlass-diagnostics");
    let authority = CertificateAuthority::self_signed(&request, key, now).map_err(text)?;
    let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256).map_err(text)?;
    let names = NAMES.iter().map(|name| (*name).to_owned()).collect();
    let leaf = LeafRequest::server("windlass-diagnostics", names);
    let pair = Pair {
        certificate: authority.issue(&leaf, &key, now).map_err(text)?.to_pem(),
        key: key.to_pem(),
    };
    let two_thirds = SignedDuration::from_hours(i64::from(DEFAULT_LEAF_DAYS) * 16);
    let due = now.checked_add(two_thirds).unwrap_or(Timestamp::MAX);
    Ok((Arc::new(pair.certified()?), due))
}

impl SelfSigned {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Result<Self, String> {
        let current = RwLock::new(make(clock.now())?);
        let said = Repeats::default();
        Ok(Self { clock, current, said })
    }
}

impl ResolvesServerCert for SelfSigned {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let now = self.clock.now();
        let (certificate, due) = self.current.read().clone();
        if now < due {
            return Some(certificate);
        }
        match make(now) {
            Ok(made) => *self.current.write() = made,
            Err(error) => {
                // Each handshake comes here.
                if let Some(repeated) = self.said.line("", &error, Instant::now()) {
                    tracing::warn!(error, repeated, "the certificate of diagnostics stays as it is");
                }
            }
        }
        Some(self.current.read().0.clone())
    }
}
