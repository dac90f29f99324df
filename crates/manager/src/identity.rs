//! The identity of the embedded server: its CA, its certificate, and the administrator's.

use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use rustls::sign::CertifiedKey;
use windlass_pki::{
    CaRequest, Certificate, CertificateAuthority, KeyAlgorithm, LeafRequest, PkiError, PrivateKey, needs_rotation,
};

use crate::ManagerError;
use crate::files::{make_folder, read, write_private};

/// DNS names and addresses of the server.
const NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];
/// Validity period of certificates.
const LEAF_LIFETIME: SignedDuration =
    SignedDuration::from_hours(24 * windlass_pki::authority::DEFAULT_LEAF_DAYS as i64);

/// A certificate with its key, as PEM.
#[derive(Clone)]
pub(crate) struct Pair {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Pair {
    /// The TLS configuration of a server.
    pub(crate) fn certified(&self) -> Result<CertifiedKey, String> {
        let certificate = Certificate::from_pem(&self.certificate).map_err(|error| error.to_string())?;
        let key = PrivateKey::from_pem(&self.key).map_err(|error| error.to_string())?;
        let chain = vec![CertificateDer::from(certificate.der().to_vec())];
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        CertifiedKey::from_der(chain, PrivatePkcs8KeyDer::from(key.to_pkcs8_der()).into(), &provider)
            .map_err(|error| error.to_string())
    }
}

/// The certificates of an embedded server.
pub(crate) struct Identity {
    pub(crate) authority: Certificate,
    pub(crate) server: Pair,
    pub(crate) administrator: Pair,
}

/// Reads the certificates from a folder. Creates missing and expiring ones and stores them there.
pub(crate) fn load_or_make(folder: &Path, now: Timestamp) -> Result<Identity, ManagerError> {
    make_folder(folder)?;
    let files = Files { folder, now };
    let authority = files.authority()?;
    let names = NAMES.iter().map(|name| (*name).to_owned()).collect();
    let server = files.leaf(
        &authority,
        "apiserver",
        &LeafRequest::server("windlass-apiserver", names),
    )?;
    let administrator = files.leaf(&authority, "admin", &LeafRequest::administrator())?;
    Ok(Identity {
        authority: authority.certificate().clone(),
        server,
        administrator,
    })
}

struct Files<'a> {
    folder: &'a Path,
    now: Timestamp,
}

impl Files<'_> {
    fn path(&self, name: &str, ending: &str) -> PathBuf {
        self.folder.join(format!("{name}.{ending}"))
    }

    fn damaged(&self, source: PkiError) -> ManagerError {
        ManagerError::Identity {
            folder: self.folder.to_owned(),
            source,
        }
    }

    /// Reads a certificate and its key. The certificate is written last, so a key alone is a half-written pair, and is created
    /// again.
    fn pair(&self, name: &str) -> Result<Option<Pair>, ManagerError> {
        let Some(certificate) = read(&self.path(name, "crt"))? else {
            return Ok(None);
        };
        let key = read(&self.path(name, "key"))?.unwrap_or_default();
        Ok(Some(Pair { certificate, key }))
    }

    fn keep(&self, name: &str, pair: &Pair) -> Result<(), ManagerError> {
        write_private(&self.path(name, "key"), &pair.key)?;
        write_private(&self.path(name, "crt"), &pair.certificate)
    }

    fn new_key(&self) -> Result<PrivateKey, ManagerError> {
        PrivateKey::generate(KeyAlgorithm::EcdsaP256).map_err(|error| self.damaged(error))
    }

    fn authority(&self) -> Result<CertificateAuthority, ManagerError> {
        if let Some(pair) = self.pair("ca")? {
            return CertificateAuthority::from_pem(&pair.certificate, &pair.key).map_err(|error| self.damaged(error));
        }
        let made = CertificateAuthority::self_signed(&CaRequest::new("windlass"), self.new_key()?, self.now);
        let authority = made.map_err(|error| self.damaged(error))?;
        let pair = Pair {
            certificate: authority.certificate().to_pem(),
            key: authority.key().to_pem(),
        };
        self.keep("ca", &pair)?;
        Ok(authority)
    }

    fn leaf(&self, authority: &CertificateAuthority, name: &str, request: &LeafRequest) -> Result<Pair, ManagerError> {
        if let Some(pair) = self.pair(name)?.filter(|pair| self.is_good(pair)) {
            return Ok(pair);
        }
        let key = self.new_key()?;
        let issued = authority.issue(request, &key, self.now);
        let pair = Pair {
            certificate: issued.map_err(|error| self.damaged(error))?.to_pem(),
            key: key.to_pem(),
        };
        self.keep(name, &pair)?;
        Ok(pair)
    }

    /// An unreadable or expiring leaf certificate is created again: only the CA must stay the same.
    fn is_good(&self, pair: &Pair) -> bool {
        let (Ok(certificate), Ok(key)) = (
            Certificate::from_pem(&pair.certificate),
            PrivateKey::from_pem(&pair.key),
        ) else {
            return false;
        };
        certificate.public_key_der() == key.public_der()
            && !needs_rotation(certificate.not_after(), LEAF_LIFETIME, self.now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2026-01-02T03:04:05Z".parse().unwrap()
    }

    #[test]
    fn certificates_stay_until_they_get_old_and_the_authority_for_ever() {
        let folder = tempfile::tempdir().unwrap();
        let first = load_or_make(folder.path(), now()).unwrap();
        let again = load_or_make(folder.path(), now()).unwrap();
        assert_eq!(first.authority.der(), again.authority.der());
        assert_eq!(first.server.certificate, again.server.certificate);
        assert_eq!(first.administrator.key, again.administrator.key);
        let late = load_or_make(folder.path(), now() + SignedDuration::from_hours(24 * 360)).unwrap();
        assert_eq!(first.authority.der(), late.authority.der());
        assert_ne!(first.server.certificate, late.server.certificate);
    }

    #[test]
    fn half_written_pairs_are_made_again_and_a_lost_authority_key_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let first = load_or_make(folder.path(), now()).unwrap();
        std::fs::remove_file(folder.path().join("admin.crt")).unwrap();
        std::fs::write(folder.path().join("apiserver.key"), "rubbish").unwrap();
        let again = load_or_make(folder.path(), now()).unwrap();
        assert_eq!(first.authority.der(), again.authority.der());
        assert_ne!(first.administrator.certificate, again.administrator.certificate);
        assert_ne!(first.server.certificate, again.server.certificate);
        std::fs::remove_file(folder.path().join("ca.key")).unwrap();
        let error = load_or_make(folder.path(), now()).err().unwrap();
        assert!(matches!(error, ManagerError::Identity { .. }), "{error}");
        assert!(error.hint().unwrap().contains("move"), "{error}");
    }
}
