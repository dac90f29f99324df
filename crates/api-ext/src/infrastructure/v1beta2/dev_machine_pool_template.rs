//! DevMachinePoolTemplate: the kind and its parts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::infrastructure::v1beta2::DevMachinePoolSpec;
use windlass_api::core::v1beta2::ObjectMeta;
use windlass_api::kind::Column;

windlass_api::api_kind! {
    /// A template for the DevMachinePools of Clusters with a topology.
    pub struct DevMachinePoolTemplate {
        /// The desired state of the object.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub spec: Option<DevMachinePoolTemplateSpec>,
    }
    group: "infrastructure.cluster.x-k8s.io",
    version: "v1beta2",
    plural: "devmachinepooltemplates",
    short_names: [],
    provider: "infrastructure-docker",
    contract: true,
    required: [],
    status: false,
    scale: None,
    columns: [
        Column::new("Age", "date", ".metadata.creationTimestamp", "Time since creation"),
    ],
}

/// The desired state of a DevMachinePoolTemplate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DevMachinePoolTemplateSpec {
    /// Template of the DevMachinePools.
    pub template: DevMachinePoolTemplateResource,
}

/// Metadata and spec of DevMachinePools that are created from the template.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DevMachinePoolTemplateResource {
    /// Labels and annotations of the created objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<ObjectMeta>,
    /// The desired state of the object.
    pub spec: DevMachinePoolSpec,
}
