//! Rotating an authority: its Secret holds the old and the new pair until nothing relies on the old one.
//!
//! The Secret keeps the form that every reader of Cluster API knows: the first certificate of `tls.crt` belongs to `tls.key` and signs,
//! all of them are trusted. For service accounts `tls.crt` is one public key or two. The way goes in stages, each of which reaches all
//! machines before the next begins.

mod dropped;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use sha2::{Digest as _, Sha256};

pub use dropped::{ROTATION_DROPPED, dropped, fingerprints, without};

use crate::purpose::{TLS_CRT, TLS_KEY};
use crate::{KeyMaterial, PkiError, PrivateKey, Purpose, pem};

/// On the Secret of an authority: the name of the rotation that is under way.
pub const ROTATION: &str = "windlass.dev/authority-rotation";
/// On the Secret of an authority: its [`RotationStage`].
pub const ROTATION_STAGE: &str = "windlass.dev/authority-rotation-stage";
/// On the Secret of an authority: when its stage began.
pub const ROTATION_SINCE: &str = "windlass.dev/authority-rotation-since";
/// On the Secret of the cluster's authority: workers made before this time are replaced in this stage.
pub const ROTATION_WORKERS: &str = "windlass.dev/authority-rotation-workers";
/// On what was made of authorities during a rotation (bootstrap data, kubeconfig): their [`mark`].
pub const AUTHORITIES: &str = "windlass.dev/authorities";
/// On the Secret of an authority: [`held`] of what its stage put into `tls.crt`. A change in the meantime is noticed by it.
pub const ROTATION_HOLDS: &str = "windlass.dev/authority-rotation-holds";
/// Key of the next certificate (or public service account key) while both are trusted and the old one signs.
pub const NEXT_CRT: &str = "next.crt";
/// Key of the next private key.
pub const NEXT_KEY: &str = "next.key";
/// Below kubeadm's certificates folder: the certificate that signs, alone. The controller manager reads no bundle there.
pub const SIGNING_CERTIFICATE: &str = "signing-ca.crt";

/// How far a rotation is, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RotationStage {
    /// The old authority signs, both are trusted.
    Preparing,
    /// The new authority signs, both are trusted.
    Completing,
    /// The same once more: what joined while the old authority still signed joins again.
    Renewing,
    /// Only the new authority is trusted.
    Dropping,
}

impl RotationStage {
    /// The name, as annotations and conditions have it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Preparing => "Preparing",
            Self::Completing => "Completing",
            Self::Renewing => "Renewing",
            Self::Dropping => "Dropping",
        }
    }
}

impl fmt::Display for RotationStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for RotationStage {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let all = [Self::Preparing, Self::Completing, Self::Renewing, Self::Dropping];
        let found = all.into_iter().find(|stage| stage.as_str() == text);
        found.ok_or_else(|| format!("\"{text}\" is none of Preparing, Completing, Renewing, Dropping"))
    }
}

/// The data of a Secret, by key. `Debug` shows no value.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SecretChange(pub BTreeMap<&'static str, Option<String>>);

impl fmt::Debug for SecretChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// The blocks of a PEM text, each as a text of its own.
pub fn blocks(text: &str) -> Result<Vec<String>, PkiError> {
    let blocks = pem::blocks("the authority", text)?;
    Ok(blocks
        .into_iter()
        .map(|block| pem::encode(&block.label, &block.der))
        .collect())
}

/// The first block of a PEM text: the certificate that signs.
pub fn signer(text: &str) -> Result<String, PkiError> {
    // A text without a block is an error already.
    Ok(blocks(text)?.into_iter().next().unwrap_or_default())
}

/// Checks that a pair fits together, so that no broken pair gets into a cluster.
pub fn check(purpose: Purpose, pair: &KeyMaterial) -> Result<(), PkiError> {
    if purpose != Purpose::ServiceAccount {
        return pair.authority().map(drop);
    }
    let key = PrivateKey::from_pem(&pair.key)?;
    if signer(&pair.crt)? == signer(&key.public_pem())? {
        return Ok(());
    }
    Err(PkiError::KeyMismatch {
        subject: "service accounts".to_owned(),
    })
}

/// Both are trusted, and the old one signs.
pub fn preparing(old: &KeyMaterial, next: &KeyMaterial) -> Result<SecretChange, PkiError> {
    let next_crt = signer(&next.crt)?;
    Ok(SecretChange(BTreeMap::from([
        (TLS_CRT, Some(format!("{}{next_crt}", signer(&old.crt)?))),
        (TLS_KEY, Some(old.key.clone())),
        (NEXT_CRT, Some(next_crt)),
        (NEXT_KEY, Some(next.key.clone())),
    ])))
}

/// Both are trusted, and the new one signs. The old key is not needed any more.
pub fn completing(old: &KeyMaterial, next: &KeyMaterial) -> Result<SecretChange, PkiError> {
    let old_crt = signer(&old.crt)?;
    Ok(SecretChange(BTreeMap::from([
        (TLS_CRT, Some(format!("{}{old_crt}", signer(&next.crt)?))),
        (TLS_KEY, Some(next.key.clone())),
        (NEXT_CRT, None),
        (NEXT_KEY, None),
    ])))
}

/// Only the one that signs is trusted.
pub fn alone(current: &KeyMaterial) -> Result<SecretChange, PkiError> {
    let mut change = alone_again(current)?;
    change.0.extend([(NEXT_CRT, None), (NEXT_KEY, None)]);
    Ok(change)
}

/// Only the one that signs is trusted, and the next pair stays: a user brought it, and may have no other copy.
pub fn alone_again(current: &KeyMaterial) -> Result<SecretChange, PkiError> {
    Ok(SecretChange(BTreeMap::from([(TLS_CRT, Some(signer(&current.crt)?))])))
}

/// The [`mark`] of one authority, whatever the stage.
pub fn held(purpose: Purpose, crt: &str) -> String {
    mark("", [(purpose, crt)])
}

/// What [`mark`] takes as the stage of workers: those that join after all were called to be replaced have another one than those before.
pub fn worker_stage(stage: &str, workers: Option<&str>) -> String {
    workers.map_or_else(|| stage.to_owned(), |workers| format!("{stage}/{workers}"))
}

/// A short text that tells apart what was made in one stage or another: what is trusted, and what signs.
pub fn mark<'a>(stage: &str, authorities: impl IntoIterator<Item = (Purpose, &'a str)>) -> String {
    let sorted: BTreeMap<Purpose, &str> = authorities.into_iter().collect();
    let mut digest = Sha256::new();
    digest.update(stage);
    digest.update([0]);
    for (purpose, text) in sorted {
        digest.update(purpose.suffix());
        digest.update([0]);
        // A user's text may have other line ends, or comments.
        digest.update(blocks(text).map_or_else(|_| text.to_owned(), |blocks| blocks.concat()));
        digest.update([0]);
    }
    hex(&digest.finalize()[..16])
}

/// Bytes in lower-case hexadecimal.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        use fmt::Write as _;
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::KeyAlgorithm;

    fn pair(purpose: Purpose) -> KeyMaterial {
        let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap();
        KeyMaterial::generate(purpose, key, 3650, Timestamp::UNIX_EPOCH).unwrap()
    }

    fn changed(before: &KeyMaterial, change: &SecretChange) -> KeyMaterial {
        let value = |key: &str, before: &String| match change.0.get(key) {
            Some(value) => value.clone().unwrap_or_default(),
            None => before.clone(),
        };
        KeyMaterial {
            crt: value(TLS_CRT, &before.crt),
            key: value(TLS_KEY, &before.key),
        }
    }

    #[test]
    fn the_first_certificate_signs_and_all_are_trusted() {
        for purpose in Purpose::CONTROL_PLANE {
            let (old, next) = (pair(purpose), pair(purpose));
            let preparing = changed(&old, &preparing(&old, &next).unwrap());
            check(purpose, &preparing).unwrap();
            assert_eq!(preparing.crt, format!("{}{}", old.crt, next.crt));
            let completing = changed(&preparing, &completing(&preparing, &next).unwrap());
            check(purpose, &completing).unwrap();
            assert_eq!(completing.crt, format!("{}{}", next.crt, old.crt));
            assert_eq!(changed(&completing, &alone(&completing).unwrap()), next);
            assert_eq!(changed(&preparing, &alone(&preparing).unwrap()), old);
        }
    }

    #[test]
    fn a_key_of_another_pair_is_refused() {
        for purpose in Purpose::CONTROL_PLANE {
            let mixed = KeyMaterial {
                key: pair(purpose).key,
                ..pair(purpose)
            };
            assert!(matches!(check(purpose, &mixed), Err(PkiError::KeyMismatch { .. })));
        }
    }

    #[test]
    fn marks_differ_by_order_and_by_purpose() {
        let mark = |purpose, text| mark("", [(purpose, text)]);
        let one = mark(Purpose::ClusterCa, "ab");
        assert_ne!(one, mark(Purpose::ClusterCa, "ba"));
        assert_ne!(one, mark(Purpose::EtcdCa, "ab"));
        assert_eq!(one, mark(Purpose::ClusterCa, "ab"));
        assert_eq!(one.len(), 32);
        assert_ne!(one, super::mark("Renewing", [(Purpose::ClusterCa, "ab")]));
    }

    #[test]
    fn marks_do_not_depend_on_how_a_text_is_written() {
        let crt = pair(Purpose::EtcdCa).crt;
        let written = format!("# of the etcd team\r\n{}", crt.replace('\n', "\r\n"));
        let mark = |text: &str| super::mark("Preparing", [(Purpose::EtcdCa, text)]);
        assert_eq!(mark(&crt), mark(&written));
    }

    #[test]
    fn a_change_shows_no_key() {
        let (old, next) = (pair(Purpose::ClusterCa), pair(Purpose::ClusterCa));
        let shown = format!("{:?}", preparing(&old, &next).unwrap());
        assert!(!shown.contains("PRIVATE") && shown.contains("next.key"), "{shown}");
    }
}
