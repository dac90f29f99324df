//! DevClusterTemplate: the kind and its parts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::infrastructure::v1beta2::DevClusterSpec;
use windlass_api::core::v1beta2::ObjectMeta;
use windlass_api::kind::Column;

windlass_api::api_kind! {
    /// A template for the DevClusters that a ClusterClass makes.
    pub struct DevClusterTemplate {
        /// What is wished for.
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
        Column::new("Age", "date", ".metadata.creationTimestamp", "How long ago this was created"),
    ],
}

/// What a DevClusterTemplate holds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DevClusterTemplateSpec {
    /// The DevCluster.
    pub template: DevClusterTemplateResource,
}

/// The DevCluster that is made from the template.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DevClusterTemplateResource {
    /// Labels and annotations for what is made from this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<ObjectMeta>,
    /// What is wished for.
    pub spec: DevClusterSpec,
}
