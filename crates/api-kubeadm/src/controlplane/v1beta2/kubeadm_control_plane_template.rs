//! KubeadmControlPlaneTemplate: the kind and its parts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bootstrap::v1beta2::KubeadmConfigSpec;
use crate::controlplane::v1beta2::{KubeadmControlPlaneRemediationSpec, KubeadmControlPlaneRolloutSpec};
use windlass_api::core::v1beta2::{MachineDeletionSpec, MachineNamingSpec, MachineTaint, ObjectMeta};
use windlass_api::kind::Column;

windlass_api::api_kind! {
    /// A template for KubeadmControlPlanes of a ClusterClass.
    pub struct KubeadmControlPlaneTemplate {
        /// The desired state of the object.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub spec: Option<KubeadmControlPlaneTemplateSpec>,
    }
    group: "controlplane.cluster.x-k8s.io",
    version: "v1beta2",
    plural: "kubeadmcontrolplanetemplates",
    short_names: [],
    provider: "control-plane-kubeadm",
    contract: true,
    required: [],
    status: false,
    scale: None,
    columns: [
        Column::new("ClusterClass", "string", r#".metadata.ownerReferences[?(@.kind=="ClusterClass")].name"#, "Name of the ClusterClass"),
        Column::new("Age", "date", ".metadata.creationTimestamp", "Time since creation"),
    ],
}

/// The desired state of a KubeadmControlPlaneTemplate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct KubeadmControlPlaneTemplateSpec {
    /// Template of the KubeadmControlPlanes.
    #[serde(skip_serializing_if = "windlass_api::kind::is_unset")]
    pub template: KubeadmControlPlaneTemplateResource,
}

/// Metadata and spec of KubeadmControlPlanes that are created from the template.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
#[schemars(extend("minProperties" = 1))]
pub struct KubeadmControlPlaneTemplateResource {
    /// Labels and annotations of the created objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<ObjectMeta>,
    /// The desired state of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<KubeadmControlPlaneTemplateResourceSpec>,
}

/// Spec of the created KubeadmControlPlanes. The topology sets replicas, version and infrastructure, so they are not
/// part of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
#[schemars(extend("minProperties" = 1))]
pub struct KubeadmControlPlaneTemplateResourceSpec {
    /// Bootstrap configuration of the Machines. A change starts a rollout, unless the change can be applied in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubeadm_config_spec: Option<KubeadmConfigSpec>,
    /// Naming of Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_naming: Option<MachineNamingSpec>,
    /// Template of the Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_template: Option<KubeadmControlPlaneTemplateMachineTemplate>,
    /// Remediation of unhealthy Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remediation: Option<KubeadmControlPlaneRemediationSpec>,
    /// Rollout settings: when and how Machines are replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<KubeadmControlPlaneRolloutSpec>,
}

/// Template of the control plane Machines.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
#[schemars(extend("minProperties" = 1))]
pub struct KubeadmControlPlaneTemplateMachineTemplate {
    /// Labels and annotations of the created objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<ObjectMeta>,
    /// The desired state of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<KubeadmControlPlaneTemplateMachineTemplateSpec>,
}

/// Fields of the Machine spec.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
#[schemars(extend("minProperties" = 1))]
pub struct KubeadmControlPlaneTemplateMachineTemplateSpec {
    /// Deletion settings of Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion: Option<MachineDeletionSpec>,
    /// Taints of the Nodes. Only the taints in this list are managed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key", "effect"]))]
    pub taints: Vec<MachineTaint>,
}
