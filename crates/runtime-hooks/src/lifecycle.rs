//! Hooks in the life of a Cluster with a topology. What a hook comes before waits for as long as a handler blocks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_api::core::Cluster;

use crate::hook::hook;
use crate::openapi;

/// One version that an upgrade goes through.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct UpgradeStep {
    /// The Kubernetes version.
    pub version: String,
}

hook! {
    /// Before the first object of a topology is created. Blocks.
    BeforeClusterCreate;
    BeforeClusterCreateRequest {
        /// The Cluster, without its status.
        #[schemars(schema_with = "openapi::cluster")]
        cluster: Cluster,
    }
    BeforeClusterCreateResponse blocks {}
}

hook! {
    /// When the control plane has answered for the first time. Does not block.
    AfterControlPlaneInitialized;
    AfterControlPlaneInitializedRequest {
        /// The Cluster, without its status.
        #[schemars(schema_with = "openapi::cluster")]
        cluster: Cluster,
    }
    AfterControlPlaneInitializedResponse {}
}

hook! {
    /// Once before an upgrade begins. Blocks.
    BeforeClusterUpgrade;
    BeforeClusterUpgradeRequest {
        /// The Cluster, without its status.
        #[schemars(schema_with = "openapi::cluster")]
        cluster: Cluster,
        /// The Kubernetes version before the upgrade.
        from_kubernetes_version: String,
        /// The Kubernetes version that the upgrade is to end with.
        to_kubernetes_version: String,
        /// The versions that the control plane goes through.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        control_plane_upgrades: Vec<UpgradeStep>,
        /// The versions that the workers go through.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        workers_upgrades: Vec<UpgradeStep>,
    }
    BeforeClusterUpgradeResponse blocks {}
}

hook! {
    /// Before the control plane gets the next version. Blocks.
    BeforeControlPlaneUpgrade;
    BeforeControlPlaneUpgradeRequest {
        /// The Cluster, without its status.
        #[schemars(schema_with = "openapi::cluster")]
        cluster: Cluster,
        /// The version of the control plane before the step.
        from_kubernetes_version: String,
        /// The version of the control plane after the step.
        to_kubernetes_version: String,
        /// The versions that the control plane still goes through.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        control_plane_upgrades: Vec<UpgradeStep>,
        /// The versions that the workers still go through.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        workers_upgrades: Vec<UpgradeStep>,
    }
    BeforeControlPlaneUpgradeResponse blocks {}
}

hook! {
    /// After the control plane has a new version, and before the workers get it. Blocks.
    AfterControlPlaneUpgrade;
    AfterControlPlaneUpgradeRequest {
        /// The Cluster, without its status.
        #[schemars(schema_with = "openapi::cluster")]
        cluster: Cluster,
        /// The version of the control plane.
        kubernetes_version: String,
        /// The versions that the control plane still goes through.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        control_plane_upgrades: Vec<UpgradeStep>,
        /// The versions that the workers still go through.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        workers_upgrades: Vec<UpgradeStep>,
    }
    AfterControlPlaneUpgradeResponse blocks {}
}

hook! {
    /// Before the workers get the next version. Blocks.
    BeforeWorkersUpgrade;
    BeforeWorkersUpgradeRequest {
        /// The Cluster, without its status.
        #[schemars(schema_with = "openapi::cluster")]
        cluster: Cluster,
        /// The version of the workers before the step.
        from_kubernetes_version: String,
        /// The version of the workers after the step.
        to_kubernetes_version: String,
        /// The versions that the control plane still goes through.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        control_plane_upgrades: Vec<UpgradeStep>,
        /// The versions that the workers still go through.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        workers_upgrades: Vec<UpgradeStep>,
    }
    BeforeWorkersUpgradeResponse blocks {}
}

hook! {
    /// After the workers have a new version. Blocks what comes next in the upgrade.
    AfterWorkersUpgrade;
    AfterWorkersUpgradeRequest {
        /// The Cluster, without its status.
        #[schemars(schema_with = "openapi::cluster")]
        cluster: Cluster,
        /// The version of the workers.
        kubernetes_version: String,
        /// The versions that the control plane still goes through.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        control_plane_upgrades: Vec<UpgradeStep>,
        /// The versions that the workers still go through.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        workers_upgrades: Vec<UpgradeStep>,
    }
    AfterWorkersUpgradeResponse blocks {}
}

hook! {
    /// After an upgrade. Blocks the next upgrade.
    AfterClusterUpgrade;
    AfterClusterUpgradeRequest {
        /// The Cluster, without its status.
        #[schemars(schema_with = "openapi::cluster")]
        cluster: Cluster,
        /// The Kubernetes version of the Cluster.
        kubernetes_version: String,
    }
    AfterClusterUpgradeResponse blocks {}
}

hook! {
    /// After a Cluster was deleted by a user, and before anything of it goes. Blocks.
    BeforeClusterDelete;
    BeforeClusterDeleteRequest {
        /// The Cluster, without its status.
        #[schemars(schema_with = "openapi::cluster")]
        cluster: Cluster,
    }
    BeforeClusterDeleteResponse blocks {}
}
