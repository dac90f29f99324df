//! MachinePool: the kind and its parts.

use k8s_openapi::api::core::v1::ObjectReference;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Condition;
use crate::core::v1beta2::{MachineTemplateSpec, StatusVersion, V1Beta1Condition};
use crate::kind::Column;
use crate::kind::Scale;
use crate::schema;

crate::api_kind! {
    /// A number of machines that the infrastructure manages as one, such as an autoscaling group.
    pub struct MachinePool {
        /// The desired state of the object.
        pub spec: MachinePoolSpec,
        /// The observed state of the object.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub status: Option<MachinePoolStatus>,
    }
    group: "cluster.x-k8s.io",
    version: "v1beta2",
    plural: "machinepools",
    short_names: ["mp"],
    provider: "cluster-api",
    contract: false,
    required: ["spec"],
    status: true,
    scale: Some(Scale::UNSELECTED),
    columns: [
        Column::new("Cluster", "string", ".spec.clusterName", "Name of the Cluster"),
        Column::new("Desired", "integer", ".spec.replicas", "Desired machines"),
        Column::new("Current", "integer", ".status.replicas", "Existing machines"),
        Column::new("Ready", "integer", ".status.readyReplicas", "Ready machines"),
        Column::new("Available", "integer", ".status.availableReplicas", "Available machines"),
        Column::new("Up-to-date", "integer", ".status.upToDateReplicas", "Machines that match the current spec"),
        Column::new("Paused", "string", r#".status.conditions[?(@.type=="Paused")].status"#, "Whether reconciliation is paused").wide(),
        Column::new("Phase", "string", ".status.phase", "Lifecycle phase"),
        Column::new("Age", "date", ".metadata.creationTimestamp", "Time since creation"),
        Column::new("Version", "string", ".spec.template.spec.version", "Desired Kubernetes version"),
    ],
}

crate::conditioned!(MachinePool);

/// The desired state of a MachinePool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct MachinePoolSpec {
    /// Name of the Cluster of this object. Immutable.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 63))]
    pub cluster_name: String,
    /// Failure domains in which the infrastructure may place machines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 100),
        inner(length(min = 1, max = 256)),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub failure_domains: Vec<String>,
    /// Identifiers of the machines in the infrastructure. The controller takes them over from the infrastructure object.
    #[serde(rename = "providerIDList", default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 10000),
        inner(length(min = 1, max = 512)),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub provider_id_list: Vec<String>,
    /// Desired number of machines. Defaults to 1, unless an autoscaler manages it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Template of the machines. Its infrastructureRef and bootstrap.configRef name objects of the whole pool.
    #[serde(skip_serializing_if = "crate::kind::is_unset")]
    pub template: MachineTemplateSpec,
}

/// The observed state of a MachinePool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
#[schemars(extend("minProperties" = 1))]
pub struct MachinePoolStatus {
    /// Number of available machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available_replicas: Option<i32>,
    /// Conditions of the object, one per type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// Fields that are kept for older API versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<MachinePoolDeprecatedStatus>,
    /// Initialization milestones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initialization: Option<MachinePoolInitializationStatus>,
    /// The Nodes of the machines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::node_references")]
    pub node_refs: Vec<ObjectReference>,
    /// The metadata.generation that the controller observed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub observed_generation: Option<i64>,
    /// The lifecycle phase, for display. Programs should use conditions instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = [
        "Pending", "Provisioning", "Provisioned", "Running", "ScalingUp", "ScalingDown", "Scaling", "Deleting", "Failed", "Unknown",
    ]))]
    pub phase: Option<String>,
    /// Number of ready machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_replicas: Option<i32>,
    /// Number of machines that the infrastructure reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Number of machines that match the current spec.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up_to_date_replicas: Option<i32>,
    /// The Kubernetes versions of the machines, with the number of machines per version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["version"]))]
    pub versions: Vec<StatusVersion>,
}

/// Initialization milestones of a MachinePool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
#[schemars(extend("minProperties" = 1))]
pub struct MachinePoolInitializationStatus {
    /// Whether the bootstrap data exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bootstrap_data_secret_created: Option<bool>,
    /// Whether the infrastructure is fully provisioned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub infrastructure_provisioned: Option<bool>,
}

/// Status fields that are kept for older API versions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct MachinePoolDeprecatedStatus {
    /// Status fields of API version v1beta1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub v1beta1: Option<MachinePoolV1Beta1DeprecatedStatus>,
}

/// Status fields of v1beta1. Controllers still set them for older clients.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct MachinePoolV1Beta1DeprecatedStatus {
    /// Number of Nodes that have been ready for minReadySeconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available_replicas: Option<i32>,
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
    /// Number of ready Nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_replicas: Option<i32>,
    /// Number of machines that are not available.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable_replicas: Option<i32>,
}

crate::parts!(MachinePoolStatus);
