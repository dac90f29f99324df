//! Which kept releases the operator has written itself: digests in an annotation of the declaration.
//!
//! The operator applies what is in the Secrets with its own rights, and the role `edit` may write Secrets. So a release counts only with
//! its digest, in the provider object. A user who may change that may also change the source of the provider, which amounts to the
//! operator's rights anyway. It is an annotation and not a field of the status, because the CRDs of other operators prune unknown fields,
//! `*/status` can be granted alone, and backups leave the status out.
//!
//! - `kubectl apply` and backups keep the annotation. `kubectl replace` and a declaration that is made again lose it, and installations
//!   of operators without digests never had it: such a release is rendered again from its source.
//! - A digest is written before the Secret that it is about, and the one before stays until the next write. So whatever a process that
//!   ends in between has written, one of the digests fits.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::{Release, State};
use crate::objects::hex;

/// Writes of one release that may have been lost, before digests of the first of them are dropped.
const MOST: usize = 8;

/// The digests of the releases of a provider.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Vouched {
    /// The releases, by the name of their first Secret.
    all: BTreeMap<String, Voucher>,
    /// The annotation as it is stored.
    pub stored: Option<String>,
}

/// The digests of a release.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Voucher {
    /// Its version.
    version: String,
    /// Hash of the declaration that it was rendered for.
    hash: String,
    /// Hash of the files and variables that it was rendered from.
    content: String,
    /// Whether it was installed.
    #[serde(default)]
    installed: bool,
    /// Digests of what is stored: the oldest is known to be written, later ones may be.
    digests: Vec<String>,
}

impl Vouched {
    /// What the annotation says. One that cannot be read vouches for nothing.
    pub fn read(stored: Option<&str>) -> Self {
        let all = stored.and_then(|text| serde_json::from_str(text).ok());
        Self {
            all: all.unwrap_or_default(),
            stored: stored.map(str::to_owned),
        }
    }

    /// The annotation.
    pub fn text(&self) -> String {
        serde_json::to_string(&self.all).unwrap_or_default()
    }

    /// Whether the operator has written a release with this digest into a Secret. Others of that Secret no longer count then.
    pub(super) fn settle(&mut self, secret: &str, digest: &str) -> bool {
        let Some(voucher) = self.all.get_mut(secret) else {
            return false;
        };
        let is_known = voucher.digests.iter().any(|known| known == digest);
        if is_known {
            voucher.digests = vec![digest.to_owned()];
        }
        is_known
    }

    /// Notes that a release is about to be written with this digest.
    pub fn expect(&mut self, secret: &str, release: &Release, digest: &str) {
        let before = self.all.remove(secret);
        let mut digests = before.map(|voucher| voucher.digests).unwrap_or_default();
        digests.retain(|known| known != digest);
        if digests.len() >= MOST {
            digests.remove(1);
        }
        digests.push(digest.to_owned());
        let voucher = Voucher {
            version: release.version.clone(),
            hash: release.hash.clone(),
            content: release.content.clone(),
            installed: release.state == State::Current,
            digests,
        };
        self.all.insert(secret.to_owned(), voucher);
    }

    /// Notes that a release was written.
    pub fn written(&mut self, secret: &str, digest: &str) {
        self.settle(secret, digest);
    }

    /// Forgets all releases but those in these Secrets.
    pub fn retain(&mut self, secrets: &[String]) {
        self.all.retain(|secret, _| secrets.contains(secret));
    }

    /// What an installed release of this version and declaration was rendered from, if it is no longer kept in one of these Secrets.
    pub fn lost_content(&self, secrets: &[&str], version: &str, hash: &str) -> Option<&str> {
        let mut lost = self.all.iter().filter(|(secret, voucher)| {
            voucher.installed
                && (voucher.version.as_str(), voucher.hash.as_str()) == (version, hash)
                && !secrets.contains(&secret.as_str())
        });
        lost.next().map(|(_, voucher)| voucher.content.as_str())
    }
}

/// The digest of a release, as a Secret says what it is. That includes the digest of its objects.
pub fn digest(state: State, told: &[u8]) -> String {
    let mut hash = Sha256::new();
    hash.update(state.word());
    hash.update([0]);
    hash.update(told);
    hex(&hash.finalize())
}

/// The digest of packed objects.
pub fn digest_of_objects(packed: &[u8]) -> String {
    hex(&Sha256::digest(packed))
}

/// Secrets with a release that the operator cannot be known to have written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Strange {
    /// The Secrets, the first one first.
    pub secrets: Vec<String>,
    /// Whether the declaration has no digests at all, as an operator without digests left it.
    pub is_old: bool,
}

impl std::fmt::Display for Strange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = self.secrets.first().map(String::as_str).unwrap_or_default();
        if self.is_old {
            write!(
                f,
                "Secret {name} with what is installed has no digest in the declaration, so it cannot be told from one that others wrote"
            )
        } else {
            write!(
                f,
                "Secret {name} with what is installed is not as the operator wrote it, so nothing of it is applied or deleted; find out \
                 who may write Secrets in its namespace"
            )
        }
    }
}
