//! ClusterResourceSet: the kind and its parts.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Condition;
use crate::core::V1Beta1Condition;
use crate::kind::Column;
use crate::schema;

crate::api_kind! {
    /// Resources that Clusters get which a selector selects.
    pub struct ClusterResourceSet {
        /// The desired state of the object.
        pub spec: ClusterResourceSetSpec,
        /// The observed state of the object.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub status: Option<ClusterResourceSetStatus>,
    }
    group: "addons.cluster.x-k8s.io",
    version: "v1beta2",
    plural: "clusterresourcesets",
    short_names: [],
    provider: "cluster-api",
    contract: false,
    required: ["spec"],
    status: true,
    scale: None,
    columns: [
        Column::new("Applied", "string", r#".status.conditions[?(@.type=="ResourcesApplied")].status"#, "Whether all resources are on all selected Clusters"),
        Column::new("Paused", "string", r#".status.conditions[?(@.type=="Paused")].status"#, "Whether reconciliation is paused").wide(),
        Column::new("Age", "date", ".metadata.creationTimestamp", "Time since creation"),
    ],
}

crate::conditioned!(ClusterResourceSet);

/// The desired state of a ClusterResourceSet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct ClusterResourceSetSpec {
    /// Label selector of the Clusters, in the namespace of the object. It must not be empty. Immutable.
    #[schemars(schema_with = "schema::label_selector")]
    pub cluster_selector: LabelSelector,
    /// Secrets and ConfigMaps in the namespace of the object. Each of their values has objects for the Clusters, as YAML or JSON.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub resources: Vec<ResourceRef>,
    /// ApplyOnce: each resource is created once on each Cluster. Reconcile: it is applied again when its contents change. Defaults to
    /// ApplyOnce. Immutable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["ApplyOnce", "Reconcile"]))]
    pub strategy: Option<String>,
}

/// A Secret or ConfigMap.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct ResourceRef {
    /// The kind: Secret or ConfigMap.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(extend("enum" = ["Secret", "ConfigMap"]))]
    pub kind: String,
    /// The name.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// The observed state of a ClusterResourceSet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
#[schemars(extend("minProperties" = 1))]
pub struct ClusterResourceSetStatus {
    /// Conditions of the object, one per type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// Fields that are kept for older API versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<ClusterResourceSetDeprecatedStatus>,
    /// The metadata.generation that the controller observed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub observed_generation: Option<i64>,
}

/// Status fields that are kept for older API versions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct ClusterResourceSetDeprecatedStatus {
    /// Status fields of API version v1beta1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub v1beta1: Option<ClusterResourceSetV1Beta1DeprecatedStatus>,
}

/// Status fields of v1beta1. Controllers still set them for older clients.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct ClusterResourceSetV1Beta1DeprecatedStatus {
    /// Conditions of the object, one per type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<V1Beta1Condition>,
}

crate::parts!(ClusterResourceSetStatus);
