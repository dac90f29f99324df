//! The environment of a test: the management cluster, a helm, the servers of charts, and a user's view of them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Output, Stdio};
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::GroupVersionKind;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;
use tokio::sync::Notify;
use windlass_addon_helm::names;
use windlass_api::Condition;
use windlass_api_ext::addons::{HelmChartProxy, HelmReleaseProxy};
use windlass_controller_runtime::{Backoff, Metrics, ObjectKey, transport};
use windlass_envtest::Tools;
use windlass_fake_providers::{ChartLike, Forge, Proxy, hosts};
use windlass_manager::registry::helm::HelmUse;
use windlass_manager::registry::kinds;
use windlass_testkit::{CLASS, ClusterOf, Env, Kind, NAMESPACE, wait};

/// Generates two tests from one, for each helm.
macro_rules! with_both {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        mod $name {
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn helm3() {
                $crate::helm_addons::world::run("helm", super::$name).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn helm4() {
                $crate::helm_addons::world::run("helm4", super::$name).await;
            }
        }
    };
}
pub(super) use with_both;

/// Runs a test with a helm. Without it the test is left out with a message.
pub(super) async fn run(tool: &'static str, test: impl AsyncFnOnce(&World)) {
    let Some(program) = Tools::required(tool) else {
        return;
    };
    let why = "one helm is enough there, the newer; both run on the embedded server";
    if tool == "helm" && Kind::leaves_out(&[Kind::Embedded, Kind::Socket], why) {
        return;
    }
    let world = World::start(program).await;
    test(&world).await;
    world.env.stop().await;
}

/// The type of the Secrets in which Helm keeps releases.
const SECRET_TYPE: &str = "helm.sh/release.v1";

/// A chart with one ConfigMap, which shows its values.
pub(super) fn chart(version: &str) -> ChartLike {
    chart_of("web", version)
}

/// [`chart`] with another name.
pub(super) fn chart_of(name: &str, version: &str) -> ChartLike {
    ChartLike::new(name, version)
        .file("values.yaml", "greeting: hello\npods: none\n")
        .file(
            "templates/map.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\ndata:\n  greeting: {{ .Values.greeting }}\n  \
             pods: {{ .Values.pods | quote }}\n  version: {{ .Chart.Version }}\n",
        )
}

/// A folder of the forge's web server that is a chart repository.
pub(super) fn repository(folder: &str) -> String {
    format!("https://{}/{folder}", hosts::WEB)
}

/// The environment of a test.
pub(super) struct World {
    pub(super) env: Env,
    pub(super) forge: Forge,
    program: PathBuf,
    folder: TempDir,
    _proxy: Proxy,
}

impl World {
    async fn start(program: PathBuf) -> Self {
        let forge = Forge::start().await.unwrap();
        let proxy = Proxy::start(forge.hosts(), None).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let mut helm = HelmUse::new(folder.path().join("home"));
        program.clone_into(&mut helm.program.program);
        let way = format!("http://{}", proxy.address());
        let variable = |name: &str| (name.to_owned(), way.clone().into());
        helm.program.environment = ["HTTPS_PROXY", "HTTP_PROXY"].map(variable).into();
        helm.releases.ask_every = Duration::from_secs(2);
        helm.releases.retry = Backoff::new(Duration::from_secs(2), Duration::from_secs(4));
        let env = Env::builder().helm(&helm).start().await;
        env.apply_yaml(CLASS).await;
        let world = Self {
            env,
            forge,
            program,
            folder,
            _proxy: proxy,
        };
        world.secret("forge", &[("ca.crt", &world.forge.authority())]).await;
        world
    }

    /// A Secret of the management cluster.
    pub(super) async fn secret(&self, name: &str, data: &[(&str, &str)]) {
        let secrets: Api<Secret> = self.env.api();
        let data: BTreeMap<_, _> = data.iter().copied().collect();
        let object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data});
        let parameters = PatchParams::apply("test").force();
        secrets.patch(name, &parameters, &Patch::Apply(&object)).await.unwrap();
    }

    /// Clusters with one machine each and the label of [`Self::chart_proxy`]'s selector.
    pub(super) async fn clusters(&self, names: &[&str]) {
        for name in names {
            ClusterOf::new(name, 1, 0).apply(&self.env).await;
            self.label(name, Some("yes")).await;
        }
    }

    /// The HelmChartProxy `web`, with additional spec fields.
    pub(super) async fn web(&self, more: &Value) {
        self.chart_proxy("web", more).await;
    }

    /// A HelmChartProxy for the chart `web` and a release of its own name, with additional spec fields; null removes a field.
    pub(super) async fn chart_proxy(&self, name: &str, more: &Value) {
        self.env.apply(&chart_proxy(NAMESPACE, name, more)).await;
    }

    pub(super) async fn label(&self, cluster: &str, value: Option<&str>) {
        let patch = json!({"metadata": {"labels": {"web": value}}});
        self.env.merge("Cluster", cluster, &patch).await;
    }

    /// Waits until a HelmChartProxy has one release on a cluster, deployed at a revision.
    pub(super) async fn deployed(&self, name: &str, cluster: &str, revision: i64) -> HelmReleaseProxy {
        let what = format!("the release of {name} on {cluster} to be deployed at revision {revision}");
        let is_right = |proxy: &HelmReleaseProxy| {
            let status = proxy.status.clone().unwrap_or_default();
            is_ready(proxy) && status.revision == Some(revision) && status.status.as_deref() == Some("deployed")
        };
        self.release(&what, name, cluster, is_right).await
    }

    /// Waits until a HelmChartProxy has one HelmReleaseProxy for a cluster that satisfies a condition.
    pub(super) async fn release(
        &self,
        what: &str,
        name: &str,
        cluster: &str,
        is_right: impl Fn(&HelmReleaseProxy) -> bool,
    ) -> HelmReleaseProxy {
        let its = |proxy: &&HelmReleaseProxy| is_of(proxy, name, cluster);
        let is_so =
            |all: &[HelmReleaseProxy]| all.iter().filter(its).count() == 1 && all.iter().filter(its).all(&is_right);
        let all = self.env.wait_all::<HelmReleaseProxy>(what, is_so).await;
        all.into_iter().find(|proxy| is_of(proxy, name, cluster)).unwrap()
    }

    /// Waits until a HelmReleaseProxy is not ready for a reason, with all of these parts in its message. Returns the message.
    pub(super) async fn blocked(&self, name: &str, cluster: &str, reason: &str, parts: &[&str]) -> String {
        let what = format!("the release of {name} on {cluster} to say {reason} with {parts:?}");
        let says = |proxy: &HelmReleaseProxy| {
            let status = proxy.status.clone().unwrap_or_default();
            let ready = ready(&status.conditions);
            ready.status == "False" && ready.reason == reason && parts.iter().all(|part| ready.message.contains(part))
        };
        let found = self.release(&what, name, cluster, says).await;
        ready(&found.status.unwrap().conditions).message
    }

    /// Waits until a HelmChartProxy is ready, or not ready for a reason, with all of these parts in its message and none of the
    /// others.
    pub(super) async fn told(&self, name: &str, reason: &str, parts: &[&str], others: &[&str]) {
        let what = format!("to say {reason} with {parts:?} and without {others:?}");
        let key = ObjectKey::new(NAMESPACE, name);
        let says = |proxy: &HelmChartProxy| {
            let status = proxy.status.clone().unwrap_or_default();
            let ready = ready(&status.conditions);
            let has = |part: &&str| ready.message.contains(part);
            let is_new = status.observed_generation == proxy.metadata.generation;
            is_new && ready.reason == reason && parts.iter().all(has) && !others.iter().any(has)
        };
        self.env.wait_for::<HelmChartProxy>(&key, &what, says).await;
    }

    pub(super) async fn kubeconfig(&self, cluster: &str) -> String {
        let secrets: Api<Secret> = self.env.api();
        kubeconfig(&secrets, cluster).await
    }

    /// A user's client for a cluster.
    pub(super) async fn client(&self, cluster: &str) -> kube::Client {
        client(&self.kubeconfig(cluster).await).await
    }

    /// The data that the chart of a release rendered.
    pub(super) async fn data(&self, cluster: &str, namespace: &str, release: &str) -> BTreeMap<String, String> {
        let maps: Api<ConfigMap> = Api::namespaced(self.client(cluster).await, namespace);
        maps.get(release).await.unwrap().data.unwrap()
    }

    /// A file with a chart.
    pub(super) async fn archive(&self, chart: &ChartLike) -> String {
        let path = self
            .folder
            .path()
            .join(format!("{}-{}.tgz", chart.name(), chart.version()));
        tokio::fs::write(&path, chart.archive()).await.unwrap();
        path.to_str().unwrap().to_owned()
    }

    async fn command(&self, cluster: &str, kubeconfig: &str, arguments: &[&str]) -> Command {
        let path = self.folder.path().join(format!("{cluster}.kubeconfig"));
        tokio::fs::write(&path, kubeconfig).await.unwrap();
        let mut command = Command::new(&self.program);
        command
            .args(arguments)
            .env_clear()
            .env("KUBECONFIG", &path)
            .env("HOME", self.folder.path())
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command
    }

    /// The output of a user's helm for a cluster.
    pub(super) async fn helm(&self, cluster: &str, arguments: &[&str]) -> String {
        let kubeconfig = self.kubeconfig(cluster).await;
        let output = self.command(cluster, &kubeconfig, arguments).await.output().await;
        printed(arguments, &output.unwrap())
    }

    /// All releases on a cluster, as `NAMESPACE/NAME CHART rREVISION STATUS`.
    pub(super) async fn listed(&self, cluster: &str) -> Vec<String> {
        self.listed_by(cluster, &self.kubeconfig(cluster).await).await
    }

    /// [`Self::listed`] by a kubeconfig.
    pub(super) async fn listed_by(&self, cluster: &str, kubeconfig: &str) -> Vec<String> {
        let arguments = ["list", "-A", "-o", "json"];
        let output = self.command(cluster, kubeconfig, &arguments).await.output().await;
        let all: Vec<Value> = serde_json::from_str(&printed(&arguments, &output.unwrap())).unwrap();
        let line = |release: &Value| {
            let of = |field: &str| release[field].as_str().unwrap().to_owned();
            let (name, chart) = (of("name"), of("chart"));
            format!(
                "{}/{name} {chart} r{} {}",
                of("namespace"),
                of("revision"),
                of("status")
            )
        };
        let mut lines: Vec<String> = all.iter().map(line).collect();
        lines.sort();
        lines
    }

    /// A user's helm starts an operation on `NAMESPACE/NAME` that would not end, and is killed.
    pub(super) async fn break_off(&self, cluster: &str, release: &str, arguments: &[&str]) {
        let kubeconfig = self.kubeconfig(cluster).await;
        let secrets: Api<Secret> = Api::all(client(&kubeconfig).await);
        let mut command = self.command(cluster, &kubeconfig, arguments).await;
        let mut running = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let is_begun = |all: &[Secret]| {
            let mut all = all.iter().filter(|secret| secret.type_.as_deref() == Some(SECRET_TYPE));
            all.any(|secret| named(secret).starts_with(&format!("{release} pending")))
        };
        let begun = wait::until(secrets, None, is_begun).await;
        assert!(begun.is_some(), "helm {arguments:?} leaves nothing that is pending");
        running.kill().await.unwrap();
    }

    /// Runs an action that leads to another release on a cluster, and waits for it. Returns all releases there after each change.
    pub(super) async fn history(&self, cluster: &str, release: &str, act: impl AsyncFnOnce()) -> Vec<Vec<String>> {
        let secrets: Api<Secret> = Api::all(self.client(cluster).await);
        let seen: Mutex<Vec<BTreeMap<String, String>>> = Mutex::default();
        let begun = Notify::new();
        let is_there = |all: &[Secret]| {
            let all = all.iter().filter(|secret| secret.type_.as_deref() == Some(SECRET_TYPE));
            let now = all.map(|secret| (secret.metadata.uid.clone().unwrap(), named(secret)));
            let now: BTreeMap<_, _> = now.collect();
            let mut seen = seen.lock();
            seen.push(now.clone());
            begun.notify_one();
            let wanted = format!("{release} deployed");
            now.iter()
                .any(|(uid, name)| *name == wanted && !seen[0].contains_key(uid))
        };
        let watched = wait::until(secrets, None, is_there);
        let acted = async {
            begun.notified().await;
            act().await;
        };
        let (found, ()) = tokio::join!(watched, acted);
        let seen = seen.into_inner().into_iter().map(|now| now.into_values().collect());
        let seen: Vec<Vec<String>> = seen.collect();
        assert!(found.is_some(), "there is no new {release} on {cluster}: {seen:?}");
        seen
    }

    /// Applies an object to any namespace.
    pub(super) async fn apply_to(&self, namespace: &str, object: &Value) {
        let (kind, name) = (
            object["kind"].as_str().unwrap(),
            object["metadata"]["name"].as_str().unwrap(),
        );
        let entry = kinds::find(kind).unwrap();
        let gvk = GroupVersionKind::gvk(entry.group, entry.version, entry.kind);
        let resource = ApiResource::from_gvk_with_plural(&gvk, entry.plural);
        let objects: Api<DynamicObject> = Api::namespaced_with(self.env.client().clone(), namespace, &resource);
        let mut object = object.clone();
        object["metadata"]["namespace"] = namespace.into();
        let parameters = PatchParams::apply("test").force();
        objects.patch(name, &parameters, &Patch::Apply(&object)).await.unwrap();
    }
}

/// A revision of a release from its Secret: `NAMESPACE/NAME STATUS`.
fn named(secret: &Secret) -> String {
    let label = |key: &str| secret.metadata.labels.as_ref().unwrap()[key].as_str();
    let namespace = secret.metadata.namespace.as_deref().unwrap();
    format!("{namespace}/{} {}", label("name"), label("status"))
}

/// A HelmChartProxy.
pub(super) fn chart_proxy(namespace: &str, name: &str, more: &Value) -> Value {
    let mut spec = json!({
        "clusterSelector": {"matchLabels": {"web": "yes"}},
        "chartName": "web", "repoURL": repository("charts"), "version": "1.0.0", "releaseName": name, "namespace": "apps",
        "tlsConfig": {"caSecret": {"name": "forge"}},
        "valuesTemplate": "pods: {{ index .Cluster.spec.clusterNetwork.pods.cidrBlocks 0 }}\n",
    });
    let spec = spec.as_object_mut().unwrap();
    for (key, value) in more.as_object().into_iter().flatten() {
        spec.insert(key.clone(), value.clone());
    }
    spec.retain(|_, value| !value.is_null());
    json!({
        "apiVersion": "addons.cluster.x-k8s.io/v1alpha1", "kind": "HelmChartProxy",
        "metadata": {"name": name, "namespace": namespace}, "spec": spec,
    })
}

/// Whether a HelmReleaseProxy belongs to a HelmChartProxy and a cluster.
pub(super) fn is_of(proxy: &HelmReleaseProxy, name: &str, cluster: &str) -> bool {
    names::has_labels(&proxy.metadata, &names::labels(name, cluster))
}

/// Whether the current spec of a HelmReleaseProxy is applied.
pub(super) fn is_ready(proxy: &HelmReleaseProxy) -> bool {
    let status = proxy.status.clone().unwrap_or_default();
    let is_new = status.observed_generation == proxy.metadata.generation;
    is_new && proxy.metadata.deletion_timestamp.is_none() && ready(&status.conditions).status == "True"
}

/// The condition Ready; empty without one.
#[derive(Default)]
struct Said {
    status: String,
    reason: String,
    message: String,
}

fn ready(conditions: &[Condition]) -> Said {
    let found = conditions.iter().find(|condition| condition.type_ == "Ready");
    found.cloned().map_or_else(Said::default, |ready| Said {
        status: ready.status,
        reason: ready.reason,
        message: ready.message,
    })
}

fn printed(arguments: &[&str], output: &Output) -> String {
    let why = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "helm {arguments:?}: {why}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The kubeconfig of a cluster, from the Secrets of its namespace.
pub(super) async fn kubeconfig(secrets: &Api<Secret>, cluster: &str) -> String {
    let secret = secrets.get(&format!("{cluster}-kubeconfig")).await.unwrap();
    String::from_utf8(secret.data.unwrap()["value"].0.clone()).unwrap()
}

/// A client for a kubeconfig.
pub(super) async fn client(kubeconfig: &str) -> kube::Client {
    let kubeconfig = Kubeconfig::from_yaml(kubeconfig).unwrap();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    transport::connect(&config.unwrap(), &Metrics::new()).unwrap()
}
