//! ClusterResourceSetBinding: the same fields as in the hub version, with fewer rules.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_api::addons as hub;
use windlass_api::addons::ResourceBinding;
use windlass_api::api_kind;
use windlass_api::kind::Column;

use crate::convert::{ConversionError, References, Spoke};

api_kind! {
    /// What ClusterResourceSets have applied to a Cluster.
    pub struct ClusterResourceSetBinding {
        /// The record.
        #[serde(default)]
        pub spec: ClusterResourceSetBindingSpec,
    }
    group: "addons.cluster.x-k8s.io",
    version: "v1beta1",
    plural: "clusterresourcesetbindings",
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

/// What ClusterResourceSets have applied to a Cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterResourceSetBindingSpec {
    /// One entry per ClusterResourceSet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    pub bindings: Vec<ResourceSetBinding>,
    /// Name of the Cluster. Objects of early releases have none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 63))]
    pub cluster_name: String,
}

/// What a ClusterResourceSet has applied.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceSetBinding {
    /// Name of the ClusterResourceSet.
    #[serde(default)]
    #[schemars(!default, length(min = 1, max = 253))]
    pub cluster_resource_set_name: String,
    /// One entry per resource.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    pub resources: Vec<ResourceBinding>,
}

impl Spoke for ClusterResourceSetBinding {
    type Hub = hub::ClusterResourceSetBinding;
    const CARRIES_HUB: bool = false;

    fn into_hub(self, _: Option<Self::Hub>) -> Result<Self::Hub, ConversionError> {
        let Self {
            metadata: _,
            spec: ClusterResourceSetBindingSpec { bindings, cluster_name },
        } = self;
        let bindings = bindings.into_iter().map(ResourceSetBinding::into_hub).collect();
        Ok(hub::ClusterResourceSetBinding {
            spec: hub::ClusterResourceSetBindingSpec { bindings, cluster_name },
            ..Self::Hub::default()
        })
    }

    fn from_hub(hub: Self::Hub, _: &str, _: &dyn References) -> Result<Self, ConversionError> {
        let hub::ClusterResourceSetBinding {
            metadata: _,
            spec: hub::ClusterResourceSetBindingSpec { bindings, cluster_name },
        } = hub;
        let bindings = bindings.into_iter().map(ResourceSetBinding::from_hub).collect();
        Ok(Self {
            spec: ClusterResourceSetBindingSpec { bindings, cluster_name },
            ..Self::default()
        })
    }
}

impl ResourceSetBinding {
    fn into_hub(self) -> hub::ResourceSetBinding {
        let Self {
            cluster_resource_set_name,
            resources,
        } = self;
        hub::ResourceSetBinding {
            cluster_resource_set_name,
            resources,
        }
    }

    fn from_hub(hub: hub::ResourceSetBinding) -> Self {
        let hub::ResourceSetBinding {
            cluster_resource_set_name,
            resources,
        } = hub;
        Self {
            cluster_resource_set_name,
            resources,
        }
    }
}
