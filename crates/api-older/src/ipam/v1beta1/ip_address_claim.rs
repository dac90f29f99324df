//! IPAddressClaim: conditions of both generations have a field each.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_api::api_kind;
use windlass_api::core::V1Beta1Condition;
use windlass_api::ipam as hub;
use windlass_api::kind::Column;

use crate::common::{LocalObjectReference, TypedLocalObjectReference, V1Beta2Status};
use crate::convert::{ConversionError, References, Spoke};
use crate::parts::unless_default;

api_kind! {
    /// A request for an IP address from a pool.
    pub struct IPAddressClaim {
        /// The desired state of the object.
        #[serde(default)]
        pub spec: IPAddressClaimSpec,
        /// The observed state of the object.
        #[serde(default)]
        pub status: IPAddressClaimStatus,
    }
    group: "ipam.cluster.x-k8s.io",
    version: "v1beta1",
    plural: "ipaddressclaims",
    short_names: [],
    provider: "cluster-api",
    contract: false,
    required: [],
    status: true,
    scale: None,
    columns: [
        Column::new("Pool Name", "string", ".spec.poolRef.name", "Name of the pool"),
        Column::new("Pool Kind", "string", ".spec.poolRef.kind", "Kind of the pool"),
        Column::new("Age", "date", ".metadata.creationTimestamp", "Time since creation"),
    ],
}

/// The desired state of an IPAddressClaim. Immutable.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IPAddressClaimSpec {
    /// Name of the Cluster that the address is for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 63))]
    pub cluster_name: String,
    /// The pool that the address is to come from.
    #[serde(default)]
    #[schemars(!default)]
    pub pool_ref: TypedLocalObjectReference,
}

/// The observed state of an IPAddressClaim.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IPAddressClaimStatus {
    /// The address that the claim has.
    #[serde(default)]
    pub address_ref: LocalObjectReference,
    /// Conditions in the form of v1beta1.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<V1Beta1Condition>,
    /// Conditions in the form of v1beta2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub v1beta2: Option<V1Beta2Status>,
}

impl Spoke for IPAddressClaim {
    type Hub = hub::IPAddressClaim;
    const CARRIES_HUB: bool = false;

    fn into_hub(self, _: Option<Self::Hub>) -> Result<Self::Hub, ConversionError> {
        let Self {
            metadata: _,
            spec: IPAddressClaimSpec { cluster_name, pool_ref },
            status,
        } = self;
        let IPAddressClaimStatus {
            address_ref,
            conditions,
            v1beta2,
        } = status;
        let deprecated = hub::IPAddressClaimV1Beta1DeprecatedStatus { conditions };
        let status = hub::IPAddressClaimStatus {
            address_ref: address_ref.into_address(),
            conditions: V1Beta2Status::into_conditions(v1beta2),
            deprecated: unless_default(deprecated)
                .map(|v1beta1| hub::IPAddressClaimDeprecatedStatus { v1beta1: Some(v1beta1) }),
        };
        Ok(hub::IPAddressClaim {
            spec: hub::IPAddressClaimSpec {
                cluster_name: unless_default(cluster_name),
                pool_ref: pool_ref.into_pool(),
            },
            status: unless_default(status),
            ..Self::Hub::default()
        })
    }

    fn from_hub(hub: Self::Hub, _: &str, _: &dyn References) -> Result<Self, ConversionError> {
        let hub::IPAddressClaim {
            metadata: _,
            spec: hub::IPAddressClaimSpec { cluster_name, pool_ref },
            status,
        } = hub;
        let hub::IPAddressClaimStatus {
            address_ref,
            conditions,
            deprecated,
        } = status.unwrap_or_default();
        let hub::IPAddressClaimDeprecatedStatus { v1beta1 } = deprecated.unwrap_or_default();
        let hub::IPAddressClaimV1Beta1DeprecatedStatus {
            conditions: v1beta1_conditions,
        } = v1beta1.unwrap_or_default();
        Ok(Self {
            spec: IPAddressClaimSpec {
                cluster_name: cluster_name.unwrap_or_default(),
                pool_ref: TypedLocalObjectReference::from_pool(pool_ref),
            },
            status: IPAddressClaimStatus {
                address_ref: LocalObjectReference::from_address(address_ref),
                conditions: v1beta1_conditions,
                v1beta2: V1Beta2Status::holding(conditions),
            },
            ..Self::default()
        })
    }
}
