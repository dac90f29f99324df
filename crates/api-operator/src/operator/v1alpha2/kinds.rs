//! The kinds.

use windlass_api::kind::Column;

use super::{ProviderSpec, ProviderStatus};
use crate::declared::{Api, Declared, Problems, ProviderObject, StatusParts, from_v1alpha2};
use crate::provider_type::ProviderType;

macro_rules! provider {
    ($doc:literal, $kind:ident, $plural:literal, $short:literal, $type:ident) => {
        windlass_api::api_kind! {
            #[doc = $doc]
            pub struct $kind {
                /// The desired state of the object.
                #[serde(default, skip_serializing_if = "Option::is_none")]
                pub spec: Option<ProviderSpec>,
                /// The observed state of the object.
                #[serde(default, skip_serializing_if = "Option::is_none")]
                pub status: Option<ProviderStatus>,
            }
            group: "operator.cluster.x-k8s.io",
            version: "v1alpha2",
            plural: $plural,
            short_names: [$short],
            categories: [],
            provider: "cluster-api-operator",
            contract: false,
            required: [],
            status: true,
            scale: None,
            columns: [
                Column::new("InstalledVersion", "string", ".status.installedVersion", ""),
                Column::new("Ready", "string", ".status.conditions[?(@.type=='Ready')].status", ""),
            ],
        }

        windlass_api::conditioned!($kind);

        impl ProviderObject for $kind {
            const TYPE: ProviderType = ProviderType::$type;
            const API: Api = Api::V1Alpha2;

            fn declared(&self) -> Result<Declared, Problems> {
                from_v1alpha2(Self::TYPE, &self.metadata, self.spec.as_ref())
            }

            fn status_parts(&self) -> StatusParts<'_> {
                let status = self.status.as_ref();
                StatusParts {
                    contract: status.and_then(|s| s.contract.as_deref()),
                    installed_version: status.and_then(|s| s.installed_version.as_deref()),
                    observed_generation: status.and_then(|s| s.observed_generation),
                }
            }
        }
    };
}

provider!(
    "Cluster API itself, as it should be installed.",
    CoreProvider,
    "coreproviders",
    "cacp",
    Core
);
provider!(
    "A bootstrap provider, as it should be installed.",
    BootstrapProvider,
    "bootstrapproviders",
    "cabp",
    Bootstrap
);
provider!(
    "A control plane provider, as it should be installed.",
    ControlPlaneProvider,
    "controlplaneproviders",
    "cacpp",
    ControlPlane
);
provider!(
    "An infrastructure provider, as it should be installed.",
    InfrastructureProvider,
    "infrastructureproviders",
    "caip",
    Infrastructure
);
provider!(
    "An IPAM provider, as it should be installed.",
    IPAMProvider,
    "ipamproviders",
    "caipamp",
    Ipam
);
provider!(
    "A runtime extension, as it should be installed.",
    RuntimeExtensionProvider,
    "runtimeextensionproviders",
    "carep",
    RuntimeExtension
);
provider!(
    "An add-on provider, as it should be installed.",
    AddonProvider,
    "addonproviders",
    "caap",
    Addon
);
