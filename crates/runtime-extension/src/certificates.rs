//! The certificate of a server, from files that are renewed while it runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use windlass_http_client::tls::provider;

/// Why the files of a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the certificate in {} cannot be used: {why}", folder.display())]
pub struct BadCertificate {
    folder: PathBuf,
    why: String,
}

/// The TLS configuration of a server whose certificate is in `tls.crt` and `tls.key` of a folder, both PEM. Renewed files are used for new
/// connections. While they cannot be used, the last good certificate stays, and a warning says why.
pub fn tls(folder: impl Into<PathBuf>) -> Result<Arc<ServerConfig>, BadCertificate> {
    let folder = folder.into();
    let configured = Mounted::read(folder.clone()).and_then(|mounted| {
        let config = windlass_http_server::tls(Arc::new(mounted));
        config.map_err(|error| error.to_string())
    });
    configured.map_err(|why| BadCertificate { folder, why })
}

/// The files of a folder, and the certificate that was made of them.
struct Mounted {
    folder: PathBuf,
    /// The files, or why they could not be read, when they were read last.
    seen: Mutex<Result<Files, String>>,
    current: RwLock<Arc<CertifiedKey>>,
}

impl std::fmt::Debug for Mounted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mounted")
            .field("folder", &self.folder)
            .finish_non_exhaustive()
    }
}

impl Mounted {
    fn read(folder: PathBuf) -> Result<Self, String> {
        let files = Files::read(&folder)?;
        let current = RwLock::new(files.certified()?);
        Ok(Self {
            folder,
            seen: Mutex::new(Ok(files)),
            current,
        })
    }

    /// Reads the files again, and uses them if they have changed.
    fn look(&self) {
        // Another handshake is looking.
        let Some(mut seen) = self.seen.try_lock() else {
            return;
        };
        let files = Files::read(&self.folder);
        if *seen == files {
            return;
        }
        let folder = self.folder.display();
        match files.as_ref().map_err(Clone::clone).and_then(Files::certified) {
            Ok(certified) => {
                *self.current.write() = certified;
                tracing::info!(%folder, "the certificate was renewed");
            }
            Err(why) => {
                tracing::warn!(%folder, reason = why, "the renewed certificate cannot be used; the last one stays");
            }
        }
        *seen = files;
    }
}

impl ResolvesServerCert for Mounted {
    /// Two small files are read for each handshake, which costs less than the signature. No timer can miss a renewal.
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.look();
        Some(Arc::clone(&self.current.read()))
    }
}

#[derive(PartialEq, Eq)]
struct Files {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl Files {
    fn read(folder: &Path) -> Result<Self, String> {
        let read = |name: &str| fs::read(folder.join(name)).map_err(|error| format!("{name}: {error}"));
        Ok(Self {
            certificate: read("tls.crt")?,
            key: read("tls.key")?,
        })
    }

    fn certified(&self) -> Result<Arc<CertifiedKey>, String> {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&self.certificate).collect();
        let chain = chain.map_err(|error| format!("tls.crt: {error}"))?;
        if chain.is_empty() {
            return Err("tls.crt: there is no certificate in it".to_owned());
        }
        let key = PrivateKeyDer::from_pem_slice(&self.key).map_err(|error| format!("tls.key: {error}"))?;
        let certified = CertifiedKey::from_der(chain, key, &provider());
        let certified = certified.map_err(|error| format!("tls.crt and tls.key: {error}"))?;
        Ok(Arc::new(certified))
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use windlass_pki::{CaRequest, CertificateAuthority, KeyAlgorithm, PrivateKey};

    use super::*;

    /// A certificate and its key.
    fn pair() -> (String, String) {
        let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap();
        let request = CaRequest::new("localhost");
        let made = CertificateAuthority::self_signed(&request, key, Timestamp::now()).unwrap();
        (made.certificate().to_pem(), made.key().to_pem())
    }

    #[test]
    fn bad_files_are_reported_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let (certificate, key) = pair();
        let (_, other_key) = pair();
        let check = |certificate: &str, key: &str, expect: Option<&str>| {
            fs::write(folder.path().join("tls.crt"), certificate).unwrap();
            fs::write(folder.path().join("tls.key"), key).unwrap();
            let result = tls(folder.path()).map(drop).map_err(|error| error.to_string());
            match (&result, expect) {
                (Ok(()), None) => {}
                (Err(text), Some(part)) => {
                    assert!(text.contains(part) && !text.contains("PRIVATE"), "{text}");
                    assert!(text.contains(&*folder.path().to_string_lossy()), "{text}");
                }
                _ => panic!("{result:?} is not {expect:?}"),
            }
        };
        assert!(tls(folder.path()).unwrap_err().to_string().contains("tls.crt: "));
        check(&certificate, &key, None);
        check("", &key, Some("tls.crt: there is no certificate"));
        check(&certificate, "", Some("tls.key: "));
        check(&certificate, &other_key, Some("tls.crt and tls.key: "));
        check("-----BEGIN CERTIFICATE-----\nAAAA\n", &key, Some("tls.crt: "));
    }

    #[test]
    fn the_last_good_certificate_stays() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        let (certificate, key) = pair();
        write("tls.crt", &certificate);
        write("tls.key", &key);
        let mounted = Mounted::read(folder.path().to_owned()).unwrap();
        let current = || {
            mounted.look();
            Arc::clone(&mounted.current.read())
        };
        let first = current();
        assert!(Arc::ptr_eq(&first, &current()), "nothing has changed");
        let (other_certificate, other_key) = pair();
        write("tls.crt", &other_certificate);
        assert!(Arc::ptr_eq(&first, &current()), "the key is not there yet");
        write("tls.key", &other_key);
        let second = current();
        assert!(first.cert != second.cert);
        fs::remove_file(folder.path().join("tls.crt")).unwrap();
        assert!(Arc::ptr_eq(&second, &current()));
        write("tls.crt", &other_certificate);
        assert_eq!(current().cert, second.cert);
    }
}
