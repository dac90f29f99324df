//! Which certificates a rotation has dropped. What else remembers them is cleaned by their fingerprints.

use std::collections::BTreeSet;

use sha2::{Digest as _, Sha256};

use super::hex;
use crate::{KeyMaterial, PkiError, pem};

/// On the Secret of an authority in stage Dropping: the fingerprints of the certificates that are not trusted any more, with commas between.
pub const ROTATION_DROPPED: &str = "windlass.dev/authority-rotation-dropped";

const CERTIFICATE: &str = "CERTIFICATE";

/// The fingerprints of all certificates of a PEM text: SHA-256 of their DER, in lower-case hexadecimal. An empty text has none.
pub fn fingerprints(text: &str) -> Result<BTreeSet<String>, PkiError> {
    let blocks = certificates(text)?.into_iter();
    Ok(blocks.map(|block| fingerprint(&block.der)).collect())
}

/// What is dropped when only the certificate that signs stays, as [`ROTATION_DROPPED`] has it; none where no certificate is dropped.
pub fn dropped(current: &KeyMaterial) -> Result<Option<String>, PkiError> {
    let mut fingerprints = certificates(&current.crt)?
        .into_iter()
        .map(|block| fingerprint(&block.der));
    let signer = fingerprints.next();
    let others: BTreeSet<String> = fingerprints.filter(|other| Some(other) != signer.as_ref()).collect();
    let others: Vec<String> = others.into_iter().collect();
    Ok((!others.is_empty()).then(|| others.join(",")))
}

/// A PEM text without the certificates of these fingerprints.
pub fn without(text: &str, fingerprints: &BTreeSet<String>) -> Result<String, PkiError> {
    let blocks = certificates(text)?.into_iter();
    let kept = blocks.filter(|block| !fingerprints.contains(&fingerprint(&block.der)));
    Ok(kept.map(|block| pem::encode(&block.label, &block.der)).collect())
}

/// Public keys of service accounts are no certificates.
fn certificates(text: &str) -> Result<Vec<pem::Block>, PkiError> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let blocks = pem::blocks("the authority", text)?.into_iter();
    Ok(blocks.filter(|block| block.label == CERTIFICATE).collect())
}

fn fingerprint(der: &[u8]) -> String {
    hex(&Sha256::digest(der))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::rotation::{alone, completing};
    use crate::{KeyAlgorithm, PrivateKey, Purpose};

    fn pair(purpose: Purpose) -> KeyMaterial {
        let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap();
        KeyMaterial::generate(purpose, key, 3650, Timestamp::UNIX_EPOCH).unwrap()
    }

    fn both(purpose: Purpose) -> (KeyMaterial, KeyMaterial) {
        let (old, next) = (pair(purpose), pair(purpose));
        let mut change = completing(&old, &next).unwrap().0;
        let crt = change.remove("tls.crt").flatten().unwrap();
        (old, KeyMaterial { crt, ..next })
    }

    #[test]
    fn what_is_dropped_is_all_but_what_signs() {
        let (old, both) = both(Purpose::ClusterCa);
        let named = dropped(&both).unwrap().unwrap();
        assert_eq!(fingerprints(&old.crt).unwrap(), BTreeSet::from([named.clone()]));
        assert_eq!(named.len(), 64);
        let alone = alone(&both).unwrap().0["tls.crt"].clone().unwrap();
        assert_eq!(without(&both.crt, &BTreeSet::from([named])).unwrap(), alone);
        assert_eq!(dropped(&old).unwrap(), None);
        let twice = KeyMaterial {
            crt: old.crt.repeat(2),
            ..old
        };
        assert_eq!(dropped(&twice).unwrap(), None);
    }

    #[test]
    fn keys_of_service_accounts_are_no_certificates() {
        let (_, both) = both(Purpose::ServiceAccount);
        assert_eq!(dropped(&both).unwrap(), None);
    }

    #[test]
    fn an_empty_text_has_no_certificate_and_another_one_must_be_pem() {
        assert_eq!(fingerprints("\n").unwrap(), BTreeSet::new());
        assert_eq!(without("", &BTreeSet::new()).unwrap(), "");
        assert!(fingerprints("junk").is_err());
    }
}
