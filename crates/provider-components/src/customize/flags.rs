//! The table of settings and flags of a manager.
//!
//! The managers of providers have different authors. If the container already has a flag under another name, that name is used. A
//! flag is passed only for a setting that is set.

use windlass_api_operator::Settings;

/// Log verbosity and profiling address in debug mode.
pub(crate) const DEBUG_VERBOSITY: i64 = 5;
pub(crate) const DEBUG_PROFILER: &str = "localhost:6060";

/// One row of the table.
pub struct Flag {
    /// The field below `spec.manager`.
    pub field: &'static str,
    /// The flag, without dashes.
    pub name: &'static str,
    /// Alternative names: the first one in the container is used, and the others are removed.
    pub also: &'static [&'static str],
    /// The flag of another setting, used if the container has it and none of the names.
    pub otherwise: Option<&'static str>,
    /// The desired value of the flag.
    pub(crate) value: fn(&Settings) -> Option<Wanted>,
}

/// The desired value of a flag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// This value, in any case.
    Always(String),
    /// This value, if the container has the flag: managers that do not know it would not start.
    WhereKnown(String),
}

impl Wanted {
    pub(crate) fn value(&self) -> &str {
        match self {
            Self::Always(value) | Self::WhereKnown(value) => value,
        }
    }
}

fn always(value: Option<impl ToString>) -> Option<Wanted> {
    value.map(|value| Wanted::Always(value.to_string()))
}

const fn flag(field: &'static str, name: &'static str, value: fn(&Settings) -> Option<Wanted>) -> Flag {
    Flag {
        field,
        name,
        also: &[],
        otherwise: None,
        value,
    }
}

const fn named(mut flag: Flag, also: &'static [&'static str]) -> Flag {
    flag.also = also;
    flag
}

const fn or(mut flag: Flag, otherwise: &'static str) -> Flag {
    flag.otherwise = Some(otherwise);
    flag
}

/// A setting of leader election. Without leader election, none of its flags is passed.
macro_rules! election {
    ($field:ident) => {
        |s| {
            always(
                s.leader_election
                    .as_ref()
                    .filter(|e| e.leader_elect)
                    .and_then(|e| e.$field.as_ref()),
            )
        }
    };
}

/// The field whose flag is merged with the value in the components, as in the current operator's API.
pub(crate) const FEATURE_GATES: &str = "featureGates";
/// The flag that limits a manager to one namespace. Providers watch all namespaces, so it is never passed.
pub const NAMESPACE: &str = "namespace";

/// All settings with a flag. In addition, `controller.groupKindConcurrency` has one flag per kind ([`concurrency_flag`]), and
/// `additionalArgs` names its flags itself.
pub const FLAGS: &[Flag] = &[
    flag("profilerAddress", "profiler-address", |s| {
        always(s.profiler_address.as_ref())
    }),
    flag("maxConcurrentReconciles", "max-concurrent-reconciles", |s| {
        always(s.max_concurrent_reconciles)
    }),
    named(flag("verbosity", "v", |s| always(s.verbosity)), &["verbosity"]),
    flag(FEATURE_GATES, "feature-gates", |s| {
        let gates = s.feature_gates.iter().map(|(name, on)| format!("{name}={on}"));
        always(Some(gates.collect::<Vec<_>>().join(",")).filter(|gates| !gates.is_empty()))
    }),
    flag("syncPeriod", "sync-period", |s| always(s.sync_period)),
    named(
        flag("leaderElection.leaderElect", "leader-elect", |s| {
            always(s.leader_election.as_ref().map(|e| e.leader_elect))
        }),
        &["enable-leader-election"],
    ),
    flag(
        "leaderElection.leaseDuration",
        "leader-elect-lease-duration",
        election!(lease_duration),
    ),
    flag(
        "leaderElection.renewDeadline",
        "leader-elect-renew-deadline",
        election!(renew_deadline),
    ),
    flag(
        "leaderElection.retryPeriod",
        "leader-elect-retry-period",
        election!(retry_period),
    ),
    flag(
        "leaderElection.resourceLock",
        "leader-elect-resource-lock",
        election!(resource_lock),
    ),
    named(
        flag(
            "leaderElection.resourceName",
            "leader-election-id",
            election!(resource_name),
        ),
        &["leader-elect-resource-name"],
    ),
    named(
        flag(
            "leaderElection.resourceNamespace",
            "leader-election-namespace",
            election!(resource_namespace),
        ),
        &["leader-elect-resource-namespace"],
    ),
    or(
        named(
            flag("metrics.bindAddress", "metrics-bind-addr", |s| {
                always(s.metrics_bind_address.as_ref())
            }),
            &["metrics-bind-address", "metrics-addr"],
        ),
        "diagnostics-address",
    ),
    flag("metrics.diagnosticsAddress", "diagnostics-address", |s| {
        always(s.diagnostics_address.as_ref())
    }),
    flag("metrics.insecureDiagnostics", "insecure-diagnostics", |s| {
        s.insecure_diagnostics.map(|yes| {
            if yes {
                Wanted::Always(yes.to_string())
            } else {
                // Managers without the flag behave as if it were disabled.
                Wanted::WhereKnown(yes.to_string())
            }
        })
    }),
    named(
        flag("health.healthProbeBindAddress", "health-addr", |s| {
            always(s.health_probe_bind_address.as_ref())
        }),
        &["health-probe-bind-address", "healthz-addr"],
    ),
    flag("webhook.port", "webhook-port", |s| always(s.webhook_port)),
    flag("webhook.host", "webhook-host", |s| always(s.webhook_host.as_ref())),
    named(
        flag("webhook.certDir", "webhook-cert-dir", |s| {
            always(s.webhook_cert_dir.as_ref())
        }),
        &["webhook-cert-path"],
    ),
    // No current provider has a flag for it, so it is passed only if the container has one.
    named(
        flag("gracefulShutDown", "graceful-shutdown-timeout", |s| {
            s.graceful_shutdown.map(|time| Wanted::WhereKnown(time.to_string()))
        }),
        &["graceful-shutdown"],
    ),
];

impl Flag {
    /// All names of the flag, the usual one first.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.also.iter().copied())
    }
}

/// The flag for the concurrency of a kind: `AWSCluster.infrastructure.cluster.x-k8s.io` is `awscluster-concurrency`.
pub fn concurrency_flag(kind: &str) -> String {
    let kind = kind.split('.').next().unwrap_or(kind);
    format!("{}-concurrency", kind.to_lowercase())
}

/// The effective settings: debug mode overrides the other fields, which keep their declared values.
pub(crate) fn effective(settings: &Settings) -> Settings {
    let mut out = settings.clone();
    if settings.debug {
        out.verbosity = Some(DEBUG_VERBOSITY);
        out.profiler_address = Some(DEBUG_PROFILER.to_owned());
    }
    out
}
