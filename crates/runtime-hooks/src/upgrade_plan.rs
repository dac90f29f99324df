//! The versions that an upgrade goes through, as an extension decides.

use windlass_api::core::Cluster;

use crate::hook::hook;
use crate::lifecycle::UpgradeStep;
use crate::openapi;

hook! {
    /// While an upgrade is planned. Each minor version between the first and the last needs a step.
    GenerateUpgradePlan;
    GenerateUpgradePlanRequest {
        /// The Cluster, without its status.
        #[schemars(schema_with = "openapi::cluster")]
        cluster: Cluster,
        /// The version of the control plane.
        from_control_plane_kubernetes_version: String,
        /// The lowest version of the workers; empty without workers.
        #[serde(skip_serializing_if = "String::is_empty")]
        from_workers_kubernetes_version: String,
        /// The version that the upgrade is to end with.
        to_kubernetes_version: String,
    }
    GenerateUpgradePlanResponse {
        /// The versions that the control plane goes through. The last one is the version that the upgrade is to end with.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        control_plane_upgrades: Vec<UpgradeStep>,
        /// The versions that the workers go through. None: as few as the allowed skew needs.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        workers_upgrades: Vec<UpgradeStep>,
    }
}
