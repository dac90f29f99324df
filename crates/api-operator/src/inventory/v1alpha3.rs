//! Version v1alpha3.

use windlass_api::kind::Column;

use crate::provider_type::ProviderType;

windlass_api::api_kind! {
    /// A provider that is installed in this cluster.
    pub struct Provider {
        /// The name of the provider, such as aws.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub provider_name: Option<String>,
        /// The sort of provider, such as InfrastructureProvider.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub r#type: Option<String>,
        /// The version that is installed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub version: Option<String>,
        /// The only namespace that the provider would watch; no longer used.
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
        Column::new("Age", "date", ".metadata.creationTimestamp", "How long ago this was created"),
        Column::new("Type", "string", ".type", "The sort of provider"),
        Column::new("Provider", "string", ".providerName", "The name of the provider"),
        Column::new("Version", "string", ".version", "The version that is installed"),
    ],
}

impl Provider {
    /// What sort of provider it is, where that is known.
    pub fn provider_type(&self) -> Option<ProviderType> {
        ProviderType::from_inventory(self.r#type.as_deref().unwrap_or_default())
    }
}
