//! The kinds.

use windlass_api::kind::Column;

use super::{ProviderSpec, ProviderStatus};
use crate::declared::{Api, Declared, Problems, ProviderObject, StatusParts, from_v1alpha1};
use crate::provider_type::ProviderType;

macro_rules! provider {
    ($doc:literal, $kind:ident, $plural:literal, $type:ident) => {
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
            group: "management.cluster.x-k8s.io",
            version: "v1alpha1",
            plural: $plural,
            short_names: [],
            categories: [],
            provider: "cluster-api-operator",
            contract: false,
            required: [],
            status: true,
            scale: None,
            columns: [
                Column::new("Version", "string", ".spec.version", "Desired version of the provider"),
                Column::new("Contract", "string", ".status.contract", "Contract version of the installed provider"),
                Column::new("Ready", "string", ".status.conditions[?(@.type=='Ready')].status", "Whether the provider is Ready"),
                Column::new("Paused", "boolean", ".spec.paused", "Whether the provider is paused").wide(),
                Column::new("Age", "date", ".metadata.creationTimestamp", "Time since creation"),
            ],
        }

        windlass_api::conditioned!($kind);

        impl ProviderObject for $kind {
            const TYPE: ProviderType = ProviderType::$type;
            const API: Api = Api::V1Alpha1;

            fn declared(&self) -> Result<Declared, Problems> {
                from_v1alpha1(Self::TYPE, &self.metadata, self.spec.as_ref())
            }

            fn status_parts(&self) -> StatusParts<'_> {
                let status = self.status.as_ref();
                StatusParts {
                    contract: status.and_then(|s| s.contract.as_deref()),
                    installed_version: None,
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
    Core
);
provider!(
    "A bootstrap provider, as it should be installed.",
    BootstrapProvider,
    "bootstrapproviders",
    Bootstrap
);
provider!(
    "A control plane provider, as it should be installed.",
    ControlPlaneProvider,
    "controlplaneproviders",
    ControlPlane
);
provider!(
    "An infrastructure provider, as it should be installed.",
    InfrastructureProvider,
    "infrastructureproviders",
    Infrastructure
);
