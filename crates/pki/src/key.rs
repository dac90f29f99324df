//! Private keys in the algorithms of kubeadm, in the formats of kubeadm and Cluster API.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use aws_lc_rs::encoding::{AsDer as _, Pkcs8V1Der};
use aws_lc_rs::rsa;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING, EcdsaKeyPair};
use rcgen::{PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_RSA_SHA256, PublicKeyData as _, RsaKeySize};

use crate::{PkiError, crypto, der, pem};

const RSA_LABEL: &str = "RSA PRIVATE KEY";
const EC_LABEL: &str = "EC PRIVATE KEY";
const PKCS8_LABEL: &str = "PRIVATE KEY";

/// prime256v1
const P256_OID: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
/// secp384r1
const P384_OID: &[u8] = &[0x2b, 0x81, 0x04, 0x00, 0x22];

/// A key algorithm, by the names of `encryptionAlgorithm`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum KeyAlgorithm {
    /// RSA with 2048 bits, the default of kubeadm.
    #[default]
    Rsa2048,
    /// RSA with 3072 bits.
    Rsa3072,
    /// RSA with 4096 bits.
    Rsa4096,
    /// ECDSA over P-256.
    EcdsaP256,
    /// ECDSA over P-384.
    EcdsaP384,
}

impl KeyAlgorithm {
    /// The name as kubeadm spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rsa2048 => "RSA-2048",
            Self::Rsa3072 => "RSA-3072",
            Self::Rsa4096 => "RSA-4096",
            Self::EcdsaP256 => "ECDSA-P256",
            Self::EcdsaP384 => "ECDSA-P384",
        }
    }

    /// Whether the generation of a key is too slow for an async thread.
    pub const fn is_slow(self) -> bool {
        matches!(self, Self::Rsa2048 | Self::Rsa3072 | Self::Rsa4096)
    }
}

impl fmt::Display for KeyAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for KeyAlgorithm {
    type Err = PkiError;

    /// Parses a name; the empty string is the default.
    fn from_str(name: &str) -> Result<Self, PkiError> {
        match name {
            "" | "RSA-2048" => Ok(Self::Rsa2048),
            "RSA-3072" => Ok(Self::Rsa3072),
            "RSA-4096" => Ok(Self::Rsa4096),
            "ECDSA-P256" => Ok(Self::EcdsaP256),
            "ECDSA-P384" => Ok(Self::EcdsaP384),
            other => Err(PkiError::UnknownAlgorithm(other.to_owned())),
        }
    }
}

/// A private key; clones share it.
#[derive(Clone)]
pub struct PrivateKey {
    algorithm: KeyAlgorithm,
    pair: Arc<rcgen::KeyPair>,
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PrivateKey({})", self.algorithm)
    }
}

impl PrivateKey {
    /// Generates a key on this thread. RSA takes tens to hundreds of milliseconds: see [`crate::KeyPool`].
    pub fn generate(algorithm: KeyAlgorithm) -> Result<Self, PkiError> {
        let pair = match algorithm {
            KeyAlgorithm::Rsa2048 => rcgen::KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048),
            KeyAlgorithm::Rsa3072 => rcgen::KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_3072),
            KeyAlgorithm::Rsa4096 => rcgen::KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_4096),
            KeyAlgorithm::EcdsaP256 => rcgen::KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256),
            KeyAlgorithm::EcdsaP384 => rcgen::KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384),
        }
        .map_err(crypto("generating a key"))?;
        Ok(Self {
            algorithm,
            pair: Arc::new(pair),
        })
    }

    /// Parses a key in PKCS#1, SEC 1 or PKCS#8 form.
    pub fn from_pem(text: &str) -> Result<Self, PkiError> {
        const WHAT: &str = "the private key";
        let malformed = |why: String| PkiError::Malformed { what: WHAT, why };
        let blocks = pem::blocks(WHAT, text)?;
        // OpenSSL writes the curve's parameters in a separate block before an EC key.
        let Some(block) = blocks.into_iter().find(|block| block.label.ends_with(PKCS8_LABEL)) else {
            return Err(malformed("no block is labelled as a private key".to_owned()));
        };
        let pkcs8 = match block.label.as_str() {
            PKCS8_LABEL => block.der,
            RSA_LABEL => {
                let pair = rsa::KeyPair::from_der(&block.der).map_err(|error| malformed(error.to_string()))?;
                let encoded: Pkcs8V1Der<'_> = pair.as_der().map_err(|error| malformed(error.to_string()))?;
                encoded.as_ref().to_vec()
            }
            EC_LABEL => [&ECDSA_P256_SHA256_ASN1_SIGNING, &ECDSA_P384_SHA384_ASN1_SIGNING]
                .into_iter()
                .find_map(|curve| {
                    EcdsaKeyPair::from_private_key_der(curve, &block.der)
                        .ok()?
                        .to_pkcs8v1()
                        .ok()
                })
                .map(|encoded| encoded.as_ref().to_vec())
                .ok_or_else(|| malformed("the curve is neither P-256 nor P-384, or the key is damaged".to_owned()))?,
            other => {
                return Err(malformed(format!("keys labelled \"{other}\" are not supported")));
            }
        };
        Self::from_pkcs8(pkcs8)
    }

    fn from_pkcs8(pkcs8: Vec<u8>) -> Result<Self, PkiError> {
        let malformed = |why: String| PkiError::Malformed {
            what: "the private key",
            why,
        };
        let pair = rcgen::KeyPair::try_from(pkcs8).map_err(|error| malformed(error.to_string()))?;
        let algorithm = if pair.is_compatible(&PKCS_ECDSA_P256_SHA256) {
            KeyAlgorithm::EcdsaP256
        } else if pair.is_compatible(&PKCS_ECDSA_P384_SHA384) {
            KeyAlgorithm::EcdsaP384
        } else if pair.is_compatible(&PKCS_RSA_SHA256) {
            // The length of the raw public key (modulus, exponent and their headers) determines the size.
            match pair.public_key_raw().len() {
                0..=300 => KeyAlgorithm::Rsa2048,
                301..=420 => KeyAlgorithm::Rsa3072,
                _ => KeyAlgorithm::Rsa4096,
            }
        } else {
            return Err(malformed(
                "only RSA, ECDSA P-256 and ECDSA P-384 are supported".to_owned(),
            ));
        };
        Ok(Self {
            algorithm,
            pair: Arc::new(pair),
        })
    }

    /// Which algorithm the key is for.
    pub fn algorithm(&self) -> KeyAlgorithm {
        self.algorithm
    }

    /// The key in the form of kubeadm: `RSA PRIVATE KEY` (PKCS#1) or `EC PRIVATE KEY` (SEC 1).
    pub fn to_pem(&self) -> String {
        let pkcs8 = self.pair.serialized_der();
        let traditional = match self.algorithm {
            KeyAlgorithm::EcdsaP256 => self.sec1(P256_OID).map(|der| (EC_LABEL, der)),
            KeyAlgorithm::EcdsaP384 => self.sec1(P384_OID).map(|der| (EC_LABEL, der)),
            _ => der::pkcs8_inner(pkcs8).map(|inner| (RSA_LABEL, inner.to_vec())),
        };
        // Every reader of the older forms also reads PKCS#8, so an unexpected document is passed on unchanged.
        let (label, der) = traditional.unwrap_or_else(|| (PKCS8_LABEL, pkcs8.to_vec()));
        pem::encode(label, &der)
    }

    /// The key as a PKCS#8 document, for TLS configuration.
    pub fn to_pkcs8_der(&self) -> Vec<u8> {
        self.pair.serialized_der().to_vec()
    }

    /// The public key, `PUBLIC KEY` (subject public key info).
    pub fn public_pem(&self) -> String {
        pem::encode("PUBLIC KEY", &self.public_der())
    }

    /// The public key as subject public key info.
    pub fn public_der(&self) -> Vec<u8> {
        self.pair.subject_public_key_info()
    }

    pub(crate) fn pair(&self) -> &rcgen::KeyPair {
        &self.pair
    }

    fn sec1(&self, curve_oid: &[u8]) -> Option<Vec<u8>> {
        let number = der::ec_private_number(der::pkcs8_inner(self.pair.serialized_der())?)?;
        Some(der::ec_private_key(number, curve_oid, self.pair.public_key_raw()))
    }
}
