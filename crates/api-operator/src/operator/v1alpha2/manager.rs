//! Settings of a provider's manager.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::common::Health;
use crate::schema;

/// Settings of a provider's manager. What is not said stays as the provider's files have it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManagerSpec {
    /// Where profiles are served, such as localhost:6060; nowhere by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profiler_address: Option<String>,
    /// How many objects of a kind are reconciled at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::positive")]
    pub max_concurrent_reconciles: Option<i64>,
    /// How much is logged; 1 means as the provider's files have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::verbosity")]
    pub verbosity: Option<i64>,
    /// Features of the provider that are switched on or off.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub feature_gates: BTreeMap<String, bool>,
    /// Further flags and their values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub additional_args: BTreeMap<String, String>,
    /// How often everything is reconciled at least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync_period: Option<String>,
    /// How one of several replicas becomes the one that acts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leader_election: Option<LeaderElection>,
    /// The namespace that the manager would be kept to; providers of the operator watch all namespaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_namespace: Option<String>,
    /// How long the manager may take to end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graceful_shut_down: Option<String>,
    /// Settings of controllers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<Controller>,
    /// Where metrics are served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<Metrics>,
    /// Where health probes are answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<Health>,
    /// Where webhooks are served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook: Option<Webhook>,
}

/// How one of several replicas becomes the one that acts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LeaderElection {
    /// Whether there is an election at all.
    pub leader_elect: bool,
    /// How long the others wait before they take an office that was not renewed; 0s says nothing.
    pub lease_duration: String,
    /// How long the leader tries to renew its office; 0s says nothing.
    pub renew_deadline: String,
    /// The kind of the lock; empty says nothing.
    pub resource_lock: String,
    /// The name of the lock; empty says nothing.
    pub resource_name: String,
    /// The namespace of the lock; empty says nothing.
    pub resource_namespace: String,
    /// How long to wait between attempts; 0s says nothing.
    pub retry_period: String,
}

/// Settings of controllers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Controller {
    /// How many objects are reconciled at once, by Kind.group.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::integers")]
    pub group_kind_concurrency: BTreeMap<String, i64>,
    /// How long caches may take to be filled, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::int64")]
    pub cache_sync_timeout: Option<i64>,
    /// Whether a controller that panics goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recover_panic: Option<bool>,
}

/// Where metrics are served.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Metrics {
    /// The address for metrics alone. Use diagnosticsAddress instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bind_address: Option<String>,
    /// The address for metrics, profiles and log levels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diagnostics_address: Option<String>,
    /// Whether they are served without TLS and without asking who comes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub insecure_diagnostics: Option<bool>,
}

/// Where webhooks are served.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Webhook {
    /// The port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::integer")]
    pub port: Option<i64>,
    /// The host name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The folder with tls.crt and tls.key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cert_dir: Option<String>,
}
