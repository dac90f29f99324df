//! All older versions.

use crate::convert::OlderVersion;
use crate::core::v1beta1 as core;

/// All older versions, by group, kind and version.
pub static OLDER: &[OlderVersion] = &[
    OlderVersion::of::<core::Cluster>(),
    OlderVersion::of::<core::ClusterClass>(),
    OlderVersion::of::<core::Machine>(),
    OlderVersion::of::<core::MachineDeployment>(),
    OlderVersion::of::<core::MachineDrainRule>(),
    OlderVersion::of::<core::MachineHealthCheck>(),
    OlderVersion::of::<core::MachinePool>(),
    OlderVersion::of::<core::MachineSet>(),
];

/// The older version of a kind with an apiVersion.
pub fn older(api_version: &str, kind: &str) -> Option<&'static OlderVersion> {
    OLDER
        .iter()
        .find(|older| older.kind == kind && older.api_version == api_version)
}
