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
    /// A reusable blueprint for clusters: templates, variables, and patches that apply the variables to the templates.
    pub struct ClusterClass {
        /// The desired state of the object.
        pub spec: ClusterClassSpec,
        /// The observed state of the object.
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
        Column::new("Paused", "string", r#".status.conditions[?(@.type=="Paused")].status"#, "Whether reconciliation is paused").wide(),
        Column::new("Variables Ready", "string", r#".status.conditions[?(@.type=="VariablesReady")].status"#, "Whether all variables are resolved"),
        Column::new("Age", "date", ".metadata.creationTimestamp", "Time since creation"),
    ],
}

crate::conditioned!(ClusterClass);

/// The desired state of a ClusterClass.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct ClusterClassSpec {
    /// Additional conditions that must be good before a Cluster of this class is Available.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["conditionType"]))]
    pub availability_gates: Vec<ClusterAvailabilityGate>,
    /// Templates and settings of control planes.
    #[serde(skip_serializing_if = "crate::kind::is_unset")]
    pub control_plane: ControlPlaneClass,
    /// Templates and settings of the cluster infrastructure.
    #[serde(skip_serializing_if = "crate::kind::is_unset")]
    pub infrastructure: InfrastructureClass,
    /// Kubernetes versions that clusters of this class may use, in upgrade order. Upgrades over several minor versions
    /// follow this list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 100), inner(length(min = 1, max = 256)), extend("x-kubernetes-list-type" = "atomic"))]
    pub kubernetes_versions: Vec<String>,
    /// Patches for the templates, applied in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 1000), extend("x-kubernetes-list-type" = "atomic"))]
    pub patches: Vec<ClusterClassPatch>,
    /// Settings of upgrades over several versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upgrade: Option<ClusterClassUpgrade>,
    /// Variables that Clusters of this class can set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 1000), extend("x-kubernetes-list-type" = "atomic"))]
    pub variables: Vec<ClusterClassVariable>,
    /// Templates and settings of workers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workers: Option<WorkersClass>,
}

/// The observed state of a ClusterClass.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
#[schemars(extend("minProperties" = 1))]
pub struct ClusterClassStatus {
    /// Conditions of the object, one per type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// Fields that are kept for older API versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<ClusterClassDeprecatedStatus>,
    /// The metadata.generation that the controller observed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub observed_generation: Option<i64>,
    /// All variables, including those that runtime extensions define.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000), extend("x-kubernetes-list-type" = "atomic"))]
    pub variables: Vec<ClusterClassStatusVariable>,
}

/// Templates and settings of the control planes of this class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct ControlPlaneClass {
    /// Deletion settings of Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion: Option<MachineDeletionSpec>,
    /// Health check of the Machines and remediation of unhealthy ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health_check: Option<ControlPlaneClassHealthCheck>,
    /// Infrastructure template of the control plane Machines. Only for control planes that consist of Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_infrastructure: Option<ClassTemplate>,
    /// Labels and annotations of the created objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<ObjectMeta>,
    /// Naming of control plane objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub naming: Option<ClassNamingSpec>,
    /// Additional conditions that must be good before a Machine is Ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["conditionType"]))]
    pub readiness_gates: Vec<MachineReadinessGate>,
    /// Taints of the Nodes. Only the taints in this list are managed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key", "effect"]))]
    pub taints: Vec<MachineTaint>,
    /// Reference to the control plane template.
    #[serde(skip_serializing_if = "crate::kind::is_unset")]
    pub template_ref: TemplateReference,
}

/// Templates and settings of the cluster infrastructure of this class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct InfrastructureClass {
    /// Naming of infrastructure objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub naming: Option<ClassNamingSpec>,
    /// Reference to the template of the cluster infrastructure.
    #[serde(skip_serializing_if = "crate::kind::is_unset")]
    pub template_ref: TemplateReference,
}

/// Settings of upgrades over several versions for clusters of this class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
#[schemars(extend("minProperties" = 1))]
pub struct ClusterClassUpgrade {
    /// Runtime extensions that take part in upgrades.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external: Option<ClusterClassUpgradeExternal>,
}

/// Worker classes: templates and settings of workers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
#[schemars(extend("minProperties" = 1))]
pub struct WorkersClass {
    /// MachineDeployments, identified by their class or name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["class"]))]
    pub machine_deployments: Vec<MachineDeploymentClass>,
    /// MachinePools, identified by their class or name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["class"]))]
    pub machine_pools: Vec<MachinePoolClass>,
}

/// Status fields that are kept for older API versions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct ClusterClassDeprecatedStatus {
    /// Status fields of API version v1beta1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub v1beta1: Option<ClusterClassV1Beta1DeprecatedStatus>,
}

/// Health check of the control plane Machines of this class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
#[schemars(extend("minProperties" = 1))]
pub struct ControlPlaneClassHealthCheck {
    /// Checks that decide whether a Machine is unhealthy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checks: Option<MachineHealthCheckChecks>,
    /// Remediation of unhealthy Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remediation: Option<MachineHealthCheckRemediation>,
}

/// Reference to a template from which objects are cloned.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct ClassTemplate {
    /// Reference to the template.
    #[serde(skip_serializing_if = "crate::kind::is_unset")]
    pub template_ref: TemplateReference,
}

/// Naming of generated objects.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
#[schemars(extend("minProperties" = 1))]
pub struct ClassNamingSpec {
    /// Go template of the object name. It can use the name of the cluster and a random suffix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub template: Option<String>,
}

/// Runtime extensions that take part in upgrades.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
#[schemars(extend("minProperties" = 1))]
pub struct ClusterClassUpgradeExternal {
    /// Runtime extension that computes the upgrade plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub generate_upgrade_plan_extension: Option<String>,
}

/// A class of MachineDeployments. A Cluster can use it for any number of MachineDeployments.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct MachineDeploymentClass {
    /// Reference to the bootstrap template.
    #[serde(skip_serializing_if = "crate::kind::is_unset")]
    pub bootstrap: ClassTemplate,
    /// The name of this worker class.
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
    pub health_check: Option<MachineDeploymentClassHealthCheck>,
    /// Reference to the infrastructure template of the Machines.
    #[serde(skip_serializing_if = "crate::kind::is_unset")]
    pub infrastructure: ClassTemplate,
    /// Labels and annotations of the created objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<ObjectMeta>,
    /// Seconds that a Machine must be Ready before it is Available. Defaults to 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub min_ready_seconds: Option<i32>,
    /// Naming of MachineDeployments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub naming: Option<ClassNamingSpec>,
    /// Additional conditions that must be good before a Machine is Ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["conditionType"]))]
    pub readiness_gates: Vec<MachineReadinessGate>,
    /// Rollout settings: when and how Machines are replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<MachineDeploymentClassRolloutSpec>,
    /// Taints of the Nodes. Only the taints in this list are managed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key", "effect"]))]
    pub taints: Vec<MachineTaint>,
}

/// A class of MachinePools. A Cluster can use it for any number of MachinePools.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct MachinePoolClass {
    /// Reference to the bootstrap template.
    #[serde(skip_serializing_if = "crate::kind::is_unset")]
    pub bootstrap: ClassTemplate,
    /// The name of this worker class.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 256))]
    pub class: String,
    /// Deletion settings of Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion: Option<MachineDeletionSpec>,
    /// Failure domains of the machines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(min = 1, max = 256)), extend("x-kubernetes-list-type" = "atomic"))]
    pub failure_domains: Vec<String>,
    /// Reference to the infrastructure template of the pool.
    #[serde(skip_serializing_if = "crate::kind::is_unset")]
    pub infrastructure: ClassTemplate,
    /// Labels and annotations of the created objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<ObjectMeta>,
    /// Seconds that a Machine must be Ready before it is Available. Defaults to 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub min_ready_seconds: Option<i32>,
    /// Naming of MachinePools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub naming: Option<ClassNamingSpec>,
    /// Taints of the Nodes. Only the taints in this list are managed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key", "effect"]))]
    pub taints: Vec<MachineTaint>,
}

/// Status fields of v1beta1. Controllers still set them for older clients.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct ClusterClassV1Beta1DeprecatedStatus {
    /// Conditions of the object, one per type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<V1Beta1Condition>,
}

/// Health check of the MachineDeployments of this class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
#[schemars(extend("minProperties" = 1))]
pub struct MachineDeploymentClassHealthCheck {
    /// Checks that decide whether a Machine is unhealthy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checks: Option<MachineHealthCheckChecks>,
    /// Remediation of unhealthy Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remediation: Option<MachineDeploymentHealthCheckRemediation>,
}

/// Rollout settings of the MachineDeployments of this class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
#[schemars(extend("minProperties" = 1))]
pub struct MachineDeploymentClassRolloutSpec {
    /// Rollout strategy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<MachineDeploymentRolloutStrategy>,
}

/// Remediation of unhealthy Machines of a MachineDeployment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
#[schemars(extend("minProperties" = 1))]
pub struct MachineDeploymentHealthCheckRemediation {
    /// Maximum number or percentage of Machines in remediation at the same time. No limit when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::int_or_string")]
    pub max_in_flight: Option<IntOrString>,
    /// Template of external remediation requests. When unset, the MachineSet replaces unhealthy Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template_ref: Option<TemplateReference>,
    /// Condition under which remediation is allowed. Always allowed when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger_if: Option<MachineHealthCheckTriggerIf>,
}
