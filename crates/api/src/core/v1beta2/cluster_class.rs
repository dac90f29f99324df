//! ClusterClass: the kind and its parts.

mod patches;
mod variables;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Condition;
use crate::core::v1beta2::{
    ClusterAvailabilityGate, MachineDeletionSpec, MachineDeploymentRolloutStrategy, MachineHealthCheckChecks,
    MachineHealthCheckRemediation, MachineHealthCheckTriggerIf, MachineReadinessGate, MachineTaint, ObjectMeta,
    OrderedMachineDeletionSpec, TemplateReference, V1Beta1Condition,
};
use crate::kind::Column;
use crate::schema;

pub use patches::*;
pub use variables::*;

crate::api_kind! {
    /// A reusable shape for clusters: templates, variables, and patches that put the variables into the
    /// templates.
    pub struct ClusterClass {
        /// What is wished for.
        pub spec: ClusterClassSpec,
        /// What was observed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub status: Option<ClusterClassStatus>,
    }
    group: "cluster.x-k8s.io",
    version: "v1beta2",
    plural: "clusterclasses",
    short_names: ["cc"],
    provider: "cluster-api",
    contract: false,
    required: ["spec"],
    status: true,
    scale: None,
    columns: [
        Column::new("Paused", "string", r#".status.conditions[?(@.type=="Paused")].status"#, "Whether reconciling is paused").wide(),
        Column::new("Variables Ready", "string", r#".status.conditions[?(@.type=="VariablesReady")].status"#, "Whether all variables are known"),
        Column::new("Age", "date", ".metadata.creationTimestamp", "How long ago this was created"),
    ],
}

crate::conditioned!(ClusterClass);

/// What a ClusterClass offers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterClassSpec {
    /// Further conditions that must hold for a Cluster to count as available.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["conditionType"]))]
    pub availability_gates: Vec<ClusterAvailabilityGate>,
    /// What control planes are made from.
    pub control_plane: ControlPlaneClass,
    /// What the infrastructure of clusters is made from.
    pub infrastructure: InfrastructureClass,
    /// The versions that clusters of this class may have, in the order in which upgrades go through them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 100), inner(length(min = 1, max = 256)), extend("x-kubernetes-list-type" = "atomic"))]
    pub kubernetes_versions: Vec<String>,
    /// Changes to the templates, made in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 1000), extend("x-kubernetes-list-type" = "atomic"))]
    pub patches: Vec<ClusterClassPatch>,
    /// How clusters are upgraded over several versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upgrade: Option<ClusterClassUpgrade>,
    /// Variables that clusters of this class set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 1000), extend("x-kubernetes-list-type" = "atomic"))]
    pub variables: Vec<ClusterClassVariable>,
    /// What workers are made from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workers: Option<WorkersClass>,
}

/// What is known of a ClusterClass.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct ClusterClassStatus {
    /// Observed aspects, one entry a type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// Fields of older API versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<ClusterClassDeprecatedStatus>,
    /// The metadata.generation that this status was computed from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub observed_generation: Option<i64>,
    /// All variables, also those that extensions define.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000), extend("x-kubernetes-list-type" = "atomic"))]
    pub variables: Vec<ClusterClassStatusVariable>,
}

/// What the control planes of this class are made from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ControlPlaneClass {
    /// How Machines are deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion: Option<MachineDeletionSpec>,
    /// When Machines are unhealthy and what is done about them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health_check: Option<ControlPlaneClassHealthCheck>,
    /// The template of the infrastructure of control plane Machines, if the control plane is made of
    /// Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_infrastructure: Option<ClassTemplate>,
    /// Labels and annotations for what is made from this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<ObjectMeta>,
    /// How control plane objects are named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub naming: Option<ClassNamingSpec>,
    /// Further conditions that must hold for a Machine to count as ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["conditionType"]))]
    pub readiness_gates: Vec<MachineReadinessGate>,
    /// Taints for the Nodes; only those listed here are managed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key", "effect"]))]
    pub taints: Vec<MachineTaint>,
    /// The template of the control plane.
    pub template_ref: TemplateReference,
}

/// What the infrastructure of clusters of this class is made from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InfrastructureClass {
    /// How infrastructure objects are named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub naming: Option<ClassNamingSpec>,
    /// The template of the infrastructure of a cluster.
    pub template_ref: TemplateReference,
}

/// How clusters of this class are upgraded over several versions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct ClusterClassUpgrade {
    /// Extensions that take part in upgrades.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external: Option<ClusterClassUpgradeExternal>,
}

/// What the workers of this class are made from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct WorkersClass {
    /// Groups of worker Machines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["class"]))]
    pub machine_deployments: Vec<MachineDeploymentClass>,
    /// Pools of worker machines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["class"]))]
    pub machine_pools: Vec<MachinePoolClass>,
}

/// Status fields of older API versions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterClassDeprecatedStatus {
    /// Fields of v1beta1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub v1beta1: Option<ClusterClassV1Beta1DeprecatedStatus>,
}

/// The health check of control planes of this class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct ControlPlaneClassHealthCheck {
    /// What makes a Machine unhealthy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checks: Option<MachineHealthCheckChecks>,
    /// What is done about unhealthy Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remediation: Option<MachineHealthCheckRemediation>,
}

/// A template that objects are made from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClassTemplate {
    /// The template.
    pub template_ref: TemplateReference,
}

/// How objects are named.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct ClassNamingSpec {
    /// A Go template for the name; it knows the cluster and a random word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub template: Option<String>,
}

/// Extensions that take part in upgrades.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct ClusterClassUpgradeExternal {
    /// The extension that says which versions an upgrade goes through.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub generate_upgrade_plan_extension: Option<String>,
}

/// A kind of worker group that clusters of this class may have any number of.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineDeploymentClass {
    /// The template of the bootstrap data.
    pub bootstrap: ClassTemplate,
    /// The name of this worker class.
    #[schemars(length(min = 1, max = 256))]
    pub class: String,
    /// How Machines are deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion: Option<OrderedMachineDeletionSpec>,
    /// Where Machines are placed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub failure_domain: Option<String>,
    /// When Machines are unhealthy and what is done about them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health_check: Option<MachineDeploymentClassHealthCheck>,
    /// The template of the infrastructure of Machines.
    pub infrastructure: ClassTemplate,
    /// Labels and annotations for what is made from this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<ObjectMeta>,
    /// How many seconds a Machine must be ready before it counts as available; 0 when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub min_ready_seconds: Option<i32>,
    /// How MachineDeployments are named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub naming: Option<ClassNamingSpec>,
    /// Further conditions that must hold for a Machine to count as ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["conditionType"]))]
    pub readiness_gates: Vec<MachineReadinessGate>,
    /// When and how Machines are replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<MachineDeploymentClassRolloutSpec>,
    /// Taints for the Nodes; only those listed here are managed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key", "effect"]))]
    pub taints: Vec<MachineTaint>,
}

/// A kind of worker pool that clusters of this class may have any number of.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachinePoolClass {
    /// The template of the bootstrap data.
    pub bootstrap: ClassTemplate,
    /// The name of this worker class.
    #[schemars(length(min = 1, max = 256))]
    pub class: String,
    /// How Machines are deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion: Option<MachineDeletionSpec>,
    /// Where machines are placed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(min = 1, max = 256)), extend("x-kubernetes-list-type" = "atomic"))]
    pub failure_domains: Vec<String>,
    /// The template of the infrastructure of the pool.
    pub infrastructure: ClassTemplate,
    /// Labels and annotations for what is made from this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<ObjectMeta>,
    /// How many seconds a Machine must be ready before it counts as available; 0 when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub min_ready_seconds: Option<i32>,
    /// How MachinePools are named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub naming: Option<ClassNamingSpec>,
    /// Taints for the Nodes; only those listed here are managed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key", "effect"]))]
    pub taints: Vec<MachineTaint>,
}

/// Status fields of v1beta1, kept up for those who still read them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterClassV1Beta1DeprecatedStatus {
    /// Observed aspects, one entry a type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<V1Beta1Condition>,
}

/// The health check of worker groups of this class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct MachineDeploymentClassHealthCheck {
    /// What makes a Machine unhealthy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checks: Option<MachineHealthCheckChecks>,
    /// What is done about unhealthy Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remediation: Option<MachineDeploymentHealthCheckRemediation>,
}

/// How Machines of worker groups of this class are replaced.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct MachineDeploymentClassRolloutSpec {
    /// How Machines are replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<MachineDeploymentRolloutStrategy>,
}

/// What is done about unhealthy Machines of a MachineDeployment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct MachineDeploymentHealthCheckRemediation {
    /// How many unhealthy Machines may be replaced at the same time, as a number or a percentage; no limit
    /// when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::int_or_string")]
    pub max_in_flight: Option<IntOrString>,
    /// A template for requests to something else that repairs Machines; the MachineSet replaces them when
    /// left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template_ref: Option<TemplateReference>,
    /// When remediation is allowed at all; always when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger_if: Option<MachineHealthCheckTriggerIf>,
}
