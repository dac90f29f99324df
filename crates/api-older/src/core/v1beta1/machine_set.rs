//! MachineSet: the kind and its parts.

mod convert;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_api::core::{StatusVersion, V1Beta1Condition};
use windlass_api::kind::{Column, Scale, is_unset};
use windlass_api::{Condition, api_kind, schema};

use super::{MachineNamingStrategy, MachineTemplateSpec};

api_kind! {
    /// A set of identical Machines.
    pub struct MachineSet {
        /// The desired state of the object.
        #[serde(default)]
        pub spec: MachineSetSpec,
        /// The observed state of the object.
        #[serde(default)]
        pub status: MachineSetStatus,
    }
    group: "cluster.x-k8s.io",
    version: "v1beta1",
    plural: "machinesets",
    short_names: ["ms"],
    provider: "cluster-api",
    contract: false,
    required: [],
    status: true,
    scale: Some(Scale::STANDARD),
    columns: [
        Column::new("Cluster", "string", ".spec.clusterName", "Name of the Cluster"),
        Column::new("Desired", "integer", ".spec.replicas", "Desired Machines").wide(),
        Column::new("Replicas", "integer", ".status.replicas", "Existing Machines"),
        Column::new("Ready", "integer", ".status.readyReplicas", "Ready Machines"),
        Column::new("Available", "integer", ".status.availableReplicas", "Available Machines"),
        Column::new("Age", "date", ".metadata.creationTimestamp", "Time since creation"),
        Column::new("Version", "string", ".spec.template.spec.version", "Desired Kubernetes version"),
    ],
}

/// The desired state of a MachineSet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineSetSpec {
    /// Name of the Cluster of this object. Immutable.
    #[schemars(length(min = 1, max = 63))]
    pub cluster_name: String,
    /// Desired number of Machines. Defaults to 1, unless an autoscaler manages it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Seconds that a Machine must be Ready before it is Available. Defaults to 0.
    #[serde(default, skip_serializing_if = "is_unset")]
    pub min_ready_seconds: i32,
    /// Which Machines go first when there are too many: Random, Newest or Oldest. Defaults to Random.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(extend("enum" = ["Random", "Newest", "Oldest"]))]
    pub delete_policy: String,
    /// Label selector of the Machines. Immutable.
    #[schemars(schema_with = "schema::label_selector")]
    pub selector: LabelSelector,
    /// Template of the Machines.
    #[serde(default)]
    pub template: MachineTemplateSpec,
    /// How the Machines are named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_naming_strategy: Option<MachineNamingStrategy>,
}

/// The observed state of a MachineSet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineSetStatus {
    /// Label selector as text, for the scale subresource.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 4096))]
    pub selector: String,
    /// Number of existing Machines.
    #[serde(default)]
    pub replicas: i32,
    /// Number of Machines with the labels of the template.
    #[serde(default)]
    pub fully_labeled_replicas: i32,
    /// Number of ready Machines.
    #[serde(default)]
    pub ready_replicas: i32,
    /// Number of available Machines.
    #[serde(default)]
    pub available_replicas: i32,
    /// The metadata.generation that the controller observed last.
    #[serde(default, skip_serializing_if = "is_unset")]
    pub observed_generation: i64,
    /// Reason of a terminal error, as one word. No longer set by Cluster API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_reason: Option<String>,
    /// Message of a terminal error. No longer set by Cluster API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 10240))]
    pub failure_message: Option<String>,
    /// Conditions of the object, one per type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<V1Beta1Condition>,
    /// The Kubernetes versions of the Machines, with the number of Machines per version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["version"]))]
    pub versions: Vec<StatusVersion>,
    /// Status fields of the next API version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub v1beta2: Option<MachineSetV1Beta2Status>,
}

/// Status fields that the next API version has as its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineSetV1Beta2Status {
    /// Conditions of the object, one per type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// Number of ready Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_replicas: Option<i32>,
    /// Number of available Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available_replicas: Option<i32>,
    /// Number of Machines that match the current spec.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up_to_date_replicas: Option<i32>,
}
