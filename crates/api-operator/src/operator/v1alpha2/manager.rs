//! Settings of a provider's manager.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::common::Health;
use crate::schema;

/// Settings of the provider's manager. Unset fields keep the values of the provider's files.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManagerSpec {
    /// Address of the profiling endpoint, for example localhost:6060. Disabled when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profiler_address: Option<String>,
    /// Maximum number of concurrent reconciles per kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::positive")]
    pub max_concurrent_reconciles: Option<i64>,
    /// Log verbosity. 1 keeps the value of the provider's files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::verbosity")]
    pub verbosity: Option<i64>,
    /// Feature gates of the provider.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub feature_gates: BTreeMap<String, bool>,
    /// Additional command-line flags and their values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub additional_args: BTreeMap<String, String>,
    /// Sync period: maximum time between two reconciles of an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync_period: Option<String>,
    /// Leader election settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leader_election: Option<LeaderElection>,
    /// Namespace of the manager's cache. Providers that the operator installs watch all namespaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_namespace: Option<String>,
    /// Timeout of the graceful shutdown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graceful_shut_down: Option<String>,
    /// Settings of controllers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<Controller>,
    /// Metrics endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<Metrics>,
    /// Health probe settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<Health>,
    /// Webhook server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook: Option<Webhook>,
}

/// Leader election settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LeaderElection {
    /// Whether leader election is enabled.
    pub leader_elect: bool,
    /// leaseDuration of leader election: the age at which a lease that was not renewed may be taken over. 0s means
    /// unset.
    pub lease_duration: String,
    /// renewDeadline of leader election: the time in which the leader must renew its lease. 0s means unset.
    pub renew_deadline: String,
    /// Resource kind of the leader election lock. Empty means unset.
    pub resource_lock: String,
    /// Name of the leader election lock. Empty means unset.
    pub resource_name: String,
    /// Namespace of the leader election lock. Empty means unset.
    pub resource_namespace: String,
    /// retryPeriod of leader election: the wait between two attempts. 0s means unset.
    pub retry_period: String,
}

/// Settings of controllers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Controller {
    /// Maximum number of concurrent reconciles by Kind.group.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::integers")]
    pub group_kind_concurrency: BTreeMap<String, i64>,
    /// Timeout of the initial cache sync in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::int64")]
    pub cache_sync_timeout: Option<i64>,
    /// Whether controllers recover from panics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recover_panic: Option<bool>,
}

/// Metrics endpoint.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Metrics {
    /// Address of the metrics endpoint. Use diagnosticsAddress instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bind_address: Option<String>,
    /// Address of the diagnostics endpoint: metrics, profiling and log levels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diagnostics_address: Option<String>,
    /// Whether diagnostics are served without TLS, authentication and authorization.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub insecure_diagnostics: Option<bool>,
}

/// Webhook server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Webhook {
    /// Port number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::integer")]
    pub port: Option<i64>,
    /// Host name of the webhook server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Directory of tls.crt and tls.key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cert_dir: Option<String>,
}
