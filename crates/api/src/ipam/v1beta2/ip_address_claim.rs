//! IPAddressClaim: the kind and its parts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Condition;
use crate::core::V1Beta1Condition;
use crate::kind::Column;
use crate::patterns;
use crate::schema;

crate::api_kind! {
    /// A request for an IP address from a pool.
    pub struct IPAddressClaim {
        /// The desired state of the object.
        pub spec: IPAddressClaimSpec,
        /// The observed state of the object.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub status: Option<IPAddressClaimStatus>,
    }
    group: "ipam.cluster.x-k8s.io",
    version: "v1beta2",
    plural: "ipaddressclaims",
    short_names: [],
    provider: "cluster-api",
    contract: false,
    required: ["spec"],
    status: true,
    scale: None,
    columns: [
        Column::new("Pool Name", "string", ".spec.poolRef.name", "Name of the pool"),
        Column::new("Pool Kind", "string", ".spec.poolRef.kind", "Kind of the pool"),
        Column::new("Age", "date", ".metadata.creationTimestamp", "Time since creation"),
    ],
}

crate::conditioned!(IPAddressClaim);

/// The desired state of an IPAddressClaim. Immutable.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct IPAddressClaimSpec {
    /// Name of the Cluster that the address is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub cluster_name: Option<String>,
    /// The pool that the address is to come from.
    #[serde(skip_serializing_if = "crate::kind::is_unset")]
    pub pool_ref: IPPoolReference,
}

/// Reference to a pool in the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct IPPoolReference {
    /// API group of the pool.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 253), regex(pattern = patterns::DNS_SUBDOMAIN))]
    pub api_group: String,
    /// Kind of the pool.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 63), regex(pattern = patterns::KIND))]
    pub kind: String,
    /// Name of the pool.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 253), regex(pattern = patterns::DNS_SUBDOMAIN))]
    pub name: String,
}

/// The observed state of an IPAddressClaim.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
#[schemars(extend("minProperties" = 1))]
pub struct IPAddressClaimStatus {
    /// The address that the claim has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address_ref: Option<IPAddressReference>,
    /// Conditions of the object, one per type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// Fields that are kept for older API versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<IPAddressClaimDeprecatedStatus>,
}

/// Reference to an IPAddress in the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct IPAddressReference {
    /// Name of the IPAddress.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 253), regex(pattern = patterns::DNS_SUBDOMAIN))]
    pub name: String,
}

/// Status fields that are kept for older API versions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct IPAddressClaimDeprecatedStatus {
    /// Status fields of API version v1beta1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub v1beta1: Option<IPAddressClaimV1Beta1DeprecatedStatus>,
}

/// Status fields of v1beta1. Controllers still set them for older clients.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct IPAddressClaimV1Beta1DeprecatedStatus {
    /// Conditions of the object, one per type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<V1Beta1Condition>,
}

crate::parts!(IPAddressClaimStatus);
