//! MachineHealthCheck: the kind and its parts.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Condition;
use crate::core::v1beta2::{TemplateReference, V1Beta1Condition};
use crate::kind::Column;
use crate::patterns;
use crate::rules;
use crate::schema;

crate::api_kind! {
    /// Health check of a set of Machines, and remediation of unhealthy ones.
    pub struct MachineHealthCheck {
        /// The desired state of the object.
        pub spec: MachineHealthCheckSpec,
        /// The observed state of the object.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub status: Option<MachineHealthCheckStatus>,
    }
    group: "cluster.x-k8s.io",
    version: "v1beta2",
    plural: "machinehealthchecks",
    short_names: ["mhc", "mhcs"],
    provider: "cluster-api",
    contract: false,
    required: ["spec"],
    status: true,
    scale: None,
    columns: [
        Column::new("Cluster", "string", ".spec.clusterName", "Name of the Cluster"),
        Column::new("Replicas", "integer", ".status.expectedMachines", "Checked Machines"),
        Column::new("Healthy", "integer", ".status.currentHealthy", "Healthy Machines"),
        Column::new("Paused", "string", r#".status.conditions[?(@.type=="Paused")].status"#, "Whether reconciliation is paused").wide(),
        Column::new("Age", "date", ".metadata.creationTimestamp", "Time since creation"),
    ],
}

crate::conditioned!(MachineHealthCheck);

/// The desired state of a MachineHealthCheck.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct MachineHealthCheckSpec {
    /// Checks that decide whether a Machine is unhealthy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checks: Option<MachineHealthCheckChecks>,
    /// Name of the Cluster of this object. Immutable.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 63))]
    pub cluster_name: String,
    /// Remediation of unhealthy Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remediation: Option<MachineHealthCheckRemediation>,
    /// Label selector of the Machines.
    #[serde(skip_serializing_if = "crate::kind::is_unset")]
    #[schemars(schema_with = "schema::label_selector")]
    pub selector: LabelSelector,
}

/// The observed state of a MachineHealthCheck.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
#[schemars(extend("minProperties" = 1))]
pub struct MachineHealthCheckStatus {
    /// Conditions of the object, one per type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// Number of healthy Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub current_healthy: Option<i32>,
    /// Fields that are kept for older API versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<MachineHealthCheckDeprecatedStatus>,
    /// Number of checked Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub expected_machines: Option<i32>,
    /// The metadata.generation that the controller observed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub observed_generation: Option<i64>,
    /// Number of further Machines that may become unhealthy before remediation stops.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub remediations_allowed: Option<i32>,
    /// Names of the checked Machines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10000), inner(length(min = 1, max = 253)), extend("x-kubernetes-list-type" = "atomic"))]
    pub targets: Vec<String>,
}

/// Checks that decide whether a Machine is unhealthy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
#[schemars(extend("minProperties" = 1))]
pub struct MachineHealthCheckChecks {
    /// Seconds after which a Machine without a Node is unhealthy. Defaults to 600. 0 disables the check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub node_startup_timeout_seconds: Option<i32>,
    /// Machine conditions that make the Machine unhealthy. One of them suffices.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub unhealthy_machine_conditions: Vec<UnhealthyMachineCondition>,
    /// Node conditions that make the Machine unhealthy. One of them suffices.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub unhealthy_node_conditions: Vec<UnhealthyNodeCondition>,
}

/// Remediation of unhealthy Machines.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
#[schemars(extend("minProperties" = 1))]
pub struct MachineHealthCheckRemediation {
    /// Template of external remediation requests. When unset, the owner replaces unhealthy Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template_ref: Option<TemplateReference>,
    /// Condition under which remediation is allowed. Always allowed when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger_if: Option<MachineHealthCheckTriggerIf>,
}

/// Status fields that are kept for older API versions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct MachineHealthCheckDeprecatedStatus {
    /// Status fields of API version v1beta1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub v1beta1: Option<MachineHealthCheckV1Beta1DeprecatedStatus>,
}

/// A Machine condition that makes the Machine unhealthy when it lasts too long.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct UnhealthyMachineCondition {
    /// The unhealthy status: True, False or Unknown.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(extend("enum" = ["True", "False", "Unknown"]))]
    pub status: String,
    /// Seconds that the condition must have this status.
    #[schemars(range(min = 0))]
    pub timeout_seconds: i32,
    /// The type of the condition.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 316), regex(pattern = patterns::QUALIFIED_NAME), extend("x-kubernetes-validations" = rules::unhealthy_machine_condition_type()))]
    pub type_: String,
}

/// A Node condition that makes the Machine unhealthy when it lasts too long.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct UnhealthyNodeCondition {
    /// The unhealthy status: True, False or Unknown.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1))]
    pub status: String,
    /// Seconds that the condition must have this status.
    #[schemars(range(min = 0))]
    pub timeout_seconds: i32,
    /// The type of the condition.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1))]
    pub type_: String,
}

/// Condition under which remediation is allowed. More unhealthy Machines than this point to a problem that remediation
/// does not solve.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
#[schemars(extend("minProperties" = 1))]
pub struct MachineHealthCheckTriggerIf {
    /// Remediation is allowed while the number of unhealthy Machines is in this range, for example [3-5]. Takes
    /// precedence over unhealthyLessThanOrEqualTo.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32), regex(pattern = patterns::RANGE))]
    pub unhealthy_in_range: Option<String>,
    /// Remediation is allowed while at most this number or percentage of Machines is unhealthy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::int_or_string")]
    pub unhealthy_less_than_or_equal_to: Option<IntOrString>,
}

/// Status fields of v1beta1. Controllers still set them for older clients.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct MachineHealthCheckV1Beta1DeprecatedStatus {
    /// Conditions of the object, one per type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<V1Beta1Condition>,
}

crate::parts!(MachineHealthCheckStatus);
