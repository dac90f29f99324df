//! DevMachineTemplate: its DevMachines have the spec of this version, and it has no status.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_api::api_kind;
use windlass_api::kind::Column;
use windlass_api_ext::infrastructure as hub;

use super::DevMachineSpec;
use crate::common::ObjectMeta;
use crate::convert::{ConversionError, References, Spoke};

api_kind! {
    /// A template for the DevMachines of a set of Machines.
    pub struct DevMachineTemplate {
        /// The desired state of the object.
        #[serde(default)]
        pub spec: DevMachineTemplateSpec,
    }
    group: "infrastructure.cluster.x-k8s.io",
    version: "v1beta1",
    plural: "devmachinetemplates",
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

/// The desired state of a DevMachineTemplate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DevMachineTemplateSpec {
    /// Template of the DevMachines.
    #[serde(default)]
    #[schemars(!default)]
    pub template: DevMachineTemplateResource,
}

/// Metadata and spec of DevMachines that are created from the template.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DevMachineTemplateResource {
    /// Labels and annotations of the created objects.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// The desired state of the DevMachines.
    #[serde(default)]
    #[schemars(!default)]
    pub spec: DevMachineSpec,
}

impl Spoke for DevMachineTemplate {
    type Hub = hub::DevMachineTemplate;

    fn into_hub(self, kept: Option<Self::Hub>) -> Result<Self::Hub, ConversionError> {
        let Self {
            metadata: _,
            spec: DevMachineTemplateSpec { template },
        } = self;
        let DevMachineTemplateResource { metadata, spec } = template;
        let template = hub::DevMachineTemplateResource {
            metadata: metadata.into_hub(),
            spec: spec.into_hub(),
        };
        Ok(hub::DevMachineTemplate {
            spec: Some(hub::DevMachineTemplateSpec { template }),
            // An empty status is written, as v1.14 does.
            status: Some(kept.and_then(|kept| kept.status).unwrap_or_default()),
            ..Self::Hub::default()
        })
    }

    fn from_hub(hub: Self::Hub, _: &str, _: &dyn References) -> Result<Self, ConversionError> {
        let hub::DevMachineTemplate {
            metadata: _,
            spec,
            status: _,
        } = hub;
        let hub::DevMachineTemplateSpec { template } = spec.unwrap_or_default();
        let hub::DevMachineTemplateResource { metadata, spec } = template;
        let template = DevMachineTemplateResource {
            metadata: ObjectMeta::from_hub(metadata),
            spec: DevMachineSpec::from_hub(spec),
        };
        Ok(Self {
            spec: DevMachineTemplateSpec { template },
            ..Self::default()
        })
    }

    fn carried(hub: &mut Self::Hub) {
        let hub::DevMachineTemplateResource { metadata, spec } = hub.spec.take().unwrap_or_default().template;
        let template = hub::DevMachineTemplateResource {
            metadata,
            spec: DevMachineSpec::normal(spec),
        };
        hub.spec = Some(hub::DevMachineTemplateSpec { template });
        hub.status.get_or_insert_default();
    }
}
