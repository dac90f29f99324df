//! A management cluster with the operator's controllers.

use kube::api::{Patch, PatchParams};
use serde_json::json;
use tokio::time::{Instant, sleep};
use windlass_controller_runtime::Metrics;
use windlass_manager::registry::controllers::CONTROLLERS;
use windlass_manager::{Fetcher, Helming, Running, Selection, controllers};
use windlass_testkit::{Deployments, Server};

use super::declare::{self, PATIENCE, POLL};
use super::files::Release;

/// The prefix of the operator's controllers.
const CONTROLLER: &str = "operator/";

/// The running cluster.
pub(crate) struct Stage {
    pub(crate) server: Server,
    pub(crate) client: kube::Client,
    running: Running,
    _deployments: Deployments,
}

impl Stage {
    /// Starts an empty server with all CRDs of Windlass, the operator's controllers, and a simulated Deployment controller.
    pub(crate) async fn start() -> Result<Self, String> {
        // Admission of the test kit is that of a process with all controllers, which has the core and the kubeadm providers built in.
        let server = Server::without_admission().await;
        let selection = Selection::of(&operators()).map_err(|error| error.to_string())?;
        let client = server.client("operator");
        let running = controllers::start(
            client,
            Metrics::new(),
            &selection,
            &Fetcher::default(),
            &Helming::default(),
        );
        Ok(Self {
            client: server.client("xtask"),
            running,
            _deployments: Deployments::run(server.client("kubelet")),
            server,
        })
    }

    /// Stops everything.
    pub(crate) async fn stop(self) {
        self.running.shutdown().await;
        self.server.stop().await;
    }

    /// Makes the operator reconcile a provider again, and waits until it is idle.
    pub(crate) async fn prod(&self, release: &Release) -> Result<(), String> {
        let before = self.looks();
        let touch = json!({"metadata": {"annotations": {"touched": format!("{before}")}}});
        declare::api(&self.client, release)
            .patch(&release.name, &PatchParams::default(), &Patch::Merge(&touch))
            .await
            .map_err(|error| format!("cannot touch {}: {error}", release.label()))?;
        self.rests(release, before).await
    }

    /// Waits until the operator has reconciled once more than before, and is idle.
    async fn rests(&self, release: &Release, before: u64) -> Result<(), String> {
        let started = Instant::now();
        while self.looks() <= before || self.busy() > 0 {
            if started.elapsed() > PATIENCE {
                return Err(format!("{}: the operator never rests", release.label()));
            }
            sleep(POLL).await;
        }
        Ok(())
    }

    fn looks(&self) -> u64 {
        self.metric("controller_runtime_reconcile_total")
    }

    fn busy(&self) -> u64 {
        self.metric("controller_runtime_active_workers") + self.metric("workqueue_depth")
    }

    fn metric(&self, series: &str) -> u64 {
        let text = self.running.kit().metrics().encode();
        let lines = text
            .lines()
            .filter(|line| line.split(['{', ' ']).next() == Some(series));
        let numbers = lines.filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok());
        numbers.sum()
    }
}

/// The names of the operator's controllers.
pub(crate) fn operators() -> Vec<&'static str> {
    let names = CONTROLLERS.iter().map(|info| info.name);
    names.filter(|name| name.starts_with(CONTROLLER)).collect()
}
