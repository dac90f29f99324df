//! DevMachinePool: the kind and its parts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::infrastructure::v1beta2::{InMemoryComponentSpec, Mount};
use windlass_api::Condition;
use windlass_api::core::v1beta2::MachineAddress;
use windlass_api::kind::Column;
use windlass_api::schema;

windlass_api::api_kind! {
    /// Infrastructure of a MachinePool for development and tests. Windlass simulates it in memory.
    pub struct DevMachinePool {
        /// The desired state of the object.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub spec: Option<DevMachinePoolSpec>,
        /// The observed state of the object.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub status: Option<DevMachinePoolStatus>,
    }
    group: "infrastructure.cluster.x-k8s.io",
    version: "v1beta2",
    plural: "devmachinepools",
    short_names: [],
    provider: "infrastructure-docker",
    contract: true,
    required: [],
    status: true,
    scale: None,
    columns: [
        Column::new("Age", "date", ".metadata.creationTimestamp", "Time since creation"),
    ],
}

windlass_api::conditioned!(DevMachinePool);

/// The desired state of a DevMachinePool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DevMachinePoolSpec {
    /// Backend of the machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend: Option<DevMachinePoolBackendSpec>,
    /// Identifier of the pool in the infrastructure.
    #[serde(rename = "providerID", default, skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
    /// Identifiers of the machines in the infrastructure.
    #[serde(rename = "providerIDList", default, skip_serializing_if = "Vec::is_empty")]
    pub provider_id_list: Vec<String>,
}

/// Backend of a DevMachinePool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DevMachinePoolBackendSpec {
    /// Container backend. Windlass accepts it for compatibility but does not run it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub docker: Option<DockerMachinePoolBackendSpec>,
    /// In-memory backend: the infrastructure is simulated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_memory: Option<InMemoryMachinePoolBackendSpec>,
}

/// Settings of the container backend.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DockerMachinePoolBackendSpec {
    /// Custom image of the containers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_image: Option<String>,
    /// Additional host paths to mount into the containers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extra_mounts: Vec<Mount>,
    /// Images to load into the containers before the bootstrap.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pre_load_images: Vec<String>,
}

/// Settings of the in-memory backend. They are those of a DevMachine that is a worker.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InMemoryMachinePoolBackendSpec {
    /// Settings of the simulated Nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<InMemoryComponentSpec>,
    /// Settings of the simulated virtual machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vm: Option<InMemoryComponentSpec>,
}

/// The observed state of a DevMachinePool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DevMachinePoolStatus {
    /// Conditions of the object, one per type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// Kind of the object of each machine: DevMachine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub infrastructure_machine_kind: Option<String>,
    /// The machines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub instances: Vec<DevMachinePoolInstanceStatus>,
    /// The metadata.generation that the controller observed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Whether the pool once had all its machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<bool>,
    /// Number of machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
}

/// A machine of a DevMachinePool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DevMachinePoolInstanceStatus {
    /// Addresses of the machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<MachineAddress>,
    /// Name of the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_name: Option<String>,
    /// Identifier of the machine in the infrastructure.
    #[serde(rename = "providerID", default, skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
    /// Whether the machine is ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<bool>,
    /// Kubernetes version of the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

windlass_api::parts!(DevMachinePoolStatus);
