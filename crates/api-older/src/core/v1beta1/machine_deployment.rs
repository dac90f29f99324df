//! MachineDeployment: the kind and its parts.

mod convert;

pub(in crate::core::v1beta1) use convert::Strategy;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_api::core::{StatusVersion, V1Beta1Condition};
use windlass_api::kind::{Column, Scale, is_unset};
use windlass_api::{Condition, api_kind, schema};

use super::{MachineNamingStrategy, MachineTemplateSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

api_kind! {
    /// Machines that are replaced step by step when their template changes.
    pub struct MachineDeployment {
        /// The desired state of the object.
        #[serde(default)]
        pub spec: MachineDeploymentSpec,
        /// The observed state of the object.
        #[serde(default)]
        pub status: MachineDeploymentStatus,
    }
    group: "cluster.x-k8s.io",
    version: "v1beta1",
    plural: "machinedeployments",
    short_names: ["md"],
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
        Column::new("Updated", "integer", ".status.updatedReplicas", "Machines that match the current spec"),
        Column::new("Unavailable", "integer", ".status.unavailableReplicas", "Machines that are not available"),
        Column::new("Phase", "string", ".status.phase", "Lifecycle phase"),
        Column::new("Age", "date", ".metadata.creationTimestamp", "Time since creation"),
        Column::new("Version", "string", ".spec.template.spec.version", "Desired Kubernetes version"),
    ],
}

/// The desired state of a MachineDeployment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineDeploymentSpec {
    /// Name of the Cluster of this object. Immutable.
    #[schemars(length(min = 1, max = 63))]
    pub cluster_name: String,
    /// Desired number of Machines. Defaults to 1, unless an autoscaler manages it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Replaces all Machines that were created before this time, as soon as the time has passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::date_time")]
    pub rollout_after: Option<Time>,
    /// Label selector of the Machines. Immutable.
    #[schemars(schema_with = "schema::label_selector")]
    pub selector: LabelSelector,
    /// Template of the Machines. A change starts a rollout, unless the change can be applied in place.
    pub template: MachineTemplateSpec,
    /// How Machines are replaced after a change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<MachineDeploymentStrategy>,
    /// How the Machines are named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_naming_strategy: Option<MachineNamingStrategy>,
    /// Seconds that a Machine must be Ready before it is Available. Defaults to 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_ready_seconds: Option<i32>,
    /// No longer used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision_history_limit: Option<i32>,
    /// Pauses rollouts. Scaling continues.
    #[serde(default, skip_serializing_if = "is_unset")]
    pub paused: bool,
    /// Seconds after which a Cluster that is not healthy counts as failed. Defaults to 3600.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress_deadline_seconds: Option<i32>,
}

/// How Machines are replaced after a change, and how many may be under remediation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineDeploymentStrategy {
    /// The type of the condition.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(extend("enum" = ["RollingUpdate", "OnDelete"]))]
    pub type_: String,
    /// Settings of rolling updates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rolling_update: Option<MachineRollingUpdateDeployment>,
    /// Remediation of unhealthy Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remediation: Option<RemediationStrategy>,
}

/// Settings of rolling updates.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineRollingUpdateDeployment {
    /// Maximum number or percentage of unavailable Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::int_or_string")]
    pub max_unavailable: Option<IntOrString>,
    /// Maximum number or percentage of Machines above the desired number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::int_or_string")]
    pub max_surge: Option<IntOrString>,
    /// Which Machines go first when there are too many: Random, Newest or Oldest. Defaults to Random.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["Random", "Newest", "Oldest"]))]
    pub delete_policy: Option<String>,
}

/// Limits of the remediation of unhealthy Machines.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RemediationStrategy {
    /// Maximum number or percentage of Machines in remediation at the same time. No limit when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::int_or_string")]
    pub max_in_flight: Option<IntOrString>,
}

/// The observed state of a MachineDeployment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineDeploymentStatus {
    /// The metadata.generation that the controller observed last.
    #[serde(default, skip_serializing_if = "is_unset")]
    pub observed_generation: i64,
    /// Label selector as text, for the scale subresource.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 4096))]
    pub selector: String,
    /// Number of existing Machines.
    #[serde(default)]
    pub replicas: i32,
    /// Number of Machines that match the current spec.
    #[serde(default)]
    pub updated_replicas: i32,
    /// Number of ready Machines.
    #[serde(default)]
    pub ready_replicas: i32,
    /// Number of available Machines.
    #[serde(default)]
    pub available_replicas: i32,
    /// Number of Machines that are not available yet.
    #[serde(default)]
    pub unavailable_replicas: i32,
    /// The lifecycle phase, for display. Programs should use conditions instead.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(extend("enum" = ["ScalingUp", "ScalingDown", "Running", "Failed", "Unknown"]))]
    pub phase: String,
    /// Conditions of the object, one per type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<V1Beta1Condition>,
    /// The Kubernetes versions of the Machines, with the number of Machines per version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["version"]))]
    pub versions: Vec<StatusVersion>,
    /// Status fields of the next API version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub v1beta2: Option<MachineDeploymentV1Beta2Status>,
}

/// Status fields that the next API version has as its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineDeploymentV1Beta2Status {
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
