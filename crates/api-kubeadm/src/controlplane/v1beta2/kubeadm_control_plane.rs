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
    /// A control plane whose Machines are bootstrapped with kubeadm.
    pub struct KubeadmControlPlane {
        /// The desired state of the object.
        pub spec: KubeadmControlPlaneSpec,
        /// The observed state of the object.
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
        Column::new("Cluster", "string", r".metadata.labels['cluster\.x-k8s\.io/cluster-name']", "Name of the Cluster"),
        Column::new("Available", "string", r#".status.conditions[?(@.type=="Available")].status"#, "Whether the object is Available"),
        Column::new("Desired", "integer", ".spec.replicas", "Desired Machines"),
        Column::new("Current", "integer", ".status.replicas", "Existing Machines"),
        Column::new("Ready", "integer", ".status.readyReplicas", "Ready Machines"),
        Column::new("Available", "integer", ".status.availableReplicas", "Available Machines"),
        Column::new("Up-to-date", "integer", ".status.upToDateReplicas", "Machines that match the current spec"),
        Column::new("Paused", "string", r#".status.conditions[?(@.type=="Paused")].status"#, "Whether reconciliation is paused").wide(),
        Column::new("Initialized", "boolean", ".status.initialization.controlPlaneInitialized", "Whether the control plane is initialized"),
        Column::new("Age", "date", ".metadata.creationTimestamp", "Time since creation"),
        Column::new("Version", "string", ".spec.version", "Desired Kubernetes version"),
    ],
}

windlass_api::conditioned!(KubeadmControlPlane);

/// The desired state of a KubeadmControlPlane.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct KubeadmControlPlaneSpec {
    /// Bootstrap configuration of the Machines. A change starts a rollout, unless the change can be applied in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubeadm_config_spec: Option<KubeadmConfigSpec>,
    /// Naming of Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_naming: Option<MachineNamingSpec>,
    /// Template of the Machines.
    #[serde(skip_serializing_if = "windlass_api::kind::is_unset")]
    pub machine_template: KubeadmControlPlaneMachineTemplate,
    /// Remediation of unhealthy Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remediation: Option<KubeadmControlPlaneRemediationSpec>,
    /// Desired number of control plane Machines. Defaults to 1. It must be odd unless etcd is external.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Rollout settings: when and how Machines are replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<KubeadmControlPlaneRolloutSpec>,
    /// Kubernetes version of the control plane.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 256))]
    pub version: String,
}

/// The observed state of a KubeadmControlPlane.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
#[schemars(extend("minProperties" = 1))]
pub struct KubeadmControlPlaneStatus {
    /// Number of available Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available_replicas: Option<i32>,
    /// Conditions of the object, one per type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// Fields that are kept for older API versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<KubeadmControlPlaneDeprecatedStatus>,
    /// Initialization milestones. Each one becomes true once and never becomes false again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initialization: Option<KubeadmControlPlaneInitializationStatus>,
    /// The last remediation of a Machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_remediation: Option<LastRemediationStatus>,
    /// The metadata.generation that the controller observed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub observed_generation: Option<i64>,
    /// Number of ready Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_replicas: Option<i32>,
    /// Number of existing Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Label selector as text, for the scale subresource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4096))]
    pub selector: Option<String>,
    /// Number of Machines that match the current spec.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up_to_date_replicas: Option<i32>,
    /// Lowest Kubernetes version of the Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub version: Option<String>,
    /// The Kubernetes versions of the Machines, with the number of Machines per version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["version"]))]
    pub versions: Vec<StatusVersion>,
}

/// Template of the control plane Machines.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct KubeadmControlPlaneMachineTemplate {
    /// Labels and annotations of the created objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<ObjectMeta>,
    /// The desired state of the object.
    #[serde(skip_serializing_if = "windlass_api::kind::is_unset")]
    pub spec: KubeadmControlPlaneMachineTemplateSpec,
}

/// Remediation settings of unhealthy control plane Machines.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
#[schemars(extend("minProperties" = 1))]
pub struct KubeadmControlPlaneRemediationSpec {
    /// Maximum number of retries when the replacement of an unhealthy Machine becomes unhealthy too. No limit when
    /// unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_retry: Option<i32>,
    /// Seconds that a replacement must stay healthy before a later failure starts a new retry count. Defaults to 3600.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub min_healthy_period_seconds: Option<i32>,
    /// Seconds between two retries of a remediation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub retry_period_seconds: Option<i32>,
}

/// Rollout settings of a KubeadmControlPlane.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
#[schemars(extend("minProperties" = 1))]
pub struct KubeadmControlPlaneRolloutSpec {
    /// Replaces all Machines that were created before this time, as soon as the time has passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::date_time")]
    pub after: Option<Time>,
    /// Rollouts that are triggered ahead of an event, such as the expiry of certificates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<KubeadmControlPlaneRolloutBeforeSpec>,
    /// Rollout strategy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<KubeadmControlPlaneRolloutStrategy>,
}

/// Status fields that are kept for older API versions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct KubeadmControlPlaneDeprecatedStatus {
    /// Status fields of API version v1beta1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub v1beta1: Option<KubeadmControlPlaneV1Beta1DeprecatedStatus>,
}

/// Initialization milestones of a KubeadmControlPlane. Each one becomes true once and never becomes false again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
#[schemars(extend("minProperties" = 1))]
pub struct KubeadmControlPlaneInitializationStatus {
    /// True once the API server of the control plane has accepted requests for the first time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane_initialized: Option<bool>,
}

/// The last remediation. It decides whether and when a retry is allowed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastRemediationStatus {
    /// Name of the replaced Machine.
    #[schemars(length(min = 1, max = 253))]
    pub machine: String,
    /// Number of retries so far.
    #[schemars(range(min = 0))]
    pub retry_count: i32,
    /// Time of the remediation.
    #[schemars(schema_with = "schema::date_time")]
    pub time: Time,
}

/// Fields of the Machine spec.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct KubeadmControlPlaneMachineTemplateSpec {
    /// Deletion settings of Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion: Option<MachineDeletionSpec>,
    /// Reference to the infrastructure template of the Machines.
    #[serde(skip_serializing_if = "windlass_api::kind::is_unset")]
    pub infrastructure_ref: ContractVersionedObjectReference,
    /// Additional conditions that must be good before a Machine is Ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["conditionType"]))]
    pub readiness_gates: Vec<MachineReadinessGate>,
    /// Taints of the Nodes. Only the taints in this list are managed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key", "effect"]))]
    pub taints: Vec<MachineTaint>,
}

/// Triggers of a rollout ahead of an event.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
#[schemars(extend("minProperties" = 1))]
pub struct KubeadmControlPlaneRolloutBeforeSpec {
    /// Replaces Machines whose certificates expire within this number of days.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 7))]
    pub certificates_expiry_days: Option<i32>,
}

/// Rollout strategy of control plane Machines.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
#[schemars(extend("minProperties" = 1))]
pub struct KubeadmControlPlaneRolloutStrategy {
    /// Settings of rolling updates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rolling_update: Option<KubeadmControlPlaneRollingUpdate>,
    /// Type of rollout. RollingUpdate is the only one.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(extend("enum" = ["RollingUpdate"]))]
    pub type_: String,
}

/// Status fields of v1beta1. Controllers still set them for older clients.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct KubeadmControlPlaneV1Beta1DeprecatedStatus {
    /// Conditions of the object, one per type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<V1Beta1Condition>,
    /// Message of a terminal failure that needs manual intervention.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 10240))]
    pub failure_message: Option<String>,
    /// Machine-readable reason of a terminal failure that needs manual intervention.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_reason: Option<String>,
    /// Number of ready Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_replicas: Option<i32>,
    /// Number of Machines that are not available yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable_replicas: Option<i32>,
    /// Number of Machines that match the current spec.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_replicas: Option<i32>,
}

/// Limits of a rolling update of control plane Machines.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
#[schemars(extend("minProperties" = 1))]
pub struct KubeadmControlPlaneRollingUpdate {
    /// Maximum number of Machines above the desired number: 0 or 1. Defaults to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::int_or_string")]
    pub max_surge: Option<IntOrString>,
}
