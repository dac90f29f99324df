//! Settings of a provider's manager.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::common::Health;
use crate::{rules, schema};

/// Settings of a provider's manager. What is not said stays as the provider's files have it, so no field has a default here.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::debug_locks()))]
pub struct ManagerSpec {
    /// Where profiles are served, such as localhost:6060; nowhere by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profiler_address: Option<String>,
    /// How many objects of a kind are reconciled at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::positive")]
    pub max_concurrent_reconciles: Option<i64>,
    /// How much is logged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::natural")]
    pub verbosity: Option<i64>,
    /// Logs at level 5 and serves profiles at localhost:6060, whatever the other fields say; they cannot be changed meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub debug: Option<bool>,
    /// Features of the provider that are switched on or off.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub feature_gates: BTreeMap<String, bool>,
    /// How often everything is reconciled at least, such as 10m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::duration")]
    pub sync_period: Option<String>,
    /// How one of several replicas becomes the one that acts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leader_election: Option<LeaderElection>,
    /// The namespace that the manager would be kept to; providers of the operator watch all namespaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_namespace: Option<String>,
    /// How long the manager may take to end; 0s ends at once, a negative time waits for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::signed_duration")]
    pub graceful_shut_down: Option<String>,
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

/// How one of several replicas becomes the one that acts. A duration of 0s says nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::renew_within_lease()))]
pub struct LeaderElection {
    /// Whether there is an election at all.
    pub leader_elect: bool,
    /// How long the others wait before they take an office that was not renewed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::duration")]
    pub lease_duration: Option<String>,
    /// How long the leader tries to renew its office; no longer than leaseDuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::duration")]
    pub renew_deadline: Option<String>,
    /// How long to wait between attempts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::duration")]
    pub retry_period: Option<String>,
    /// The kind of the lock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_lock: Option<String>,
    /// The name of the lock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_name: Option<String>,
    /// The namespace of the lock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_namespace: Option<String>,
}

/// Where metrics are served.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Metrics {
    /// The address; "0" serves none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bind_address: Option<String>,
}

/// Where webhooks are served.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Webhook {
    /// The port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::port")]
    pub port: Option<i64>,
    /// The host name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The folder with tls.crt and tls.key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cert_dir: Option<String>,
}
