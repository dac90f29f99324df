//! KubeadmControlPlane: the kind and its parts.

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use windlass_api::core::v1beta2::{
    MachineNamingSpec, MachineReadinessGate, MachineTaint, ObjectMeta, StatusVersion, V1Beta1Condition,
};
use windlass_api::kind::{Column, Scale};
use windlass_api::{Condition, api_kind, schema};
use windlass_api_kubeadm::controlplane as hub;
use windlass_meta::GoDuration;

use super::{RemediationStrategy, RolloutBefore, RolloutStrategy, convert, convert_status};
use crate::bootstrap::v1beta1::KubeadmConfigSpec;
use crate::bootstrap::v1beta1::parts::without_hub_bounds;
use crate::convert::{ConversionError, References, Spoke};

api_kind! {
    /// A control plane whose Machines are bootstrapped with kubeadm.
    pub struct KubeadmControlPlane {
        /// The desired state of the object.
        #[serde(default)]
        pub spec: KubeadmControlPlaneSpec,
        /// The observed state of the object.
        #[serde(default)]
        pub status: KubeadmControlPlaneStatus,
    }
    group: "controlplane.cluster.x-k8s.io",
    version: "v1beta1",
    plural: "kubeadmcontrolplanes",
    short_names: ["kcp"],
    provider: "control-plane-kubeadm",
    contract: false,
    required: [],
    status: true,
    scale: Some(Scale::STANDARD),
    columns: [
        Column::new("Cluster", "string", r".metadata.labels['cluster\.x-k8s\.io/cluster-name']", "Name of the Cluster"),
        Column::new("Initialized", "boolean", ".status.initialized", "Whether the control plane is initialized"),
        Column::new("API Server Available", "boolean", ".status.ready", "Whether the API server accepts requests"),
        Column::new("Desired", "integer", ".spec.replicas", "Desired Machines").wide(),
        Column::new("Replicas", "integer", ".status.replicas", "Existing Machines"),
        Column::new("Ready", "integer", ".status.readyReplicas", "Ready Machines"),
        Column::new("Updated", "integer", ".status.updatedReplicas", "Machines that match the current spec"),
        Column::new("Unavailable", "integer", ".status.unavailableReplicas", "Machines that are not available yet"),
        Column::new("Age", "date", ".metadata.creationTimestamp", "Time since creation"),
        Column::new("Version", "string", ".spec.version", "Desired Kubernetes version"),
    ],
}

impl Spoke for KubeadmControlPlane {
    type Hub = hub::KubeadmControlPlane;

    fn into_hub(self, kept: Option<Self::Hub>) -> Result<Self::Hub, ConversionError> {
        let Self {
            metadata: _,
            spec,
            status,
        } = self;
        Ok(hub::KubeadmControlPlane {
            spec: convert::spec_to_hub(spec, kept.as_ref().map(|kept| &kept.spec))?,
            status: convert_status::to_hub(status, kept.as_ref()),
            ..Self::Hub::default()
        })
    }

    fn from_hub(hub: Self::Hub, namespace: &str, references: &dyn References) -> Result<Self, ConversionError> {
        let hub::KubeadmControlPlane {
            metadata: _,
            spec,
            status,
        } = hub;
        Ok(Self {
            spec: convert::spec_from_hub(spec, namespace, references)?,
            status: convert_status::from_hub(status),
            ..Self::default()
        })
    }
}

/// The desired state of a KubeadmControlPlane.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct KubeadmControlPlaneSpec {
    /// Bootstrap configuration of the Machines. A change starts a rollout, unless the change can be applied in place.
    pub kubeadm_config_spec: KubeadmConfigSpec,
    /// Naming of Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = without_hub_bounds)]
    pub machine_naming_strategy: Option<MachineNamingSpec>,
    /// Template of the Machines.
    pub machine_template: KubeadmControlPlaneMachineTemplate,
    /// Remediation of unhealthy Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remediation_strategy: Option<RemediationStrategy>,
    /// Desired number of control plane Machines. Defaults to 1. It must be odd unless etcd is external.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Replaces all Machines that were created before this time, as soon as the time has passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::date_time")]
    pub rollout_after: Option<Time>,
    /// Rollouts that are triggered ahead of an event, such as the expiry of certificates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout_before: Option<RolloutBefore>,
    /// Rollout strategy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = json!({"rollingUpdate": {"maxSurge": 1}, "type": "RollingUpdate"})))]
    pub rollout_strategy: Option<RolloutStrategy>,
    /// Kubernetes version of the control plane.
    #[schemars(length(min = 1, max = 256))]
    pub version: String,
}

/// Template of the control plane Machines.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct KubeadmControlPlaneMachineTemplate {
    /// Reference to the infrastructure template of the Machines.
    #[schemars(schema_with = "schema::object_reference")]
    pub infrastructure_ref: ObjectReference,
    /// Labels and annotations of the created objects.
    #[serde(default)]
    #[schemars(transform = without_hub_bounds)]
    pub metadata: ObjectMeta,
    /// How long the deletion of a Node is retried. Zero means without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub node_deletion_timeout: Option<GoDuration>,
    /// How long the drain of a Node may take. Zero means without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub node_drain_timeout: Option<GoDuration>,
    /// How long the detachment of volumes may take. Zero means without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub node_volume_detach_timeout: Option<GoDuration>,
    /// Additional conditions that must be good before a Machine is Ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["conditionType"]))]
    pub readiness_gates: Vec<MachineReadinessGate>,
    /// Taints of the Nodes. Only the taints in this list are managed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key", "effect"]))]
    pub taints: Vec<MachineTaint>,
}

/// The observed state of a KubeadmControlPlane.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct KubeadmControlPlaneStatus {
    /// Conditions of the v1beta1 generation, one per type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<V1Beta1Condition>,
    /// Message of a terminal failure that needs manual intervention.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 10240))]
    pub failure_message: Option<String>,
    /// Machine-readable reason of a terminal failure that needs manual intervention.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_reason: Option<String>,
    /// Whether the API server of the control plane has accepted requests for the first time.
    #[serde(default)]
    pub initialized: bool,
    /// The last remediation of a Machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_remediation: Option<LastRemediationStatus>,
    /// The metadata.generation that the controller observed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Whether at least one Machine is ready.
    #[serde(default)]
    pub ready: bool,
    /// Number of ready Machines.
    #[serde(default)]
    pub ready_replicas: i32,
    /// Number of existing Machines.
    #[serde(default)]
    pub replicas: i32,
    /// Label selector as text, for the scale subresource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4096))]
    pub selector: Option<String>,
    /// Number of Machines that are not available yet.
    #[serde(default)]
    pub unavailable_replicas: i32,
    /// Number of Machines that match the current spec.
    #[serde(default)]
    pub updated_replicas: i32,
    /// Status fields that the hub version has instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub v1beta2: Option<KubeadmControlPlaneV1Beta2Status>,
    /// Lowest Kubernetes version of the Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub version: Option<String>,
    /// The Kubernetes versions of the Machines, with the number of Machines per version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["version"]))]
    pub versions: Vec<StatusVersion>,
}

/// Status fields of the hub version.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct KubeadmControlPlaneV1Beta2Status {
    /// Number of available Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available_replicas: Option<i32>,
    /// Conditions of the object, one per type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// Number of ready Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_replicas: Option<i32>,
    /// Number of Machines that match the current spec.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up_to_date_replicas: Option<i32>,
}

/// The last remediation. It decides whether and when a retry is allowed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastRemediationStatus {
    /// Name of the replaced Machine.
    #[schemars(length(min = 1, max = 253))]
    pub machine: String,
    /// Number of retries so far.
    pub retry_count: i32,
    /// Time of the remediation.
    #[schemars(schema_with = "schema::date_time")]
    pub timestamp: Time,
}
