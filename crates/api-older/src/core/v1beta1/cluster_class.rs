//! ClusterClass: the kind and its parts.

mod convert;
mod patches;
mod variables;

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_api::core::{
    ClusterAvailabilityGate, ClusterClassUpgrade, MachineReadinessGate, MachineTaint, V1Beta1Condition,
};
use windlass_api::kind::{Column, is_unset};
use windlass_api::{api_kind, patterns, schema};
use windlass_meta::GoDuration;

pub use patches::*;
pub use variables::*;

use super::{MachineDeploymentStrategy, ObjectMeta, UnhealthyCondition, UnhealthyMachineCondition};
use crate::common::V1Beta2Status;
use crate::parts::duration;

api_kind! {
    /// A reusable blueprint for clusters: templates, variables, and patches that apply the variables to the templates.
    pub struct ClusterClass {
        /// The desired state of the object.
        #[serde(default)]
        pub spec: ClusterClassSpec,
        /// The observed state of the object.
        #[serde(default)]
        pub status: ClusterClassStatus,
    }
    group: "cluster.x-k8s.io",
    version: "v1beta1",
    plural: "clusterclasses",
    short_names: ["cc"],
    provider: "cluster-api",
    contract: false,
    required: [],
    status: true,
    scale: None,
    columns: [
        Column::new("Age", "date", ".metadata.creationTimestamp", "Time since creation"),
    ],
}

/// The desired state of a ClusterClass.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterClassSpec {
    /// Additional conditions that must be good before a Cluster of this class is Available.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["conditionType"]))]
    pub availability_gates: Vec<ClusterAvailabilityGate>,
    /// Templates and settings of the cluster infrastructure.
    #[serde(default)]
    pub infrastructure: LocalObjectTemplate,
    /// How the objects of the cluster infrastructure are named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub infrastructure_naming_strategy: Option<ClassNamingStrategy>,
    /// Templates and settings of control planes.
    #[serde(default)]
    pub control_plane: ControlPlaneClass,
    /// Templates and settings of workers.
    #[serde(default)]
    pub workers: WorkersClass,
    /// Variables that Clusters of this class can set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000))]
    pub variables: Vec<ClusterClassVariable>,
    /// Patches for the templates, applied in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000))]
    pub patches: Vec<ClusterClassPatch>,
    /// Settings of upgrades over several versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upgrade: Option<ClusterClassUpgrade>,
    /// Kubernetes versions that clusters of this class may use, in upgrade order. Upgrades over several minor versions follow this list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 100), inner(length(min = 1, max = 256)), extend("x-kubernetes-list-type" = "atomic"))]
    pub kubernetes_versions: Vec<String>,
}

/// A reference to a template.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LocalObjectTemplate {
    /// Reference to the template.
    #[serde(rename = "ref", default, skip_serializing_if = "Option::is_none")]
    #[schemars(!default, required, schema_with = "schema::object_reference")]
    pub reference: Option<ObjectReference>,
}

/// Templates and settings of the control planes of this class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ControlPlaneClass {
    /// Labels and annotations of the created objects.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// Reference to the template.
    #[serde(rename = "ref", default, skip_serializing_if = "Option::is_none")]
    #[schemars(!default, required, schema_with = "schema::object_reference")]
    pub reference: Option<ObjectReference>,
    /// Infrastructure template of the control plane Machines. Only for control planes that consist of Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_infrastructure: Option<LocalObjectTemplate>,
    /// Health check of the Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_health_check: Option<MachineHealthCheckClass>,
    /// How the objects of this class are named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub naming_strategy: Option<ClassNamingStrategy>,
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
}

/// Worker classes: templates and settings of workers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkersClass {
    /// MachineDeployments, identified by their class or name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["class"]))]
    pub machine_deployments: Vec<MachineDeploymentClass>,
    /// MachinePools, identified by their class or name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["class"]))]
    pub machine_pools: Vec<MachinePoolClass>,
}

/// A class of MachineDeployments. A Cluster can use it for any number of MachineDeployments.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineDeploymentClass {
    /// Name of the class.
    #[schemars(length(min = 1, max = 256))]
    pub class: String,
    /// Templates of the objects of the class.
    pub template: WorkerClassTemplate,
    /// Health check of the Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_health_check: Option<MachineHealthCheckClass>,
    /// Failure domain of the Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub failure_domain: Option<String>,
    /// How the objects of this class are named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub naming_strategy: Option<ClassNamingStrategy>,
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
    /// How Machines are replaced after a change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<MachineDeploymentStrategy>,
}

/// A class of MachinePools. A Cluster can use it for any number of MachinePools.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachinePoolClass {
    /// Name of the class.
    #[schemars(length(min = 1, max = 256))]
    pub class: String,
    /// Templates of the objects of the class.
    pub template: WorkerClassTemplate,
    /// Failure domains of the machines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(min = 1, max = 256)))]
    pub failure_domains: Vec<String>,
    /// How the objects of this class are named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub naming_strategy: Option<ClassNamingStrategy>,
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
}

/// Templates of the objects of a worker class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkerClassTemplate {
    /// Labels and annotations of the created objects.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// Template of the bootstrap objects.
    pub bootstrap: LocalObjectTemplate,
    /// Template of the infrastructure objects of the Machines.
    pub infrastructure: LocalObjectTemplate,
}

/// How the objects of a class are named.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClassNamingStrategy {
    /// Go template of the names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub template: Option<String>,
}

/// Health check of the Machines of a class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineHealthCheckClass {
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

/// The observed state of a ClusterClass.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterClassStatus {
    /// All variables, including those that runtime extensions define.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000))]
    pub variables: Vec<ClusterClassStatusVariable>,
    /// Conditions of the object, one per type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<V1Beta1Condition>,
    /// The metadata.generation that the controller observed last.
    #[serde(default, skip_serializing_if = "is_unset")]
    pub observed_generation: i64,
    /// Status fields of the next API version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub v1beta2: Option<V1Beta2Status>,
}
