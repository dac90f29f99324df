//! KubeadmControlPlane: the kind and its parts.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bootstrap::v1beta2::KubeadmConfigSpec;
use windlass_api::Condition;
use windlass_api::core::v1beta2::{
    ContractVersionedObjectReference, MachineDeletionSpec, MachineNamingSpec, MachineReadinessGate, MachineTaint,
    ObjectMeta, StatusVersion, V1Beta1Condition,
};
use windlass_api::kind::Column;
use windlass_api::kind::Scale;
use windlass_api::schema;

windlass_api::api_kind! {
    /// A control plane whose Machines are set up by kubeadm.
    pub struct KubeadmControlPlane {
        /// What is wished for.
        pub spec: KubeadmControlPlaneSpec,
        /// What was observed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub status: Option<KubeadmControlPlaneStatus>,
    }
    group: "controlplane.cluster.x-k8s.io",
    version: "v1beta2",
    plural: "kubeadmcontrolplanes",
    short_names: ["kcp"],
    provider: "control-plane-kubeadm",
    contract: true,
    required: ["spec"],
    status: true,
    scale: Some(Scale::STANDARD),
    columns: [
        Column::new("Cluster", "string", r".metadata.labels['cluster\.x-k8s\.io/cluster-name']", "The Cluster that this belongs to"),
        Column::new("Available", "string", r#".status.conditions[?(@.type=="Available")].status"#, "Whether it works as it should"),
        Column::new("Desired", "integer", ".spec.replicas", "Machines wished for"),
        Column::new("Current", "integer", ".status.replicas", "Machines there are"),
        Column::new("Ready", "integer", ".status.readyReplicas", "Machines that are ready"),
        Column::new("Available", "integer", ".status.availableReplicas", "Machines that are available"),
        Column::new("Up-to-date", "integer", ".status.upToDateReplicas", "Machines that match what is wished for"),
        Column::new("Paused", "string", r#".status.conditions[?(@.type=="Paused")].status"#, "Whether reconciling is paused").wide(),
        Column::new("Initialized", "boolean", ".status.initialization.controlPlaneInitialized", "Whether the control plane answers requests"),
        Column::new("Age", "date", ".metadata.creationTimestamp", "How long ago this was created"),
        Column::new("Version", "string", ".spec.version", "The Kubernetes version that is wished for"),
    ],
}

windlass_api::conditioned!(KubeadmControlPlane);

/// What a control plane should be.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubeadmControlPlaneSpec {
    /// How the machines are set up. Changes lead to new Machines, except for those that can be made in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubeadm_config_spec: Option<KubeadmConfigSpec>,
    /// How Machines are named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_naming: Option<MachineNamingSpec>,
    /// How Machines are made.
    pub machine_template: KubeadmControlPlaneMachineTemplate,
    /// What is done about unhealthy Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remediation: Option<KubeadmControlPlaneRemediationSpec>,
    /// How many control plane Machines there should be; 1 when left out, odd unless etcd is external.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// When and how Machines are replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<KubeadmControlPlaneRolloutSpec>,
    /// The Kubernetes version of the control plane.
    #[schemars(length(min = 1, max = 256))]
    pub version: String,
}

/// What is known of a control plane.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct KubeadmControlPlaneStatus {
    /// How many Machines are available.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available_replicas: Option<i32>,
    /// Observed aspects, one entry a type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// Fields of older API versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<KubeadmControlPlaneDeprecatedStatus>,
    /// The first steps; each becomes true once and stays so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initialization: Option<KubeadmControlPlaneInitializationStatus>,
    /// The last remediation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_remediation: Option<LastRemediationStatus>,
    /// The metadata.generation that this status was computed from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub observed_generation: Option<i64>,
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
    /// The lowest Kubernetes version among the Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub version: Option<String>,
    /// The Kubernetes versions that Machines run, with their number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["version"]))]
    pub versions: Vec<StatusVersion>,
}

/// How the Machines of the control plane are made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubeadmControlPlaneMachineTemplate {
    /// Labels and annotations for what is made from this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<ObjectMeta>,
    /// What is wished for.
    pub spec: KubeadmControlPlaneMachineTemplateSpec,
}

/// How unhealthy control plane Machines are replaced.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct KubeadmControlPlaneRemediationSpec {
    /// How often in a row a replacement that becomes unhealthy is replaced again; without end when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_retry: Option<i32>,
    /// After how many healthy seconds a later problem counts as a new one; 3600 when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub min_healthy_period_seconds: Option<i32>,
    /// How many seconds to wait before a replacement is replaced again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub retry_period_seconds: Option<i32>,
}

/// When and how control plane Machines are replaced.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct KubeadmControlPlaneRolloutSpec {
    /// Machines created before this time are replaced once it has passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::date_time")]
    pub after: Option<Time>,
    /// Machines are replaced before something happens to them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<KubeadmControlPlaneRolloutBeforeSpec>,
    /// How Machines are replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<KubeadmControlPlaneRolloutStrategy>,
}

/// Status fields of older API versions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubeadmControlPlaneDeprecatedStatus {
    /// Fields of v1beta1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub v1beta1: Option<KubeadmControlPlaneV1Beta1DeprecatedStatus>,
}

/// The first steps of a control plane. Each becomes true once and stays so.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct KubeadmControlPlaneInitializationStatus {
    /// Whether the control plane has answered requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane_initialized: Option<bool>,
}

/// The last remediation, by which the next one is delayed or refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastRemediationStatus {
    /// The name of the Machine that was replaced.
    #[schemars(length(min = 1, max = 253))]
    pub machine: String,
    /// How often in a row.
    #[schemars(range(min = 0))]
    pub retry_count: i32,
    /// When.
    #[schemars(schema_with = "schema::date_time")]
    pub time: Time,
}

/// What is passed on to the spec of the Machines.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubeadmControlPlaneMachineTemplateSpec {
    /// How Machines are deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion: Option<MachineDeletionSpec>,
    /// The template of the infrastructure of the Machines.
    pub infrastructure_ref: ContractVersionedObjectReference,
    /// Further conditions that must hold for a Machine to count as ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["conditionType"]))]
    pub readiness_gates: Vec<MachineReadinessGate>,
    /// Taints for the Nodes; only those listed here are managed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key", "effect"]))]
    pub taints: Vec<MachineTaint>,
}

/// What must not come closer than this without the Machines being replaced.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct KubeadmControlPlaneRolloutBeforeSpec {
    /// Machines whose certificates expire within this many days are replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 7))]
    pub certificates_expiry_days: Option<i32>,
}

/// How control plane Machines are replaced.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct KubeadmControlPlaneRolloutStrategy {
    /// Limits while Machines are replaced step by step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rolling_update: Option<KubeadmControlPlaneRollingUpdate>,
    /// RollingUpdate.
    #[schemars(extend("enum" = ["RollingUpdate"]))]
    pub type_: String,
}

/// Status fields of v1beta1, kept up for those who still read them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubeadmControlPlaneV1Beta1DeprecatedStatus {
    /// Observed aspects, one entry a type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<V1Beta1Condition>,
    /// A failure that needs a person, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 10240))]
    pub failure_message: Option<String>,
    /// A failure that needs a person, as one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_reason: Option<String>,
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

/// How many control plane Machines may be there too many while Machines are replaced.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct KubeadmControlPlaneRollingUpdate {
    /// How many Machines may be there beyond the number wished for: 1 (when left out) or 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::int_or_string")]
    pub max_surge: Option<IntOrString>,
}
