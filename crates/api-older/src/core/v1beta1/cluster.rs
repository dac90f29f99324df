//! Cluster: the kind and its parts.

mod convert;
mod topology;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ObjectReference;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_api::core::{ClusterAvailabilityGate, ClusterReplicasStatus, V1Beta1Condition};
use windlass_api::kind::{Column, is_unset};
use windlass_api::{Condition, api_kind, schema};

pub use topology::*;

pub use crate::common::FailureDomainSpec;

api_kind! {
    /// A Kubernetes cluster: its infrastructure, its control plane and its workers.
    pub struct Cluster {
        /// The desired state of the object.
        #[serde(default)]
        pub spec: ClusterSpec,
        /// The observed state of the object.
        #[serde(default)]
        pub status: ClusterStatus,
    }
    group: "cluster.x-k8s.io",
    version: "v1beta1",
    plural: "clusters",
    short_names: ["cl"],
    provider: "cluster-api",
    contract: false,
    required: [],
    status: true,
    scale: None,
    columns: [
        Column::new("ClusterClass", "string", ".spec.topology.class", "Name of the ClusterClass"),
        Column::new("Phase", "string", ".status.phase", "Lifecycle phase"),
        Column::new("Age", "date", ".metadata.creationTimestamp", "Time since creation"),
        Column::new("Version", "string", ".spec.topology.version", "Desired Kubernetes version"),
    ],
}

/// The desired state of a Cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSpec {
    /// Pauses reconciliation of the Cluster and of the objects that belong to it.
    #[serde(default, skip_serializing_if = "is_unset")]
    pub paused: bool,
    /// Network configuration of the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_network: Option<ClusterNetwork>,
    /// The endpoint of the cluster's API server.
    #[serde(default)]
    pub control_plane_endpoint: APIEndpoint,
    /// Reference to the control plane object, for example a KubeadmControlPlane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::object_reference")]
    pub control_plane_ref: Option<ObjectReference>,
    /// Reference to the object of the infrastructure provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::object_reference")]
    pub infrastructure_ref: Option<ObjectReference>,
    /// The topology of the cluster: a ClusterClass and the values for it. The other objects of the cluster are created from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<Topology>,
    /// Additional conditions that must be good before the Cluster is Available. Defaults to the availabilityGates of the ClusterClass.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["conditionType"]))]
    pub availability_gates: Vec<ClusterAvailabilityGate>,
}

/// Network configuration of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterNetwork {
    /// Port of the API server. Defaults to 6443.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_server_port: Option<i32>,
    /// Address ranges of Services.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub services: Option<NetworkRanges>,
    /// Address ranges of Pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods: Option<NetworkRanges>,
    /// DNS domain of Services. Defaults to cluster.local.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 253))]
    pub service_domain: String,
}

/// Address ranges in CIDR notation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkRanges {
    /// CIDR blocks, for example 192.168.0.0/16.
    #[schemars(length(max = 100), inner(length(min = 1, max = 43)))]
    pub cidr_blocks: Vec<String>,
}

/// The endpoint of an API server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct APIEndpoint {
    /// Host name or IP address.
    #[serde(default)]
    #[schemars(length(max = 512))]
    pub host: String,
    /// Port number.
    #[serde(default)]
    pub port: i32,
}

/// The observed state of a Cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterStatus {
    /// Failure domains that the infrastructure provider reports.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub failure_domains: BTreeMap<String, FailureDomainSpec>,
    /// Reason of a terminal error, as one word. No longer set by Cluster API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_reason: Option<String>,
    /// Message of a terminal error. No longer set by Cluster API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 10240))]
    pub failure_message: Option<String>,
    /// The lifecycle phase, for display. Programs should use conditions instead.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(extend("enum" = ["Pending", "Provisioning", "Provisioned", "Deleting", "Failed", "Unknown"]))]
    pub phase: String,
    /// Whether the infrastructure is fully provisioned.
    #[serde(default)]
    pub infrastructure_ready: bool,
    /// Whether the control plane accepts requests.
    #[serde(default)]
    pub control_plane_ready: bool,
    /// Conditions of the object, one per type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<V1Beta1Condition>,
    /// The metadata.generation that the controller observed last.
    #[serde(default, skip_serializing_if = "is_unset")]
    pub observed_generation: i64,
    /// Status fields of the next API version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub v1beta2: Option<ClusterV1Beta2Status>,
}

/// Status fields that the next API version has as its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterV1Beta2Status {
    /// Conditions of the object, one per type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// Replica counters of the control plane Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane: Option<ClusterReplicasStatus>,
    /// Replica counters of all worker Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workers: Option<ClusterReplicasStatus>,
}
