//! Certificate authorities, leaf certificates and kubeconfigs of workload clusters.
//!
//! Everything here is a function of its arguments, time included; only keys and serial numbers are random. Private keys
//! never appear in `Debug` output or error texts.

pub mod authority;
pub mod certificate;
mod der;
pub mod key;
pub mod kubeconfig;
mod pem;
pub mod pool;
pub mod purpose;
pub mod rotation;

pub use authority::{BACKDATED, CaRequest, CertificateAuthority, DEFAULT_LEAF_DAYS, LeafRequest, LeafUsage};
pub use certificate::{Certificate, needs_rotation};
pub use key::{KeyAlgorithm, PrivateKey};
pub use kubeconfig::Kubeconfig;
pub use pool::{KeyPool, PendingKey, stop_generating};
pub use purpose::{KeyMaterial, Purpose};
pub use rotation::RotationStage;

/// Errors of keys and certificates. No text contains key material.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PkiError {
    /// The name of a key algorithm is unknown to kubeadm.
    #[error(
        "unknown encryption algorithm \"{0}\": expected one of RSA-2048, RSA-3072, RSA-4096, ECDSA-P256, ECDSA-P384"
    )]
    UnknownAlgorithm(String),
    /// A PEM text could not be read.
    #[error("{what} is not valid PEM: {why}")]
    Pem {
        /// The kind of text.
        what: &'static str,
        /// The cause.
        why: String,
    },
    /// A certificate or key is malformed.
    #[error("{what} cannot be read: {why}")]
    Malformed {
        /// The kind of document.
        what: &'static str,
        /// The cause.
        why: String,
    },
    /// A private key does not belong to its certificate.
    #[error("the private key does not belong to the certificate of \"{subject}\": both must come from the same pair")]
    KeyMismatch {
        /// Common name of the certificate.
        subject: String,
    },
    /// Generating or signing failed inside the cryptographic library.
    #[error("{what} failed: {why}")]
    Crypto {
        /// The operation.
        what: &'static str,
        /// The library's error.
        why: String,
    },
    /// A kubeconfig lacks a field or is not YAML.
    #[error("kubeconfig: {0}")]
    Kubeconfig(String),
}

pub(crate) fn crypto(what: &'static str) -> impl Fn(rcgen::Error) -> PkiError {
    move |error| PkiError::Crypto {
        what,
        why: error.to_string(),
    }
}

#[cfg(test)]
mod tests;
