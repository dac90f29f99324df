//! DevMachine: one flag says that the infrastructure is ready, and there is no failure domain.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_api::api_kind;
use windlass_api::core::{MachineAddress, V1Beta1Condition};
use windlass_api::kind::Column;
use windlass_api_ext::infrastructure as hub;
use windlass_api_ext::infrastructure::DevMachineBackendSpec;

use super::backend;
use crate::common::V1Beta2Status;
use crate::convert::{ConversionError, References, Spoke};
use crate::parts::unless_default;

api_kind! {
    /// Machine infrastructure for development and tests. Windlass simulates it in memory.
    pub struct DevMachine {
        /// The desired state of the object.
        #[serde(default)]
        pub spec: DevMachineSpec,
        /// The observed state of the object.
        #[serde(default)]
        pub status: DevMachineStatus,
    }
    group: "infrastructure.cluster.x-k8s.io",
    version: "v1beta1",
    plural: "devmachines",
    short_names: [],
    provider: "infrastructure-docker",
    contract: true,
    required: [],
    status: true,
    scale: None,
    columns: [
        Column::new("Cluster", "string", r".metadata.labels['cluster\.x-k8s\.io/cluster-name']", "Name of the Cluster"),
        Column::new("Machine", "string", r#".metadata.ownerReferences[?(@.kind=="Machine")].name"#, "Name of the Machine"),
        Column::new("ProviderID", "string", ".spec.providerID", "Identifier of the machine in the infrastructure"),
        Column::new("Ready", "string", ".status.ready", "Whether the infrastructure is provisioned"),
        Column::new("Age", "date", ".metadata.creationTimestamp", "Time since creation"),
    ],
}

/// The desired state of a DevMachine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DevMachineSpec {
    /// Backend of the machine. It is the same in the hub version.
    #[serde(default)]
    #[schemars(!default)]
    pub backend: DevMachineBackendSpec,
    /// Identifier of the machine in the infrastructure. The Node has the same spec.providerID.
    #[serde(rename = "providerID", default, skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
}

/// The observed state of a DevMachine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DevMachineStatus {
    /// Addresses of the machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<MachineAddress>,
    /// Conditions in the form of v1beta1.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<V1Beta1Condition>,
    /// Whether the infrastructure is provisioned.
    #[serde(default)]
    pub ready: bool,
    /// Conditions in the form of v1beta2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub v1beta2: Option<V1Beta2Status>,
}

impl Spoke for DevMachine {
    type Hub = hub::DevMachine;

    fn into_hub(self, kept: Option<Self::Hub>) -> Result<Self::Hub, ConversionError> {
        let Self {
            metadata: _,
            spec,
            status,
        } = self;
        let kept_status = kept.and_then(|kept| kept.status).unwrap_or_default();
        Ok(hub::DevMachine {
            spec: Some(spec.into_hub()),
            status: Some(status.into_hub(kept_status)),
            ..Self::Hub::default()
        })
    }

    fn from_hub(hub: Self::Hub, _: &str, _: &dyn References) -> Result<Self, ConversionError> {
        let hub::DevMachine {
            metadata: _,
            spec,
            status,
        } = hub;
        Ok(Self {
            spec: DevMachineSpec::from_hub(spec.unwrap_or_default()),
            status: DevMachineStatus::from_hub(status.unwrap_or_default()),
            ..Self::default()
        })
    }

    fn carried(hub: &mut Self::Hub) {
        hub.spec = Some(DevMachineSpec::normal(hub.spec.take().unwrap_or_default()));
        hub.status.get_or_insert_default();
    }
}

impl DevMachineSpec {
    /// The spec of the hub as v1.14 writes it.
    pub(super) fn normal(hub: hub::DevMachineSpec) -> hub::DevMachineSpec {
        Self::from_hub(hub).into_hub()
    }

    pub(super) fn into_hub(self) -> hub::DevMachineSpec {
        let Self { backend, provider_id } = self;
        hub::DevMachineSpec {
            backend: backend::normal(backend),
            provider_id: provider_id.and_then(unless_default),
        }
    }

    pub(super) fn from_hub(hub: hub::DevMachineSpec) -> Self {
        let hub::DevMachineSpec { backend, provider_id } = hub;
        Self {
            backend: backend::normal(backend),
            provider_id: provider_id.and_then(unless_default),
        }
    }
}

impl DevMachineStatus {
    fn into_hub(self, kept: hub::DevMachineStatus) -> hub::DevMachineStatus {
        let Self {
            addresses,
            conditions,
            ready,
            v1beta2,
        } = self;
        let kept_provisioned = kept
            .initialization
            .and_then(|initialization| initialization.provisioned);
        let deprecated = hub::DevMachineV1Beta1DeprecatedStatus { conditions };
        hub::DevMachineStatus {
            addresses,
            conditions: V1Beta2Status::into_conditions(v1beta2),
            deprecated: unless_default(deprecated)
                .map(|v1beta1| hub::DevMachineDeprecatedStatus { v1beta1: Some(v1beta1) }),
            failure_domain: kept.failure_domain,
            initialization: unless_default(hub::DevMachineInitializationStatus {
                provisioned: crate::parts::intent(ready, kept_provisioned),
            }),
        }
    }

    fn from_hub(hub: hub::DevMachineStatus) -> Self {
        let hub::DevMachineStatus {
            addresses,
            conditions,
            deprecated,
            failure_domain: _,
            initialization,
        } = hub;
        let hub::DevMachineInitializationStatus { provisioned } = initialization.unwrap_or_default();
        let hub::DevMachineDeprecatedStatus { v1beta1 } = deprecated.unwrap_or_default();
        let hub::DevMachineV1Beta1DeprecatedStatus {
            conditions: v1beta1_conditions,
        } = v1beta1.unwrap_or_default();
        Self {
            addresses,
            conditions: v1beta1_conditions,
            ready: provisioned.unwrap_or_default(),
            v1beta2: V1Beta2Status::holding(conditions),
        }
    }
}
