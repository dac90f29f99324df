//! Parses certificates: expiry, subject, the hash that joining nodes pin.

use std::net::IpAddr;

use jiff::{SignedDuration, Timestamp};
use sha2::{Digest as _, Sha256};
use x509_parser::prelude::{FromDer as _, GeneralName, X509Certificate};

use crate::{PkiError, pem};

const WHAT: &str = "the certificate";
const LABEL: &str = "CERTIFICATE";

/// An X.509 certificate, parsed once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    der: Vec<u8>,
    common_name: String,
    alternative_names: Vec<String>,
    not_before: Timestamp,
    not_after: Timestamp,
    public_key: Vec<u8>,
    is_ca: bool,
}

impl Certificate {
    /// Parses DER.
    pub fn from_der(der: Vec<u8>) -> Result<Self, PkiError> {
        let malformed = |why: String| PkiError::Malformed { what: WHAT, why };
        let (_, parsed) = X509Certificate::from_der(&der).map_err(|error| malformed(error.to_string()))?;
        let time = |seconds: i64| Timestamp::from_second(seconds).map_err(|error| malformed(error.to_string()));
        let common_name = parsed
            .subject()
            .iter_common_name()
            .next()
            .and_then(|name| name.as_str().ok())
            .unwrap_or_default()
            .to_owned();
        let alternative_names = alternative_names(&parsed);
        let (not_before, not_after) = (
            time(parsed.validity().not_before.timestamp())?,
            time(parsed.validity().not_after.timestamp())?,
        );
        let public_key = parsed.public_key().raw.to_vec();
        let is_ca = parsed.is_ca();
        Ok(Self {
            der,
            common_name,
            alternative_names,
            not_before,
            not_after,
            public_key,
            is_ca,
        })
    }

    /// Parses the first certificate of a PEM text.
    pub fn from_pem(text: &str) -> Result<Self, PkiError> {
        Self::all_from_pem(text)?.into_iter().next().ok_or(PkiError::Pem {
            what: WHAT,
            why: "no block labelled CERTIFICATE".to_owned(),
        })
    }

    /// Parses all certificates of a PEM text, such as a bundle with an old and a new authority.
    pub fn all_from_pem(text: &str) -> Result<Vec<Self>, PkiError> {
        pem::blocks(WHAT, text)?
            .into_iter()
            .filter(|block| block.label == LABEL)
            .map(|block| Self::from_der(block.der))
            .collect()
    }

    /// The certificate as PEM.
    pub fn to_pem(&self) -> String {
        pem::encode(LABEL, &self.der)
    }

    /// The certificate as DER.
    pub fn der(&self) -> &[u8] {
        &self.der
    }

    /// The subject's common name, empty when there is none.
    pub fn common_name(&self) -> &str {
        &self.common_name
    }

    /// The DNS names and addresses of a server.
    pub fn alternative_names(&self) -> &[String] {
        &self.alternative_names
    }

    /// The start of its validity.
    pub fn not_before(&self) -> Timestamp {
        self.not_before
    }

    /// The end of its validity.
    pub fn not_after(&self) -> Timestamp {
        self.not_after
    }

    /// Whether it may sign other certificates.
    pub fn is_ca(&self) -> bool {
        self.is_ca
    }

    /// The public key as subject public key info.
    pub fn public_key_der(&self) -> &[u8] {
        &self.public_key
    }

    /// The pin that `kubeadm join` checks: `sha256:` and the hash of the public key info in lower-case hexadecimal.
    pub fn public_key_pin(&self) -> String {
        use std::fmt::Write as _;
        let digest = Sha256::digest(&self.public_key);
        digest.iter().fold("sha256:".to_owned(), |mut text, byte| {
            // Writing to a String cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
    }
}

fn alternative_names(parsed: &X509Certificate<'_>) -> Vec<String> {
    let names = parsed.subject_alternative_name().ok().flatten();
    let names = names.iter().flat_map(|extension| &extension.value.general_names);
    let read = |name: &GeneralName<'_>| match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => {
            let four = <[u8; 4]>::try_from(*bytes).map(IpAddr::from);
            let address = four.or_else(|_| <[u8; 16]>::try_from(*bytes).map(IpAddr::from));
            Some(address.ok()?.to_string())
        }
        _ => None,
    };
    names.filter_map(read).collect()
}

/// Whether a certificate should be replaced now: in the second half of its validity, or after it.
///
/// `lifetime` is the usual validity of such certificates. One with a longer validity is kept until half of `lifetime` is left, so
/// that both have the same safety margin.
pub fn needs_rotation(not_after: Timestamp, lifetime: SignedDuration, now: Timestamp) -> bool {
    // A lifetime is years and timestamps reach to the year 9999: an overflow can only mean "far away".
    let margin = SignedDuration::from_secs(lifetime.as_secs() / 2);
    now.checked_add(margin).is_ok_and(|horizon| horizon > not_after)
}
