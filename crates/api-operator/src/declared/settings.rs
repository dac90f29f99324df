//! Overrides of the provider's files.
//!
//! Everything is optional. Unset fields keep the values of the provider's files: the documented defaults are those of
//! the providers.

use std::collections::BTreeMap;

use serde_json::Value;
use windlass_meta::GoDuration;

use crate::common::EnvVar;

/// Settings of a manager.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// Debug mode: verbosity 5 and profiling at localhost:6060. Overrides the other fields.
    pub debug: bool,
    /// Address of the profiling endpoint.
    pub profiler_address: Option<String>,
    /// Maximum number of concurrent reconciles per kind.
    pub max_concurrent_reconciles: Option<i64>,
    /// Log verbosity.
    pub verbosity: Option<i64>,
    /// Feature gates.
    pub feature_gates: BTreeMap<String, bool>,
    /// Sync period: maximum time between two reconciles of an object.
    pub sync_period: Option<GoDuration>,
    /// Leader election settings.
    pub leader_election: Option<LeaderElection>,
    /// Namespace of the manager's cache.
    pub cache_namespace: Option<String>,
    /// Timeout of the graceful shutdown. Negative means no limit.
    pub graceful_shutdown: Option<GoDuration>,
    /// Maximum number of concurrent reconciles by `Kind.group`.
    pub group_kind_concurrency: BTreeMap<String, i64>,
    /// Timeout of the initial cache sync.
    pub cache_sync_timeout: Option<GoDuration>,
    /// Whether controllers recover from panics.
    pub recover_panic: Option<bool>,
    /// Address of the metrics endpoint.
    pub metrics_bind_address: Option<String>,
    /// Address of the diagnostics endpoint: metrics, profiling and log levels.
    pub diagnostics_address: Option<String>,
    /// Whether diagnostics are served without TLS and authentication.
    pub insecure_diagnostics: Option<bool>,
    /// Health probe settings.
    pub health_probe_bind_address: Option<String>,
    /// Name of the readiness probe, without a slash.
    pub readiness_endpoint_name: Option<String>,
    /// Name of the liveness probe, without a slash.
    pub liveness_endpoint_name: Option<String>,
    /// Port of the webhook server.
    pub webhook_port: Option<i64>,
    /// Host of the webhook server.
    pub webhook_host: Option<String>,
    /// Directory of the webhook certificate.
    pub webhook_cert_dir: Option<String>,
    /// Additional flags.
    pub additional_args: BTreeMap<String, String>,
}

/// Leader election settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaderElection {
    /// Whether leader election is enabled.
    pub leader_elect: bool,
    /// leaseDuration of leader election: the age at which a lease that was not renewed may be taken over.
    pub lease_duration: Option<GoDuration>,
    /// renewDeadline of leader election: the time in which the leader must renew its lease.
    pub renew_deadline: Option<GoDuration>,
    /// retryPeriod of leader election: the wait between two attempts.
    pub retry_period: Option<GoDuration>,
    /// Resource kind of the leader election lock.
    pub resource_lock: Option<String>,
    /// Name of the leader election lock.
    pub resource_name: Option<String>,
    /// Namespace of the leader election lock.
    pub resource_namespace: Option<String>,
}

/// Settings of a Deployment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeploymentSettings {
    /// Number of Pods.
    pub replicas: Option<i64>,
    /// Node selector of the Pods. Replaces the original.
    pub node_selector: Option<BTreeMap<String, String>>,
    /// Tolerations of the Pods. Replaces the original.
    pub tolerations: Option<Vec<Value>>,
    /// Affinity of the Pods. Replaces the original.
    pub affinity: Option<Value>,
    /// Settings of containers, in order.
    pub containers: Vec<ContainerSettings>,
    /// The ServiceAccount of the Pods.
    pub service_account_name: Option<String>,
    /// Names of image pull Secrets. Replaces the original.
    pub image_pull_secrets: Option<Vec<String>>,
}

/// Settings of a container.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ContainerSettings {
    /// The name of the container.
    pub name: String,
    /// Image override.
    pub image: Option<ImageOverride>,
    /// Flags, with or without dashes, and their values.
    pub args: BTreeMap<String, String>,
    /// Environment variables.
    pub env: Vec<EnvVar>,
    /// Resource requirements. Replaces the original.
    pub resources: Option<Value>,
    /// Command. Replaces the original.
    pub command: Option<Vec<String>>,
}

/// An image override.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImageOverride {
    /// A complete image reference.
    Whole(String),
    /// Parts of the image reference.
    Parts {
        /// Registry and path.
        repository: Option<String>,
        /// Last part of the image name.
        name: Option<String>,
        /// Image tag.
        tag: Option<String>,
    },
}
