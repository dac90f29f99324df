//! ExtensionConfig: the kind and its parts.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Condition;
use crate::core::V1Beta1Condition;
use crate::kind::Column;
use crate::schema;

crate::api_kind! {
    /// An extension of the Runtime SDK: where it is, and which hooks it serves.
    pub struct ExtensionConfig {
        /// The desired state of the object.
        pub spec: ExtensionConfigSpec,
        /// The observed state of the object.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub status: Option<ExtensionConfigStatus>,
    }
    group: "runtime.cluster.x-k8s.io",
    version: "v1beta2",
    plural: "extensionconfigs",
    scope: Cluster,
    short_names: ["ext"],
    provider: "cluster-api",
    contract: false,
    required: ["spec"],
    status: true,
    scale: None,
    columns: [
        Column::new("Paused", "string", ".status.conditions[?(@.type==\"Paused\")].status", "Whether reconciliation is paused").wide(),
        Column::new("Discovered", "string", ".status.conditions[?(@.type==\"Discovered\")].status", "Whether the extension has said which hooks it serves"),
        Column::new("Age", "date", ".metadata.creationTimestamp", "Time since creation"),
    ],
}

crate::conditioned!(ExtensionConfig);

/// The desired state of an ExtensionConfig.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct ExtensionConfigSpec {
    /// How the extension is reached.
    #[serde(skip_serializing_if = "crate::kind::is_unset")]
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
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
#[schemars(extend("minProperties" = 1))]
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

/// Reference to the Service of an extension.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct ServiceReference {
    /// Name of the Service.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// Namespace of the Service.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 63))]
    pub namespace: String,
    /// A path that comes before the path of a hook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub path: Option<String>,
    /// Port of the Service. The default is 443.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<i32>,
}

/// The observed state of an ExtensionConfig.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
#[schemars(extend("minProperties" = 1))]
pub struct ExtensionConfigStatus {
    /// Conditions of the object, one per type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// Fields that are kept for older API versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<ExtensionConfigDeprecatedStatus>,
    /// The handlers of the extension, as it has listed them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 512), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub handlers: Vec<ExtensionHandler>,
}

/// A handler of an extension.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct ExtensionHandler {
    /// What happens when the handler does not answer: Fail, or Ignore.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "failure_policy")]
    pub failure_policy: Option<String>,
    /// Name of the handler, a dot, and the name of the ExtensionConfig.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 512))]
    pub name: String,
    /// The hook that it serves.
    #[serde(skip_serializing_if = "crate::kind::is_unset")]
    pub request_hook: GroupVersionHook,
    /// How long an answer is waited for, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub timeout_seconds: Option<i32>,
}

fn failure_policy(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "string", "enum": ["Ignore", "Fail"]})
}

/// A hook of a version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct GroupVersionHook {
    /// Group and version of the hook.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 512))]
    pub api_version: String,
    /// Name of the hook.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 256))]
    pub hook: String,
}

/// Status fields of older API versions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct ExtensionConfigDeprecatedStatus {
    /// Status fields of v1beta1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub v1beta1: Option<ExtensionConfigV1Beta1DeprecatedStatus>,
}

/// Status fields of v1beta1. Controllers still set them for older clients.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct ExtensionConfigV1Beta1DeprecatedStatus {
    /// Conditions of the object, one per type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<V1Beta1Condition>,
}

crate::parts!(ExtensionConfigStatus);
