//! ClusterResourceSetBinding: the kind and its parts.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ResourceRef;
use crate::kind::{Column, Conditioned};
use crate::schema;

crate::api_kind! {
    /// What ClusterResourceSets have applied to a Cluster.
    pub struct ClusterResourceSetBinding {
        /// The record.
        pub spec: ClusterResourceSetBindingSpec,
    }
    group: "addons.cluster.x-k8s.io",
    version: "v1beta2",
    plural: "clusterresourcesetbindings",
    short_names: [],
    provider: "cluster-api",
    contract: false,
    required: ["spec"],
    status: false,
    scale: None,
    columns: [
        Column::new("Cluster", "string", ".spec.clusterName", "Name of the Cluster"),
        Column::new("Age", "date", ".metadata.creationTimestamp", "Time since creation"),
    ],
}

impl Conditioned for ClusterResourceSetBinding {
    const HAS_CONDITIONS: bool = false;

    fn conditions(&self) -> &[crate::Condition] {
        &[]
    }
}

/// What ClusterResourceSets have applied to a Cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct ClusterResourceSetBindingSpec {
    /// One entry per ClusterResourceSet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub bindings: Vec<ResourceSetBinding>,
    /// Name of the Cluster. Immutable.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 63))]
    pub cluster_name: String,
}

/// What a ClusterResourceSet has applied.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct ResourceSetBinding {
    /// Name of the ClusterResourceSet.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 253))]
    pub cluster_resource_set_name: String,
    /// One entry per resource.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub resources: Vec<ResourceBinding>,
}

/// Whether, when and with which contents a resource was applied.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct ResourceBinding {
    /// Whether the resource has been applied.
    pub applied: bool,
    /// Digest of the contents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub hash: Option<String>,
    /// The kind: Secret or ConfigMap.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(extend("enum" = ["Secret", "ConfigMap"]))]
    pub kind: String,
    /// When it was applied last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::date_time")]
    pub last_applied_time: Option<Time>,
    /// The name.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

impl ResourceBinding {
    /// Whether this entry is about a resource.
    pub fn is_of(&self, resource: &ResourceRef) -> bool {
        self.kind == resource.kind && self.name == resource.name
    }
}

impl ClusterResourceSetBinding {
    /// The entry of a ClusterResourceSet.
    pub fn entry(&self, set: &str) -> Option<&ResourceSetBinding> {
        self.spec
            .bindings
            .iter()
            .find(|entry| entry.cluster_resource_set_name == set)
    }
}

crate::parts!(ClusterResourceSetBindingSpec);
