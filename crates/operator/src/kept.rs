//! What is kept of an installed provider: which objects it is made of, compressed, and why they are as they are. It is in Secrets
//! beside the declaration, as objects may hold credentials, so drift is repaired and a provider removed without fetching
//! anything again, by whatever process runs the operator then. Only those releases count that the operator wrote ([`vouched`]).

mod secrets;
pub mod vouched;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read as _, Write};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_controller_runtime::Timestamp;

use crate::objects::ObjectRef;
pub use secrets::{Sealed, from_secrets, to_secrets};
pub(crate) use secrets::{objects, selector, told};
use vouched::{Strange, Vouched};

/// The longest object that is kept, in bytes of JSON: more than any server takes.
const LONGEST_OBJECT: u64 = 8 << 20;
/// The most bytes of JSON that a release may have: more than any source gives.
const LARGEST_RELEASE: u64 = 128 << 20;

/// The releases of a provider that are kept.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kept {
    /// What is installed.
    pub current: Option<Release>,
    /// What is being installed in its place, or could not be.
    pub next: Option<Release>,
    /// What worked before it, until it is known to work itself.
    pub previous: Option<Release>,
    /// Digests of what the operator wrote.
    pub vouched: Vouched,
    /// What is stored as a release and was not written by the operator, as far as it can tell.
    pub strange: Vec<Strange>,
    /// Secrets of releases that are no longer needed, and parts without a release: a process has ended before it deleted them.
    pub spare: Vec<String>,
}

impl Kept {
    /// The releases.
    pub fn releases(&self) -> impl Iterator<Item = &Release> {
        self.current.iter().chain(&self.next).chain(&self.previous)
    }

    /// The names of the first Secrets of the releases.
    pub fn heads(&self) -> Vec<&str> {
        let heads = self.releases().filter_map(|release| release.secrets.first());
        heads.map(String::as_str).collect()
    }

    /// What was found of releases that others have written or changed.
    pub fn finding(&self) -> Option<String> {
        let told: Vec<_> = self.strange.iter().map(ToString::to_string).collect();
        (!told.is_empty()).then(|| told.join("; "))
    }
}

/// Why a release does not run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// What happened.
    pub message: String,
    /// The generation of the declaration that it was tried for.
    #[serde(default)]
    pub generation: i64,
    /// Whether it was installed and did not come up, so that trying the same again cannot help.
    #[serde(default)]
    pub lasting: bool,
    /// Whether all that it changed was taken back.
    #[serde(default)]
    pub undone: bool,
}

/// How far a release is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum State {
    /// Installed.
    Current,
    /// Being installed.
    Next,
    /// It could not be installed.
    Failed,
}

impl State {
    /// As the annotation says it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Current => "current",
            Self::Next => "next",
            Self::Failed => "failed",
        }
    }

    /// What the annotation says.
    pub fn read(word: &str) -> Option<Self> {
        [Self::Current, Self::Next, Self::Failed]
            .into_iter()
            .find(|state| state.word() == word)
    }
}

/// A rendered release of a provider, without its objects.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Release {
    /// The version.
    pub version: String,
    /// The contract that it follows.
    pub contract: String,
    /// Hash of the declaration that it was rendered for.
    pub hash: String,
    /// The settings of the manager at that time, as they were declared.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub manager: Value,
    /// The uid of the declaration that it was rendered for.
    #[serde(default)]
    pub owner: String,
    /// When it was rendered.
    pub made: Timestamp,
    /// How many replicas Deployments get when they are no longer paused, by name: what they had before.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub replicas: BTreeMap<String, i64>,
    /// Whether it is installed without replicas, as the provider is paused.
    #[serde(default)]
    pub paused: bool,
    /// Objects that are neither in this release nor in the one before, but were left by attempts between or by other programs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leftovers: Vec<ObjectRef>,
    /// Why it could not be installed; of what is installed, why it does not work though it was not taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// Hash of what it was rendered from: files, variables, additional manifests.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub content: String,
    /// How its objects were left: a hash of each, in the order of installation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<String>,
    /// When certificates that the operator issued have to be renewed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renew: Option<Timestamp>,
    /// How often its certificates were issued again. Each time it is kept in other Secrets, so that a process that ends while it writes
    /// them leaves what was kept before.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub renewals: u64,
    /// What the release asks of cert-manager, where the operator stands in for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<Value>,
    /// Whether it came up and storage versions were brought up to date since.
    #[serde(default)]
    pub migrated: bool,
    /// Whether it was put in the place of another one, so that the condition ProviderUpgraded reports it.
    #[serde(default)]
    pub replaces: bool,
    /// What people should know of how it was rendered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The digest of its objects, packed.
    #[serde(default)]
    pub components: String,
    /// How many Secrets it is in.
    #[serde(default)]
    pub parts: usize,
    /// How far it is. Kept in an annotation.
    #[serde(skip, default = "next")]
    pub state: State,
    /// The names of the Secrets that it is in.
    #[serde(skip)]
    pub secrets: Vec<String>,
    /// The objects, in the order of installation.
    #[serde(skip)]
    pub index: Vec<ObjectRef>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn next() -> State {
    State::Next
}

impl Release {
    /// What tells this release from others: Deployments carry it.
    pub fn id(&self) -> String {
        format!("{}-{}", self.version, self.hash.get(..12).unwrap_or(&self.hash))
    }

    /// Whether it is what a declaration asks for.
    pub fn is_for(&self, version: &str, hash: &str) -> bool {
        self.version == version && self.hash == hash
    }

    /// One of these objects that is also in this release. Definitions may be shared: they are never deleted.
    pub fn shared<'a>(&self, others: &'a [ObjectRef]) -> Option<&'a ObjectRef> {
        let mine: BTreeSet<_> = self.index.iter().map(ObjectRef::identity).collect();
        let mut theirs = others.iter().filter(|object| !object.is_kept_for_users());
        theirs.find(|object| mine.contains(&object.identity()))
    }

    /// The objects of this release that are not in another one, and may be deleted.
    pub fn beyond(&self, other: &Self) -> Vec<ObjectRef> {
        let there: BTreeSet<_> = other.index.iter().map(ObjectRef::identity).collect();
        let mine = self.index.iter().chain(&self.leftovers);
        let beyond = mine.filter(|object| !there.contains(&object.identity()) && !object.is_kept_for_users());
        beyond.cloned().collect()
    }
}

/// Objects become lines of JSON, compressed one after the other.
pub struct Packer {
    out: GzEncoder<Vec<u8>>,
    index: Vec<ObjectRef>,
    bytes: u64,
}

impl std::fmt::Debug for Packer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Packer")
            .field("objects", &self.index.len())
            .finish_non_exhaustive()
    }
}

impl Default for Packer {
    fn default() -> Self {
        Self {
            out: GzEncoder::new(Vec::new(), Compression::default()),
            index: Vec::new(),
            bytes: 0,
        }
    }
}

impl Packer {
    /// Adds an object.
    pub fn add(&mut self, object: &Value) -> std::io::Result<()> {
        let line = serde_json::to_vec(object)?;
        let length = u64::try_from(line.len()).unwrap_or(u64::MAX);
        self.bytes = self.bytes.saturating_add(length).saturating_add(1);
        if length >= LONGEST_OBJECT || self.bytes >= LARGEST_RELEASE {
            let of = ObjectRef::of(object);
            return Err(std::io::Error::other(format!(
                "with {of} the objects have {} bytes; an object may have {LONGEST_OBJECT}, and all of them {LARGEST_RELEASE}",
                self.bytes
            )));
        }
        self.out.write_all(&line)?;
        self.out.write_all(b"\n")?;
        self.index.push(ObjectRef::of(object));
        Ok(())
    }

    /// The compressed lines, and what they are about.
    pub fn finish(self) -> std::io::Result<(Vec<u8>, Vec<ObjectRef>)> {
        Ok((self.out.finish()?, self.index))
    }
}

/// The objects of compressed lines, one at a time, up to the first that cannot be read. No more than [`LONGEST_OBJECT`] is in memory.
pub fn walk(packed: &[u8]) -> impl Iterator<Item = Result<Value, Unreadable>> {
    let mut lines = BufReader::new(GzDecoder::new(packed).take(LARGEST_RELEASE));
    let (mut at, mut ended) = (0, false);
    std::iter::from_fn(move || {
        if ended {
            return None;
        }
        let next = next_line(&mut lines).transpose()?;
        let read = next.and_then(|line| serde_json::from_slice(&line).map_err(|error| error.to_string()));
        let read = read.map_err(|error| Unreadable(format!("object {at}: {error}")));
        at += 1;
        ended = read.is_err();
        Some(read)
    })
}

/// A line, without its end; none at the end.
fn next_line(lines: &mut impl BufRead) -> Result<Option<Vec<u8>>, String> {
    let mut line = Vec::new();
    let read = lines.take(LONGEST_OBJECT).read_until(b'\n', &mut line);
    match read.map_err(|error| error.to_string())? {
        0 => Ok(None),
        _ if line.ends_with(b"\n") => Ok(Some(line)),
        _ => Err(format!("longer than {LONGEST_OBJECT} bytes, or cut off")),
    }
}

/// What was kept is not what was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unreadable(pub String);

#[cfg(test)]
mod tests;
