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

pub use authority::{BACKDATED, CaRequest, CertificateAuthority, LeafRequest, LeafUsage};
pub use certificate::{Certificate, needs_rotation};
pub use key::{KeyAlgorithm, PrivateKey};
pub use kubeconfig::Kubeconfig;
pub use pool::{KeyPool, PendingKey};
pub use purpose::{KeyMaterial, Purpose};

/// What can go wrong with keys and certificates. No text holds key material.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PkiError {
    /// The name of a key algorithm is not one of those that kubeadm knows.
    #[error(
        "unknown encryption algorithm \"{0}\": expected one of RSA-2048, RSA-3072, RSA-4096, ECDSA-P256, ECDSA-P384"
    )]
    UnknownAlgorithm(String),
    /// A PEM text could not be read.
    #[error("{what} is not valid PEM: {why}")]
    Pem {
        /// What was being read.
        what: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// A certificate or key is malformed.
    #[error("{what} cannot be read: {why}")]
    Malformed {
        /// What was being read.
        what: &'static str,
        /// What is wrong with it.
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
        /// What was attempted.
        what: &'static str,
        /// What the library said.
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
