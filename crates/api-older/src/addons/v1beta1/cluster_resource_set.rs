//! ClusterResourceSet: conditions of both generations have a field each.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_api::addons as hub;
use windlass_api::addons::ResourceRef;
use windlass_api::core::V1Beta1Condition;
use windlass_api::kind::{Column, is_unset};
use windlass_api::{api_kind, schema};

use crate::common::V1Beta2Status;
use crate::convert::{ConversionError, References, Spoke};
use crate::parts::unless_default;

api_kind! {
    /// Resources that Clusters get which a selector selects.
    pub struct ClusterResourceSet {
        /// The desired state of the object.
        #[serde(default)]
        pub spec: ClusterResourceSetSpec,
        /// The observed state of the object.
        #[serde(default)]
        pub status: ClusterResourceSetStatus,
    }
    group: "addons.cluster.x-k8s.io",
    version: "v1beta1",
    plural: "clusterresourcesets",
    short_names: [],
    provider: "cluster-api",
    contract: false,
    required: [],
    status: true,
    scale: None,
    columns: [
        Column::new("Age", "date", ".metadata.creationTimestamp", "Time since creation"),
    ],
}

/// The desired state of a ClusterResourceSet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterResourceSetSpec {
    /// Label selector of the Clusters, in the namespace of the object. It must not be empty. Immutable.
    #[serde(default)]
    #[schemars(!default, schema_with = "schema::label_selector")]
    pub cluster_selector: LabelSelector,
    /// Secrets and ConfigMaps in the namespace of the object. Each of their values has objects for the Clusters, as YAML or JSON.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    pub resources: Vec<ResourceRef>,
    /// ApplyOnce: each resource is created once on each Cluster. Reconcile: it is applied again when its contents change. Defaults to
    /// ApplyOnce. Immutable.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(extend("enum" = ["ApplyOnce", "Reconcile"]))]
    pub strategy: String,
}

/// The observed state of a ClusterResourceSet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterResourceSetStatus {
    /// Conditions in the form of v1beta1.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<V1Beta1Condition>,
    /// The metadata.generation that the controller observed last.
    #[serde(default, skip_serializing_if = "is_unset")]
    pub observed_generation: i64,
    /// Conditions in the form of v1beta2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub v1beta2: Option<V1Beta2Status>,
}

impl Spoke for ClusterResourceSet {
    type Hub = hub::ClusterResourceSet;
    const CARRIES_HUB: bool = false;

    fn into_hub(self, _: Option<Self::Hub>) -> Result<Self::Hub, ConversionError> {
        let Self {
            metadata: _,
            spec,
            status,
        } = self;
        Ok(hub::ClusterResourceSet {
            spec: spec.into_hub(),
            status: status.into_hub(),
            ..Self::Hub::default()
        })
    }

    fn from_hub(hub: Self::Hub, _: &str, _: &dyn References) -> Result<Self, ConversionError> {
        let hub::ClusterResourceSet {
            metadata: _,
            spec,
            status,
        } = hub;
        Ok(Self {
            spec: ClusterResourceSetSpec::from_hub(spec),
            status: ClusterResourceSetStatus::from_hub(status),
            ..Self::default()
        })
    }
}

impl ClusterResourceSetSpec {
    fn into_hub(self) -> hub::ClusterResourceSetSpec {
        let Self {
            cluster_selector,
            resources,
            strategy,
        } = self;
        hub::ClusterResourceSetSpec {
            cluster_selector,
            resources,
            strategy: unless_default(strategy),
        }
    }

    fn from_hub(hub: hub::ClusterResourceSetSpec) -> Self {
        let hub::ClusterResourceSetSpec {
            cluster_selector,
            resources,
            strategy,
        } = hub;
        Self {
            cluster_selector,
            resources,
            strategy: strategy.unwrap_or_default(),
        }
    }
}

impl ClusterResourceSetStatus {
    fn into_hub(self) -> Option<hub::ClusterResourceSetStatus> {
        let Self {
            conditions,
            observed_generation,
            v1beta2,
        } = self;
        let deprecated = hub::ClusterResourceSetV1Beta1DeprecatedStatus { conditions };
        unless_default(hub::ClusterResourceSetStatus {
            conditions: V1Beta2Status::into_conditions(v1beta2),
            deprecated: unless_default(deprecated)
                .map(|v1beta1| hub::ClusterResourceSetDeprecatedStatus { v1beta1: Some(v1beta1) }),
            observed_generation: unless_default(observed_generation),
        })
    }

    fn from_hub(hub: Option<hub::ClusterResourceSetStatus>) -> Self {
        let hub::ClusterResourceSetStatus {
            conditions,
            deprecated,
            observed_generation,
        } = hub.unwrap_or_default();
        let hub::ClusterResourceSetDeprecatedStatus { v1beta1 } = deprecated.unwrap_or_default();
        let hub::ClusterResourceSetV1Beta1DeprecatedStatus {
            conditions: v1beta1_conditions,
        } = v1beta1.unwrap_or_default();
        Self {
            conditions: v1beta1_conditions,
            observed_generation: observed_generation.unwrap_or_default(),
            v1beta2: V1Beta2Status::holding(conditions),
        }
    }
}
