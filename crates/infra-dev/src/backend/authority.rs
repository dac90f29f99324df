//! Authorities as a machine has them: one that signs, and all that are trusted. They are more than one while they are being replaced.

use std::sync::Arc;

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use windlass_pki::{Certificate, CertificateAuthority, PkiError};

/// Certificates of authorities that are trusted alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bundle(Vec<Certificate>);

impl Bundle {
    /// The certificates of a PEM text.
    pub(crate) fn from_pem(text: &str) -> Result<Self, PkiError> {
        Certificate::all_from_pem(text).map(Self)
    }

    /// The certificates as PEM, in their order.
    pub(super) fn to_pem(&self) -> String {
        self.0.iter().map(Certificate::to_pem).collect()
    }

    /// The certificates for a TLS configuration.
    pub(super) fn certificates(&self) -> Vec<CertificateDer<'static>> {
        let all = self.0.iter();
        all.map(|certificate| CertificateDer::from(certificate.der().to_vec()))
            .collect()
    }

    /// The certificates as trust anchors.
    pub(super) fn roots(&self) -> Result<Arc<RootCertStore>, String> {
        let mut roots = RootCertStore::empty();
        for certificate in self.certificates() {
            roots.add(certificate).map_err(|error| error.to_string())?;
        }
        Ok(Arc::new(roots))
    }

    /// The pins of the public keys, as `kubeadm join` compares them.
    pub(super) fn pins(&self) -> Vec<String> {
        self.0.iter().map(Certificate::public_key_pin).collect()
    }
}

/// An authority of one purpose, as one machine has it.
#[derive(Clone, Debug)]
pub(crate) struct Authority {
    signer: CertificateAuthority,
    trusted: Arc<Bundle>,
}

impl Authority {
    /// Parses an authority: the key belongs to the first certificate, and all certificates are trusted.
    pub(crate) fn from_pem(certificates: &str, key: &str) -> Result<Self, PkiError> {
        Ok(Self {
            signer: CertificateAuthority::from_pem(certificates, key)?,
            trusted: Arc::new(Bundle::from_pem(certificates)?),
        })
    }

    /// An authority that trusts itself only.
    pub(crate) fn alone(signer: CertificateAuthority) -> Self {
        let trusted = Arc::new(Bundle(vec![signer.certificate().clone()]));
        Self { signer, trusted }
    }

    /// The one that signs.
    pub(super) fn signer(&self) -> &CertificateAuthority {
        &self.signer
    }

    /// Those that are trusted.
    pub(super) fn trusted(&self) -> &Arc<Bundle> {
        &self.trusted
    }

    /// The one that signs, as all that is trusted.
    pub(super) fn first(&self) -> Bundle {
        Bundle(vec![self.signer.certificate().clone()])
    }

    /// Whether both sign and trust alike.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.signer.certificate() == other.signer.certificate() && self.trusted == other.trusted
    }

    /// Whether what it signs is valid for all who trust `bundle`, and the other way around, without a look at single certificates: there is
    /// no other authority. One that is not valid yet proves nothing.
    pub(super) fn is_all_of(&self, bundle: &Bundle, now: jiff::Timestamp) -> bool {
        let alone = |bundle: &Bundle| *bundle.0 == *std::slice::from_ref(self.signer.certificate());
        alone(bundle) && alone(&self.trusted) && (self.signer.certificate().not_before()..).contains(&now)
    }
}

/// The authorities of a workload cluster, as one of its control plane machines has them.
#[derive(Clone, Debug)]
pub(crate) struct Authorities {
    /// Signs the certificates of the API server and its clients.
    pub(crate) cluster: Arc<Authority>,
    /// The same for etcd; none where the machine has no key to sign with, as etcd runs elsewhere.
    pub(crate) etcd: Option<Arc<Authority>>,
}
