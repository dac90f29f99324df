//! MachinePool: the kind and its parts.

mod convert;

use k8s_openapi::api::core::v1::ObjectReference;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_api::core::{StatusVersion, V1Beta1Condition};
use windlass_api::kind::{Column, Scale, is_unset};
use windlass_api::{Condition, api_kind, schema};

use super::MachineTemplateSpec;

api_kind! {
    /// A group of machines that the infrastructure provider manages as one.
    pub struct MachinePool {
        /// The desired state of the object.
        #[serde(default)]
        pub spec: MachinePoolSpec,
        /// The observed state of the object.
        #[serde(default)]
        pub status: MachinePoolStatus,
    }
    group: "cluster.x-k8s.io",
    version: "v1beta1",
    plural: "machinepools",
    short_names: ["mp"],
    provider: "cluster-api",
    contract: false,
    required: [],
    status: true,
    scale: Some(Scale::UNSELECTED),
    columns: [
        Column::new("Cluster", "string", ".spec.clusterName", "Name of the Cluster"),
        Column::new("Desired", "integer", ".spec.replicas", "Desired machines").wide(),
        Column::new("Replicas", "string", ".status.replicas", "Existing machines"),
        Column::new("Phase", "string", ".status.phase", "Lifecycle phase"),
        Column::new("Age", "date", ".metadata.creationTimestamp", "Time since creation"),
        Column::new("Version", "string", ".spec.template.spec.version", "Desired Kubernetes version"),
    ],
}

/// The desired state of a MachinePool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachinePoolSpec {
    /// Name of the Cluster of this object. Immutable.
    #[schemars(length(min = 1, max = 63))]
    pub cluster_name: String,
    /// Desired number of machines. Defaults to 1, unless an autoscaler manages it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Template of the machines. Its infrastructureRef and bootstrap.configRef name objects of the whole pool.
    pub template: MachineTemplateSpec,
    /// Seconds that a Machine must be Ready before it is Available. Defaults to 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_ready_seconds: Option<i32>,
    /// Identifiers of the machines in the infrastructure.
    #[serde(rename = "providerIDList", default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10000), inner(length(min = 1, max = 512)))]
    pub provider_id_list: Vec<String>,
    /// Failure domains of the cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(min = 1, max = 256)))]
    pub failure_domains: Vec<String>,
}

/// The observed state of a MachinePool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachinePoolStatus {
    /// The Nodes of the machines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::object_references", length(max = 10000))]
    pub node_refs: Vec<ObjectReference>,
    /// Number of machines that the infrastructure reports.
    #[serde(default)]
    pub replicas: i32,
    /// Number of ready machines.
    #[serde(default, skip_serializing_if = "is_unset")]
    pub ready_replicas: i32,
    /// Number of available machines.
    #[serde(default, skip_serializing_if = "is_unset")]
    pub available_replicas: i32,
    /// Number of Machines that are not available yet.
    #[serde(default, skip_serializing_if = "is_unset")]
    pub unavailable_replicas: i32,
    /// Reason of a terminal error, as one word. No longer set by Cluster API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_reason: Option<String>,
    /// Message of a terminal error. No longer set by Cluster API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 10240))]
    pub failure_message: Option<String>,
    /// `Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(extend("enum" = ["Pending", "Provisioning", "Provisioned", "Running", "ScalingUp", "ScalingDown", "Scaling", "Deleting", "Failed", "Unknown"]))]
    pub phase: String,
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
    /// The Kubernetes versions of the machines, with the number of machines per version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["version"]))]
    pub versions: Vec<StatusVersion>,
    /// Status fields of the next API version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub v1beta2: Option<MachinePoolV1Beta2Status>,
}

/// Status fields that the next API version has as its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachinePoolV1Beta2Status {
    /// Conditions of the object, one per type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// Number of ready Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_replicas: Option<i32>,
    /// Number of available Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available_replicas: Option<i32>,
    /// Number of Machines that match the current spec.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up_to_date_replicas: Option<i32>,
}
