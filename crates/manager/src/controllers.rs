//! Starts controllers against any API server.

use crate::registry::built_in;
use crate::registry::controllers::{CONTROLLERS, ControllerInfo, Ports};
use crate::registry::kinds::{self, KindEntry};
use std::collections::BTreeSet;
use std::time::Duration;

use tokio::net::TcpListener;
use windlass_bootstrap_kubeadm::TokenTtl;
use windlass_cluster_cache::{EtcdTimeouts, GracePeriods, OwnPod};
use windlass_controller_runtime::{Cx, Metrics, Panicked, Runtime, Scope};
use windlass_core_controllers::crd_migration::Phases;
use windlass_core_controllers::machine::NodeSync;
use windlass_core_controllers::machine_set::PreflightChecks;
use windlass_operator::BuiltIns;
use windlass_pki::{KeyAlgorithm, KeyPool};
use windlass_runtime_client::ClientIdentity;

use crate::{Concurrency, FeatureGates, Fetcher, Helming, ManagerError};

/// Number of pregenerated keys: those of one new cluster.
const STOCK: usize = 5;

/// The controller that needs Helm.
const CHARTS: &str = "helmreleaseproxy";

/// The selected controllers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection(Option<Vec<String>>);

impl Selection {
    /// All of them.
    pub fn all() -> Self {
        Self(None)
    }

    /// The named controllers; an error for an unknown name.
    pub fn of<S: AsRef<str>>(names: &[S]) -> Result<Self, ManagerError> {
        let known: Vec<&'static str> = CONTROLLERS.iter().map(|info| info.name).collect();
        let mut chosen = Vec::new();
        for name in names {
            let name = name.as_ref().trim();
            if !known.contains(&name) {
                return Err(ManagerError::UnknownController {
                    name: name.to_owned(),
                    known,
                });
            }
            chosen.push(name.to_owned());
        }
        Ok(Self(Some(chosen)))
    }

    /// The same within a scope. The provider operator works in all namespaces, as providers and what they share are in several: beside
    /// a namespace it is left out, and an error if it is named.
    pub fn within(self, scope: &Scope) -> Result<Self, ManagerError> {
        if scope.namespace.is_none() {
            return Ok(self);
        }
        let (of_all, others): (Vec<&ControllerInfo>, Vec<&ControllerInfo>) =
            CONTROLLERS.iter().partition(|info| info.is_of_all_namespaces());
        let Some(named) = &self.0 else {
            return Ok(Self(Some(others.iter().map(|info| info.name.to_owned()).collect())));
        };
        match of_all.iter().find(|info| named.iter().any(|name| name == info.name)) {
            Some(info) => Err(ManagerError::Confined { name: info.name }),
            None => Ok(self),
        }
    }

    /// The same without the provider operator.
    #[must_use]
    pub fn without_operator(self) -> Self {
        self.without(ControllerInfo::is_of_operator)
    }

    /// The same without these controllers.
    pub(crate) fn without(self, leaves_out: impl Fn(&ControllerInfo) -> bool) -> Self {
        let left = CONTROLLERS
            .iter()
            .filter(|info| self.has(info.name) && !leaves_out(info));
        Self(Some(left.map(|info| info.name.to_owned()).collect()))
    }

    /// Whether no controller is selected.
    pub fn is_empty(&self) -> bool {
        self.0.as_ref().is_some_and(Vec::is_empty)
    }

    /// The kinds of the selected controllers: those that they read or write, and no others.
    pub fn kinds(&self) -> Vec<&'static KindEntry> {
        let chosen = CONTROLLERS.iter().filter(|info| self.has(info.name));
        let names: BTreeSet<&str> = chosen.flat_map(|info| info.kinds.iter().copied()).collect();
        let needed = |entry: &&KindEntry| {
            names
                .iter()
                .filter_map(|name| kinds::find(name))
                .any(|one| one.is(entry))
        };
        kinds::KINDS.iter().filter(needed).collect()
    }

    /// The CRDs of the selected controllers. The provider operator alone needs only its own kinds. Those of Cluster API come with
    /// the providers that it installs.
    pub fn definitions(&self) -> Vec<serde_json::Value> {
        self.kinds().iter().map(|entry| (entry.crd)()).collect()
    }

    /// The providers that are built in where these controllers run.
    pub fn built_ins(&self) -> BuiltIns {
        built_in::built_ins(|name| self.has(name))
    }

    /// Whether a controller is selected.
    pub fn has(&self, name: &str) -> bool {
        self.0
            .as_ref()
            .is_none_or(|names| names.iter().any(|chosen| chosen == name))
    }
}

/// Running controllers.
#[derive(Debug)]
pub struct Running {
    kit: Runtime,
    ports: Ports,
}

/// Starts controllers against the server behind `client`; returns at once. Needs a tokio runtime.
pub fn start(
    client: kube::Client,
    metrics: Metrics,
    selection: &Selection,
    fetcher: &Fetcher,
    helming: &Helming,
) -> Running {
    let kit = Runtime::builder(client).metrics(metrics).build();
    start_on(kit, selection, fetcher, helming, Surroundings::default())
}

/// What controllers take from outside beside the objects.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// The labels and annotations of Machines that go to Nodes beside those that always do.
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
    /// The pod of this process, if it runs in one and knows it.
    pub own_pod: Option<OwnPod>,
}

/// [`start`] on a runtime of the caller, which may already serve its health and metrics. Its watches and connections start now.
pub fn start_on(
    kit: Runtime,
    selection: &Selection,
    fetcher: &Fetcher,
    helming: &Helming,
    surroundings: Surroundings,
) -> Running {
    start_with(kit, selection, |cx| {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let keys = KeyPool::new(threads, KeyAlgorithm::Rsa2048, STOCK);
        let ports = Ports::new(cx, keys).fetching(&fetcher.client, &fetcher.variables);
        let Surroundings {
            nodes,
            preflight,
            gates,
            concurrency,
            grace,
            tokens,
            etcd,
            migration,
            identity,
            own_pod,
        } = surroundings;
        ports
            .charting(helming.used())
            .syncing(nodes)
            .checking(preflight)
            .gated(gates)
            .reconciling(concurrency)
            .reporting_outages_after(grace)
            .with_tokens_for(tokens)
            .waiting_for_etcd(etcd)
            .migrating(migration)
            .identified_to_extensions(identity)
            .in_pod(own_pod)
    })
}

/// [`start_on`] with ports of the caller.
pub fn start_with(kit: Runtime, selection: &Selection, ports: impl FnOnce(&Cx) -> Ports) -> Running {
    let ports = ports(&kit.cx()).having(selection.built_ins());
    let chosen = CONTROLLERS.iter().filter(|info| selection.has(info.name));
    let entries: Vec<_> = chosen.filter_map(|info| ports.entry(info)).collect();
    tracing::info!("starting {} controllers for {}", entries.len(), kit.cx().scope());
    kit.start(entries);
    Running { kit, ports }
}

impl Running {
    /// The controller runtime: caches, metrics.
    pub fn kit(&self) -> &Runtime {
        &self.kit
    }

    /// The shared state beyond the controller runtime.
    pub fn ports(&self) -> &Ports {
        &self.ports
    }

    /// Warns if helm is unusable although the HelmReleaseProxy controller is enabled.
    pub fn warn_without_helm(&self, selection: &Selection) {
        if selection.has(CHARTS)
            && let Some(why) = self.ports.unusable_helm()
        {
            tracing::warn!("no Helm chart can be installed on clusters: {why}");
        }
    }

    /// Serves `/healthz` and `/readyz`.
    pub fn serve(&self, listener: TcpListener) {
        self.kit.serve(listener);
    }

    /// Lets running reconciles end and stops everything.
    pub async fn shutdown(&self) {
        self.kit.shutdown().await;
        self.ports.shutdown().await;
    }

    /// [`Self::shutdown`], for at most `limit`: requests of a reconcile may hang. What still runs then ends with the term, or with the
    /// process. False if that is a helm process, which no term ends, so that no other process may take over yet.
    pub async fn shutdown_within(&self, limit: Duration) -> bool {
        if tokio::time::timeout(limit, self.shutdown()).await.is_ok() {
            return true;
        }
        tracing::warn!("controllers did not end within {} s", limit.as_secs());
        !self.ports.helm_runs()
    }

    /// Resolves when a background task has panicked. What it kept up to date, such as a cache, is wrong from then on: the process has to end.
    pub async fn panic(&self) -> Panicked {
        self.kit.tasks().panic().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controllers_are_chosen_by_name() {
        let some = Selection::of(&["machineset", " machinedeployment"]).unwrap();
        assert!(some.has("machineset") && some.has("machinedeployment") && !some.has("cluster"));
        assert!(Selection::all().has("cluster"));
        // OP-248: the operator runs alone, without the kinds of Cluster API.
        let names = |names: &[&str]| -> Vec<String> {
            let wanted = Selection::of(names).unwrap().definitions();
            let name = |definition: &serde_json::Value| definition["metadata"]["name"].as_str().unwrap().to_owned();
            wanted.iter().map(name).collect()
        };
        let alone = names(&["operator/coreprovider", "management/coreprovider"]);
        assert_eq!(alone.len(), 12);
        assert!(alone.iter().any(|name| name == "providers.clusterctl.cluster.x-k8s.io"));
        assert!(names(&["operator/coreprovider", "cluster"]).len() > alone.len());
        assert_eq!(Selection::all().definitions().len(), kinds::KINDS.len());
        let error = Selection::of(&["machineset", "machinesets"]).unwrap_err();
        assert_eq!(error.to_string(), "there is no controller \"machinesets\"");
        assert!(error.hint().unwrap().contains("machineset, "), "{error}");
    }

    #[test]
    fn the_operator_is_not_limited_to_a_namespace() {
        let scope = Scope {
            namespace: Some("a".to_owned()),
            watch_filter: None,
        };
        let confined = Selection::all().within(&scope).unwrap();
        assert!(confined.has("cluster") && !confined.has("operator/coreprovider"));
        assert_eq!(Selection::all().within(&Scope::default()).unwrap(), Selection::all());
        let named = Selection::of(&["cluster"]).unwrap();
        assert_eq!(named.clone().within(&scope).unwrap(), named);
        let error = Selection::of(&["cluster", "operator/coreprovider"]).unwrap();
        let error = error.within(&scope).unwrap_err();
        assert!(error.to_string().contains("operator/coreprovider"), "{error}");
        assert!(error.hint().unwrap().contains("--controllers"), "{error}");
    }
}
