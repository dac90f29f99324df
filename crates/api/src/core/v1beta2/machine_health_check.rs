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
    /// A rule that says when Machines are unhealthy and have to be replaced.
    pub struct MachineHealthCheck {
        /// What is wished for.
        pub spec: MachineHealthCheckSpec,
        /// What was observed.
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
        Column::new("Cluster", "string", ".spec.clusterName", "The Cluster that this belongs to"),
        Column::new("Replicas", "integer", ".status.expectedMachines", "Machines that are checked"),
        Column::new("Healthy", "integer", ".status.currentHealthy", "Machines that pass the checks"),
        Column::new("Paused", "string", r#".status.conditions[?(@.type=="Paused")].status"#, "Whether reconciling is paused").wide(),
        Column::new("Age", "date", ".metadata.creationTimestamp", "How long ago this was created"),
    ],
}

crate::conditioned!(MachineHealthCheck);

/// Which Machines are checked, for what, and what is done about unhealthy ones.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineHealthCheckSpec {
    /// What makes a Machine unhealthy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checks: Option<MachineHealthCheckChecks>,
    /// The Cluster that this belongs to. It cannot be changed later.
    #[schemars(length(min = 1, max = 63))]
    pub cluster_name: String,
    /// What is done about unhealthy Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remediation: Option<MachineHealthCheckRemediation>,
    /// Labels by which Machines are chosen.
    #[schemars(schema_with = "schema::label_selector")]
    pub selector: LabelSelector,
}

/// What a MachineHealthCheck has found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct MachineHealthCheckStatus {
    /// Observed aspects, one entry a type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// How many of the Machines are healthy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub current_healthy: Option<i32>,
    /// Fields of older API versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<MachineHealthCheckDeprecatedStatus>,
    /// How many Machines are checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub expected_machines: Option<i32>,
    /// The metadata.generation that this status was computed from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub observed_generation: Option<i64>,
    /// How many more Machines may become unhealthy before remediation stops.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub remediations_allowed: Option<i32>,
    /// The names of the Machines that are checked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10000), inner(length(min = 1, max = 253)), extend("x-kubernetes-list-type" = "atomic"))]
    pub targets: Vec<String>,
}

/// What makes a Machine unhealthy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct MachineHealthCheckChecks {
    /// A Machine without a Node after this many seconds is unhealthy; 600 when left out, never when 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub node_startup_timeout_seconds: Option<i32>,
    /// Conditions of the Machine that make it unhealthy; any one of them is enough.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub unhealthy_machine_conditions: Vec<UnhealthyMachineCondition>,
    /// Conditions of the Node that make the Machine unhealthy; any one of them is enough.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub unhealthy_node_conditions: Vec<UnhealthyNodeCondition>,
}

/// What is done about unhealthy Machines.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct MachineHealthCheckRemediation {
    /// A template for requests to something else that repairs Machines; their owner replaces them when left
    /// out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template_ref: Option<TemplateReference>,
    /// When remediation is allowed at all; always when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger_if: Option<MachineHealthCheckTriggerIf>,
}

/// Status fields of older API versions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineHealthCheckDeprecatedStatus {
    /// Fields of v1beta1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub v1beta1: Option<MachineHealthCheckV1Beta1DeprecatedStatus>,
}

/// A condition of the Machine that makes it unhealthy when it lasts too long.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnhealthyMachineCondition {
    /// The status that is bad: True, False or Unknown.
    #[schemars(extend("enum" = ["True", "False", "Unknown"]))]
    pub status: String,
    /// How many seconds the condition must last.
    #[schemars(range(min = 0))]
    pub timeout_seconds: i32,
    /// The type of the condition.
    #[schemars(length(min = 1, max = 316), regex(pattern = patterns::QUALIFIED_NAME), extend("x-kubernetes-validations" = rules::unhealthy_machine_condition_type()))]
    pub type_: String,
}

/// A condition of the Node that makes the Machine unhealthy when it lasts too long.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnhealthyNodeCondition {
    /// The status that is bad: True, False or Unknown.
    #[schemars(length(min = 1))]
    pub status: String,
    /// How many seconds the condition must last.
    #[schemars(range(min = 0))]
    pub timeout_seconds: i32,
    /// The type of the condition.
    #[schemars(length(min = 1))]
    pub type_: String,
}

/// When remediation is allowed at all. If more Machines are unhealthy than this, something else is probably
/// wrong.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct MachineHealthCheckTriggerIf {
    /// Remediate only while the number of unhealthy Machines is within this range, for example [3-5]; wins
    /// over unhealthyLessThanOrEqualTo.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32), regex(pattern = patterns::RANGE))]
    pub unhealthy_in_range: Option<String>,
    /// Remediate only while at most this many Machines are unhealthy, as a number or a percentage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::int_or_string")]
    pub unhealthy_less_than_or_equal_to: Option<IntOrString>,
}

/// Status fields of v1beta1, kept up for those who still read them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineHealthCheckV1Beta1DeprecatedStatus {
    /// Observed aspects, one entry a type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<V1Beta1Condition>,
}

crate::parts!(MachineHealthCheckStatus);
