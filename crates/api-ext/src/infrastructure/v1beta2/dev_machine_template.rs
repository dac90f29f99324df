//! DevMachineTemplate: the kind and its parts.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::infrastructure::v1beta2::DevMachineSpec;
use windlass_api::core::v1beta2::ObjectMeta;
use windlass_api::kind::Column;
use windlass_api::schema;

windlass_api::api_kind! {
    /// A template for the DevMachines of a set of Machines.
    pub struct DevMachineTemplate {
        /// What is wished for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub spec: Option<DevMachineTemplateSpec>,
        /// What was observed.
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
        Column::new("Age", "date", ".metadata.creationTimestamp", "How long ago this was created"),
    ],
}

/// What a DevMachineTemplate holds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DevMachineTemplateSpec {
    /// The DevMachine.
    pub template: DevMachineTemplateResource,
}

/// What machines made from the template offer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DevMachineTemplateStatus {
    /// What a machine offers, by resource; lets an autoscaler start from zero.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::quantities")]
    pub capacity: BTreeMap<String, Quantity>,
}

/// The DevMachine that is made from the template.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DevMachineTemplateResource {
    /// Labels and annotations for what is made from this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<ObjectMeta>,
    /// What is wished for.
    pub spec: DevMachineSpec,
}
