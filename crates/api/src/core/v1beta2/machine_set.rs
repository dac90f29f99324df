//! MachineSet: the kind and its parts.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Condition;
use crate::core::v1beta2::{MachineNamingSpec, MachineTemplateSpec, StatusVersion, V1Beta1Condition};
use crate::kind::Column;
use crate::kind::Scale;
use crate::schema;

crate::api_kind! {
    /// A set of identical Machines.
    pub struct MachineSet {
        /// The desired state of the object.
        pub spec: MachineSetSpec,
        /// The observed state of the object.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub status: Option<MachineSetStatus>,
    }
    group: "cluster.x-k8s.io",
    version: "v1beta2",
    plural: "machinesets",
    short_names: ["ms"],
    provider: "cluster-api",
    contract: false,
    required: ["spec"],
    status: true,
    scale: Some(Scale::STANDARD),
    columns: [
        Column::new("Cluster", "string", ".spec.clusterName", "Name of the Cluster"),
        Column::new("Desired", "integer", ".spec.replicas", "Desired Machines"),
        Column::new("Current", "integer", ".status.replicas", "Existing Machines"),
        Column::new("Ready", "integer", ".status.readyReplicas", "Ready Machines"),
        Column::new("Available", "integer", ".status.availableReplicas", "Available Machines"),
        Column::new("Up-to-date", "integer", ".status.upToDateReplicas", "Machines that match the current spec"),
        Column::new("Paused", "string", r#".status.conditions[?(@.type=="Paused")].status"#, "Whether reconciliation is paused").wide(),
        Column::new("Age", "date", ".metadata.creationTimestamp", "Time since creation"),
        Column::new("Version", "string", ".spec.template.spec.version", "Desired Kubernetes version"),
    ],
}

crate::conditioned!(MachineSet);

/// The desired state of a MachineSet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct MachineSetSpec {
    /// Name of the Cluster of this object. Immutable.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 63))]
    pub cluster_name: String,
    /// Deletion settings: which Machines are deleted when the set scales down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion: Option<MachineSetDeletionSpec>,
    /// Naming of Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_naming: Option<MachineNamingSpec>,
    /// Desired number of Machines. Defaults to 1, unless an autoscaler manages it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Label selector of the Machines. Immutable.
    #[serde(skip_serializing_if = "crate::kind::is_unset")]
    #[schemars(schema_with = "schema::label_selector")]
    pub selector: LabelSelector,
    /// Template of the Machines.
    #[serde(skip_serializing_if = "crate::kind::is_unset")]
    pub template: MachineTemplateSpec,
}

/// The observed state of a MachineSet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
#[schemars(extend("minProperties" = 1))]
pub struct MachineSetStatus {
    /// Number of available Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available_replicas: Option<i32>,
    /// Conditions of the object, one per type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// Fields that are kept for older API versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<MachineSetDeprecatedStatus>,
    /// The metadata.generation that the controller observed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub observed_generation: Option<i64>,
    /// Number of ready Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_replicas: Option<i32>,
    /// Number of existing Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Label selector as text, for the scale subresource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4096))]
    pub selector: Option<String>,
    /// Number of Machines that match the current spec.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up_to_date_replicas: Option<i32>,
    /// The Kubernetes versions of the Machines, with the number of Machines per version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["version"]))]
    pub versions: Vec<StatusVersion>,
}

/// Deletion settings: which Machines are deleted when the set scales down.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
#[schemars(extend("minProperties" = 1))]
pub struct MachineSetDeletionSpec {
    /// Deletion order of Machines: Random, Newest or Oldest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["Random", "Newest", "Oldest"]))]
    pub order: Option<String>,
}

/// Status fields that are kept for older API versions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct MachineSetDeprecatedStatus {
    /// Status fields of API version v1beta1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub v1beta1: Option<MachineSetV1Beta1DeprecatedStatus>,
}

/// Status fields of v1beta1. Controllers still set them for older clients.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct MachineSetV1Beta1DeprecatedStatus {
    /// Number of available Machines.
    #[serde(default, serialize_with = "crate::kind::zero_unless_set")]
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub available_replicas: Option<i32>,
    /// Conditions of the object, one per type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<V1Beta1Condition>,
    /// Message of a terminal failure that needs manual intervention.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 10240))]
    pub failure_message: Option<String>,
    /// Machine-readable reason of a terminal failure that needs manual intervention.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_reason: Option<String>,
    /// Number of Machines with the labels of the template.
    #[serde(default, serialize_with = "crate::kind::zero_unless_set")]
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub fully_labeled_replicas: Option<i32>,
    /// Number of ready Machines.
    #[serde(default, serialize_with = "crate::kind::zero_unless_set")]
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub ready_replicas: Option<i32>,
}

crate::parts!(MachineSetStatus);
