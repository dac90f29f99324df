//! A fetched chart.

use std::path::PathBuf;

/// A chart that was fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chart {
    /// The name in the chart.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The version of the packaged application.
    pub app_version: Option<String>,
    /// `sha256:` and the digest of the archive in hex: charts with the same digest are equal.
    pub digest: String,
    /// The archive.
    pub archive: PathBuf,
}
