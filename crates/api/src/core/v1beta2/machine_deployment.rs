//! MachineDeployment: the kind and its parts.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, Time};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Condition;
use crate::core::v1beta2::{MachineNamingSpec, MachineTemplateSpec, StatusVersion, V1Beta1Condition};
use crate::kind::Column;
use crate::kind::Scale;
use crate::schema;

crate::api_kind! {
    /// Equal Machines that are replaced step by step when their template changes.
    pub struct MachineDeployment {
        /// What is wished for.
        pub spec: MachineDeploymentSpec,
        /// What was observed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub status: Option<MachineDeploymentStatus>,
    }
    group: "cluster.x-k8s.io",
    version: "v1beta2",
    plural: "machinedeployments",
    short_names: ["md"],
    provider: "cluster-api",
    contract: false,
    required: ["spec"],
    status: true,
    scale: Some(Scale::STANDARD),
    columns: [
        Column::new("Cluster", "string", ".spec.clusterName", "The Cluster that this belongs to"),
        Column::new("Available", "string", r#".status.conditions[?(@.type=="Available")].status"#, "Whether it works as it should"),
        Column::new("Desired", "integer", ".spec.replicas", "Machines wished for"),
        Column::new("Current", "integer", ".status.replicas", "Machines there are"),
        Column::new("Ready", "integer", ".status.readyReplicas", "Machines that are ready"),
        Column::new("Available", "integer", ".status.availableReplicas", "Machines that are available"),
        Column::new("Up-to-date", "integer", ".status.upToDateReplicas", "Machines that match what is wished for"),
        Column::new("Paused", "string", r#".status.conditions[?(@.type=="Paused")].status"#, "Whether reconciling is paused").wide(),
        Column::new("Phase", "string", ".status.phase", "Where in its life this is"),
        Column::new("Age", "date", ".metadata.creationTimestamp", "How long ago this was created"),
        Column::new("Version", "string", ".spec.template.spec.version", "The Kubernetes version that is wished for"),
    ],
}

crate::conditioned!(MachineDeployment);

/// What a MachineDeployment should be.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineDeploymentSpec {
    /// The Cluster that this belongs to. It cannot be changed later.
    #[schemars(length(min = 1, max = 63))]
    pub cluster_name: String,
    /// Which Machines are deleted when there are too many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion: Option<MachineDeploymentDeletionSpec>,
    /// How Machines are named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_naming: Option<MachineNamingSpec>,
    /// Stops rollouts; scaling goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// What is done about unhealthy Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remediation: Option<MachineDeploymentRemediationSpec>,
    /// How many Machines there should be; 1 when left out, unless an autoscaler decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// When and how Machines are replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<MachineDeploymentRolloutSpec>,
    /// Labels by which Machines are chosen. It cannot be changed later.
    #[schemars(schema_with = "schema::label_selector")]
    pub selector: LabelSelector,
    /// How Machines are made. Changes lead to new Machines, except for those that can be made in place.
    pub template: MachineTemplateSpec,
}

/// What is known of a MachineDeployment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct MachineDeploymentStatus {
    /// How many Machines are available.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available_replicas: Option<i32>,
    /// Observed aspects, one entry a type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// Fields of older API versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<MachineDeploymentDeprecatedStatus>,
    /// The metadata.generation that this status was computed from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub observed_generation: Option<i64>,
    /// Where in its life this is, as one word for people. Programs should read conditions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["ScalingUp", "ScalingDown", "Running", "Failed", "Unknown"]))]
    pub phase: Option<String>,
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
pub struct MachineDeploymentDeletionSpec {
    /// Which Machines are deleted first: Random, Newest or Oldest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["Random", "Newest", "Oldest"]))]
    pub order: Option<String>,
}

/// How unhealthy Machines are replaced.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct MachineDeploymentRemediationSpec {
    /// How many unhealthy Machines may be replaced at the same time, as a number or a percentage; no limit
    /// when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::int_or_string")]
    pub max_in_flight: Option<IntOrString>,
}

/// When and how Machines are replaced.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct MachineDeploymentRolloutSpec {
    /// Machines created before this time are replaced once it has passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::date_time")]
    pub after: Option<Time>,
    /// How Machines are replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<MachineDeploymentRolloutStrategy>,
}

/// Status fields of older API versions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineDeploymentDeprecatedStatus {
    /// Fields of v1beta1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub v1beta1: Option<MachineDeploymentV1Beta1DeprecatedStatus>,
}

/// How Machines are replaced.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct MachineDeploymentRolloutStrategy {
    /// Limits while Machines are replaced step by step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rolling_update: Option<MachineDeploymentRollingUpdate>,
    /// RollingUpdate replaces Machines step by step; OnDelete replaces those that somebody else deletes.
    #[schemars(extend("enum" = ["RollingUpdate", "OnDelete"]))]
    pub type_: String,
}

/// Status fields of v1beta1, kept up for those who still read them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineDeploymentV1Beta1DeprecatedStatus {
    /// How many Machines are available.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available_replicas: Option<i32>,
    /// Observed aspects, one entry a type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<V1Beta1Condition>,
    /// How many Machines are ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_replicas: Option<i32>,
    /// How many more Machines have to become available.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable_replicas: Option<i32>,
    /// How many Machines match what is wished for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_replicas: Option<i32>,
}

/// How many Machines may be there too many or too few while Machines are replaced.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct MachineDeploymentRollingUpdate {
    /// How many Machines may be there beyond the number wished for, as a number or a percentage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::int_or_string")]
    pub max_surge: Option<IntOrString>,
    /// How many Machines may be unavailable, as a number or a percentage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::int_or_string")]
    pub max_unavailable: Option<IntOrString>,
}

crate::parts!(MachineDeploymentStatus);
