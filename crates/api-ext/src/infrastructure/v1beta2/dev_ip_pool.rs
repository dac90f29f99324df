//! DevIPPool: the kind and its parts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use windlass_api::kind::Column;

windlass_api::api_kind! {
    /// A range of IP addresses for IPAddressClaims, for development and tests.
    pub struct DevIPPool {
        /// The desired state of the object.
        pub spec: DevIPPoolSpec,
        /// The observed state of the object.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub status: Option<DevIPPoolStatus>,
    }
    group: "infrastructure.cluster.x-k8s.io",
    version: "v1beta2",
    plural: "devippools",
    short_names: [],
    provider: "infrastructure-docker",
    contract: true,
    required: ["spec"],
    status: true,
    scale: None,
    columns: [
        Column::new("First", "string", ".spec.first", "First address of the range"),
        Column::new("Last", "string", ".spec.last", "Last address of the range"),
        Column::new("Used", "integer", ".status.used", "Addresses that claims have"),
        Column::new("Free", "integer", ".status.free", "Addresses that are left"),
        Column::new("Age", "date", ".metadata.creationTimestamp", "Time since creation"),
    ],
}

impl windlass_api::kind::Conditioned for DevIPPool {
    const HAS_CONDITIONS: bool = false;

    /// Its status has none.
    fn conditions(&self) -> &[windlass_api::Condition] {
        &[]
    }
}

/// The desired state of a DevIPPool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DevIPPoolSpec {
    /// First address of the range, IPv4 or IPv6.
    #[schemars(length(min = 1, max = 39))]
    pub first: String,
    /// Gateway of the network of the addresses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 39))]
    pub gateway: Option<String>,
    /// Last address of the range.
    #[schemars(length(min = 1, max = 39))]
    pub last: String,
    /// Length of the network's prefix, in bits.
    #[schemars(range(min = 0, max = 128))]
    pub prefix: i32,
}

/// The observed state of a DevIPPool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DevIPPoolStatus {
    /// Number of addresses that no claim has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free: Option<i64>,
    /// Number of addresses that claims have, also of those that are no longer in the range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<i64>,
}

windlass_api::parts!(DevIPPoolStatus);
