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
    /// A number of equal Machines.
    pub struct MachineSet {
        /// What is wished for.
        pub spec: MachineSetSpec,
        /// What was observed.
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
        Column::new("Cluster", "string", ".spec.clusterName", "The Cluster that this belongs to"),
        Column::new("Desired", "integer", ".spec.replicas", "Machines wished for"),
        Column::new("Current", "integer", ".status.replicas", "Machines there are"),
        Column::new("Ready", "integer", ".status.readyReplicas", "Machines that are ready"),
        Column::new("Available", "integer", ".status.availableReplicas", "Machines that are available"),
        Column::new("Up-to-date", "integer", ".status.upToDateReplicas", "Machines that match what is wished for"),
        Column::new("Paused", "string", r#".status.conditions[?(@.type=="Paused")].status"#, "Whether reconciling is paused").wide(),
        Column::new("Age", "date", ".metadata.creationTimestamp", "How long ago this was created"),
        Column::new("Version", "string", ".spec.template.spec.version", "The Kubernetes version that is wished for"),
    ],
}

crate::conditioned!(MachineSet);

/// What a MachineSet should be.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineSetSpec {
    /// The Cluster that this belongs to. It cannot be changed later.
    #[schemars(length(min = 1, max = 63))]
    pub cluster_name: String,
    /// Which Machines are deleted when there are too many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion: Option<MachineSetDeletionSpec>,
    /// How Machines are named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_naming: Option<MachineNamingSpec>,
    /// How many Machines there should be; 1 when left out, unless an autoscaler decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Labels by which Machines are chosen. It cannot be changed later.
    #[schemars(schema_with = "schema::label_selector")]
    pub selector: LabelSelector,
    /// How Machines are made.
    pub template: MachineTemplateSpec,
}

/// What is known of a MachineSet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct MachineSetStatus {
    /// How many Machines are available.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available_replicas: Option<i32>,
    /// Observed aspects, one entry a type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// Fields of older API versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<MachineSetDeprecatedStatus>,
    /// The metadata.generation that this status was computed from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub observed_generation: Option<i64>,
    /// How many Machines are ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_replicas: Option<i32>,
    /// How many Machines there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// The selector as text, for the scale subresource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4096))]
    pub selector: Option<String>,
    /// How many Machines match what is wished for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up_to_date_replicas: Option<i32>,
    /// The Kubernetes versions that Machines run, with their number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["version"]))]
    pub versions: Vec<StatusVersion>,
}

/// Which Machines are deleted when there are too many.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct MachineSetDeletionSpec {
    /// Which Machines are deleted first: Random, Newest or Oldest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["Random", "Newest", "Oldest"]))]
    pub order: Option<String>,
}

/// Status fields of older API versions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineSetDeprecatedStatus {
    /// Fields of v1beta1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub v1beta1: Option<MachineSetV1Beta1DeprecatedStatus>,
}

/// Status fields of v1beta1, kept up for those who still read them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineSetV1Beta1DeprecatedStatus {
    /// How many Machines are available.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available_replicas: Option<i32>,
    /// Observed aspects, one entry a type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<V1Beta1Condition>,
    /// A failure that needs a person, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 10240))]
    pub failure_message: Option<String>,
    /// A failure that needs a person, as one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_reason: Option<String>,
    /// How many Machines have the labels of the template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fully_labeled_replicas: Option<i32>,
    /// How many Machines are ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_replicas: Option<i32>,
}

crate::parts!(MachineSetStatus);
