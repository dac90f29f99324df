//! A fetched chart.

use std::path::PathBuf;

/// A chart that was fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chart {
    /// The name that it gives itself.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The version of what it installs.
    pub app_version: Option<String>,
    /// `sha256:` and the digest of the archive in hex: two charts with the same digest are the same.
    pub digest: String,
    /// The archive.
    pub archive: PathBuf,
}
