//! Charts on simulated clusters, by the real helm: from a HelmChartProxy to what `helm list` shows there.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::api::{Api, Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;
use windlass_api_addons::HelmReleaseProxy;
use windlass_forge::{ChartLike, Forge, Proxy, hosts};
use windlass_judge::Tools;
use windlass_kit::{Metrics, transport};
use windlass_suite::helm::HelmUse;
use windlass_testkit::{CLASS, ClusterOf, Env, NAMESPACE};

/// A chart with one ConfigMap, which shows what it was rendered with.
fn chart(version: &str) -> ChartLike {
    ChartLike::new("web", version)
        .file("values.yaml", "greeting: hello\npods: none\n")
        .file(
            "templates/map.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\ndata:\n  greeting: {{ .Values.greeting }}\n  \
             pods: {{ .Values.pods | quote }}\n  version: {{ .Chart.Version }}\n",
        )
}

/// Everything that a test of this sort has.
struct World {
    env: Env,
    forge: Forge,
    program: PathBuf,
    folder: TempDir,
    _proxy: Proxy,
}

impl World {
    /// `None`, and a line that says so, where there is no helm.
    async fn start() -> Option<Self> {
        let program = match Tools::program("helm") {
            Ok(program) => program,
            Err(error) => {
                use std::io::Write as _;
                let thread = std::thread::current();
                // Not by a macro: what these print is shown only for tests that fail.
                let line = format!("left out: {}: {error}\n", thread.name().unwrap_or("a test"));
                let _ = std::io::stderr().write_all(line.as_bytes());
                return None;
            }
        };
        let forge = Forge::start().await.unwrap();
        let proxy = Proxy::start(forge.hosts(), None).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let mut helm = HelmUse::new(folder.path().join("home"));
        program.clone_into(&mut helm.program.program);
        let way = format!("http://{}", proxy.address());
        let variable = |name: &str| (name.to_owned(), way.clone().into());
        helm.program.environment = ["HTTPS_PROXY", "HTTP_PROXY"].map(variable).into();
        helm.releases.ask_every = Duration::from_secs(2);
        let env = Env::builder().helm(&helm).start().await;
        env.apply_yaml(CLASS).await;
        let secrets: Api<Secret> = env.api();
        let authority = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "forge"}, "stringData": {"ca.crt": forge.authority()},
        });
        let parameters = PatchParams::apply("test");
        secrets
            .patch("forge", &parameters, &Patch::Apply(&authority))
            .await
            .unwrap();
        Some(Self {
            env,
            forge,
            program,
            folder,
            _proxy: proxy,
        })
    }

    /// The HelmChartProxy of the test, with more of a spec.
    async fn chart_proxy(&self, more: &Value) {
        let mut spec = json!({
            "clusterSelector": {"matchLabels": {"web": "yes"}},
            "chartName": "web", "repoURL": format!("https://{}/charts", hosts::WEB), "releaseName": "web", "namespace": "apps",
            "tlsConfig": {"caSecret": {"name": "forge"}},
            "valuesTemplate": "pods: {{ index .Cluster.spec.clusterNetwork.pods.cidrBlocks 0 }}\n",
        });
        for (key, value) in more.as_object().into_iter().flatten() {
            spec[key.as_str()] = value.clone();
        }
        let object = json!({
            "apiVersion": "addons.cluster.x-k8s.io/v1alpha1", "kind": "HelmChartProxy",
            "metadata": {"name": "web", "namespace": NAMESPACE}, "spec": spec,
        });
        self.env.apply(&object).await;
    }

    async fn label(&self, cluster: &str, value: Option<&str>) {
        let patch = json!({"metadata": {"labels": {"web": value}}});
        self.env.merge("Cluster", cluster, &patch).await;
    }

    /// Waits until the one release is deployed at a revision.
    async fn deployed(&self, revision: i64) {
        let is_right = |proxy: &HelmReleaseProxy| {
            let status = proxy.status.clone().unwrap_or_default();
            let is_ready = status
                .conditions
                .iter()
                .any(|c| c.type_ == "Ready" && c.status == "True");
            is_ready && status.revision == Some(revision) && status.observed_generation == proxy.metadata.generation
        };
        let what = format!("one release, deployed at revision {revision}");
        self.env
            .wait_all::<HelmReleaseProxy>(&what, |all| all.len() == 1 && is_right(&all[0]))
            .await;
    }

    async fn kubeconfig(&self, cluster: &str) -> String {
        let secrets: Api<Secret> = self.env.api();
        let secret = secrets.get(&format!("{cluster}-kubeconfig")).await.unwrap();
        String::from_utf8(secret.data.unwrap()["value"].0.clone()).unwrap()
    }

    async fn client(&self, cluster: &str) -> kube::Client {
        let kubeconfig = Kubeconfig::from_yaml(&self.kubeconfig(cluster).await).unwrap();
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
        transport::connect(&config.unwrap(), &Metrics::new()).unwrap()
    }

    /// What a person's helm prints about a cluster.
    async fn helm(&self, cluster: &str, arguments: &[&str]) -> String {
        let path = self.folder.path().join(format!("{cluster}.kubeconfig"));
        tokio::fs::write(&path, self.kubeconfig(cluster).await).await.unwrap();
        let output = Command::new(&self.program)
            .args(arguments)
            .env_clear()
            .env("KUBECONFIG", &path)
            .env("HOME", self.folder.path())
            .stdin(Stdio::null())
            .output();
        let output = output.await.unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success(),
            "helm {arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        text
    }
}

// T1, T3, T4, T5, T7, T9, AD-025, AD-029, AD-036, AD-095, AD-099, AD-109, AD-115, AD-133: the whole way, and back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_chart_reaches_a_simulated_cluster_by_the_real_helm() {
    let Some(world) = World::start().await else { return };
    world.forge.chart("charts", &chart("1.0.0"));
    let cluster = ClusterOf::new("c1", 1, 0);
    cluster.apply(&world.env).await;
    world.label("c1", Some("yes")).await;
    world.chart_proxy(&json!({"version": "1.0.0"})).await;
    world.deployed(1).await;
    let listed: Value = serde_json::from_str(&world.helm("c1", &["list", "-n", "apps", "-o", "json"]).await).unwrap();
    let of = |field: &str| listed[0][field].as_str().unwrap().to_owned();
    assert_eq!(
        [of("name"), of("revision"), of("status"), of("chart")],
        ["web", "1", "deployed", "web-1.0.0"]
    );
    let maps: Api<ConfigMap> = Api::namespaced(world.client("c1").await, "apps");
    let data = async || maps.get("web").await.unwrap().data.unwrap();
    assert_eq!(data().await["pods"], "192.168.0.0/16");
    // Another version, and other values.
    world.forge.chart("charts", &chart("1.1.0"));
    world
        .chart_proxy(&json!({"version": "1.1.0", "valuesTemplate": "greeting: welcome\n"}))
        .await;
    world.deployed(2).await;
    let now = data().await;
    assert_eq!(
        (now["greeting"].as_str(), now["version"].as_str()),
        ("welcome", "1.1.0")
    );
    // What a person changes is put back.
    let archive = world.folder.path().join("web.tgz");
    tokio::fs::write(&archive, chart("1.1.0").archive()).await.unwrap();
    let archive = archive.to_str().unwrap();
    world
        .helm(
            "c1",
            &["upgrade", "web", archive, "-n", "apps", "--set", "greeting=mine"],
        )
        .await;
    world.deployed(4).await;
    assert_eq!(data().await["greeting"], "welcome");
    // Off again.
    world.label("c1", None).await;
    world.env.wait_all::<HelmReleaseProxy>("none", <[_]>::is_empty).await;
    assert_eq!(
        world.helm("c1", &["list", "-n", "apps", "-o", "json"]).await.trim(),
        "[]"
    );
    let namespaces: Api<Namespace> = Api::all(world.client("c1").await);
    assert!(namespaces.get("apps").await.is_ok());
    world.env.stop().await;
}

// T10, T13, AD-060, AD-103, AD-134: the newest version is followed, and what somebody installed by hand is left alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_newest_chart_is_followed_and_a_release_by_hand_is_left_alone() {
    let Some(world) = World::start().await else { return };
    world.forge.chart("charts", &chart("1.0.0"));
    let cluster = ClusterOf::new("c1", 1, 0);
    cluster.apply(&world.env).await;
    cluster.wait_running(&world.env).await;
    let archive = world.folder.path().join("web.tgz");
    tokio::fs::write(&archive, chart("0.9.0").archive()).await.unwrap();
    let archive = archive.to_str().unwrap();
    let by_hand = ["install", "web", archive, "-n", "apps", "--create-namespace"];
    world.helm("c1", &by_hand).await;
    world.label("c1", Some("yes")).await;
    world.chart_proxy(&json!({})).await;
    world
        .env
        .wait_all::<HelmReleaseProxy>("the name is in use", |all| {
            let conditions = all
                .iter()
                .flat_map(|proxy| proxy.status.iter().flat_map(|status| &status.conditions));
            conditions
                .into_iter()
                .any(|c| c.type_ == "Ready" && c.message.contains("the name is in use"))
        })
        .await;
    // Another name is free.
    world.chart_proxy(&json!({"releaseName": "ours"})).await;
    world.deployed(1).await;
    world.forge.chart("charts", &chart("1.1.0"));
    world.deployed(2).await;
    world.env.delete("HelmChartProxy", "web").await;
    world.env.wait_all::<HelmReleaseProxy>("none", <[_]>::is_empty).await;
    let listed: Value = serde_json::from_str(&world.helm("c1", &["list", "-n", "apps", "-o", "json"]).await).unwrap();
    let all: Vec<_> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|release| release["chart"].clone())
        .collect();
    assert_eq!(all, ["web-0.9.0"]);
    world.env.stop().await;
}
