//! The registry of controllers, as data.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use windlass_addon_helm::chart_proxy;
use windlass_addon_helm::release_proxy::{self, HelmReleases};
use windlass_api_operator::{management as v1alpha1, operator as v1alpha2};
use windlass_bootstrap_kubeadm::TokenTtl;
use windlass_cluster_cache::{Clusters, EtcdTimeouts, GracePeriods, Options, OwnPod, ReadOnly};
use windlass_controller_runtime::{ControllerEntry, Cx};
use windlass_controlplane_kubeadm::{ControlPlaneController, RemoteClusters};
use windlass_core_controllers::crd_migration::Phases;
use windlass_core_controllers::machine::NodeSync;
use windlass_core_controllers::machine_set::PreflightChecks;
use windlass_core_controllers::{
    cluster, cluster_resource_set, cluster_resource_set_binding, crd_migration, extension_config, machine,
    machine_deployment, machine_health_check, machine_pool, machine_set,
};
use windlass_helm::Engine as _;
use windlass_infra_dev::{Cloud, dev_cluster, dev_ip_pool, dev_machine, dev_machine_pool, dev_machine_template};
use windlass_operator::{BuiltIns, Operator, Provided, names};
use windlass_pki::KeyPool;
use windlass_provider_repository::Client;
use windlass_runtime_client::{Callable, ClientIdentity, Extensions};

use crate::concurrency::Concurrency;
use crate::gates::FeatureGates;
use crate::registry::helm::{HelmUse, LateHelm};
use crate::registry::kinds;

/// The shared state of controllers beyond the controller runtime.
pub struct Ports {
    cx: Cx,
    clusters: OnceLock<Clusters>,
    control_planes: OnceLock<Arc<RemoteClusters>>,
    extensions: OnceLock<Extensions>,
    /// With what this process identifies itself to extensions.
    identity: Option<ClientIdentity>,
    /// Private keys, generated in advance if generation is slow.
    pub keys: KeyPool,
    /// The simulated infrastructure.
    pub cloud: Cloud,
    /// The shared state of the provider controllers, created on first use.
    pub operator: Operator,
    /// How charts are fetched and installed.
    helm: HelmUse,
    releases: OnceLock<(HelmReleases, LateHelm)>,
    /// What goes from Machines to their Nodes beside what always does.
    nodes: NodeSync,
    /// The checks before MachineSets make Machines.
    preflight: PreflightChecks,
    /// Features that are off.
    gates: FeatureGates,
    /// How many objects are reconciled at a time, where that is chosen.
    concurrency: Concurrency,
    grace: GracePeriods,
    /// How long bootstrap tokens live.
    tokens: TokenTtl,
    etcd: EtcdTimeouts,
    /// What is migrated of stored objects.
    migration: Phases,
    /// The pod of this process, if it runs in one and knows it.
    own_pod: Option<OwnPod>,
    /// Refuses what would be written to workload clusters or told to extensions, if nothing may be.
    read_only: Option<ReadOnly>,
    /// Whether the simulated infrastructure ends with the controllers.
    ends_cloud: bool,
}

impl fmt::Debug for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ports").finish_non_exhaustive()
    }
}

impl Ports {
    /// The ports of one process, which takes its private keys from `keys`. Needs a tokio runtime.
    pub fn new(cx: &Cx, keys: KeyPool) -> Self {
        Self {
            cx: cx.clone(),
            clusters: OnceLock::new(),
            control_planes: OnceLock::new(),
            extensions: OnceLock::new(),
            identity: None,
            operator: Operator::new(Client::default(), keys.clone()),
            keys,
            cloud: Cloud::new(),
            helm: HelmUse::default(),
            releases: OnceLock::new(),
            nodes: NodeSync::default(),
            preflight: PreflightChecks::default(),
            gates: FeatureGates::default(),
            concurrency: Concurrency::default(),
            grace: GracePeriods::default(),
            tokens: TokenTtl::default(),
            etcd: EtcdTimeouts::default(),
            migration: Phases::default(),
            own_pod: None,
            read_only: None,
            ends_cloud: true,
        }
    }

    /// Connections to workload clusters. They watch Clusters, so they are created on first use: the operator alone has
    /// no Clusters to watch.
    pub fn clusters(&self) -> &Clusters {
        self.clusters.get_or_init(|| {
            let options = Options {
                own_pod: self.own_pod.clone(),
                grace: self.grace,
                etcd: self.etcd,
                read_only: self.read_only.clone(),
                ..Options::default()
            };
            Clusters::new(&self.cx, options)
        })
    }

    /// [`Self::clusters`] with the interface that the control plane needs.
    pub fn control_planes(&self) -> &Arc<RemoteClusters> {
        let make = || Arc::new(RemoteClusters::new(&self.cx, self.clusters().clone()));
        self.control_planes.get_or_init(make)
    }

    /// The extensions of the Runtime SDK. They are read from ExtensionConfigs, so they are created on first use, as [`Self::clusters`].
    pub fn extensions(&self) -> &Extensions {
        let callable = Callable {
            asks_only: self.read_only.is_some(),
            ..self.gates.callable()
        };
        let make = || Extensions::new(&self.cx, self.identity.clone(), callable);
        self.extensions.get_or_init(make)
    }

    /// The releases of charts on workload clusters.
    pub fn releases(&self) -> &HelmReleases {
        &self.helm().0
    }

    /// Why helm is unusable; `None` if no problem is known.
    pub fn unusable_helm(&self) -> Option<String> {
        self.helm().1.unusable()
    }

    fn helm(&self) -> &(HelmReleases, LateHelm) {
        self.releases.get_or_init(|| {
            let helm = LateHelm::new(self.helm.program.clone());
            helm.measure(self.cx.metrics());
            let clusters = self.clusters().clone();
            (
                HelmReleases::new(Arc::new(helm.clone()), clusters, self.helm.releases),
                helm,
            )
        })
    }

    /// The same ports with these Helm settings.
    #[must_use]
    pub fn charting(mut self, helm: HelmUse) -> Self {
        self.helm = helm;
        self
    }

    /// The same ports with existing simulated infrastructure that outlives the controllers, with the privileges of this
    /// handle.
    #[must_use]
    pub fn on(mut self, cloud: &Cloud) -> Self {
        self.cloud = cloud.clone();
        self.ends_cloud = false;
        self
    }

    /// The same ports, which write nothing to workload clusters, and call only the hooks of extensions that answer questions.
    #[must_use]
    pub fn reading_only(mut self, read_only: &ReadOnly) -> Self {
        self.read_only = Some(read_only.clone());
        self
    }

    /// The same ports, with these labels and annotations of Machines on Nodes, too.
    #[must_use]
    pub fn syncing(mut self, nodes: NodeSync) -> Self {
        self.nodes = nodes;
        self
    }

    /// The same ports, with these checks before MachineSets make Machines.
    #[must_use]
    pub fn checking(mut self, preflight: PreflightChecks) -> Self {
        self.preflight = preflight;
        self
    }

    /// The same ports behind these feature gates.
    #[must_use]
    pub fn gated(mut self, gates: FeatureGates) -> Self {
        self.nodes.without_taints = !gates.has_taints();
        if !gates.has_preflight_checks() {
            self.preflight = PreflightChecks::together(&[]);
        }
        self.gates = gates;
        self
    }

    /// The same ports, with these numbers of objects that are reconciled at a time.
    #[must_use]
    pub fn reconciling(mut self, concurrency: Concurrency) -> Self {
        self.concurrency = concurrency;
        self
    }

    /// A controller, ready to start; none if a feature gate keeps it from running.
    pub(crate) fn entry(&self, info: &ControllerInfo) -> Option<ControllerEntry> {
        if let Some(gate) = self.gates.closes(info.name) {
            tracing::info!(
                controller = info.name,
                gate,
                "the controller does not run: its feature gate is off"
            );
            return None;
        }
        let entry = (info.entry)(self);
        Some(match self.concurrency.of(info.name) {
            Some(most) => entry.with_concurrency(most),
            None => entry,
        })
    }

    /// The same ports, with outages of workload clusters reported after these periods.
    #[must_use]
    pub fn reporting_outages_after(mut self, grace: GracePeriods) -> Self {
        self.grace = grace;
        self
    }

    /// The same ports, with bootstrap tokens that live this long.
    #[must_use]
    pub fn with_tokens_for(mut self, tokens: TokenTtl) -> Self {
        self.tokens = tokens;
        self
    }

    /// The same ports, with these times that etcd members of workload clusters may take.
    #[must_use]
    pub fn waiting_for_etcd(mut self, etcd: EtcdTimeouts) -> Self {
        self.etcd = etcd;
        self
    }

    /// The same ports, with these phases of the migration of stored objects.
    #[must_use]
    pub fn migrating(mut self, phases: Phases) -> Self {
        self.migration = phases;
        self
    }

    /// The same ports, with this certificate for calls of extensions.
    #[must_use]
    pub fn identified_to_extensions(mut self, identity: Option<ClientIdentity>) -> Self {
        self.identity = identity;
        self
    }

    /// The same ports for a process in this pod.
    #[must_use]
    pub fn in_pod(mut self, own_pod: Option<OwnPod>) -> Self {
        self.own_pod = own_pod;
        self
    }

    /// The same ports with this client for provider files and these variables.
    #[must_use]
    pub fn fetching(mut self, client: &Client, variables: &BTreeMap<String, String>) -> Self {
        self.operator = Operator::new(client.clone(), self.keys.clone()).environment(variables.clone());
        self
    }

    /// The same ports with these providers built in.
    #[must_use]
    pub(crate) fn having(mut self, built_ins: BuiltIns) -> Self {
        self.operator = self.operator.having(built_ins);
        self
    }

    /// Whether a helm process runs.
    pub(crate) fn helm_runs(&self) -> bool {
        self.releases.get().is_some_and(|(_, helm)| helm.is_running())
    }

    /// Ends the background work beside the controllers. Call it after the controllers have stopped.
    pub async fn shutdown(&self) {
        if let Some((_, helm)) = self.releases.get() {
            helm.close().await;
        }
        if self.ends_cloud {
            self.cloud.shutdown().await;
        }
    }
}

/// A controller: its name, the provider that it is a part of, the kinds that it needs, and its constructor.
#[derive(Clone, Copy)]
pub struct ControllerInfo {
    /// The name in logs, metrics and `--controllers`.
    pub name: &'static str,
    /// The provider that it is a part of, as the definitions of its kinds name it in the label `cluster.x-k8s.io/provider`.
    pub provider: &'static str,
    /// The kinds of ours that it reads or writes, by names that [`kinds::find`](crate::registry::kinds::find) knows. Their definitions have
    /// to be there before it starts, and no others.
    pub kinds: &'static [&'static str],
    /// Creates it.
    pub entry: fn(&Ports) -> ControllerEntry,
}

impl ControllerInfo {
    /// Whether it is about objects of all namespaces, so that a manager of one namespace leaves it to another manager.
    pub fn is_of_all_namespaces(&self) -> bool {
        self.is_of_operator() || ["extensionconfig", "crdmigrator"].contains(&self.name)
    }

    /// Whether it belongs to the provider operator, which needs only its own kinds.
    pub fn is_of_operator(&self) -> bool {
        self.provider == OPERATOR
    }
}

impl fmt::Debug for ControllerInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControllerInfo")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// The provider of the core's kinds and controllers.
const CORE: &str = "cluster-api";
const BOOTSTRAP: &str = "bootstrap-kubeadm";
const CONTROL_PLANE: &str = "control-plane-kubeadm";
const DEV: &str = "infrastructure-docker";
const HELM: &str = "addon-helm";
/// The provider operator itself.
pub(crate) const OPERATOR: &str = "cluster-api-operator";

/// The kinds of declared providers, which depend on one another, and the inventory.
const PROVIDERS: Kinds = &[
    "AddonProvider.operator.cluster.x-k8s.io",
    "BootstrapProvider.operator.cluster.x-k8s.io",
    "ControlPlaneProvider.operator.cluster.x-k8s.io",
    "CoreProvider.operator.cluster.x-k8s.io",
    "IPAMProvider.operator.cluster.x-k8s.io",
    "InfrastructureProvider.operator.cluster.x-k8s.io",
    "RuntimeExtensionProvider.operator.cluster.x-k8s.io",
    "BootstrapProvider.management.cluster.x-k8s.io",
    "ControlPlaneProvider.management.cluster.x-k8s.io",
    "CoreProvider.management.cluster.x-k8s.io",
    "InfrastructureProvider.management.cluster.x-k8s.io",
    "Provider.clusterctl.cluster.x-k8s.io",
];

type Kinds = &'static [&'static str];

const fn info(
    provider: &'static str,
    name: &'static str,
    kinds: Kinds,
    entry: fn(&Ports) -> ControllerEntry,
) -> ControllerInfo {
    ControllerInfo {
        name,
        provider,
        kinds,
        entry,
    }
}

const fn provider<P: Provided>() -> ControllerInfo {
    info(OPERATOR, names::controller(P::API, P::TYPE), PROVIDERS, |ports| {
        P::controller(&ports.operator)
    })
}

/// All controllers, in the order in which they start.
pub static CONTROLLERS: &[ControllerInfo] = &[
    info(
        CORE,
        "clusterclass",
        &["Cluster", "ClusterClass", "ExtensionConfig"],
        |ports| windlass_core_topology::cluster_classes(ports.extensions().clone()),
    ),
    info(
        CORE,
        "topology/cluster",
        &[
            "Cluster",
            "ClusterClass",
            "ClusterClassRevision",
            "ClusterClassRollout",
            "ExtensionConfig",
            "Machine",
            "MachineDeployment",
            "MachineHealthCheck",
            "MachinePool",
        ],
        |ports| windlass_core_topology::cluster_topologies(ports.extensions().clone()),
    ),
    info(
        CORE,
        "topology/classrollout",
        &[
            "Cluster",
            "ClusterClass",
            "ClusterClassRevision",
            "ClusterClassRollout",
            "MachineDeployment",
            "MachinePool",
            "MachineSet",
        ],
        |_| windlass_core_topology::class_rollouts(),
    ),
    info(
        CORE,
        "topology/machinedeployment",
        &["Cluster", "MachineDeployment", "MachineSet"],
        |_| windlass_core_topology::machine_deployment_templates(),
    ),
    info(
        CORE,
        "topology/machineset",
        &["Cluster", "MachineDeployment", "MachineSet"],
        |_| windlass_core_topology::machine_set_templates(),
    ),
    info(
        CORE,
        "cluster",
        &[
            "Cluster",
            "ClusterClass",
            "ExtensionConfig",
            "Machine",
            "MachineDeployment",
            "MachinePool",
            "MachineSet",
        ],
        |ports| cluster::entry(ports.clusters().clone(), ports.keys.clone(), ports.extensions().clone()),
    ),
    info(
        CORE,
        "machine",
        &[
            "Cluster",
            "ExtensionConfig",
            "Machine",
            "MachineDeployment",
            "MachineDrainRule",
            "MachineSet",
        ],
        |ports| machine::entry(ports.clusters().clone(), &ports.nodes, ports.extensions().clone()),
    ),
    info(
        CORE,
        "machineset",
        &["Cluster", "Machine", "MachineDeployment", "MachineSet"],
        |ports| machine_set::entry(ports.preflight.clone()),
    ),
    info(
        CORE,
        "machinedeployment",
        &[
            "Cluster",
            "ExtensionConfig",
            "Machine",
            "MachineDeployment",
            "MachineSet",
        ],
        |ports| machine_deployment::entry(ports.extensions().clone()),
    ),
    info(CORE, "machinepool", &["Cluster", "Machine", "MachinePool"], |ports| {
        machine_pool::entry(ports.clusters().clone())
    }),
    info(
        CORE,
        "machinehealthcheck",
        &["Cluster", "Machine", "MachineHealthCheck"],
        |ports| machine_health_check::entry(ports.clusters().clone()),
    ),
    info(
        CORE,
        "clusterresourceset",
        &["Cluster", "ClusterResourceSet", "ClusterResourceSetBinding"],
        |ports| cluster_resource_set::entry(ports.clusters().clone()),
    ),
    info(
        CORE,
        "clusterresourcesetbinding",
        &["Cluster", "ClusterResourceSetBinding", "ExtensionConfig"],
        |ports| cluster_resource_set_binding::entry(ports.extensions().clone()),
    ),
    info(CORE, "extensionconfig", &["ExtensionConfig"], |ports| {
        extension_config::entry(ports.extensions().clone())
    }),
    info(CORE, "crdmigrator", &[], |ports| {
        crd_migration::entry(kinds::converted_crds(), ports.migration.clone())
    }),
    info(
        BOOTSTRAP,
        "kubeadmconfig",
        &[
            "Cluster",
            "KubeadmConfig",
            "KubeadmConfigTemplate",
            "Machine",
            "MachinePool",
        ],
        |ports| {
            let clusters = Arc::new(ports.clusters().clone());
            windlass_bootstrap_kubeadm::entry(clusters, ports.keys.clone(), ports.tokens)
        },
    ),
    info(
        CONTROL_PLANE,
        "kubeadmcontrolplane",
        &[
            "Cluster",
            "ExtensionConfig",
            "KubeadmConfig",
            "KubeadmControlPlane",
            "KubeadmControlPlaneTemplate",
            "Machine",
            "MachinePool",
        ],
        |ports| {
            ControlPlaneController::entry(
                ports.control_planes().clone(),
                ports.keys.clone(),
                ports.extensions().clone(),
            )
        },
    ),
    info(
        DEV,
        "devcluster",
        &["Cluster", "DevCluster", "DevClusterTemplate"],
        |ports| dev_cluster::entry(ports.cloud.clone()),
    ),
    info(
        DEV,
        "devmachine",
        &["Cluster", "DevCluster", "DevMachine", "DevMachineTemplate", "Machine"],
        |ports| dev_machine::entry(ports.cloud.clone()),
    ),
    info(
        DEV,
        "devippool",
        &["Cluster", "DevIPPool", "IPAddress", "IPAddressClaim"],
        |_| dev_ip_pool::entry(),
    ),
    info(
        DEV,
        "devmachinepool",
        &[
            "Cluster",
            "DevMachine",
            "DevMachinePool",
            "DevMachinePoolTemplate",
            "Machine",
            "MachinePool",
        ],
        |_| dev_machine_pool::entry(),
    ),
    info(DEV, "devmachinetemplate", &["Cluster", "DevMachineTemplate"], |_| {
        dev_machine_template::entry()
    }),
    info(
        HELM,
        "helmchartproxy",
        &["Cluster", "HelmChartProxy", "HelmReleaseProxy"],
        |ports| chart_proxy::entry(Arc::new(ports.releases().clone())),
    ),
    info(HELM, "helmreleaseproxy", &["Cluster", "HelmReleaseProxy"], |ports| {
        release_proxy::entry(ports.releases())
    }),
    provider::<v1alpha2::CoreProvider>(),
    provider::<v1alpha2::BootstrapProvider>(),
    provider::<v1alpha2::ControlPlaneProvider>(),
    provider::<v1alpha2::InfrastructureProvider>(),
    provider::<v1alpha2::IPAMProvider>(),
    provider::<v1alpha2::RuntimeExtensionProvider>(),
    provider::<v1alpha2::AddonProvider>(),
    provider::<v1alpha1::CoreProvider>(),
    provider::<v1alpha1::BootstrapProvider>(),
    provider::<v1alpha1::ControlPlaneProvider>(),
    provider::<v1alpha1::InfrastructureProvider>(),
];

/// All controllers, ready to start.
pub fn controllers(ports: &Ports) -> Vec<ControllerEntry> {
    CONTROLLERS.iter().filter_map(|info| ports.entry(info)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::registry::kinds::{self, KINDS};

    #[test]
    fn every_kind_is_needed_by_a_controller_and_every_name_is_one_of_a_kind() {
        let mut needed = BTreeSet::new();
        for info in CONTROLLERS {
            for name in info.kinds {
                let entry = kinds::find(name).unwrap_or_else(|| panic!("{} needs {name}", info.name));
                needed.insert(entry.full_name());
            }
        }
        let all: BTreeSet<String> = KINDS.iter().map(kinds::KindEntry::full_name).collect();
        assert_eq!(needed, all);
    }
}
