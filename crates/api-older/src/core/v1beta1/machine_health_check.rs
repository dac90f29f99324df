//! MachineHealthCheck: the kind and its parts.

mod convert;

pub(in crate::core::v1beta1) use convert::HubCheck;

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_api::core::V1Beta1Condition;
use windlass_api::kind::{Column, is_unset};
use windlass_api::{api_kind, patterns, rules, schema};
use windlass_meta::GoDuration;

use crate::common::V1Beta2Status;
use crate::parts::duration;

api_kind! {
    /// A check of the health of Machines, and the remediation of unhealthy ones.
    pub struct MachineHealthCheck {
        /// The desired state of the object.
        #[serde(default)]
        pub spec: MachineHealthCheckSpec,
        /// The observed state of the object.
        #[serde(default)]
        pub status: MachineHealthCheckStatus,
    }
    group: "cluster.x-k8s.io",
    version: "v1beta1",
    plural: "machinehealthchecks",
    short_names: ["mhc", "mhcs"],
    provider: "cluster-api",
    contract: false,
    required: [],
    status: true,
    scale: None,
    columns: [
        Column::new("Cluster", "string", ".spec.clusterName", "Name of the Cluster"),
        Column::new("ExpectedMachines", "integer", ".status.expectedMachines", "Checked Machines"),
        Column::new("MaxUnhealthy", "string", ".spec.maxUnhealthy", "Most unhealthy Machines with which remediation takes place"),
        Column::new("CurrentHealthy", "integer", ".status.currentHealthy", "Healthy Machines"),
        Column::new("Age", "date", ".metadata.creationTimestamp", "Time since creation"),
    ],
}

/// The desired state of a MachineHealthCheck.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineHealthCheckSpec {
    /// Name of the Cluster of this object. Immutable.
    #[schemars(length(min = 1, max = 63))]
    pub cluster_name: String,
    /// Label selector of the Machines.
    #[schemars(schema_with = "schema::label_selector")]
    pub selector: LabelSelector,
    /// Node conditions that make the Machine unhealthy. One of them suffices.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    pub unhealthy_conditions: Vec<UnhealthyCondition>,
    /// Machine conditions that make the Machine unhealthy. One of them suffices.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub unhealthy_machine_conditions: Vec<UnhealthyMachineCondition>,
    /// Remediation takes place only while at most so many Machines are unhealthy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::int_or_string")]
    pub max_unhealthy: Option<IntOrString>,
    /// Remediation takes place only while the number of unhealthy Machines is in this range, such as `[3-5]`. It has precedence over
    /// maxUnhealthy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32), regex(pattern = patterns::RANGE))]
    pub unhealthy_range: Option<String>,
    /// Time for a Node to join. A Machine without a Node is unhealthy then. `0s` turns the check off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "duration")]
    pub node_startup_timeout: Option<GoDuration>,
    /// Template of the objects that an external remediation works on. Without it the owner of the Machine replaces it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::object_reference")]
    pub remediation_template: Option<ObjectReference>,
}

/// A Node condition that makes the Machine unhealthy when it lasts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnhealthyCondition {
    /// The type of the condition.
    #[schemars(length(min = 1))]
    pub type_: String,
    /// The observed state of the object.
    #[schemars(length(min = 1))]
    pub status: String,
    /// Timeout of an operation, for example 10m (--timeout).
    #[schemars(schema_with = "duration")]
    pub timeout: GoDuration,
}

/// A Machine condition that makes the Machine unhealthy when it lasts too long.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnhealthyMachineCondition {
    /// The type of the condition.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 316), regex(pattern = patterns::QUALIFIED_NAME), extend("x-kubernetes-validations" = rules::unhealthy_machine_condition_type()))]
    pub type_: String,
    /// The unhealthy status: True, False or Unknown.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(extend("enum" = ["True", "False", "Unknown"]))]
    pub status: String,
    /// Timeout of an operation, for example 10m (--timeout).
    #[schemars(schema_with = "duration")]
    pub timeout: GoDuration,
}

/// The observed state of a MachineHealthCheck.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineHealthCheckStatus {
    /// Number of checked Machines.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub expected_machines: i32,
    /// Number of healthy Machines.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub current_healthy: i32,
    /// Number of further Machines that may become unhealthy before remediation stops.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub remediations_allowed: i32,
    /// The metadata.generation that the controller observed last.
    #[serde(default, skip_serializing_if = "is_unset")]
    pub observed_generation: i64,
    /// Names of the checked Machines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10000), inner(length(min = 1, max = 253)))]
    pub targets: Vec<String>,
    /// Conditions of the object, one per type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<V1Beta1Condition>,
    /// Status fields of the next API version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub v1beta2: Option<V1Beta2Status>,
}
