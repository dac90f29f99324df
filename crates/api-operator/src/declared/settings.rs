//! What is to be different from what a provider's files say.
//!
//! Everything is optional, and what is not set is left as it is: defaults that an API documents belong to the providers.

use std::collections::BTreeMap;

use serde_json::Value;
use windlass_meta::GoDuration;

use crate::common::EnvVar;

/// Settings of a manager.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// Debugging: verbosity 5, profiles at localhost:6060, whatever the fields here say.
    pub debug: bool,
    /// Where profiles are served.
    pub profiler_address: Option<String>,
    /// How many objects of a kind are reconciled at once.
    pub max_concurrent_reconciles: Option<i64>,
    /// How much is logged.
    pub verbosity: Option<i64>,
    /// Features that are switched on or off.
    pub feature_gates: BTreeMap<String, bool>,
    /// How often everything is reconciled at least.
    pub sync_period: Option<GoDuration>,
    /// How one of several replicas becomes the one that acts.
    pub leader_election: Option<LeaderElection>,
    /// The namespace that the manager would be kept to.
    pub cache_namespace: Option<String>,
    /// How long the manager may take to end; negative is for ever.
    pub graceful_shutdown: Option<GoDuration>,
    /// How many objects are reconciled at once, by `Kind.group`.
    pub group_kind_concurrency: BTreeMap<String, i64>,
    /// How long caches may take to be filled.
    pub cache_sync_timeout: Option<GoDuration>,
    /// Whether a controller that panics goes on.
    pub recover_panic: Option<bool>,
    /// Where metrics alone are served.
    pub metrics_bind_address: Option<String>,
    /// Where metrics, profiles and log levels are served.
    pub diagnostics_address: Option<String>,
    /// Whether they are served to everybody.
    pub insecure_diagnostics: Option<bool>,
    /// Where health probes are answered.
    pub health_probe_bind_address: Option<String>,
    /// The name of the readiness probe, without a slash.
    pub readiness_endpoint_name: Option<String>,
    /// The name of the liveness probe, without a slash.
    pub liveness_endpoint_name: Option<String>,
    /// The port that webhooks are served at.
    pub webhook_port: Option<i64>,
    /// The host that webhooks are served at.
    pub webhook_host: Option<String>,
    /// The folder with the certificate of webhooks.
    pub webhook_cert_dir: Option<String>,
    /// Further flags.
    pub additional_args: BTreeMap<String, String>,
}

/// How one of several replicas becomes the one that acts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaderElection {
    /// Whether there is an election at all.
    pub leader_elect: bool,
    /// How long the others wait before they take an office that was not renewed.
    pub lease_duration: Option<GoDuration>,
    /// How long the leader tries to renew its office.
    pub renew_deadline: Option<GoDuration>,
    /// How long to wait between attempts.
    pub retry_period: Option<GoDuration>,
    /// The kind of the lock.
    pub resource_lock: Option<String>,
    /// The name of the lock.
    pub resource_name: Option<String>,
    /// The namespace of the lock.
    pub resource_namespace: Option<String>,
}

/// Settings of a Deployment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeploymentSettings {
    /// How many Pods.
    pub replicas: Option<i64>,
    /// Labels that the nodes must have; replaces the whole.
    pub node_selector: Option<BTreeMap<String, String>>,
    /// Taints that the Pods tolerate, as in a Pod; replaces the whole.
    pub tolerations: Option<Vec<Value>>,
    /// The affinity, as in a Pod; replaces the whole.
    pub affinity: Option<Value>,
    /// Settings of containers, in order.
    pub containers: Vec<ContainerSettings>,
    /// The ServiceAccount of the Pods.
    pub service_account_name: Option<String>,
    /// Names of Secrets with credentials for registries; replaces the whole.
    pub image_pull_secrets: Option<Vec<String>>,
}

/// Settings of a container.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ContainerSettings {
    /// The name of the container.
    pub name: String,
    /// The image.
    pub image: Option<ImageOverride>,
    /// Flags, with or without dashes, and their values.
    pub args: BTreeMap<String, String>,
    /// Environment variables.
    pub env: Vec<EnvVar>,
    /// Resources, as in a Pod; replaces the whole.
    pub resources: Option<Value>,
    /// The command; replaces the whole.
    pub command: Option<Vec<String>>,
}

/// What another image is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImageOverride {
    /// This one.
    Whole(String),
    /// The same one but for some parts.
    Parts {
        /// The registry and path.
        repository: Option<String>,
        /// The last part of the name.
        name: Option<String>,
        /// The tag.
        tag: Option<String>,
    },
}
