//! The management cluster in one process: the embedded server, and all controllers joined to it without a socket.

use std::time::Duration;

use tokio::net::TcpListener;
use windlass_bootstrap_kubeadm::TokenTtl;
use windlass_cluster_cache::{EtcdTimeouts, GracePeriods, Policy};
use windlass_controller_runtime::{Metrics, Runtime, Scope};
use windlass_core_controllers::crd_migration::Phases;
use windlass_core_controllers::machine::NodeSync;
use windlass_core_controllers::machine_set::PreflightChecks;
use windlass_runtime_client::ClientIdentity;

use crate::controllers::{self, Running, Selection, Surroundings};
use crate::others::{Decision, Own};
use crate::{
    Concurrency, DiagnosticsOptions, Embedded, EmbeddedOptions, FeatureGates, Fetcher, Helming, ManagerError,
    diagnostics,
};

/// How long running reconciles may take to end: longer than Helm, which leaves a release pending when it is killed.
const GRACE: Duration = Duration::from_secs(10).saturating_add(windlass_helm::GRACE);
/// The user agent of the controllers.
pub const CONTROLLERS_AGENT: &str = "windlass-manager";

/// A running management cluster.
#[derive(Debug)]
pub struct Up {
    embedded: Embedded,
    running: Running,
}

/// The listeners of a process beside its API server.
#[derive(Debug, Default)]
pub struct Listeners {
    /// `/healthz` and `/readyz`, for probes.
    pub health: Option<TcpListener>,
    /// Metrics.
    pub diagnostics: Option<DiagnosticsOptions>,
}

/// What the controllers work on, and how.
#[derive(Debug, Default)]
pub struct Reconciling {
    /// Which addresses API servers of workload clusters may have, and what they may cost.
    pub workloads: Policy,
    /// Which objects are read and reconciled.
    pub scope: Scope,
    /// What goes from Machines to their Nodes beside what always does.
    pub nodes: NodeSync,
    /// The checks before MachineSets make or replace Machines.
    pub preflight: PreflightChecks,
    /// The feature gates.
    pub gates: FeatureGates,
    /// How many objects are reconciled at a time.
    pub concurrency: Concurrency,
    /// When outages of workload clusters are reported.
    pub grace: GracePeriods,
    /// How long bootstrap tokens live.
    pub tokens: TokenTtl,
    /// How long etcd members of workload clusters may take.
    pub etcd: EtcdTimeouts,
    /// What is migrated of stored objects.
    pub migration: Phases,
    /// With what the controllers identify themselves to extensions of the Runtime SDK, if with anything.
    pub identity: Option<ClientIdentity>,
    /// After which time every object is reconciled again, if at all.
    pub sync_period: Option<Duration>,
}

/// Starts one. When this returns, its server accepts requests.
pub async fn start(
    options: EmbeddedOptions,
    selection: &Selection,
    fetcher: &Fetcher,
    helming: &Helming,
    listeners: Listeners,
    reconciling: Reconciling,
) -> Result<Up, ManagerError> {
    let helming = helming.clone().or_home(|| options.data_dir.join("helm"));
    let embedded = Embedded::start(options).await?;
    let metrics = Metrics::new();
    let client = embedded.client(CONTROLLERS_AGENT, &metrics);
    let of_diagnostics = embedded.client("windlass-diagnostics", &metrics);
    let kit = Runtime::builder(client)
        .metrics(metrics.clone())
        .workloads(reconciling.workloads)
        .scope(reconciling.scope)
        .sync_period(reconciling.sync_period)
        .build();
    let surroundings = Surroundings {
        nodes: reconciling.nodes,
        preflight: reconciling.preflight,
        gates: reconciling.gates,
        concurrency: reconciling.concurrency,
        grace: reconciling.grace,
        tokens: reconciling.tokens,
        etcd: reconciling.etcd,
        migration: reconciling.migration,
        identity: reconciling.identity,
        own_pod: None,
    };
    let running = controllers::start_on(kit, selection, fetcher, &helming, surroundings);
    // Nothing of another program runs here, but what is left of one may stand in the way.
    let left = Decision::make(
        &embedded.client("windlass", &metrics),
        selection.clone(),
        &Own::default(),
        true,
    )
    .await?;
    left.tell(&running.kit().cx());
    let store = embedded.store().clone();
    running
        .kit()
        .check(move || store.trouble().map_or(Ok(()), |error| Err(error.to_string())));
    if let Some(listener) = listeners.health {
        running.serve(listener);
    }
    if let Some(options) = listeners.diagnostics {
        diagnostics::start(options, &of_diagnostics, &metrics, running.kit().tasks())?;
    }
    Ok(Up { embedded, running })
}

impl Up {
    /// The server.
    pub fn embedded(&self) -> &Embedded {
        &self.embedded
    }

    /// The controllers.
    pub fn running(&self) -> &Running {
        &self.running
    }

    /// Lets running reconciles end, stops everything, and releases the data folder.
    pub async fn shutdown(&self) {
        self.running.shutdown_within(GRACE).await;
        self.embedded.shutdown().await;
    }
}
