//! ExtensionConfig: conditions of both generations have a field each.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_api::core::V1Beta1Condition;
use windlass_api::kind::Column;
use windlass_api::runtime as hub;
use windlass_api::runtime::{GroupVersionHook, ServiceReference};
use windlass_api::{api_kind, schema};

use crate::common::V1Beta2Status;
use crate::convert::{ConversionError, References, Spoke};
use crate::parts::unless_default;

api_kind! {
    /// An extension of the Runtime SDK: where it is, and which hooks it serves.
    pub struct ExtensionConfig {
        /// The desired state of the object.
        #[serde(default)]
        pub spec: ExtensionConfigSpec,
        /// The observed state of the object.
        #[serde(default)]
        pub status: ExtensionConfigStatus,
    }
    group: "runtime.cluster.x-k8s.io",
    version: "v1alpha1",
    plural: "extensionconfigs",
    scope: Cluster,
    short_names: ["ext"],
    provider: "cluster-api",
    contract: false,
    required: [],
    status: true,
    scale: None,
    columns: [
        Column::new("Age", "date", ".metadata.creationTimestamp", "Time since creation"),
    ],
}

/// The desired state of an ExtensionConfig.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExtensionConfigSpec {
    /// How the extension is reached.
    #[serde(default)]
    #[schemars(!default)]
    pub client_config: ClientConfig,
    /// The namespaces for whose objects the extension is called. An empty selector selects all, and is the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::label_selector")]
    pub namespace_selector: Option<LabelSelector>,
    /// Settings for all handlers. Those of a ClusterClass have priority.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
}

/// How an extension is reached: by exactly one of `url` and `service`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClientConfig {
    /// PEM-encoded CA certificates that the extension's certificate is checked with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "ca_bundle")]
    pub ca_bundle: Option<ByteString>,
    /// The Service of an extension that runs in the management cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<ServiceReference>,
    /// The address of the extension, with the scheme https. Its path comes before the path of a hook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub url: Option<String>,
}

fn ca_bundle(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "string", "format": "byte", "minLength": 1, "maxLength": 51200})
}

/// The observed state of an ExtensionConfig.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExtensionConfigStatus {
    /// Conditions in the form of v1beta1.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<V1Beta1Condition>,
    /// The handlers of the extension, as it has listed them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 512), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub handlers: Vec<ExtensionHandler>,
    /// Conditions in the form of v1beta2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub v1beta2: Option<V1Beta2Status>,
}

/// A handler of an extension.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExtensionHandler {
    /// What happens when the handler does not answer: Fail, or Ignore.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "failure_policy")]
    pub failure_policy: Option<String>,
    /// Name of the handler, a dot, and the name of the ExtensionConfig.
    #[serde(default)]
    #[schemars(!default, length(min = 1, max = 512))]
    pub name: String,
    /// The hook that it serves.
    #[serde(default)]
    #[schemars(!default)]
    pub request_hook: GroupVersionHook,
    /// How long an answer is waited for, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<i32>,
}

fn failure_policy(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "string", "enum": ["Ignore", "Fail"]})
}

impl Spoke for ExtensionConfig {
    type Hub = hub::ExtensionConfig;
    const CARRIES_HUB: bool = false;

    fn into_hub(self, _: Option<Self::Hub>) -> Result<Self::Hub, ConversionError> {
        let Self {
            metadata: _,
            spec,
            status,
        } = self;
        Ok(hub::ExtensionConfig {
            spec: spec.into_hub(),
            status: status.into_hub(),
            ..Self::Hub::default()
        })
    }

    fn from_hub(hub: Self::Hub, _: &str, _: &dyn References) -> Result<Self, ConversionError> {
        let hub::ExtensionConfig {
            metadata: _,
            spec,
            status,
        } = hub;
        Ok(Self {
            spec: ExtensionConfigSpec::from_hub(spec),
            status: ExtensionConfigStatus::from_hub(status),
            ..Self::default()
        })
    }
}

impl ExtensionConfigSpec {
    fn into_hub(self) -> hub::ExtensionConfigSpec {
        let Self {
            client_config,
            namespace_selector,
            settings,
        } = self;
        let ClientConfig {
            ca_bundle,
            service,
            url,
        } = client_config;
        hub::ExtensionConfigSpec {
            client_config: hub::ClientConfig {
                ca_bundle,
                service: service.map(without_empty_path).and_then(unless_default),
                url: url.and_then(unless_default),
            },
            namespace_selector,
            settings,
        }
    }

    fn from_hub(hub: hub::ExtensionConfigSpec) -> Self {
        let hub::ExtensionConfigSpec {
            client_config,
            namespace_selector,
            settings,
        } = hub;
        let hub::ClientConfig {
            ca_bundle,
            service,
            url,
        } = client_config;
        Self {
            client_config: ClientConfig {
                ca_bundle,
                service: service.map(without_empty_path).and_then(unless_default),
                url: url.and_then(unless_default),
            },
            namespace_selector,
            settings,
        }
    }
}

/// An empty path is the same as none, but the hub's schema refuses it.
fn without_empty_path(service: ServiceReference) -> ServiceReference {
    ServiceReference {
        path: service.path.and_then(unless_default),
        ..service
    }
}

impl ExtensionConfigStatus {
    fn into_hub(self) -> Option<hub::ExtensionConfigStatus> {
        let Self {
            conditions,
            handlers,
            v1beta2,
        } = self;
        let deprecated = hub::ExtensionConfigV1Beta1DeprecatedStatus { conditions };
        unless_default(hub::ExtensionConfigStatus {
            conditions: V1Beta2Status::into_conditions(v1beta2),
            deprecated: unless_default(deprecated)
                .map(|v1beta1| hub::ExtensionConfigDeprecatedStatus { v1beta1: Some(v1beta1) }),
            handlers: handlers.into_iter().map(ExtensionHandler::into_hub).collect(),
        })
    }

    fn from_hub(hub: Option<hub::ExtensionConfigStatus>) -> Self {
        let hub::ExtensionConfigStatus {
            conditions,
            deprecated,
            handlers,
        } = hub.unwrap_or_default();
        let hub::ExtensionConfigDeprecatedStatus { v1beta1 } = deprecated.unwrap_or_default();
        let hub::ExtensionConfigV1Beta1DeprecatedStatus {
            conditions: v1beta1_conditions,
        } = v1beta1.unwrap_or_default();
        Self {
            conditions: v1beta1_conditions,
            handlers: handlers.into_iter().map(ExtensionHandler::from_hub).collect(),
            v1beta2: V1Beta2Status::holding(conditions),
        }
    }
}

impl ExtensionHandler {
    fn into_hub(self) -> hub::ExtensionHandler {
        let Self {
            failure_policy,
            name,
            request_hook,
            timeout_seconds,
        } = self;
        hub::ExtensionHandler {
            failure_policy: failure_policy.and_then(unless_default),
            name,
            request_hook,
            timeout_seconds: timeout_seconds.and_then(unless_default),
        }
    }

    fn from_hub(hub: hub::ExtensionHandler) -> Self {
        let hub::ExtensionHandler {
            failure_policy,
            name,
            request_hook,
            timeout_seconds,
        } = hub;
        Self {
            failure_policy: failure_policy.and_then(unless_default),
            name,
            request_hook,
            timeout_seconds: timeout_seconds.and_then(unless_default),
        }
    }
}
