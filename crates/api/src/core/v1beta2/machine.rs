//! Machine: the kind and its parts.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Condition;
use crate::core::v1beta2::{
    ContractVersionedObjectReference, MachineAddress, MachineReadinessGate, MachineTaint, ObjectMeta, V1Beta1Condition,
};
use crate::kind::Column;
use crate::patterns;
use crate::schema;

crate::api_kind! {
    /// One host of a cluster: its infrastructure, its bootstrap data, and the Node that it becomes.
    pub struct Machine {
        /// What is wished for.
        pub spec: MachineSpec,
        /// What was observed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub status: Option<MachineStatus>,
    }
    group: "cluster.x-k8s.io",
    version: "v1beta2",
    plural: "machines",
    short_names: ["ma"],
    provider: "cluster-api",
    contract: false,
    required: ["spec"],
    status: true,
    scale: None,
    columns: [
        Column::new("Cluster", "string", ".spec.clusterName", "The Cluster that this belongs to"),
        Column::new("Node Name", "string", ".status.nodeRef.name", "The Node that this Machine has become"),
        Column::new("Provider ID", "string", ".spec.providerID", "The identifier that the infrastructure provider gave").wide(),
        Column::new("Failure domain", "string", ".status.failureDomain", "Where this Machine is placed"),
        Column::new("Ready", "string", r#".status.conditions[?(@.type=="Ready")].status"#, "Whether the Machine is ready"),
        Column::new("Available", "string", r#".status.conditions[?(@.type=="Available")].status"#, "Whether the Machine has been ready for long enough"),
        Column::new("Up-to-date", "string", r#".status.conditions[?(@.type=="UpToDate")].status"#, "Whether the Machine matches its owner's template"),
        Column::new("Internal-IP", "string", r#".status.addresses[?(@.type=="InternalIP")].address"#, "The address inside the cluster").wide(),
        Column::new("External-IP", "string", r#".status.addresses[?(@.type=="ExternalIP")].address"#, "The address outside the cluster").wide(),
        Column::new("OS-Image", "string", ".status.nodeInfo.osImage", "The operating system that the Node reports").wide(),
        Column::new("Paused", "string", r#".status.conditions[?(@.type=="Paused")].status"#, "Whether reconciling is paused").wide(),
        Column::new("Phase", "string", ".status.phase", "Where in its life this is"),
        Column::new("Age", "date", ".metadata.creationTimestamp", "How long ago this was created"),
        Column::new("Version", "string", ".spec.version", "The Kubernetes version that is wished for"),
    ],
}

crate::conditioned!(Machine);

/// What a Machine should be.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineSpec {
    /// Where the bootstrap data comes from.
    pub bootstrap: Bootstrap,
    /// The Cluster that this belongs to. It cannot be changed later.
    #[schemars(length(min = 1, max = 63))]
    pub cluster_name: String,
    /// How long the steps of the deletion may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion: Option<MachineDeletionSpec>,
    /// Where the machine is placed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub failure_domain: Option<String>,
    /// The object of the infrastructure provider.
    pub infrastructure_ref: ContractVersionedObjectReference,
    /// How many seconds a Machine must be ready before it counts as available; 0 when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub min_ready_seconds: Option<i32>,
    /// The identifier that the infrastructure gave the machine; the Node has the same.
    #[serde(rename = "providerID", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub provider_id: Option<String>,
    /// Further conditions that must hold for a Machine to count as ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["conditionType"]))]
    pub readiness_gates: Vec<MachineReadinessGate>,
    /// Taints for the Node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key", "effect"]))]
    pub taints: Vec<MachineTaint>,
    /// The Kubernetes version that the machine should run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub version: Option<String>,
}

/// What is known of a Machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct MachineStatus {
    /// The addresses of the machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), extend("x-kubernetes-list-type" = "atomic"))]
    pub addresses: Vec<MachineAddress>,
    /// When the certificates of a control plane machine expire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::date_time")]
    pub certificates_expiry_date: Option<Time>,
    /// Observed aspects, one entry a type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// How far the deletion has come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion: Option<MachineDeletionStatus>,
    /// Fields of older API versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<MachineDeprecatedStatus>,
    /// Where the machine has been placed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub failure_domain: Option<String>,
    /// The first steps; each becomes true once and stays so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initialization: Option<MachineInitializationStatus>,
    /// When the phase last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::date_time")]
    pub last_updated: Option<Time>,
    /// What the Node says about the system it runs on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_info: Option<NodeSystemInfo>,
    /// The Node that the Machine has become.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_ref: Option<MachineNodeReference>,
    /// The metadata.generation that this status was computed from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub observed_generation: Option<i64>,
    /// Where in its life this is, as one word for people. Programs should read conditions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["Pending", "Provisioning", "Provisioned", "Running", "Updating", "Deleting", "Deleted", "Failed", "Unknown"]))]
    pub phase: Option<String>,
}

/// Where the data comes from that a machine boots with.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Bootstrap {
    /// The object of the bootstrap provider, which makes the data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_ref: Option<ContractVersionedObjectReference>,
    /// The Secret that holds the data; set by a person when there is no configRef.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 0, max = 253))]
    pub data_secret_name: Option<String>,
}

/// How long the steps of a deletion may take.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct MachineDeletionSpec {
    /// How many seconds the deletion of the Node is tried after the infrastructure is gone; 10 when left out,
    /// forever when 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub node_deletion_timeout_seconds: Option<i32>,
    /// How many seconds draining the Node may take; forever when left out or 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub node_drain_timeout_seconds: Option<i32>,
    /// How many seconds may be spent waiting for volumes to be detached; forever when left out or 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub node_volume_detach_timeout_seconds: Option<i32>,
}

/// How far a deletion has come.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineDeletionStatus {
    /// When draining the Node began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::date_time")]
    pub node_drain_start_time: Option<Time>,
    /// When waiting for volumes began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::date_time")]
    pub wait_for_node_volume_detach_start_time: Option<Time>,
    /// When waiting for the pre-drain hooks began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::date_time")]
    pub wait_for_pre_drain_hook_start_time: Option<Time>,
    /// When waiting for the pre-terminate hooks began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::date_time")]
    pub wait_for_pre_terminate_hook_start_time: Option<Time>,
}

/// Status fields of older API versions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineDeprecatedStatus {
    /// Fields of v1beta1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub v1beta1: Option<MachineV1Beta1DeprecatedStatus>,
}

/// The first steps of a Machine. Each becomes true once and stays so.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct MachineInitializationStatus {
    /// Whether the bootstrap data is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bootstrap_data_secret_created: Option<bool>,
    /// Whether the infrastructure is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub infrastructure_provisioned: Option<bool>,
}

/// What the Node says about the system it runs on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeSystemInfo {
    /// The architecture of the processor.
    pub architecture: String,
    /// Changes with each boot.
    #[serde(rename = "bootID")]
    pub boot_id: String,
    /// The container runtime with its version.
    pub container_runtime_version: String,
    /// The version of the kernel.
    pub kernel_version: String,
    /// The version of kube-proxy; no longer reported by Kubernetes.
    pub kube_proxy_version: String,
    /// The version of the kubelet.
    pub kubelet_version: String,
    /// The identifier of the installation.
    #[serde(rename = "machineID")]
    pub machine_id: String,
    /// The operating system, such as linux.
    pub operating_system: String,
    /// The distribution with its version.
    pub os_image: String,
    /// Swap memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swap: Option<NodeSwapStatus>,
    /// The identifier of the machine.
    #[serde(rename = "systemUUID")]
    pub system_uuid: String,
}

/// The Node that a Machine has become.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineNodeReference {
    /// The name of the Node.
    #[schemars(length(min = 1, max = 253), regex(pattern = patterns::DNS_SUBDOMAIN))]
    pub name: String,
}

/// How Machines are made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineTemplateSpec {
    /// Labels and annotations for what is made from this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<ObjectMeta>,
    /// The spec of the Machines.
    pub spec: MachineSpec,
}

/// Status fields of v1beta1, kept up for those who still read them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineV1Beta1DeprecatedStatus {
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

/// Swap memory of the Node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeSwapStatus {
    /// The size of the swap memory in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<i64>,
}

/// How long the steps of a deletion may take, and which Machines go first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct OrderedMachineDeletionSpec {
    /// How many seconds the deletion of the Node is tried after the infrastructure is gone; 10 when left out,
    /// forever when 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub node_deletion_timeout_seconds: Option<i32>,
    /// How many seconds draining the Node may take; forever when left out or 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub node_drain_timeout_seconds: Option<i32>,
    /// How many seconds may be spent waiting for volumes to be detached; forever when left out or 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub node_volume_detach_timeout_seconds: Option<i32>,
    /// Which Machines are deleted first: Random, Newest or Oldest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["Random", "Newest", "Oldest"]))]
    pub order: Option<String>,
}

crate::parts!(MachineStatus);
