//! DevClusterTemplate: its DevClusters have the spec of this version.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_api::api_kind;
use windlass_api::kind::Column;
use windlass_api_ext::infrastructure as hub;

use super::DevClusterSpec;
use crate::common::ObjectMeta;
use crate::convert::{ConversionError, References, Spoke};

api_kind! {
    /// A template for DevClusters of a ClusterClass.
    pub struct DevClusterTemplate {
        /// The desired state of the object.
        #[serde(default)]
        pub spec: DevClusterTemplateSpec,
    }
    group: "infrastructure.cluster.x-k8s.io",
    version: "v1beta1",
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
#[serde(rename_all = "camelCase")]
pub struct DevClusterTemplateSpec {
    /// Template of the DevClusters.
    #[serde(default)]
    #[schemars(!default)]
    pub template: DevClusterTemplateResource,
}

/// Metadata and spec of DevClusters that are created from the template.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DevClusterTemplateResource {
    /// Labels and annotations of the created objects.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// The desired state of the DevClusters.
    #[serde(default)]
    #[schemars(!default)]
    pub spec: DevClusterSpec,
}

impl Spoke for DevClusterTemplate {
    type Hub = hub::DevClusterTemplate;
    const CARRIES_HUB: bool = false;

    fn into_hub(self, _: Option<Self::Hub>) -> Result<Self::Hub, ConversionError> {
        let Self {
            metadata: _,
            spec: DevClusterTemplateSpec { template },
        } = self;
        let DevClusterTemplateResource { metadata, spec } = template;
        let template = hub::DevClusterTemplateResource {
            metadata: metadata.into_hub(),
            spec: spec.into_hub(),
        };
        Ok(hub::DevClusterTemplate {
            spec: Some(hub::DevClusterTemplateSpec { template }),
            ..Self::Hub::default()
        })
    }

    fn from_hub(hub: Self::Hub, _: &str, _: &dyn References) -> Result<Self, ConversionError> {
        let hub::DevClusterTemplate { metadata: _, spec } = hub;
        let hub::DevClusterTemplateSpec { template } = spec.unwrap_or_default();
        let hub::DevClusterTemplateResource { metadata, spec } = template;
        let template = DevClusterTemplateResource {
            metadata: ObjectMeta::from_hub(metadata),
            spec: DevClusterSpec::from_hub(spec),
        };
        Ok(Self {
            spec: DevClusterTemplateSpec { template },
            ..Self::default()
        })
    }
}
