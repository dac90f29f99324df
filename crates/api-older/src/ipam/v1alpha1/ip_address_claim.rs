//! IPAddressClaim: the name of the Cluster is a label, and there are only conditions in the form of v1beta1.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_api::core::V1Beta1Condition;
use windlass_api::ipam as hub;
use windlass_api::kind::Column;
use windlass_api::{api_kind, labels};

use crate::common::{LocalObjectReference, TypedLocalObjectReference};
use crate::convert::{ConversionError, References, Spoke};
use crate::parts::unless_default;

/// The annotation of an object in this version whose label [`labels::CLUSTER_NAME`] comes from `spec.clusterName` of the hub: its value is
/// `false`, as the hub form has no such label.
pub const LABEL_WAS_SET: &str = "conversion.cluster.x-k8s.io/cluster-name-label-set";

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
    version: "v1alpha1",
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
}

impl Spoke for IPAddressClaim {
    type Hub = hub::IPAddressClaim;
    const DEPRECATED: bool = false;

    fn into_hub(self, kept: Option<Self::Hub>) -> Result<Self::Hub, ConversionError> {
        let Self {
            metadata: _,
            spec: IPAddressClaimSpec { pool_ref },
            status,
        } = self;
        let IPAddressClaimStatus {
            address_ref,
            conditions,
        } = status;
        let kept_status = kept.and_then(|kept| kept.status).unwrap_or_default();
        let deprecated = hub::IPAddressClaimV1Beta1DeprecatedStatus { conditions };
        let status = hub::IPAddressClaimStatus {
            address_ref: address_ref.into_address(),
            conditions: kept_status.conditions,
            deprecated: unless_default(deprecated)
                .map(|v1beta1| hub::IPAddressClaimDeprecatedStatus { v1beta1: Some(v1beta1) }),
        };
        Ok(hub::IPAddressClaim {
            spec: hub::IPAddressClaimSpec {
                cluster_name: None,
                pool_ref: pool_ref.into_pool(),
            },
            status: unless_default(status),
            ..Self::Hub::default()
        })
    }

    fn from_hub(hub: Self::Hub, _: &str, _: &dyn References) -> Result<Self, ConversionError> {
        let hub::IPAddressClaim {
            metadata: _,
            spec: hub::IPAddressClaimSpec {
                cluster_name: _,
                pool_ref,
            },
            status,
        } = hub;
        let hub::IPAddressClaimStatus {
            address_ref,
            conditions: _,
            deprecated,
        } = status.unwrap_or_default();
        let hub::IPAddressClaimDeprecatedStatus { v1beta1 } = deprecated.unwrap_or_default();
        let hub::IPAddressClaimV1Beta1DeprecatedStatus { conditions } = v1beta1.unwrap_or_default();
        Ok(Self {
            spec: IPAddressClaimSpec {
                pool_ref: TypedLocalObjectReference::from_pool(pool_ref),
            },
            status: IPAddressClaimStatus {
                address_ref: LocalObjectReference::from_address(address_ref),
                conditions,
            },
            ..Self::default()
        })
    }

    fn metadata_into_hub(metadata: &mut ObjectMeta, hub: &mut Self::Hub) {
        let Some(labels) = &mut metadata.labels else { return };
        hub.spec.cluster_name = labels.get(labels::CLUSTER_NAME).cloned().and_then(unless_default);
        let mark = metadata
            .annotations
            .as_mut()
            .and_then(|annotations| annotations.remove(LABEL_WAS_SET));
        if mark.as_deref() == Some("false") {
            labels.remove(labels::CLUSTER_NAME);
        }
    }

    fn metadata_from_hub(hub: &Self::Hub, metadata: &mut ObjectMeta) {
        let Some(name) = hub.spec.cluster_name.as_ref().filter(|name| !name.is_empty()) else {
            return;
        };
        let labels = metadata.labels.get_or_insert_default();
        let earlier = labels.insert(labels::CLUSTER_NAME.to_owned(), name.clone());
        if earlier.is_none() {
            metadata
                .annotations
                .get_or_insert_default()
                .insert(LABEL_WAS_SET.to_owned(), "false".to_owned());
        }
    }
}
