//! A management cluster in this process, and stand-ins for what these controllers wait for.

use std::fmt::Debug;
use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::Event;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Client, ResourceExt as _};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use windlass_api::core::{Cluster, Machine, MachineDeployment};
use windlass_api_ext::infrastructure::DevMachineTemplate;
use windlass_api_kubeadm::bootstrap::KubeadmConfigTemplate;
use windlass_cluster_cache::Clusters;
use windlass_controller_runtime::{Metrics, Runtime, transport};
use windlass_core_controllers::machine::NodeSync;
use windlass_core_controllers::machine_set::PreflightChecks;
use windlass_runtime_client::{Callable, Extensions};
use windlass_testkit::faults::Faults;
use windlass_testkit::{Server, keys, wait};

/// What is written at all is written within this time after its cause.
const QUIET: Duration = Duration::from_millis(1500);

pub(crate) struct Env {
    pub(crate) server: Server,
    pub(crate) client: Client,
    kit: Runtime,
}

pub(crate) fn api<K>(client: &Client) -> Api<K>
where
    K: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
{
    Api::namespaced(client.clone(), "default")
}

pub(crate) fn dynamic(client: &Client, group: &str, kind: &str) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1beta2", kind));
    Api::namespaced_with(client.clone(), "default", &resource)
}

pub(crate) fn configs(client: &Client) -> Api<DynamicObject> {
    dynamic(client, "bootstrap.cluster.x-k8s.io", "KubeadmConfig")
}

pub(crate) fn dev_machines(client: &Client) -> Api<DynamicObject> {
    dynamic(client, "infrastructure.cluster.x-k8s.io", "DevMachine")
}

/// A Cluster whose infrastructure is not there, and which no controller of these tests waits for unless a test says so.
pub(crate) fn cluster(name: &str) -> Value {
    let infrastructure = json!({"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevCluster", "name": name});
    let network = json!({ "serviceDomain": "cluster.local" });
    json!({ "metadata": { "name": name }, "spec": { "clusterNetwork": network, "infrastructureRef": infrastructure } })
}

impl Env {
    /// A server with all kinds, a Cluster with templates, and no controller at work yet.
    pub(crate) async fn empty() -> Self {
        Self::with(&Faults::none()).await
    }

    /// The same with faults between the controllers and the server.
    pub(crate) async fn with(faults: &Faults) -> Self {
        Self::on(Server::with_definitions().await, faults).await
    }

    /// [`Self::empty`] where objects can be stored that admission refuses.
    pub(crate) async fn unadmitted() -> Self {
        Self::on(Server::without_admission().await, &Faults::none()).await
    }

    async fn on(server: Server, faults: &Faults) -> Self {
        let client = server.client("test");
        let metrics = Metrics::new();
        let controllers = transport::in_process(faults.wrap(server.service("windlass")), &metrics);
        let env = Self {
            kit: Runtime::builder(controllers).metrics(metrics).build(),
            server,
            client,
        };
        env.create::<Cluster>(cluster("c")).await;
        for name in ["infra", "infra-2"] {
            let spec = json!({ "template": { "spec": { "backend": { "inMemory": {} } } } });
            env.create::<DevMachineTemplate>(json!({ "metadata": { "name": name }, "spec": spec }))
                .await;
        }
        let spec = json!({ "template": { "spec": { "joinConfiguration": { "nodeRegistration": { "criSocket": "unix:///run/x" } } } } });
        env.create::<KubeadmConfigTemplate>(json!({ "metadata": { "name": "boot" }, "spec": spec }))
            .await;
        env
    }

    /// Puts faults between the controllers and the server. No controller may run yet.
    pub(crate) fn disturb(&mut self, faults: &Faults) {
        let service = faults.wrap(self.server.service("windlass"));
        self.kit = Runtime::builder(transport::in_process(service, &Metrics::new())).build();
    }

    /// The same with the controllers at work, and Machines that come up and go away.
    pub(crate) async fn start() -> Self {
        Self::empty().await.run()
    }

    /// [`Self::start`] where objects can be stored that admission refuses.
    pub(crate) async fn start_unadmitted() -> Self {
        Self::unadmitted().await.run()
    }

    fn run(self) -> Self {
        self.run_controllers();
        self.run_machines();
        self
    }

    pub(crate) fn run_controllers(&self) {
        self.run_with_checks(PreflightChecks::default());
    }

    /// The same with these checks before MachineSets make Machines.
    pub(crate) fn run_with_checks(&self, checks: PreflightChecks) {
        self.run_with(checks, Callable::default());
    }

    /// The same, with calls of these hooks alone.
    pub(crate) fn run_with(&self, checks: PreflightChecks, callable: Callable) {
        let cx = self.kit.cx();
        let clusters = Clusters::new(&cx, windlass_cluster_cache::Options::default());
        self.kit.start(vec![
            windlass_core_controllers::machine_set::entry(checks),
            windlass_core_controllers::machine_deployment::entry(Extensions::new(&cx, None, callable)),
            windlass_core_controllers::machine_health_check::entry(clusters),
        ]);
    }

    /// The Cluster controller alone.
    pub(crate) fn run_cluster_controller(&self) {
        let cx = self.kit.cx();
        let clusters = Clusters::new(&cx, windlass_cluster_cache::Options::default());
        self.kit.start(vec![windlass_core_controllers::cluster::entry(
            clusters,
            keys(),
            Extensions::new(&cx, None, Callable::default()),
        )]);
    }

    /// The Cluster and Machine controllers.
    pub(crate) fn run_clusters_and_machines(&self) {
        let cx = self.kit.cx();
        let clusters = Clusters::new(&cx, windlass_cluster_cache::Options::default());
        let extensions = Extensions::new(&cx, None, Callable::default());
        self.kit.start(vec![
            windlass_core_controllers::cluster::entry(clusters.clone(), keys(), extensions.clone()),
            windlass_core_controllers::machine::entry(clusters, &NodeSync::default(), extensions),
        ]);
    }

    /// How often a controller looked at an object.
    pub(crate) fn reconciles(&self, controller: &'static str) -> u64 {
        let results = ["success", "requeue_after", "error"];
        let metrics = self.kit.metrics();
        results
            .map(|result| metrics.reconciles(controller, result))
            .iter()
            .sum()
    }

    /// How often a controller failed.
    pub(crate) fn failures(&self, controller: &'static str) -> u64 {
        self.kit.metrics().reconciles(controller, "error")
    }

    /// Installs the definition of a kind, and waits until it is served.
    pub(crate) async fn define(&self, definition: Value) {
        self.server.define(&[definition]).await;
    }

    fn definitions(&self) -> Api<DynamicObject> {
        let gvk = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
        Api::all_with(self.client.clone(), &ApiResource::from_gvk(&gvk))
    }

    /// Puts labels on the definition of a kind.
    pub(crate) async fn label_definition(&self, name: &str, labels: &Value) {
        let patch = Patch::Merge(json!({ "metadata": { "labels": labels } }));
        self.definitions()
            .patch(name, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    /// Plays Machine controller, providers and kubelet: every Machine is available at once, and goes when it is deleted.
    pub(crate) fn run_machines(&self) {
        self.run_machines_if(|_| true);
    }

    /// The same, and Machines that do not come up, but go as well.
    pub(crate) fn run_machines_if(&self, come_up: fn(&Machine) -> bool) {
        let machines: Api<Machine> = api(&self.client);
        tokio::spawn(async move {
            let mut events = watcher(machines.clone(), watcher::Config::default())
                .default_backoff()
                .applied_objects()
                .boxed();
            while let Ok(Some(machine)) = events.try_next().await {
                if come_up(&machine) || machine.metadata.deletion_timestamp.is_some() {
                    play(&machines, &machine).await;
                }
            }
        });
    }

    pub(crate) async fn create<K>(&self, value: Value) -> K
    where
        K: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>
            + serde::Serialize
            + DeserializeOwned
            + Clone
            + Debug,
    {
        let object: K = serde_json::from_value(value).unwrap();
        api::<K>(&self.client)
            .create(&PostParams::default(), &object)
            .await
            .unwrap()
    }

    pub(crate) async fn patch<K>(&self, name: &str, patch: Value)
    where
        K: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>
            + DeserializeOwned
            + Clone
            + Debug,
    {
        api::<K>(&self.client)
            .patch(name, &PatchParams::default(), &Patch::Merge(&patch))
            .await
            .unwrap();
    }

    pub(crate) async fn deployment(&self, replicas: i32) {
        self.create::<MachineDeployment>(json!({
            "metadata": { "name": "md", "labels": { "cluster.x-k8s.io/cluster-name": "c" } },
            "spec": { "clusterName": "c", "replicas": replicas, "selector": { "matchLabels": { "role": "w" } },
                "template": template() },
        }))
        .await;
    }

    /// Waits until `done` of the objects of a kind, looking again at every event.
    pub(crate) async fn until<K>(&self, what: &str, done: impl FnMut(&[K]) -> bool) -> Vec<K>
    where
        K: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>
            + DeserializeOwned
            + Clone
            + Debug,
    {
        self.until_in(&api(&self.client), what, done).await
    }

    pub(crate) async fn until_in<K>(&self, objects: &Api<K>, what: &str, done: impl FnMut(&[K]) -> bool) -> Vec<K>
    where
        K: kube::Resource + DeserializeOwned + Clone + Debug,
    {
        let found = wait::until(objects.clone(), None, done).await;
        if found.is_none() {
            let last = objects.list(&ListParams::default()).await;
            assert!(found.is_some(), "waited in vain until {what}: {last:#?}");
        }
        found.unwrap_or_default()
    }

    /// Waits until there is an event about an object, with this reason and a message that begins so.
    pub(crate) async fn event(&self, about: &str, reason: &str, message: &str) {
        let is_it = |event: &Event| {
            event.involved_object.name.as_deref() == Some(about)
                && event.reason.as_deref() == Some(reason)
                && event.message.as_deref().is_some_and(|text| text.starts_with(message))
        };
        self.until::<Event>(&format!("{about} has an event {reason}"), |all| all.iter().any(is_it))
            .await;
    }

    /// Waits until nothing is written for longer than mere words may be held back: three seconds.
    pub(crate) async fn silence(&self) {
        for _ in 0..3 {
            self.quiet().await;
        }
    }

    /// Waits until no controller looks at a Cluster any more: mere words may be held back for three seconds, and then it is over.
    pub(crate) async fn rests(&self) {
        let work = || (self.reconciles("cluster"), self.server.counters().writes());
        let (mut before, mut quiet, mut rounds) = (work(), 0, 0);
        while quiet < 3 {
            self.quiet().await;
            let now = work();
            quiet = if now == before { quiet + 1 } else { 0 };
            before = now;
            rounds += 1;
            assert!(rounds < 20, "the controllers do not come to rest");
        }
    }

    /// Waits until nothing was written for a while.
    pub(crate) async fn quiet(&self) {
        let mut before = self.server.counters().writes();
        let mut events = watcher(api::<Machine>(&self.client), watcher::Config::default()).boxed();
        while tokio::time::timeout(QUIET, async { while events.next().await.is_some() {} })
            .await
            .is_err()
        {
            let now = self.server.counters().writes();
            if now == before {
                return;
            }
            before = now;
        }
    }

    pub(crate) async fn list<K>(&self) -> Vec<K>
    where
        K: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>
            + DeserializeOwned
            + Clone
            + Debug,
    {
        api::<K>(&self.client)
            .list(&kube::api::ListParams::default())
            .await
            .unwrap()
            .items
    }
}

pub(crate) fn template() -> Value {
    json!({
        "metadata": { "labels": { "role": "w" } },
        "spec": {
            "clusterName": "c", "version": "v1.35.0",
            "bootstrap": { "configRef": {
                "apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfigTemplate", "name": "boot" } },
            "infrastructureRef": {
                "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachineTemplate", "name": "infra" },
        },
    })
}

/// Whether the Machine has this condition with this status.
pub(crate) fn has(machine: &Machine, type_: &str, status: &str) -> bool {
    let all = machine.status.iter().flat_map(|status| &status.conditions);
    all.into_iter().any(|have| have.type_ == type_ && have.status == status)
}

/// Makes a Machine available, or removes one that is being deleted.
pub(crate) async fn play(machines: &Api<Machine>, machine: &Machine) {
    let name = machine.name_any();
    if machine.metadata.deletion_timestamp.is_some() {
        let patch = json!({ "metadata": { "finalizers": null } });
        // It may be gone already.
        let _ = machines
            .patch(&name, &PatchParams::default(), &Patch::Merge(&patch))
            .await;
        return;
    }
    if has(machine, "Available", "True") {
        return;
    }
    let condition = |type_: &str| json!({ "type": type_, "status": "True", "reason": type_, "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z" });
    let conditions: Vec<Value> = ["Ready", "Available", "UpToDate", "NodeReady", "NodeHealthy"]
        .map(condition)
        .into();
    let status = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "metadata": { "name": name },
        "status": { "nodeRef": { "name": name }, "conditions": conditions,
            "initialization": { "bootstrapDataSecretCreated": true, "infrastructureProvisioned": true } },
    });
    let params = PatchParams::apply("machine-player").force();
    let _ = machines.patch_status(&name, &params, &Patch::Apply(&status)).await;
}
