//! What the declarations of both APIs share.
//!
//! What is only carried into Pods (affinity, tolerations, resources, sources of variables) is kept as JSON: the server has
//! checked it against [`schema`](crate::schema), and nothing of it can get lost on the way.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::schema;

/// An environment variable of a container.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnvVar {
    /// The name of the variable.
    pub name: String,
    /// The value of the variable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Where the value comes from, instead of a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::env_var_source")]
    pub value_from: Option<Value>,
}

/// Where a manager answers health probes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Health {
    /// The address that probes are answered at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health_probe_bind_address: Option<String>,
    /// The name of the readiness probe; readyz where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub readiness_endpoint_name: Option<String>,
    /// The name of the liveness probe; healthz where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub liveness_endpoint_name: Option<String>,
}
