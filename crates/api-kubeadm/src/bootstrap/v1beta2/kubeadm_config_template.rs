//! KubeadmConfigTemplate: the kind and its parts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bootstrap::v1beta2::KubeadmConfigSpec;
use windlass_api::core::v1beta2::ObjectMeta;
use windlass_api::kind::Column;

windlass_api::api_kind! {
    /// A template for the KubeadmConfigs of a set of Machines.
    pub struct KubeadmConfigTemplate {
        /// What is wished for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub spec: Option<KubeadmConfigTemplateSpec>,
    }
    group: "bootstrap.cluster.x-k8s.io",
    version: "v1beta2",
    plural: "kubeadmconfigtemplates",
    short_names: [],
    provider: "bootstrap-kubeadm",
    contract: true,
    required: [],
    status: false,
    scale: None,
    columns: [
        Column::new("ClusterClass", "string", r#".metadata.ownerReferences[?(@.kind=="ClusterClass")].name"#, "The ClusterClass that this follows"),
        Column::new("Cluster", "string", r#".metadata.ownerReferences[?(@.kind=="Cluster")].name"#, "The Cluster that this belongs to"),
        Column::new("Age", "date", ".metadata.creationTimestamp", "How long ago this was created"),
    ],
}

/// What a KubeadmConfigTemplate holds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubeadmConfigTemplateSpec {
    /// The KubeadmConfig.
    pub template: KubeadmConfigTemplateResource,
}

/// The KubeadmConfig that is made from the template.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct KubeadmConfigTemplateResource {
    /// Labels and annotations for what is made from this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<ObjectMeta>,
    /// What is wished for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<KubeadmConfigSpec>,
}
