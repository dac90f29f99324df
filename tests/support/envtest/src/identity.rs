//! Certificates and keys of one control plane. Each control plane has its own.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use windlass_pki::{
    CaRequest, Certificate, CertificateAuthority, KeyAlgorithm, Kubeconfig, LeafRequest, PkiError, PrivateKey,
};

use crate::StartError;

/// The DNS names and addresses of the server.
const NAMES: [&str; 4] = ["localhost", "127.0.0.1", "::1", "kubernetes.default.svc"];

/// The certificates of a control plane and its clients.
pub(crate) struct Identity {
    authority: CertificateAuthority,
    made: Timestamp,
}

impl Identity {
    /// Creates them and writes the files for the programs to a folder.
    pub(crate) fn make(folder: &Path) -> Result<Self, StartError> {
        let identity = Self::make_authority()?;
        let names = NAMES.iter().map(|name| (*name).to_owned()).collect();
        let (server, server_key) = identity.issue(&LeafRequest::server("kube-apiserver", names))?;
        let account = new_key()?;
        for (name, text) in [
            ("ca.crt", identity.authority.certificate().to_pem()),
            ("server.crt", server.to_pem()),
            ("server.key", server_key.to_pem()),
            ("sa.key", account.to_pem()),
            ("sa.pub", account.public_pem()),
        ] {
            write(&folder.join(name), &text)?;
        }
        Ok(identity)
    }

    /// Creates a CA alone.
    pub(crate) fn make_authority() -> Result<Self, PkiError> {
        let made = Timestamp::now();
        let authority = CertificateAuthority::self_signed(&CaRequest::new("envtest"), new_key()?, made)?;
        Ok(Self { authority, made })
    }

    /// Creates a certificate (`crt`) and its key (`key`) for a server, and hands both to a writer.
    pub(crate) fn serve(
        &self,
        request: &LeafRequest,
        write: impl Fn(&str, &str) -> Result<(), StartError>,
    ) -> Result<(), StartError> {
        let (certificate, key) = self.issue(request)?;
        write("crt", &certificate.to_pem())?;
        write("key", &key.to_pem())
    }

    fn issue(&self, request: &LeafRequest) -> Result<(Certificate, PrivateKey), PkiError> {
        let key = new_key()?;
        let certificate = self.authority.issue(request, &key, self.made)?;
        Ok((certificate, key))
    }

    /// A kubeconfig for a client certificate.
    pub(crate) fn kubeconfig(&self, request: &LeafRequest, server: &str) -> Result<String, PkiError> {
        let (certificate, key) = self.issue(request)?;
        let kubeconfig = Kubeconfig {
            cluster: "envtest".to_owned(),
            server: server.to_owned(),
            authority: self.authority.certificate().to_pem(),
            client_certificate: certificate.to_pem(),
            client_key: key.to_pem(),
        };
        Ok(kubeconfig.render())
    }

    /// The CA certificate, PEM.
    pub(crate) fn authority(&self) -> String {
        self.authority.certificate().to_pem()
    }
}

fn new_key() -> Result<PrivateKey, PkiError> {
    PrivateKey::generate(KeyAlgorithm::EcdsaP256)
}

pub(crate) fn write(path: &Path, text: &str) -> Result<(), StartError> {
    let path: PathBuf = path.to_owned();
    std::fs::write(&path, text).map_err(|source| StartError::File { path, source })
}
