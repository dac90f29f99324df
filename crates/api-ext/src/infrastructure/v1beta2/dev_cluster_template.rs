//! DevClusterTemplate: the kind and its parts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::infrastructure::v1beta2::DevClusterSpec;
use windlass_api::core::v1beta2::ObjectMeta;
use windlass_api::kind::Column;

windlass_api::api_kind! {
    /// A template for DevClusters of a ClusterClass.
    pub struct DevClusterTemplate {
        /// The desired state of the object.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub spec: Option<DevClusterTemplateSpec>,
    }
    group: "infrastructure.cluster.x-k8s.io",
    version: "v1beta2",
    plural: "devclustertemplates",
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

/// The desired state of a DevClusterTemplate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct DevClusterTemplateSpec {
    /// Template of the DevClusters.
    pub template: DevClusterTemplateResource,
}

/// Metadata and spec of DevClusters that are created from the template.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct DevClusterTemplateResource {
    /// Labels and annotations of the created objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<ObjectMeta>,
    /// The desired state of the object.
    pub spec: DevClusterSpec,
}
