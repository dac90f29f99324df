//! KubeadmConfigTemplate: the kind and its parts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bootstrap::v1beta2::KubeadmConfigSpec;
use windlass_api::core::v1beta2::ObjectMeta;
use windlass_api::kind::Column;

windlass_api::api_kind! {
    /// A template for the KubeadmConfigs of a set of Machines.
    pub struct KubeadmConfigTemplate {
        /// The desired state of the object.
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
        Column::new("ClusterClass", "string", r#".metadata.ownerReferences[?(@.kind=="ClusterClass")].name"#, "Name of the ClusterClass"),
        Column::new("Cluster", "string", r#".metadata.ownerReferences[?(@.kind=="Cluster")].name"#, "Name of the Cluster"),
        Column::new("Age", "date", ".metadata.creationTimestamp", "Time since creation"),
    ],
}

/// The desired state of a KubeadmConfigTemplate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct KubeadmConfigTemplateSpec {
    /// Template of the KubeadmConfigs.
    #[serde(skip_serializing_if = "windlass_api::kind::is_unset")]
    pub template: KubeadmConfigTemplateResource,
}

/// Metadata and spec of KubeadmConfigs that are created from the template.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
#[schemars(extend("minProperties" = 1))]
pub struct KubeadmConfigTemplateResource {
    /// Labels and annotations of the created objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<ObjectMeta>,
    /// The desired state of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<KubeadmConfigSpec>,
}
