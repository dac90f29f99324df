//! DevMachine: the kind and its parts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use windlass_api::Condition;
use windlass_api::core::v1beta2::{MachineAddress, V1Beta1Condition};
use windlass_api::kind::Column;
use windlass_api::schema;

windlass_api::api_kind! {
    /// The infrastructure of one Machine for development and tests: simulated in memory, or a container.
    pub struct DevMachine {
        /// What is wished for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub spec: Option<DevMachineSpec>,
        /// What was observed.
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
        Column::new("Cluster", "string", r".metadata.labels['cluster\.x-k8s\.io/cluster-name']", "The Cluster that this belongs to"),
        Column::new("Provider ID", "string", ".spec.providerID", "The identifier that the infrastructure provider gave").wide(),
        Column::new("Failure domain", "string", ".status.failureDomain", "Where this Machine is placed"),
        Column::new("IP", "string", r#".status.addresses[?(@.type=="InternalIP")].address"#, "The address of the machine").wide(),
        Column::new("Paused", "string", r#".status.conditions[?(@.type=="Paused")].status"#, "Whether reconciling is paused").wide(),
        Column::new("Provisioned", "string", ".status.initialization.provisioned", "Whether the infrastructure is there"),
        Column::new("Age", "date", ".metadata.creationTimestamp", "How long ago this was created"),
    ],
}

windlass_api::conditioned!(DevMachine);

/// What a DevMachine should be.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DevMachineSpec {
    /// What the machine runs on.
    pub backend: DevMachineBackendSpec,
    /// The identifier that the infrastructure gave the machine; the Node has the same.
    #[serde(rename = "providerID", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub provider_id: Option<String>,
}

/// What is known of a DevMachine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DevMachineStatus {
    /// The addresses of the machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<MachineAddress>,
    /// Observed aspects, one entry a type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// Fields of older API versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<DevMachineDeprecatedStatus>,
    /// Where the machine has been placed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub failure_domain: Option<String>,
    /// The first steps; each becomes true once and stays so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initialization: Option<DevMachineInitializationStatus>,
}

/// What the machine runs on; exactly one backend is set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DevMachineBackendSpec {
    /// A container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub docker: Option<DockerMachineBackendSpec>,
    /// Simulated in memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_memory: Option<InMemoryMachineBackendSpec>,
}

/// Status fields of older API versions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DevMachineDeprecatedStatus {
    /// Fields of v1beta1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub v1beta1: Option<DevMachineV1Beta1DeprecatedStatus>,
}

/// The first steps of the infrastructure. Each becomes true once and stays so.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct DevMachineInitializationStatus {
    /// Whether everything is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provisioned: Option<bool>,
}

/// A machine that is a container.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DockerMachineBackendSpec {
    /// How long running the bootstrap data may take, such as 3m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bootstrap_timeout: Option<String>,
    /// Another image for the container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_image: Option<String>,
    /// Folders of the host that are mounted into the container.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extra_mounts: Vec<Mount>,
    /// Images that are loaded into the container beforehand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pre_load_images: Vec<String>,
}

/// A machine that is simulated in the memory of the manager.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InMemoryMachineBackendSpec {
    /// The API server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_server: Option<InMemoryComponentSpec>,
    /// Etcd.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etcd: Option<InMemoryComponentSpec>,
    /// The Node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<InMemoryComponentSpec>,
    /// The virtual machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vm: Option<InMemoryComponentSpec>,
}

/// Status fields of v1beta1, kept up for those who still read them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DevMachineV1Beta1DeprecatedStatus {
    /// Observed aspects, one entry a type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<V1Beta1Condition>,
}

/// A folder of the host that is mounted into the container.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Mount {
    /// The path in the container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_path: Option<String>,
    /// The path on the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_path: Option<String>,
    /// Whether writing is forbidden.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
}

/// A simulated part of a machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InMemoryComponentSpec {
    /// How long the start takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provisioning: Option<ProvisioningSettings>,
}

/// How long the start of a simulated part takes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProvisioningSettings {
    /// How long the start takes, such as 10s or 1m30s.
    pub startup_duration: String,
    /// By how much of itself the start may take longer, at random, such as 0.2; none when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub startup_jitter: Option<String>,
}

windlass_api::parts!(DevMachineStatus);
