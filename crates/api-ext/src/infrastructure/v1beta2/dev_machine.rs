//! DevMachine: the kind and its parts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use windlass_api::Condition;
use windlass_api::core::v1beta2::{MachineAddress, V1Beta1Condition};
use windlass_api::kind::Column;
use windlass_api::schema;

windlass_api::api_kind! {
    /// Machine infrastructure for development and tests. Windlass simulates it in memory.
    pub struct DevMachine {
        /// The desired state of the object.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub spec: Option<DevMachineSpec>,
        /// The observed state of the object.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub status: Option<DevMachineStatus>,
    }
    group: "infrastructure.cluster.x-k8s.io",
    version: "v1beta2",
    plural: "devmachines",
    short_names: [],
    provider: "infrastructure-docker",
    contract: true,
    required: [],
    status: true,
    scale: None,
    columns: [
        Column::new("Cluster", "string", r".metadata.labels['cluster\.x-k8s\.io/cluster-name']", "Name of the Cluster"),
        Column::new("Provider ID", "string", ".spec.providerID", "Identifier of the machine in the infrastructure").wide(),
        Column::new("Failure domain", "string", ".status.failureDomain", "Failure domain of the Machine"),
        Column::new("IP", "string", r#".status.addresses[?(@.type=="InternalIP")].address"#, "IP address of the machine").wide(),
        Column::new("Paused", "string", r#".status.conditions[?(@.type=="Paused")].status"#, "Whether reconciliation is paused").wide(),
        Column::new("Provisioned", "string", ".status.initialization.provisioned", "Whether the infrastructure is provisioned"),
        Column::new("Age", "date", ".metadata.creationTimestamp", "Time since creation"),
    ],
}

windlass_api::conditioned!(DevMachine);

/// The desired state of a DevMachine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct DevMachineSpec {
    /// Backend of the machine.
    pub backend: DevMachineBackendSpec,
    /// Identifier of the machine in the infrastructure. The Node has the same spec.providerID.
    #[serde(rename = "providerID", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub provider_id: Option<String>,
}

/// The observed state of a DevMachine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct DevMachineStatus {
    /// Addresses of the machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<MachineAddress>,
    /// Conditions of the object, one per type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// Fields that are kept for older API versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<DevMachineDeprecatedStatus>,
    /// Failure domain in which the machine runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub failure_domain: Option<String>,
    /// Initialization milestones. Each one becomes true once and never becomes false again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initialization: Option<DevMachineInitializationStatus>,
}

/// Backend of a DevMachine. Exactly one field is set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct DevMachineBackendSpec {
    /// Container backend. Windlass accepts it for compatibility but does not run it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub docker: Option<DockerMachineBackendSpec>,
    /// In-memory backend: the infrastructure is simulated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_memory: Option<InMemoryMachineBackendSpec>,
}

/// Status fields that are kept for older API versions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct DevMachineDeprecatedStatus {
    /// Status fields of API version v1beta1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub v1beta1: Option<DevMachineV1Beta1DeprecatedStatus>,
}

/// Initialization milestones of the infrastructure. Each one becomes true once and never becomes false again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
#[schemars(extend("minProperties" = 1))]
pub struct DevMachineInitializationStatus {
    /// True once the infrastructure is fully provisioned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provisioned: Option<bool>,
}

/// Settings of the container backend.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct DockerMachineBackendSpec {
    /// Timeout of the bootstrap, for example 3m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bootstrap_timeout: Option<String>,
    /// Custom image of the container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_image: Option<String>,
    /// Additional host paths to mount into the container.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extra_mounts: Vec<Mount>,
    /// Images to load into the container before the bootstrap.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pre_load_images: Vec<String>,
}

/// Settings of the in-memory backend.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct InMemoryMachineBackendSpec {
    /// Settings of the API server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_server: Option<InMemoryComponentSpec>,
    /// Settings of etcd.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etcd: Option<InMemoryComponentSpec>,
    /// Settings of the simulated Node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<InMemoryComponentSpec>,
    /// Settings of the simulated virtual machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vm: Option<InMemoryComponentSpec>,
}

/// Status fields of v1beta1. Controllers still set them for older clients.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct DevMachineV1Beta1DeprecatedStatus {
    /// Conditions of the object, one per type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<V1Beta1Condition>,
}

/// A host path that is mounted into the container.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct Mount {
    /// Mount path in the container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_path: Option<String>,
    /// Path on the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_path: Option<String>,
    /// Whether the mount is read-only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
}

/// Settings of a simulated component.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct InMemoryComponentSpec {
    /// Duration of the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provisioning: Option<ProvisioningSettings>,
}

/// Duration of the start of a simulated component.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct ProvisioningSettings {
    /// Duration of the start, for example 10s or 1m30s.
    pub startup_duration: String,
    /// Random extension of the start, as a fraction of startupDuration, for example 0.2. No extension when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub startup_jitter: Option<String>,
}

windlass_api::parts!(DevMachineStatus);
