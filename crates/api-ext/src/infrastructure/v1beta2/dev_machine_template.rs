//! DevMachineTemplate: the kind and its parts.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::infrastructure::v1beta2::DevMachineSpec;
use windlass_api::Condition;
use windlass_api::core::v1beta2::ObjectMeta;
use windlass_api::kind::{Column, Conditioned};
use windlass_api::schema;

windlass_api::api_kind! {
    /// A template for the DevMachines of a set of Machines.
    pub struct DevMachineTemplate {
        /// The desired state of the object.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub spec: Option<DevMachineTemplateSpec>,
        /// The observed state of the object.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub status: Option<DevMachineTemplateStatus>,
    }
    group: "infrastructure.cluster.x-k8s.io",
    version: "v1beta2",
    plural: "devmachinetemplates",
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

impl Conditioned for DevMachineTemplate {
    const HAS_CONDITIONS: bool = false;

    /// Its status has none.
    fn conditions(&self) -> &[Condition] {
        &[]
    }
}

/// The desired state of a DevMachineTemplate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct DevMachineTemplateSpec {
    /// Template of the DevMachines.
    pub template: DevMachineTemplateResource,
}

/// The observed state of a DevMachineTemplate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct DevMachineTemplateStatus {
    /// Capacity of a machine by resource. Autoscalers need it to scale from zero.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::quantities")]
    pub capacity: BTreeMap<String, Quantity>,
}

/// Metadata and spec of DevMachines that are created from the template.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct DevMachineTemplateResource {
    /// Labels and annotations of the created objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<ObjectMeta>,
    /// The desired state of the object.
    pub spec: DevMachineSpec,
}
