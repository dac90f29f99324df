//! All older versions.

use crate::convert::OlderVersion;
use crate::core::v1beta1 as core;

/// All older versions, by group, kind and version.
pub static OLDER: &[OlderVersion] = &[OlderVersion::of::<core::MachineDrainRule>()];

/// The older version of a kind with an apiVersion.
pub fn older(api_version: &str, kind: &str) -> Option<&'static OlderVersion> {
    OLDER
        .iter()
        .find(|older| older.kind == kind && older.api_version == api_version)
}
