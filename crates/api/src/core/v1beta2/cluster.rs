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
    /// A Kubernetes cluster: its network, and either references to its control plane and infrastructure or
    /// the topology they are made from.
    pub struct Cluster {
        /// What is wished for.
        pub spec: ClusterSpec,
        /// What was observed.
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
        Column::new("ClusterClass", "string", ".spec.topology.classRef.name", "The ClusterClass that this follows"),
        Column::new("Available", "string", r#".status.conditions[?(@.type=="Available")].status"#, "Whether it works as it should"),
        Column::new("CP Desired", "integer", ".status.controlPlane.desiredReplicas", "Control plane Machines wished for"),
        Column::new("CP Current", "integer", ".status.controlPlane.replicas", "Control plane Machines there are").wide(),
        Column::new("CP Ready", "integer", ".status.controlPlane.readyReplicas", "Control plane Machines that are ready").wide(),
        Column::new("CP Available", "integer", ".status.controlPlane.availableReplicas", "Control plane Machines that are available"),
        Column::new("CP Up-to-date", "integer", ".status.controlPlane.upToDateReplicas", "Control plane Machines that match what is wished for"),
        Column::new("W Desired", "integer", ".status.workers.desiredReplicas", "Worker Machines wished for"),
        Column::new("W Current", "integer", ".status.workers.replicas", "Worker Machines there are").wide(),
        Column::new("W Ready", "integer", ".status.workers.readyReplicas", "Worker Machines that are ready").wide(),
        Column::new("W Available", "integer", ".status.workers.availableReplicas", "Worker Machines that are available"),
        Column::new("W Up-to-date", "integer", ".status.workers.upToDateReplicas", "Worker Machines that match what is wished for"),
        Column::new("Paused", "string", r#".status.conditions[?(@.type=="Paused")].status"#, "Whether reconciling is paused").wide(),
        Column::new("Phase", "string", ".status.phase", "Where in its life this is"),
        Column::new("Age", "date", ".metadata.creationTimestamp", "How long ago this was created"),
        Column::new("Version", "string", ".spec.topology.version", "The Kubernetes version that is wished for"),
    ],
}

crate::conditioned!(Cluster);

/// What a Cluster should be.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct ClusterSpec {
    /// Further conditions that must hold for the Cluster to count as available; those of the class when left
    /// out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["conditionType"]))]
    pub availability_gates: Vec<ClusterAvailabilityGate>,
    /// The network of the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_network: Option<ClusterNetwork>,
    /// Where the API server of the cluster is reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane_endpoint: Option<APIEndpoint>,
    /// The object of the control plane provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane_ref: Option<ContractVersionedObjectReference>,
    /// The object of the infrastructure provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub infrastructure_ref: Option<ContractVersionedObjectReference>,
    /// Stops the reconciling of this and of what belongs to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// Describes the cluster by a ClusterClass; everything else is then made from that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<Topology>,
}

/// What is known of a Cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct ClusterStatus {
    /// Observed aspects, one entry a type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// Machine counts of the control plane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane: Option<ClusterReplicasStatus>,
    /// Fields of older API versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<ClusterDeprecatedStatus>,
    /// The failure domains that the infrastructure offers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub failure_domains: Vec<FailureDomain>,
    /// The first steps; each becomes true once and stays so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initialization: Option<ClusterInitializationStatus>,
    /// The metadata.generation that this status was computed from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub observed_generation: Option<i64>,
    /// Where in its life this is, as one word for people. Programs should read conditions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["Pending", "Provisioning", "Provisioned", "Deleting", "Failed", "Unknown"]))]
    pub phase: Option<String>,
    /// Machine counts of all workers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workers: Option<ClusterReplicasStatus>,
}

/// A further condition that must hold for the Cluster to count as available.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterAvailabilityGate {
    /// The type of the condition.
    #[schemars(length(min = 1, max = 316), regex(pattern = patterns::QUALIFIED_NAME))]
    pub condition_type: String,
    /// Whether True (Positive, as when left out) or False (Negative) is the good status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["Positive", "Negative"]))]
    pub polarity: Option<String>,
}

/// The network of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct ClusterNetwork {
    /// The port of the API server; 6443 when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub api_server_port: Option<i32>,
    /// Where the addresses of Pods come from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods: Option<NetworkRanges>,
    /// The DNS domain of Services; cluster.local when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub service_domain: Option<String>,
    /// Where the addresses of Services come from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub services: Option<NetworkRanges>,
}

/// Machine counts of the control plane, or of all workers together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterReplicasStatus {
    /// How many Machines are available.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available_replicas: Option<i32>,
    /// How many Machines are wished for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired_replicas: Option<i32>,
    /// How many Machines are ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_replicas: Option<i32>,
    /// How many Machines there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// How many Machines match what is wished for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up_to_date_replicas: Option<i32>,
    /// The versions that the upgrade in progress still has to go through.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 32), extend("x-kubernetes-list-type" = "atomic"))]
    pub upgrade_plan: Vec<UpgradePlanVersion>,
    /// The Kubernetes versions that Machines run, with their number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 32), extend("x-kubernetes-list-type" = "atomic"))]
    pub versions: Vec<StatusVersion>,
}

/// Status fields of older API versions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterDeprecatedStatus {
    /// Fields of v1beta1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub v1beta1: Option<ClusterV1Beta1DeprecatedStatus>,
}

/// The first steps of a Cluster. Each becomes true once and stays so.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct ClusterInitializationStatus {
    /// Whether the control plane has answered requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane_initialized: Option<bool>,
    /// Whether the infrastructure is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub infrastructure_provisioned: Option<bool>,
}

/// Ranges of addresses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkRanges {
    /// The ranges, such as 192.168.0.0/16.
    #[schemars(length(min = 1, max = 100), inner(length(min = 1, max = 43)), extend("x-kubernetes-list-type" = "atomic"))]
    pub cidr_blocks: Vec<String>,
}

/// One step of an upgrade.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpgradePlanVersion {
    /// The Kubernetes version of the step.
    #[schemars(length(min = 1, max = 256))]
    pub version: String,
}

/// Status fields of v1beta1, kept up for those who still read them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterV1Beta1DeprecatedStatus {
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
}

crate::parts!(ClusterStatus);
