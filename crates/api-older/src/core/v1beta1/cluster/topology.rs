//! The topology of a Cluster.

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_api::core::{MachineReadinessGate, MachineTaint};
use windlass_api::{patterns, schema};
use windlass_meta::GoDuration;

use crate::core::v1beta1::{MachineDeploymentStrategy, ObjectMeta, UnhealthyCondition, UnhealthyMachineCondition};
use crate::parts::duration;

/// The topology of a cluster: a ClusterClass and the values that differ from it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Topology {
    /// Name of the class.
    #[schemars(length(min = 1, max = 253))]
    pub class: String,
    /// Namespace of the ClusterClass. Defaults to that of the Cluster.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 63), regex(pattern = patterns::DNS_LABEL))]
    pub class_namespace: String,
    /// Kubernetes version of the control plane and of all workers.
    #[schemars(length(min = 1, max = 256))]
    pub version: String,
    /// Replaces all Machines that were created before this time, as soon as the time has passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::date_time")]
    pub rollout_after: Option<Time>,
    /// Settings of the control plane.
    #[serde(default)]
    pub control_plane: ControlPlaneTopology,
    /// Settings of the workers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workers: Option<WorkersTopology>,
    /// Values of the variables of the ClusterClass.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub variables: Vec<ClusterVariable>,
}

/// Settings of the control plane that differ from the class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ControlPlaneTopology {
    /// Labels and annotations of the created objects.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// Desired number of control plane Machines. When unset, the control plane object decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Rollout settings: when and how Machines are replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<TopologyRolloutSpec>,
    /// Health check of the Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_health_check: Option<MachineHealthCheckTopology>,
    /// Maximum time for draining the Node, for example `10m`. Unset or `0s` means no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "duration")]
    pub node_drain_timeout: Option<GoDuration>,
    /// Maximum time to wait for volumes to be detached. Unset or `0s` means no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "duration")]
    pub node_volume_detach_timeout: Option<GoDuration>,
    /// Time to try to delete the Node after the infrastructure is deleted. Defaults to `10s`. `0s` means no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "duration")]
    pub node_deletion_timeout: Option<GoDuration>,
    /// Taints of the Nodes. Only the taints in this list are managed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key", "effect"]))]
    pub taints: Vec<MachineTaint>,
    /// Additional conditions that must be good before a Machine is Ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["conditionType"]))]
    pub readiness_gates: Vec<MachineReadinessGate>,
    /// Values of variables for the control plane only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variables: Option<VariableOverrides>,
}

/// Settings of the workers of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkersTopology {
    /// MachineDeployments, identified by their class or name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 2000), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub machine_deployments: Vec<MachineDeploymentTopology>,
    /// MachinePools, identified by their class or name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 2000), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub machine_pools: Vec<MachinePoolTopology>,
}

/// A MachineDeployment of the topology: its class and the settings that differ from it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineDeploymentTopology {
    /// Labels and annotations of the created objects.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// Name of the class.
    #[schemars(length(min = 1, max = 256))]
    pub class: String,
    /// Unique name of the MachineDeployment in the topology.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// Failure domain of the Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub failure_domain: Option<String>,
    /// Desired number of Machines. When unset, another controller such as an autoscaler manages it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Health check of the Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_health_check: Option<MachineHealthCheckTopology>,
    /// Maximum time for draining the Node, for example `10m`. Unset or `0s` means no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "duration")]
    pub node_drain_timeout: Option<GoDuration>,
    /// Maximum time to wait for volumes to be detached. Unset or `0s` means no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "duration")]
    pub node_volume_detach_timeout: Option<GoDuration>,
    /// Time to try to delete the Node after the infrastructure is deleted. Defaults to `10s`. `0s` means no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "duration")]
    pub node_deletion_timeout: Option<GoDuration>,
    /// Taints of the Nodes. Only the taints in this list are managed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key", "effect"]))]
    pub taints: Vec<MachineTaint>,
    /// Seconds that a Machine must be Ready before it is Available. Defaults to 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_ready_seconds: Option<i32>,
    /// Additional conditions that must be good before a Machine is Ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["conditionType"]))]
    pub readiness_gates: Vec<MachineReadinessGate>,
    /// Rollout settings: when and how Machines are replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<TopologyRolloutSpec>,
    /// How Machines are replaced after a change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<MachineDeploymentStrategy>,
    /// Values of variables for this MachineDeployment only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variables: Option<VariableOverrides>,
}

/// A MachinePool of the topology: its class and the settings that differ from it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachinePoolTopology {
    /// Labels and annotations of the created objects.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// Name of the class.
    #[schemars(length(min = 1, max = 256))]
    pub class: String,
    /// Unique name of the MachinePool in the topology.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// Failure domains of the machines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(min = 1, max = 256)))]
    pub failure_domains: Vec<String>,
    /// Maximum time for draining the Node, for example `10m`. Unset or `0s` means no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "duration")]
    pub node_drain_timeout: Option<GoDuration>,
    /// Maximum time to wait for volumes to be detached. Unset or `0s` means no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "duration")]
    pub node_volume_detach_timeout: Option<GoDuration>,
    /// Time to try to delete the Node after the infrastructure is deleted. Defaults to `10s`. `0s` means no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "duration")]
    pub node_deletion_timeout: Option<GoDuration>,
    /// Taints of the Nodes. Only the taints in this list are managed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key", "effect"]))]
    pub taints: Vec<MachineTaint>,
    /// Seconds that a Machine must be Ready before it is Available. Defaults to 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_ready_seconds: Option<i32>,
    /// Desired number of machines. When unset, another controller such as an autoscaler manages it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Values of variables for this MachinePool only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variables: Option<VariableOverrides>,
}

/// Rollout settings of a part of the topology.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct TopologyRolloutSpec {
    /// Replaces all Machines that were created before this time, as soon as the time has passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::date_time")]
    pub after: Option<Time>,
}

/// Health check of the Machines of a part of the topology.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineHealthCheckTopology {
    /// Whether the Machines are checked. Defaults to whether the class or the topology has a check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enable: Option<bool>,
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

/// Values that override those of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VariableOverrides {
    /// Values that override those of the cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub overrides: Vec<ClusterVariable>,
}

/// Value of a variable.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterVariable {
    /// Name of the variable.
    #[schemars(length(min = 1, max = 256))]
    pub name: String,
    /// Source of the definition of the variable. No longer used.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 256))]
    pub definition_from: String,
    /// Value of the variable. It must match the schema of the variable.
    #[schemars(schema_with = "schema::any")]
    pub value: Value,
}
