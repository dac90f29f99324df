//! IPAddress: the kind and its parts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::IPPoolReference;
use crate::kind::Column;
use crate::patterns;

crate::api_kind! {
    /// An IP address that a pool gave to a claim.
    pub struct IPAddress {
        /// The address.
        pub spec: IPAddressSpec,
    }
    group: "ipam.cluster.x-k8s.io",
    version: "v1beta2",
    plural: "ipaddresses",
    short_names: [],
    provider: "cluster-api",
    contract: false,
    required: ["spec"],
    status: false,
    scale: None,
    columns: [
        Column::new("Address", "string", ".spec.address", "The address"),
        Column::new("Pool Name", "string", ".spec.poolRef.name", "Name of the pool that it is from"),
        Column::new("Pool Kind", "string", ".spec.poolRef.kind", "Kind of the pool that it is from"),
        Column::new("Age", "date", ".metadata.creationTimestamp", "Time since creation"),
    ],
}

/// The address. Immutable.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct IPAddressSpec {
    /// The IP address.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 39))]
    pub address: String,
    /// The claim that has it.
    #[serde(skip_serializing_if = "crate::kind::is_unset")]
    pub claim_ref: IPAddressClaimReference,
    /// The gateway of the network of the address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 39))]
    pub gateway: Option<String>,
    /// The pool that it is from.
    #[serde(skip_serializing_if = "crate::kind::is_unset")]
    pub pool_ref: IPPoolReference,
    /// Length of the network's prefix, in bits.
    #[schemars(range(min = 0, max = 128))]
    pub prefix: i32,
}

/// Reference to an IPAddressClaim in the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct IPAddressClaimReference {
    /// Name of the claim.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 253), regex(pattern = patterns::DNS_SUBDOMAIN))]
    pub name: String,
}
