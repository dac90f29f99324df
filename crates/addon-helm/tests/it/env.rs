//! An API server with the kinds of the add-on provider and of Clusters, and controllers on it.

use std::fmt::Debug;
use std::sync::Arc;

use futures::future::BoxFuture;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use kube::core::NamespaceResourceScope;
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use windlass_addon_helm::chart_proxy;
use windlass_addon_helm::lookup::ChartLookup;
use windlass_api::core::Cluster;
use windlass_api_ext::addons::{HelmChartProxy, HelmReleaseProxy};
use windlass_controller_runtime::{Cx, Metrics, Runtime, transport};
use windlass_testkit::faults::Faults;
use windlass_testkit::{Server, wait};

/// Where tests declare things.
pub(crate) const NAMESPACE: &str = "fleet";
/// The HelmChartProxy of most tests.
pub(crate) const CHART: &str = "calico";

/// A reference to a control plane of a kind that is not there: a Cluster has to have one of its references.
pub(crate) fn control_plane() -> Value {
    json!({"apiGroup": "x.io", "kind": "X", "name": "x"})
}

/// Every chart can be fetched.
struct AllCharts;

impl ChartLookup for AllCharts {
    fn look<'a>(&'a self, _: &'a Cx, _: &'a HelmReleaseProxy) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async { Ok(()) })
    }
}

pub(crate) struct Env {
    pub(crate) server: Server,
    pub(crate) client: kube::Client,
    kit: Option<Runtime>,
}

/// A kind that lives in namespaces.
pub(crate) trait Kind:
    kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + Clone
    + Debug
    + Serialize
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
}

impl<K> Kind for K where
    K: kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + Serialize
        + DeserializeOwned
        + Send
        + Sync
        + 'static
{
}

impl Env {
    /// With the controller of charts.
    pub(crate) async fn start() -> Self {
        let mut env = Self::idle().await;
        env.run(&Faults::none());
        env
    }

    /// The same where objects can be stored that admission refuses.
    pub(crate) async fn start_unadmitted() -> Self {
        let mut env = Self::on(Server::without_admission().await).await;
        env.run(&Faults::none());
        env
    }

    /// Without controllers yet.
    pub(crate) async fn idle() -> Self {
        Self::on(Server::with_definitions().await).await
    }

    async fn on(server: Server) -> Self {
        let env = Self {
            client: server.client("test"),
            server,
            kit: None,
        };
        for namespace in [NAMESPACE, "elsewhere"] {
            let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
            let api: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(env.client.clone());
            api.patch(namespace, &PatchParams::apply("test"), &Patch::Apply(&object))
                .await
                .unwrap();
        }
        env
    }

    /// Starts the controller of charts.
    pub(crate) fn run(&mut self, faults: &Faults) {
        let metrics = Metrics::new();
        let client = transport::in_process(faults.wrap(self.server.service("addon-helm")), &metrics);
        let kit = Runtime::builder(client).metrics(metrics).build();
        kit.start(vec![chart_proxy::entry(Arc::new(AllCharts))]);
        self.kit = Some(kit);
    }

    /// Ends it, as the end of its process does.
    pub(crate) async fn stop(&mut self) {
        if let Some(kit) = self.kit.take() {
            kit.shutdown().await;
        }
    }

    pub(crate) fn api<K: Kind>(&self) -> Api<K> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    /// Applies an object as a person does.
    pub(crate) async fn apply<K: Kind>(&self, mut object: Value) -> K {
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or(NAMESPACE).to_owned();
        object["metadata"]["namespace"] = json!(namespace);
        object["apiVersion"] = json!(K::api_version(&()));
        object["kind"] = json!(K::kind(&()));
        let api: Api<K> = Api::namespaced(self.client.clone(), &namespace);
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        api.patch(&name, &PatchParams::apply("test").force(), &Patch::Apply(&object))
            .await
            .unwrap()
    }

    /// A merge patch.
    pub(crate) async fn merge<K: Kind>(&self, name: &str, patch: Value) {
        self.api::<K>()
            .patch(name, &PatchParams::default(), &Patch::Merge(&patch))
            .await
            .unwrap();
    }

    pub(crate) async fn merge_status<K: Kind>(&self, name: &str, patch: Value) {
        self.api::<K>()
            .patch_status(name, &PatchParams::default(), &Patch::Merge(&patch))
            .await
            .unwrap();
    }

    pub(crate) async fn delete<K: Kind>(&self, name: &str) {
        self.api::<K>().delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// A Cluster that the chart of most tests chooses.
    pub(crate) async fn cluster(&self, name: &str) {
        let labels = json!({"cni": "calico"});
        let network = json!({"pods": {"cidrBlocks": ["10.0.0.0/16"]}});
        let spec = json!({"clusterNetwork": network, "paused": false, "controlPlaneRef": control_plane()});
        self.apply::<Cluster>(json!({"metadata": {"name": name, "labels": labels}, "spec": spec}))
            .await;
    }

    /// A chart for all Clusters with `cni=calico`.
    pub(crate) async fn chart(&self, spec: Value) -> HelmChartProxy {
        let mut all = json!({
            "clusterSelector": {"matchLabels": {"cni": "calico"}},
            "chartName": "tigera-operator",
            "repoURL": "https://charts.example",
        });
        for (key, value) in spec.as_object().into_iter().flatten() {
            all[key] = value.clone();
        }
        self.apply(json!({"metadata": {"name": CHART}, "spec": all})).await
    }

    /// Waits until all HelmReleaseProxies of the namespace are as they should be together.
    pub(crate) async fn releases(
        &self,
        what: &str,
        is_right: impl Fn(&[HelmReleaseProxy]) -> bool,
    ) -> Vec<HelmReleaseProxy> {
        let sorted = |all: &[HelmReleaseProxy]| {
            let mut all = all.to_vec();
            all.sort_by(|a, b| a.spec.cluster_name().cmp(b.spec.cluster_name()));
            all
        };
        let found = wait::until(self.api::<HelmReleaseProxy>(), None, |all| is_right(&sorted(all)));
        if let Some(all) = found.await {
            return sorted(&all);
        }
        let all = self
            .api::<HelmReleaseProxy>()
            .list(&ListParams::default())
            .await
            .unwrap()
            .items;
        let chart = self.api::<HelmChartProxy>().get_opt(CHART).await.unwrap();
        panic!("waited in vain for {what}: {:#}", json!([chart, all]))
    }

    /// Waits until these Clusters have one HelmReleaseProxy each, and no others.
    pub(crate) async fn served(&self, clusters: &[&str]) -> Vec<HelmReleaseProxy> {
        self.releases(&format!("one for each of {clusters:?}"), |all| {
            let names: Vec<&str> = all.iter().map(|release| release.spec.cluster_name()).collect();
            names == clusters
        })
        .await
    }

    /// Waits until the chart is as it should be.
    pub(crate) async fn chart_is(&self, what: &str, is_right: impl Fn(&Value) -> bool) -> Value {
        let value = |all: &[HelmChartProxy]| {
            all.first()
                .map_or(Value::Null, |one| serde_json::to_value(one).unwrap())
        };
        let found = wait::until(self.api::<HelmChartProxy>(), Some(CHART), |all| is_right(&value(all)));
        if let Some(all) = found.await {
            return value(&all);
        }
        let chart = self.api::<HelmChartProxy>().get_opt(CHART).await.unwrap();
        panic!("waited in vain for {what}: {:#}", json!(chart))
    }

    /// Waits until a condition of the chart, for the generation that there is, has a status, a reason, and these words.
    pub(crate) async fn told(&self, type_: &str, status: &str, reason: &str, words: &[&str]) {
        let what = format!("condition {type_} {status} {reason} with {words:?}");
        self.chart_is(&what, |chart| {
            let found = condition(chart, type_);
            let message = found["message"].as_str().unwrap_or_default();
            found["status"] == status
                && found["reason"] == reason
                && found["observedGeneration"] == chart["metadata"]["generation"]
                && words.iter().all(|word| message.contains(word))
        })
        .await;
    }

    /// Says of all releases that they are installed, as their controller does.
    pub(crate) async fn all_ready(&self) {
        for release in self
            .api::<HelmReleaseProxy>()
            .list(&ListParams::default())
            .await
            .unwrap()
        {
            self.ready(&release).await;
        }
    }

    /// Says of a release that it is installed.
    pub(crate) async fn ready(&self, release: &HelmReleaseProxy) {
        let one = |type_: &str| json!({"type": type_, "status": "True", "reason": type_, "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"});
        let conditions = ["ClusterAvailable", "HelmReleaseReady", "Ready"].map(one);
        let status = json!({"observedGeneration": release.metadata.generation, "conditions": conditions});
        self.merge_status::<HelmReleaseProxy>(name(release), json!({"status": status}))
            .await;
    }
}

pub(crate) fn name(release: &HelmReleaseProxy) -> &str {
    release.metadata.name.as_deref().unwrap_or_default()
}

pub(crate) fn condition<'a>(object: &'a Value, type_: &str) -> &'a Value {
    let mut conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    conditions
        .find(|condition| condition["type"] == type_)
        .unwrap_or(&Value::Null)
}

/// Notes the writes of a controller but for events, whatever becomes of them.
#[derive(Clone, Default)]
pub(crate) struct Writes(Arc<Mutex<Vec<String>>>);

impl Writes {
    pub(crate) fn faults(&self) -> Faults {
        let written = self.0.clone();
        Faults::when(move |request| {
            if request.is_write() && !request.path.contains("/events") {
                written.lock().push(request.path.clone());
            }
            None
        })
    }

    /// Those since the last call to kinds with this plural, and to all others.
    pub(crate) fn taken(&self, plural: &str) -> (usize, usize) {
        let written = std::mem::take(&mut *self.0.lock());
        let of_kind = written.iter().filter(|path| path.contains(plural)).count();
        (of_kind, written.len() - of_kind)
    }
}
