//! Machine: the kind and its parts.

mod convert;

pub(in crate::core::v1beta1) use convert::{spec_from_hub, spec_to_hub};

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_api::core::{
    MachineAddress, MachineDeletionStatus, MachineReadinessGate, MachineTaint, NodeSystemInfo, V1Beta1Condition,
};
use windlass_api::kind::{Column, is_unset};
use windlass_api::{api_kind, schema};
use windlass_meta::GoDuration;

use crate::common::V1Beta2Status;
use crate::parts::duration;

api_kind! {
    /// One host of a cluster: its infrastructure, its bootstrap data and its Node.
    pub struct Machine {
        /// The desired state of the object.
        #[serde(default)]
        pub spec: MachineSpec,
        /// The observed state of the object.
        #[serde(default)]
        pub status: MachineStatus,
    }
    group: "cluster.x-k8s.io",
    version: "v1beta1",
    plural: "machines",
    short_names: ["ma"],
    provider: "cluster-api",
    contract: false,
    required: [],
    status: true,
    scale: None,
    columns: [
        Column::new("Cluster", "string", ".spec.clusterName", "Name of the Cluster"),
        Column::new("NodeName", "string", ".status.nodeRef.name", "Name of the Node"),
        Column::new("ProviderID", "string", ".spec.providerID", "Identifier of the machine in the infrastructure"),
        Column::new("Phase", "string", ".status.phase", "Lifecycle phase"),
        Column::new("Age", "date", ".metadata.creationTimestamp", "Time since creation"),
        Column::new("Version", "string", ".spec.version", "Desired Kubernetes version"),
    ],
}

/// The desired state of a Machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineSpec {
    /// Name of the Cluster of this object. Immutable.
    #[schemars(length(min = 1, max = 63))]
    pub cluster_name: String,
    /// Source of the bootstrap data.
    pub bootstrap: Bootstrap,
    /// Reference to the object of the infrastructure provider.
    #[schemars(schema_with = "schema::object_reference")]
    pub infrastructure_ref: ObjectReference,
    /// Desired Kubernetes version of the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub version: Option<String>,
    /// Identifier of the machine in the infrastructure. The Node has the same spec.providerID.
    #[serde(rename = "providerID", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub provider_id: Option<String>,
    /// Failure domain of the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub failure_domain: Option<String>,
    /// Additional conditions that must be good before a Machine is Ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["conditionType"]))]
    pub readiness_gates: Vec<MachineReadinessGate>,
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
    /// Taints of the Node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key", "effect"]))]
    pub taints: Vec<MachineTaint>,
}

/// The observed state of a Machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineStatus {
    /// Reference to the Node of the Machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::object_reference")]
    pub node_ref: Option<ObjectReference>,
    /// System information that the Node reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_info: Option<NodeSystemInfo>,
    /// Time of the last change of the phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::date_time")]
    pub last_updated: Option<Time>,
    /// Reason of a terminal error, as one word. No longer set by Cluster API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_reason: Option<String>,
    /// Message of a terminal error. No longer set by Cluster API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 10240))]
    pub failure_message: Option<String>,
    /// Addresses of the machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<MachineAddress>,
    /// The lifecycle phase, for display. Programs should use conditions instead.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(extend("enum" = ["Pending", "Provisioning", "Provisioned", "Running", "Deleting", "Deleted", "Failed", "Unknown"]))]
    pub phase: String,
    /// Expiry date of the certificates of a control plane machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::date_time")]
    pub certificates_expiry_date: Option<Time>,
    /// Whether the bootstrap data exists.
    #[serde(default)]
    pub bootstrap_ready: bool,
    /// Whether the infrastructure is fully provisioned.
    #[serde(default)]
    pub infrastructure_ready: bool,
    /// The metadata.generation that the controller observed last.
    #[serde(default, skip_serializing_if = "is_unset")]
    pub observed_generation: i64,
    /// Conditions of the object, one per type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<V1Beta1Condition>,
    /// Progress of the deletion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion: Option<MachineDeletionStatus>,
    /// Status fields of the next API version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub v1beta2: Option<V1Beta2Status>,
}

/// Source of the data with which a machine boots.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Bootstrap {
    /// Reference to the bootstrap object that generates the data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::object_reference")]
    pub config_ref: Option<ObjectReference>,
    /// Name of the Secret with the bootstrap data. Set it by hand only without configRef.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 0, max = 253))]
    pub data_secret_name: Option<String>,
}
