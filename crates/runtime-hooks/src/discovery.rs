//! What an extension serves.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::hook::{Hook, message, response};

/// The question of the hook Discovery.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DiscoveryRequest {}

message!(DiscoveryRequest);

response!(Discovery, DiscoveryResponse {
    /// The handlers of the extension.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    handlers: Vec<ExtensionHandler>,
});

/// The name of the hook that every extension serves, at a path without the name of a handler.
pub const DISCOVERY: &str = "Discovery";

/// One handler of an extension.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ExtensionHandler {
    /// Its name, unique in the extension: a DNS label.
    pub name: String,
    /// The hook that it serves.
    pub request_hook: GroupVersionHook,
    /// How long Cluster API waits for an answer, 10 seconds if it is not set and 30 at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<i32>,
    /// What Cluster API does when there is no answer: Fail, or Ignore.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_policy: Option<String>,
}

impl ExtensionHandler {
    /// A handler of a hook, with the defaults.
    pub fn of<H: Hook>(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            request_hook: GroupVersionHook {
                api_version: crate::API_VERSION.to_owned(),
                hook: H::NAME.to_owned(),
            },
            ..Self::default()
        }
    }
}

/// A hook of a version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct GroupVersionHook {
    /// Group and version of the hook.
    pub api_version: String,
    /// Name of the hook.
    pub hook: String,
}
