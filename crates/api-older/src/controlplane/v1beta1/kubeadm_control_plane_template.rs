//! KubeadmControlPlaneTemplate: the kind and its parts.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use windlass_api::core::v1beta2::{MachineNamingSpec, MachineTaint, ObjectMeta};
use windlass_api::kind::Column;
use windlass_api::{api_kind, schema};
use windlass_api_kubeadm::controlplane as hub;
use windlass_meta::GoDuration;

use super::{RemediationStrategy, RolloutBefore, RolloutStrategy, convert};
use crate::bootstrap::v1beta1::KubeadmConfigSpec;
use crate::bootstrap::v1beta1::parts::{unless_default, without_hub_bounds};
use crate::convert::{ConversionError, References, Spoke};

api_kind! {
    /// A template for KubeadmControlPlanes of a ClusterClass.
    pub struct KubeadmControlPlaneTemplate {
        /// The desired state of the object.
        #[serde(default)]
        pub spec: KubeadmControlPlaneTemplateSpec,
    }
    group: "controlplane.cluster.x-k8s.io",
    version: "v1beta1",
    plural: "kubeadmcontrolplanetemplates",
    short_names: [],
    provider: "control-plane-kubeadm",
    contract: false,
    required: [],
    status: false,
    scale: None,
    columns: [
        Column::new("Age", "date", ".metadata.creationTimestamp", "Time since creation"),
    ],
}

impl Spoke for KubeadmControlPlaneTemplate {
    type Hub = hub::KubeadmControlPlaneTemplate;

    fn into_hub(self, kept: Option<Self::Hub>) -> Result<Self::Hub, ConversionError> {
        let Self {
            metadata: _,
            spec: KubeadmControlPlaneTemplateSpec { template },
        } = self;
        let KubeadmControlPlaneTemplateResource { metadata, spec } = template;
        let kept = kept.and_then(|kept| kept.spec).and_then(|kept| kept.template.spec);
        Ok(hub::KubeadmControlPlaneTemplate {
            spec: unless_default(hub::KubeadmControlPlaneTemplateSpec {
                template: hub::KubeadmControlPlaneTemplateResource {
                    metadata: unless_default(metadata),
                    spec: unless_default(convert::resource_to_hub(spec, kept.as_ref())),
                },
            }),
            ..Self::Hub::default()
        })
    }

    fn from_hub(hub: Self::Hub, _: &str, _: &dyn References) -> Result<Self, ConversionError> {
        let hub::KubeadmControlPlaneTemplate { metadata: _, spec } = hub;
        let hub::KubeadmControlPlaneTemplateSpec { template } = spec.unwrap_or_default();
        let hub::KubeadmControlPlaneTemplateResource { metadata, spec } = template;
        Ok(Self {
            spec: KubeadmControlPlaneTemplateSpec {
                template: KubeadmControlPlaneTemplateResource {
                    metadata: metadata.unwrap_or_default(),
                    spec: convert::resource_from_hub(spec.unwrap_or_default()),
                },
            },
            ..Self::default()
        })
    }
}

/// The desired state of a KubeadmControlPlaneTemplate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct KubeadmControlPlaneTemplateSpec {
    /// Template of the KubeadmControlPlanes.
    pub template: KubeadmControlPlaneTemplateResource,
}

/// Metadata and spec of KubeadmControlPlanes that are created from the template.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct KubeadmControlPlaneTemplateResource {
    /// Labels and annotations of the created objects.
    #[serde(default)]
    #[schemars(transform = without_hub_bounds)]
    pub metadata: ObjectMeta,
    /// The desired state of the object.
    pub spec: KubeadmControlPlaneTemplateResourceSpec,
}

/// Spec of the created KubeadmControlPlanes. The topology sets replicas, version and infrastructure, so they are not
/// part of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct KubeadmControlPlaneTemplateResourceSpec {
    /// Bootstrap configuration of the Machines. A change starts a rollout, unless the change can be applied in place.
    pub kubeadm_config_spec: KubeadmConfigSpec,
    /// Naming of Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = without_hub_bounds)]
    pub machine_naming_strategy: Option<MachineNamingSpec>,
    /// Template of the Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_template: Option<KubeadmControlPlaneTemplateMachineTemplate>,
    /// Remediation of unhealthy Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remediation_strategy: Option<RemediationStrategy>,
    /// Replaces all Machines that were created before this time, as soon as the time has passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::date_time")]
    pub rollout_after: Option<Time>,
    /// Rollouts that are triggered ahead of an event, such as the expiry of certificates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout_before: Option<RolloutBefore>,
    /// Rollout strategy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = json!({"rollingUpdate": {"maxSurge": 1}, "type": "RollingUpdate"})))]
    pub rollout_strategy: Option<RolloutStrategy>,
}

/// Template of the control plane Machines.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct KubeadmControlPlaneTemplateMachineTemplate {
    /// Labels and annotations of the created objects.
    #[serde(default)]
    #[schemars(transform = without_hub_bounds)]
    pub metadata: ObjectMeta,
    /// How long the deletion of a Node is retried. Zero means without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub node_deletion_timeout: Option<GoDuration>,
    /// How long the drain of a Node may take. Zero means without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub node_drain_timeout: Option<GoDuration>,
    /// How long the detachment of volumes may take. Zero means without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub node_volume_detach_timeout: Option<GoDuration>,
    /// Taints of the Nodes. Only the taints in this list are managed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key", "effect"]))]
    pub taints: Vec<MachineTaint>,
}
