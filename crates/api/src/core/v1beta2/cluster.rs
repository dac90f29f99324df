//! Cluster: the kind and its parts.

mod topology;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Condition;
use crate::core::v1beta2::{
    APIEndpoint, ContractVersionedObjectReference, FailureDomain, StatusVersion, V1Beta1Condition,
};
use crate::kind::Column;
use crate::patterns;
use crate::schema;

pub use topology::*;

crate::api_kind! {
    /// A Kubernetes cluster. It holds the cluster network, and either references to a control plane and an
    /// infrastructure object or a topology from which they are created.
    pub struct Cluster {
        /// The desired state of the object.
        pub spec: ClusterSpec,
        /// The observed state of the object.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub status: Option<ClusterStatus>,
    }
    group: "cluster.x-k8s.io",
    version: "v1beta2",
    plural: "clusters",
    short_names: ["cl"],
    provider: "cluster-api",
    contract: false,
    required: ["spec"],
    status: true,
    scale: None,
    columns: [
        Column::new("ClusterClass", "string", ".spec.topology.classRef.name", "Name of the ClusterClass"),
        Column::new("Available", "string", r#".status.conditions[?(@.type=="Available")].status"#, "Whether the object is Available"),
        Column::new("CP Desired", "integer", ".status.controlPlane.desiredReplicas", "Desired control plane Machines"),
        Column::new("CP Current", "integer", ".status.controlPlane.replicas", "Existing control plane Machines").wide(),
        Column::new("CP Ready", "integer", ".status.controlPlane.readyReplicas", "Ready control plane Machines").wide(),
        Column::new("CP Available", "integer", ".status.controlPlane.availableReplicas", "Available control plane Machines"),
        Column::new("CP Up-to-date", "integer", ".status.controlPlane.upToDateReplicas", "Control plane Machines that match the current spec"),
        Column::new("W Desired", "integer", ".status.workers.desiredReplicas", "Desired worker Machines"),
        Column::new("W Current", "integer", ".status.workers.replicas", "Existing worker Machines").wide(),
        Column::new("W Ready", "integer", ".status.workers.readyReplicas", "Ready worker Machines").wide(),
        Column::new("W Available", "integer", ".status.workers.availableReplicas", "Available worker Machines"),
        Column::new("W Up-to-date", "integer", ".status.workers.upToDateReplicas", "Worker Machines that match the current spec"),
        Column::new("Paused", "string", r#".status.conditions[?(@.type=="Paused")].status"#, "Whether reconciliation is paused").wide(),
        Column::new("Phase", "string", ".status.phase", "Lifecycle phase"),
        Column::new("Age", "date", ".metadata.creationTimestamp", "Time since creation"),
        Column::new("Version", "string", ".spec.topology.version", "Desired Kubernetes version"),
    ],
}

crate::conditioned!(Cluster);

/// The desired state of a Cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
#[schemars(extend("minProperties" = 1))]
pub struct ClusterSpec {
    /// Additional conditions that must be good before the Cluster is Available. Defaults to the availabilityGates of
    /// the ClusterClass.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["conditionType"]))]
    pub availability_gates: Vec<ClusterAvailabilityGate>,
    /// Network configuration of the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_network: Option<ClusterNetwork>,
    /// The endpoint of the cluster's API server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane_endpoint: Option<APIEndpoint>,
    /// Reference to the control plane object, for example a KubeadmControlPlane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane_ref: Option<ContractVersionedObjectReference>,
    /// Reference to the object of the infrastructure provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub infrastructure_ref: Option<ContractVersionedObjectReference>,
    /// Pauses reconciliation of the Cluster and of the objects that belong to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// The topology of the cluster: a ClusterClass and the values for it. The other objects of the cluster are created
    /// from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<Topology>,
}

/// The observed state of a Cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
#[schemars(extend("minProperties" = 1))]
pub struct ClusterStatus {
    /// Conditions of the object, one per type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// Replica counters of the control plane Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane: Option<ClusterReplicasStatus>,
    /// Fields that are kept for older API versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<ClusterDeprecatedStatus>,
    /// Failure domains that the infrastructure provider reports.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub failure_domains: Vec<FailureDomain>,
    /// Initialization milestones. Each one becomes true once and never becomes false again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initialization: Option<ClusterInitializationStatus>,
    /// The metadata.generation that the controller observed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub observed_generation: Option<i64>,
    /// The lifecycle phase, for display. Programs should use conditions instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["Pending", "Provisioning", "Provisioned", "Deleting", "Failed", "Unknown"]))]
    pub phase: Option<String>,
    /// Replica counters of all worker Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workers: Option<ClusterReplicasStatus>,
}

/// An additional condition that must be good before the Cluster is Available.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct ClusterAvailabilityGate {
    /// The type of the condition.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 316), regex(pattern = patterns::QUALIFIED_NAME))]
    pub condition_type: String,
    /// Which status is the good one: Positive means True, Negative means False. Defaults to Positive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["Positive", "Negative"]))]
    pub polarity: Option<String>,
}

/// Network configuration of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
#[schemars(extend("minProperties" = 1))]
pub struct ClusterNetwork {
    /// Port of the API server. Defaults to 6443.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub api_server_port: Option<i32>,
    /// Address ranges of Pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods: Option<NetworkRanges>,
    /// DNS domain of Services. Defaults to cluster.local.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub service_domain: Option<String>,
    /// Address ranges of Services.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub services: Option<NetworkRanges>,
}

/// Replica counters of the control plane Machines or of all worker Machines.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct ClusterReplicasStatus {
    /// Number of available Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available_replicas: Option<i32>,
    /// Number of desired Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired_replicas: Option<i32>,
    /// Number of ready Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_replicas: Option<i32>,
    /// Number of existing Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Number of Machines that match the current spec.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up_to_date_replicas: Option<i32>,
    /// The versions that the upgrade in progress has still to reach, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 32), extend("x-kubernetes-list-type" = "atomic"))]
    pub upgrade_plan: Vec<UpgradePlanVersion>,
    /// The Kubernetes versions of the Machines, with the number of Machines per version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 32), extend("x-kubernetes-list-type" = "atomic"))]
    pub versions: Vec<StatusVersion>,
}

/// Status fields that are kept for older API versions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct ClusterDeprecatedStatus {
    /// Status fields of API version v1beta1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub v1beta1: Option<ClusterV1Beta1DeprecatedStatus>,
}

/// Initialization milestones of a Cluster. Each one becomes true once and never becomes false again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
#[schemars(extend("minProperties" = 1))]
pub struct ClusterInitializationStatus {
    /// True once the API server of the control plane has accepted requests for the first time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane_initialized: Option<bool>,
    /// True once the infrastructure is fully provisioned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub infrastructure_provisioned: Option<bool>,
}

/// Address ranges in CIDR notation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct NetworkRanges {
    /// CIDR blocks, for example 192.168.0.0/16.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 100), inner(length(min = 1, max = 43)), extend("x-kubernetes-list-type" = "atomic"))]
    pub cidr_blocks: Vec<String>,
}

/// One version of an upgrade plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct UpgradePlanVersion {
    /// The Kubernetes version of this step.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 256))]
    pub version: String,
}

/// Status fields of v1beta1. Controllers still set them for older clients.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct ClusterV1Beta1DeprecatedStatus {
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
}

crate::parts!(ClusterStatus);
