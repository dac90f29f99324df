//! KubeadmConfigTemplate: the kind and its parts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_api::api_kind;
use windlass_api::core::v1beta2::ObjectMeta;
use windlass_api::kind::Column;
use windlass_api_kubeadm::bootstrap as hub;

use super::parts::{unless_default, without_hub_bounds};
use super::{KubeadmConfigSpec, convert};
use crate::convert::{ConversionError, References, Spoke};

api_kind! {
    /// A template for the KubeadmConfigs of a set of Machines.
    pub struct KubeadmConfigTemplate {
        /// The desired state of the object.
        #[serde(default)]
        pub spec: KubeadmConfigTemplateSpec,
    }
    group: "bootstrap.cluster.x-k8s.io",
    version: "v1beta1",
    plural: "kubeadmconfigtemplates",
    short_names: [],
    provider: "bootstrap-kubeadm",
    contract: false,
    required: [],
    status: false,
    scale: None,
    columns: [
        Column::new("Age", "date", ".metadata.creationTimestamp", "Time since creation"),
    ],
}

impl Spoke for KubeadmConfigTemplate {
    type Hub = hub::KubeadmConfigTemplate;

    fn into_hub(self, kept: Option<Self::Hub>) -> Result<Self::Hub, ConversionError> {
        let Self {
            metadata: _,
            spec: KubeadmConfigTemplateSpec { template },
        } = self;
        let KubeadmConfigTemplateResource { metadata, spec } = template;
        let kept = kept.and_then(|kept| kept.spec).and_then(|kept| kept.template.spec);
        Ok(hub::KubeadmConfigTemplate {
            spec: unless_default(hub::KubeadmConfigTemplateSpec {
                template: hub::KubeadmConfigTemplateResource {
                    metadata: unless_default(metadata),
                    spec: convert::spec_to_hub(spec, kept.as_ref()),
                },
            }),
            ..Self::Hub::default()
        })
    }

    fn from_hub(hub: Self::Hub, _: &str, _: &dyn References) -> Result<Self, ConversionError> {
        let hub::KubeadmConfigTemplate { metadata: _, spec } = hub;
        let hub::KubeadmConfigTemplateSpec { template } = spec.unwrap_or_default();
        let hub::KubeadmConfigTemplateResource { metadata, spec } = template;
        Ok(Self {
            spec: KubeadmConfigTemplateSpec {
                template: KubeadmConfigTemplateResource {
                    metadata: metadata.unwrap_or_default(),
                    spec: convert::spec_from_hub(spec),
                },
            },
            ..Self::default()
        })
    }
}

/// The desired state of a KubeadmConfigTemplate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct KubeadmConfigTemplateSpec {
    /// Template of the KubeadmConfigs.
    pub template: KubeadmConfigTemplateResource,
}

/// Metadata and spec of KubeadmConfigs that are created from the template.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct KubeadmConfigTemplateResource {
    /// Labels and annotations of the created objects.
    #[serde(default)]
    #[schemars(transform = without_hub_bounds)]
    pub metadata: ObjectMeta,
    /// The desired state of the object.
    #[serde(default)]
    pub spec: KubeadmConfigSpec,
}
