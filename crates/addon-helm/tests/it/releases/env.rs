//! A management cluster with the controller of HelmReleaseProxies on it, workload clusters, and Helm as it is played.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use windlass_addon_helm::chart_proxy;
use windlass_addon_helm::release_proxy::{HelmReleases, Settings, entry};
use windlass_cluster_cache::{Clusters, Options};
use windlass_controller_runtime::{Backoff, Candidate, Metrics, Runtime, SystemClock, Term, Timing, transport};
use windlass_testkit::faults::Faults;
use windlass_testkit::{Server, Workload, wait};

use super::fake::{Fake, Place};

/// Where everything is.
pub(crate) const NAMESPACE: &str = "default";
/// The label by which a release says whose it is.
pub(crate) const MARK: &str = windlass_helm::MARK;

pub(crate) struct Env {
    server: Server,
    pub(crate) client: kube::Client,
    pub(crate) helm: Fake,
    pub(crate) settings: Settings,
    has_charts: bool,
    running: Option<Runtime>,
}

fn quick(first: u64, most: u64) -> Backoff {
    Backoff::new(Duration::from_millis(first), Duration::from_millis(most))
}

impl Env {
    /// With a controller, and a chart `web` at 1.0.0.
    pub(crate) async fn start() -> Self {
        let mut env = Self::idle().await;
        env.operate(&Faults::none());
        env
    }

    /// With the controller of HelmChartProxies as well.
    pub(crate) async fn whole() -> Self {
        Self::idle().await.with_charts()
    }

    /// The same where objects can be stored that admission refuses.
    pub(crate) async fn whole_unadmitted() -> Self {
        Self::on(Server::without_admission().await).with_charts()
    }

    fn with_charts(self) -> Self {
        let mut env = self;
        env.has_charts = true;
        env.operate(&Faults::none());
        env
    }

    /// The same without a controller yet.
    pub(crate) async fn idle() -> Self {
        Self::on(Server::with_definitions().await)
    }

    fn on(server: Server) -> Self {
        let helm = Fake::default();
        helm.publish("web", "1.0.0");
        Self {
            client: server.client("test"),
            server,
            helm,
            settings: Settings {
                ask_every: Duration::from_mins(10),
                retry: quick(50, 500),
                retry_lasting: quick(50, 500),
                ..Settings::default()
            },
            has_charts: false,
            running: None,
        }
    }

    /// Starts the controller.
    pub(crate) fn operate(&mut self, faults: &Faults) {
        self.operate_in(Term::endless(), faults);
    }

    /// The same in a process that takes a Lease first.
    pub(crate) async fn operate_elected(&mut self) {
        let timing = Timing {
            lease: Duration::from_mins(10),
            renew: Duration::from_mins(9),
            retry: Duration::from_secs(1),
        };
        let term = Term::waiting(Arc::new(SystemClock));
        let (lease, name) = ((NAMESPACE, "manager"), "elected".to_owned());
        let mut candidate = Candidate::new(&self.client, lease, name, timing, term.clone(), Metrics::new());
        candidate.win(|_| ()).await;
        self.operate_in(term, &Faults::none());
    }

    fn operate_in(&mut self, term: Term, faults: &Faults) {
        let metrics = Metrics::new();
        let client = transport::in_process(faults.wrap(self.server.service("manager")), &metrics);
        let kit = Runtime::builder(client).metrics(metrics).term(term).build();
        let options = Options {
            interval: Duration::from_millis(200),
            timeout: Duration::from_secs(5),
            threshold: 2,
            backoff: quick(20, 100),
            ..Options::default()
        };
        let clusters = Clusters::new(&kit.cx(), options);
        let releases = HelmReleases::new(Arc::new(self.helm.clone()), clusters, self.settings);
        let mut entries = vec![entry(&releases)];
        entries.extend(self.has_charts.then(|| chart_proxy::entry(Arc::new(releases.clone()))));
        kit.start(entries);
        self.running = Some(kit);
    }

    /// Ends it, as the end of its process does.
    pub(crate) async fn stop_operating(&mut self) {
        if let Some(kit) = self.running.take() {
            kit.shutdown().await;
        }
    }

    /// A number from the metrics.
    pub(crate) fn metrics(&self) -> String {
        self.running
            .as_ref()
            .map(|kit| kit.metrics().encode())
            .unwrap_or_default()
    }

    /// How often objects were looked at.
    pub(crate) fn looks(&self) -> u64 {
        self.looks_of("helmreleaseproxy")
    }

    /// How often a controller looked at objects.
    pub(crate) fn looks_of(&self, controller: &str) -> u64 {
        let loads = self.running.as_ref().map(|kit| kit.metrics().loads());
        let mut of = loads.iter().flatten().filter(|load| load.controller == controller);
        of.next().map_or(0, |load| load.reconciles)
    }

    fn api(&self, kind: &str) -> Api<DynamicObject> {
        let (group, version, plural) = match kind {
            "Cluster" => ("cluster.x-k8s.io", "v1beta2", "clusters"),
            "HelmChartProxy" => ("addons.cluster.x-k8s.io", "v1alpha1", "helmchartproxies"),
            "HelmReleaseProxy" => ("addons.cluster.x-k8s.io", "v1alpha1", "helmreleaseproxies"),
            _ => ("", "v1", "secrets"),
        };
        let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural);
        Api::namespaced_with(self.client.clone(), NAMESPACE, &resource)
    }

    pub(crate) async fn apply(&self, object: &Value) -> Value {
        let api = self.api(object["kind"].as_str().unwrap());
        let name = object["metadata"]["name"].as_str().unwrap();
        let stored = api
            .patch(name, &PatchParams::apply("test").force(), &Patch::Apply(object))
            .await;
        serde_json::to_value(stored.unwrap()).unwrap()
    }

    pub(crate) async fn merge(&self, kind: &str, name: &str, patch: &Value) {
        let api = self.api(kind);
        api.patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await
            .unwrap();
    }

    pub(crate) async fn status(&self, kind: &str, name: &str, status: &Value) {
        let api = self.api(kind);
        let patch = json!({ "status": status });
        api.patch_status(name, &PatchParams::default(), &Patch::Merge(&patch))
            .await
            .unwrap();
    }

    pub(crate) async fn delete(&self, kind: &str, name: &str) {
        let api = self.api(kind);
        api.delete(name, &DeleteParams::default()).await.unwrap();
    }

    pub(crate) async fn get(&self, kind: &str, name: &str) -> Value {
        let api = self.api(kind);
        let found = api.get_opt(name).await.unwrap();
        found
            .map(|object| serde_json::to_value(object).unwrap())
            .unwrap_or_default()
    }

    /// A Cluster that can be reached.
    pub(crate) async fn cluster(&self, name: &str) -> Workload {
        let workload = self.unready_cluster(name).await;
        self.initialize(name).await;
        workload
    }

    /// The same before its control plane is initialized.
    pub(crate) async fn unready_cluster(&self, name: &str) -> Workload {
        self.apply(&json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"controlPlaneRef": {"apiGroup": "x.io", "kind": "X", "name": "x"}},
        }))
        .await;
        let workload = Workload::start().await;
        self.kubeconfig(name, &workload).await;
        self.status(
            "Cluster",
            name,
            &json!({"initialization": {"infrastructureProvisioned": true}}),
        )
        .await;
        workload
    }

    pub(crate) async fn initialize(&self, name: &str) {
        self.status(
            "Cluster",
            name,
            &json!({"initialization": {"controlPlaneInitialized": true}}),
        )
        .await;
    }

    pub(crate) async fn kubeconfig(&self, cluster: &str, workload: &Workload) {
        self.secret(&format!("{cluster}-kubeconfig"), "value", &workload.kubeconfig())
            .await;
    }

    pub(crate) async fn secret(&self, name: &str, key: &str, value: &str) {
        self.apply(&json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": NAMESPACE},
            "stringData": { key: value },
        }))
        .await;
    }

    /// Applies a HelmReleaseProxy for chart `web` on a Cluster, with more of a spec.
    pub(crate) async fn proxy(&self, name: &str, cluster: &str, more: Value) -> Value {
        let mut spec = json!({
            "clusterRef": {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": cluster, "namespace": NAMESPACE},
            "chartName": "web", "repoURL": "https://charts.example.com", "namespace": "apps", "version": "1.0.0",
            "releaseName": "web", "values": "replicas: 1\n",
        });
        for (key, value) in more.as_object().into_iter().flatten() {
            if value.is_null() {
                spec.as_object_mut().unwrap().remove(key);
            } else {
                spec[key.as_str()] = value.clone();
            }
        }
        self.apply(&json!({
            "apiVersion": "addons.cluster.x-k8s.io/v1alpha1", "kind": "HelmReleaseProxy",
            "metadata": {
                "name": name, "namespace": NAMESPACE,
                "labels": {"helmreleaseproxy.addons.cluster.x-k8s.io/helmchartproxy-name": format!("of-{name}")},
            },
            "spec": spec,
        }))
        .await
    }

    pub(crate) async fn list(&self, kind: &str) -> Vec<DynamicObject> {
        let api = self.api(kind);
        api.list(&ListParams::default()).await.unwrap().items
    }

    /// Waits until an object is as it should be; `null` is one that is gone.
    pub(crate) async fn wait(&self, kind: &str, name: &str, what: &str, is_right: impl Fn(&Value) -> bool) -> Value {
        let api = self.api(kind);
        let value = |all: &[DynamicObject]| {
            all.first()
                .map_or(Value::Null, |object| serde_json::to_value(object).unwrap())
        };
        match wait::until(api, Some(name), |all| is_right(&value(all))).await {
            Some(all) => value(&all),
            None => panic!(
                "waited in vain for {kind} {name}: {what}; it is {:#}",
                self.get(kind, name).await
            ),
        }
    }

    /// Waits until a release is deployed at a revision, and the object says so of what it wants now.
    pub(crate) async fn deployed(&self, name: &str, revision: u32) -> Value {
        self.wait(
            "HelmReleaseProxy",
            name,
            &format!("deployed at revision {revision}"),
            |object| {
                let status = &object["status"];
                let ready = condition(object, "Ready");
                ready["status"] == "True"
                    && status["observedGeneration"] == object["metadata"]["generation"]
                    && status["status"] == "deployed"
                    && status["revision"] == revision
            },
        )
        .await
    }

    /// Waits until a condition is False for a reason, with these words.
    pub(crate) async fn blocked(&self, name: &str, type_: &str, reason: &str, words: &str) -> Value {
        self.wait(
            "HelmReleaseProxy",
            name,
            &format!("{type_} False {reason} {words}"),
            |object| {
                let found = condition(object, type_);
                let message = found["message"].as_str().unwrap_or_default();
                found["status"] == "False" && found["reason"] == reason && message.contains(words)
            },
        )
        .await
    }

    pub(crate) async fn gone(&self, name: &str) {
        self.wait("HelmReleaseProxy", name, "gone", Value::is_null).await;
    }

    /// Waits until something is so that no watch tells of.
    pub(crate) async fn until(&self, what: &str, is_so: impl AsyncFn() -> bool) {
        let mut looks = wait::looks();
        let done = tokio::time::timeout(wait::TIMEOUT, async {
            while !is_so().await {
                looks.tick().await;
            }
        });
        assert!(
            done.await.is_ok(),
            "waited in vain until {what}; asked so far: {:?}",
            self.helm.calls()
        );
    }

    /// Has an object looked at again, so many times.
    pub(crate) async fn poke(&self, name: &str, times: usize) {
        for touch in 0..times {
            let looks = self.looks();
            let patch = json!({"metadata": {"annotations": {"touched": touch.to_string()}}});
            self.merge("HelmReleaseProxy", name, &patch).await;
            self.until("it is looked at", async || self.looks() > looks).await;
        }
    }
}

/// The release `web` in namespace `apps`.
pub(crate) fn web(workload: &Workload) -> Place {
    Place::new(workload.client(), "apps", "web")
}

pub(crate) fn condition<'a>(object: &'a Value, type_: &str) -> &'a Value {
    let mut all = object["status"]["conditions"].as_array().into_iter().flatten();
    all.find(|condition| condition["type"] == type_).unwrap_or(&Value::Null)
}

/// A Secret of the management cluster.
pub(crate) fn secrets(env: &Env) -> Api<Secret> {
    Api::namespaced(env.client.clone(), NAMESPACE)
}
