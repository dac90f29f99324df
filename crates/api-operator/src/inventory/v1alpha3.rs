//! Version v1alpha3.

use windlass_api::kind::Column;

use crate::provider_type::ProviderType;

windlass_api::api_kind! {
    /// A provider that is installed in this cluster.
    pub struct Provider {
        /// Name of the provider, for example aws.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub provider_name: Option<String>,
        /// Type of the provider, for example InfrastructureProvider.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub r#type: Option<String>,
        /// Installed version.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub version: Option<String>,
        /// Namespace that the provider watches. No longer used.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub watched_namespace: Option<String>,
    }
    group: "clusterctl.cluster.x-k8s.io",
    version: "v1alpha3",
    plural: "providers",
    short_names: [],
    provider: "",
    labels: [("clusterctl.cluster.x-k8s.io/core", "inventory")],
    contract: false,
    required: [],
    status: false,
    scale: None,
    columns: [
        Column::new("Age", "date", ".metadata.creationTimestamp", "Time since creation"),
        Column::new("Type", "string", ".type", "Type of the provider"),
        Column::new("Provider", "string", ".providerName", "Name of the provider"),
        Column::new("Version", "string", ".version", "Installed version of the provider"),
    ],
}

impl Provider {
    /// The type of the provider, if it is a known one.
    pub fn provider_type(&self) -> Option<ProviderType> {
        ProviderType::from_inventory(self.r#type.as_deref().unwrap_or_default())
    }
}
