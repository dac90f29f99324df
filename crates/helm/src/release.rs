//! Releases as Helm stores them: Secrets in the release's namespace, one per revision.
//!
//! A Secret has the base64 of a compressed JSON document. Only the fields that distinguish releases are decoded: the chart's
//! files, the manifest and the notes can be large and are skipped. Everything here is pure and read-only.

use std::collections::BTreeMap;
use std::io::Read as _;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use flate2::bufread::GzDecoder;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::values;

#[cfg(test)]
#[path = "release/tests.rs"]
mod tests;

/// The type of the Secrets.
pub const SECRET_TYPE: &str = "helm.sh/release.v1";

/// Helm's own labels on the Secrets.
const HELMS: [&str; 6] = ["name", "owner", "status", "version", "createdAt", "modifiedAt"];

/// A Secret is limited to a megabyte; a larger one is not Helm's.
const MOST_STORED: usize = 2 << 20;
/// Maximum expansion of a compressed chart. Charts are mostly text and shrink to a fifth.
const MOST_EXPANDED: u64 = 64 << 20;
const MAGIC: [u8; 3] = [0x1f, 0x8b, 0x08];

/// A revision of a release.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Release {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// The revision; 1 is the first.
    pub revision: u32,
    /// The progress of the operation.
    pub status: Status,
    /// The chart's name.
    pub chart: String,
    /// The chart's version.
    pub chart_version: String,
    /// The version of the packaged application.
    pub app_version: Option<String>,
    /// The user's values, without the chart's defaults.
    pub values: Map<String, Value>,
    /// Helm's description of the result.
    pub description: String,
    /// Labels other than Helm's own.
    pub labels: BTreeMap<String, String>,
    /// When the first revision began.
    pub first_deployed: Option<Timestamp>,
    /// When this revision began.
    pub last_deployed: Option<Timestamp>,
}

impl Release {
    /// Whether it has these values; both are compared as data.
    pub fn has_values(&self, wanted: &Map<String, Value>) -> bool {
        values::same(&self.values, wanted)
    }
}

/// Helm's statuses.
// AD-076
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Status {
    /// Any other status.
    #[default]
    Unknown,
    /// It is the deployed revision.
    Deployed,
    /// It was uninstalled, and its history was kept.
    Uninstalled,
    /// A later revision has taken its place.
    Superseded,
    /// The operation failed.
    Failed,
    /// It is being removed.
    Uninstalling,
    /// It is being installed, or was when helm was killed.
    PendingInstall,
    /// The release is being upgraded to it, or was.
    PendingUpgrade,
    /// The release is being rolled back to it, or was.
    PendingRollback,
}

impl Status {
    /// Every status.
    pub const ALL: [Self; 9] = [
        Self::Unknown,
        Self::Deployed,
        Self::Uninstalled,
        Self::Superseded,
        Self::Failed,
        Self::Uninstalling,
        Self::PendingInstall,
        Self::PendingUpgrade,
        Self::PendingRollback,
    ];

    /// The status as Helm writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Deployed => "deployed",
            Self::Uninstalled => "uninstalled",
            Self::Superseded => "superseded",
            Self::Failed => "failed",
            Self::Uninstalling => "uninstalling",
            Self::PendingInstall => "pending-install",
            Self::PendingUpgrade => "pending-upgrade",
            Self::PendingRollback => "pending-rollback",
        }
    }

    /// Parses Helm's status.
    pub fn read(word: &str) -> Self {
        let named = Self::ALL.into_iter().find(|status| status.as_str() == word);
        named.unwrap_or_default()
    }

    /// Whether an operation is running, or was killed. Helm refuses upgrades of such a release.
    pub fn is_pending(self) -> bool {
        matches!(
            self,
            Self::PendingInstall | Self::PendingUpgrade | Self::PendingRollback
        )
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a Secret cannot be decoded as a release. No error quotes its contents.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// It is a Secret of another type.
    #[error("it is of type \"{found}\", not {SECRET_TYPE}")]
    Type {
        /// Its type.
        found: String,
    },
    /// It contains no release.
    #[error("data.release is missing")]
    Missing,
    /// It is larger than anything that Helm writes.
    #[error("data.release is too large")]
    TooLarge,
    /// It is not in Helm's format.
    #[error("data.release cannot be read: {0}")]
    Broken(&'static str),
}

/// Labels that select the Secrets of all revisions of a release.
pub fn selector(release: &str) -> String {
    format!("owner=helm,name={release}")
}

/// The name of the Secret of a revision.
pub fn secret_name(release: &str, revision: u32) -> String {
    format!("sh.helm.release.v1.{release}.v{revision}")
}

/// The release and the revision of a Secret, by its name.
pub fn of_name(secret: &str) -> Option<(&str, u32)> {
    let (release, revision) = secret.strip_prefix("sh.helm.release.v1.")?.rsplit_once(".v")?;
    Some((release, revision.parse().ok()?))
}

/// The Secret of a release's newest revision, among the given ones.
pub fn newest<'a>(release: &str, secrets: impl IntoIterator<Item = &'a Secret>) -> Option<&'a Secret> {
    let revisions = secrets.into_iter().filter_map(|secret| {
        let (of, revision) = of_name(secret.metadata.name.as_deref()?)?;
        (of == release && is_release(secret)).then_some((revision, secret))
    });
    revisions
        .max_by_key(|(revision, _)| *revision)
        .map(|(_, secret)| secret)
}

fn is_release(secret: &Secret) -> bool {
    secret.type_.as_deref() == Some(SECRET_TYPE)
}

/// Decodes a release.
pub fn decode(secret: &Secret) -> Result<Release, DecodeError> {
    if !is_release(secret) {
        let found = secret.type_.clone().unwrap_or_default();
        return Err(DecodeError::Type { found });
    }
    let stored = secret.data.as_ref().and_then(|data| data.get("release"));
    let document = expand(&stored.ok_or(DecodeError::Missing)?.0, MOST_EXPANDED)?;
    let document: Document =
        serde_json::from_slice(&document).map_err(|_| DecodeError::Broken("it is not the JSON of a release"))?;
    let mut labels = secret.metadata.labels.clone().unwrap_or_default();
    labels.retain(|key, _| !HELMS.contains(&key.as_str()));
    let namespace = match document.namespace {
        namespace if namespace.is_empty() => secret.metadata.namespace.clone().unwrap_or_default(),
        namespace => namespace,
    };
    let chart = document.chart.metadata;
    Ok(Release {
        name: document.name,
        namespace,
        revision: document.version,
        status: Status::read(&document.info.status),
        chart: chart.name,
        chart_version: chart.version,
        app_version: Some(chart.app_version).filter(|version| !version.is_empty()),
        values: document.config.unwrap_or_default(),
        description: document.info.description,
        labels,
        first_deployed: time(document.info.first_deployed),
        last_deployed: time(document.info.last_deployed),
    })
}

fn expand(stored: &[u8], most: u64) -> Result<Vec<u8>, DecodeError> {
    if stored.len() > MOST_STORED {
        return Err(DecodeError::TooLarge);
    }
    let bytes = BASE64_STANDARD
        .decode(stored)
        .map_err(|_| DecodeError::Broken("it is not base64"))?;
    // Helm also reads uncompressed releases of early versions.
    if !bytes.starts_with(&MAGIC) {
        return Ok(bytes);
    }
    let mut expanded = Vec::new();
    GzDecoder::new(bytes.as_slice())
        .take(most + 1)
        .read_to_end(&mut expanded)
        .map_err(|_| DecodeError::Broken("it is not a whole gzip stream"))?;
    if expanded.len() as u64 > most {
        return Err(DecodeError::TooLarge);
    }
    Ok(expanded)
}

/// Helm writes an empty text or the year 1 for an unset time.
fn time(text: Option<String>) -> Option<Timestamp> {
    let time: Timestamp = text?.parse().ok()?;
    (time > Timestamp::UNIX_EPOCH).then_some(time)
}

/// The decoded part of the document.
#[derive(Debug, Deserialize)]
struct Document {
    name: String,
    #[serde(default)]
    namespace: String,
    version: u32,
    #[serde(default)]
    info: Info,
    #[serde(default)]
    chart: ChartOf,
    #[serde(default)]
    config: Option<Map<String, Value>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Info {
    first_deployed: Option<String>,
    last_deployed: Option<String>,
    description: String,
    status: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ChartOf {
    metadata: Metadata,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    name: String,
    version: String,
    app_version: String,
}
