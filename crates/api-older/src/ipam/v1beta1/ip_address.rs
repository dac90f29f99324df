//! IPAddress: references are Kubernetes' own types, and the prefix has no limits.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_api::api_kind;
use windlass_api::ipam as hub;
use windlass_api::kind::Column;

use crate::common::{self, LocalObjectReference, TypedLocalObjectReference};
use crate::convert::{ConversionError, References, Spoke};
use crate::parts::unless_default;

api_kind! {
    /// An IP address that a pool gave to a claim.
    pub struct IPAddress {
        /// The address.
        #[serde(default)]
        pub spec: IPAddressSpec,
    }
    group: "ipam.cluster.x-k8s.io",
    version: "v1beta1",
    plural: "ipaddresses",
    short_names: [],
    provider: "cluster-api",
    contract: false,
    required: [],
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
#[serde(rename_all = "camelCase")]
pub struct IPAddressSpec {
    /// The IP address.
    #[serde(default)]
    #[schemars(!default, length(min = 1, max = 39))]
    pub address: String,
    /// The claim that has it.
    #[serde(default)]
    #[schemars(!default)]
    pub claim_ref: LocalObjectReference,
    /// The gateway of the network of the address.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 39))]
    pub gateway: String,
    /// The pool that it is from.
    #[serde(default)]
    #[schemars(!default)]
    pub pool_ref: TypedLocalObjectReference,
    /// Length of the network's prefix, in bits.
    #[serde(default)]
    #[schemars(!default, schema_with = "common::integer")]
    pub prefix: i32,
}

impl Spoke for IPAddress {
    type Hub = hub::IPAddress;
    const CARRIES_HUB: bool = false;

    fn into_hub(self, _: Option<Self::Hub>) -> Result<Self::Hub, ConversionError> {
        let Self { metadata: _, spec } = self;
        Ok(hub::IPAddress {
            spec: spec.into_hub(),
            ..Self::Hub::default()
        })
    }

    fn from_hub(hub: Self::Hub, _: &str, _: &dyn References) -> Result<Self, ConversionError> {
        let hub::IPAddress { metadata: _, spec } = hub;
        Ok(Self {
            spec: IPAddressSpec::from_hub(spec),
            ..Self::default()
        })
    }
}

impl IPAddressSpec {
    pub(in crate::ipam) fn into_hub(self) -> hub::IPAddressSpec {
        let Self {
            address,
            claim_ref,
            gateway,
            pool_ref,
            prefix,
        } = self;
        hub::IPAddressSpec {
            address,
            claim_ref: claim_ref.into_claim(),
            gateway: unless_default(gateway),
            pool_ref: pool_ref.into_pool(),
            prefix,
        }
    }

    pub(in crate::ipam) fn from_hub(hub: hub::IPAddressSpec) -> Self {
        let hub::IPAddressSpec {
            address,
            claim_ref,
            gateway,
            pool_ref,
            prefix,
        } = hub;
        Self {
            address,
            claim_ref: LocalObjectReference::from_claim(claim_ref),
            gateway: gateway.unwrap_or_default(),
            pool_ref: TypedLocalObjectReference::from_pool(pool_ref),
            prefix,
        }
    }
}
