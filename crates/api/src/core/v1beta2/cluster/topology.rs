//! The topology of a Cluster.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::core::v1beta2::{
    MachineDeletionSpec, MachineDeploymentHealthCheckRemediation, MachineDeploymentRolloutSpec,
    MachineHealthCheckChecks, MachineHealthCheckRemediation, MachineReadinessGate, MachineTaint, ObjectMeta,
    OrderedMachineDeletionSpec,
};
use crate::patterns;
use crate::schema;

/// The topology of a cluster: a ClusterClass and the values that differ from it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct Topology {
    /// Reference to the ClusterClass.
    #[serde(skip_serializing_if = "crate::kind::is_unset")]
    pub class_ref: ClusterClassRef,
    /// Settings of the control plane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane: Option<ControlPlaneTopology>,
    /// Values of the variables of the ClusterClass.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 1000), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub variables: Vec<ClusterVariable>,
    /// Kubernetes version of the control plane and of all workers.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 256))]
    pub version: String,
    /// Settings of the workers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workers: Option<WorkersTopology>,
}

/// Reference to a ClusterClass.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct ClusterClassRef {
    /// Name of the ClusterClass.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 253), regex(pattern = patterns::DNS_SUBDOMAIN))]
    pub name: String,
    /// Namespace of the ClusterClass. Defaults to the namespace of the Cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63), regex(pattern = patterns::DNS_LABEL))]
    pub namespace: Option<String>,
}

/// Settings of the control plane that differ from the class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
#[schemars(extend("minProperties" = 1))]
pub struct ControlPlaneTopology {
    /// Deletion settings of Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion: Option<MachineDeletionSpec>,
    /// Health check of the Machines and remediation of unhealthy ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health_check: Option<ControlPlaneTopologyHealthCheck>,
    /// Labels and annotations of the created objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<ObjectMeta>,
    /// Additional conditions that must be good before a Machine is Ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["conditionType"]))]
    pub readiness_gates: Vec<MachineReadinessGate>,
    /// Desired number of control plane Machines. When unset, the control plane object decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Rollout settings: when and how Machines are replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<ControlPlaneTopologyRolloutSpec>,
    /// Taints of the Nodes. Only the taints in this list are managed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key", "effect"]))]
    pub taints: Vec<MachineTaint>,
    /// Values of variables for the control plane only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variables: Option<VariableOverrides>,
}

/// Value of a variable.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct ClusterVariable {
    /// Name of the variable.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 256))]
    pub name: String,
    /// Value of the variable. It must match the schema of the variable.
    #[schemars(schema_with = "schema::any")]
    pub value: Value,
}

/// Settings of the workers of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
#[schemars(extend("minProperties" = 1))]
pub struct WorkersTopology {
    /// MachineDeployments, identified by their class or name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 2000), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub machine_deployments: Vec<MachineDeploymentTopology>,
    /// MachinePools, identified by their class or name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 2000), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub machine_pools: Vec<MachinePoolTopology>,
}

/// Health check of the control plane. Overrides the health check of the class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
#[schemars(extend("minProperties" = 1))]
pub struct ControlPlaneTopologyHealthCheck {
    /// Checks that decide whether a Machine is unhealthy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checks: Option<MachineHealthCheckChecks>,
    /// Enables or disables the health check. When unset, it is enabled if it is defined here or in the class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Remediation of unhealthy Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remediation: Option<MachineHealthCheckRemediation>,
}

/// Rollout settings of the control plane.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
#[schemars(extend("minProperties" = 1))]
pub struct ControlPlaneTopologyRolloutSpec {
    /// Replaces all Machines that were created before this time, as soon as the time has passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::date_time")]
    pub after: Option<Time>,
}

/// Values of variables that override those of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
#[schemars(extend("minProperties" = 1))]
pub struct VariableOverrides {
    /// Values that override those of the cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 1000), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub overrides: Vec<ClusterVariable>,
}

/// A MachineDeployment of the topology: its class and the settings that differ from it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct MachineDeploymentTopology {
    /// Name of the MachineDeployment class.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 256))]
    pub class: String,
    /// Deletion settings of Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion: Option<OrderedMachineDeletionSpec>,
    /// Failure domain of the Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub failure_domain: Option<String>,
    /// Health check of the Machines and remediation of unhealthy ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health_check: Option<MachineDeploymentTopologyHealthCheck>,
    /// Labels and annotations of the created objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<ObjectMeta>,
    /// Seconds that a Machine must be Ready before it is Available. Defaults to 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub min_ready_seconds: Option<i32>,
    /// Unique name of the MachineDeployment in the topology.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 63), regex(pattern = patterns::DNS_SUBDOMAIN))]
    pub name: String,
    /// Additional conditions that must be good before a Machine is Ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["conditionType"]))]
    pub readiness_gates: Vec<MachineReadinessGate>,
    /// Desired number of Machines. When unset, another controller such as an autoscaler manages it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Rollout settings: when and how Machines are replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<MachineDeploymentRolloutSpec>,
    /// Taints of the Nodes. Only the taints in this list are managed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key", "effect"]))]
    pub taints: Vec<MachineTaint>,
    /// Values of variables for this MachineDeployment only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variables: Option<VariableOverrides>,
}

/// A MachinePool of the topology: its class and the settings that differ from it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct MachinePoolTopology {
    /// Name of the MachinePool class.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 256))]
    pub class: String,
    /// Deletion settings of Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion: Option<MachineDeletionSpec>,
    /// Failure domains of the machines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 100), inner(length(min = 1, max = 256)), extend("x-kubernetes-list-type" = "atomic"))]
    pub failure_domains: Vec<String>,
    /// Labels and annotations of the created objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<ObjectMeta>,
    /// Seconds that a Machine must be Ready before it is Available. Defaults to 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub min_ready_seconds: Option<i32>,
    /// Unique name of the MachinePool in the topology.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 63), regex(pattern = patterns::DNS_SUBDOMAIN))]
    pub name: String,
    /// Desired number of machines. When unset, another controller such as an autoscaler manages it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Taints of the Nodes. Only the taints in this list are managed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key", "effect"]))]
    pub taints: Vec<MachineTaint>,
    /// Values of variables for this MachinePool only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variables: Option<VariableOverrides>,
}

/// Health check of a MachineDeployment. Overrides the health check of the class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
#[schemars(extend("minProperties" = 1))]
pub struct MachineDeploymentTopologyHealthCheck {
    /// Checks that decide whether a Machine is unhealthy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checks: Option<MachineHealthCheckChecks>,
    /// Enables or disables the health check. When unset, it is enabled if it is defined here or in the class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Remediation of unhealthy Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remediation: Option<MachineDeploymentHealthCheckRemediation>,
}
