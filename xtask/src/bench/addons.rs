//! `cargo xtask bench addons`: measures the cost of a chart on a fleet.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::time::sleep;
use windlass_fake_providers::{ChartLike, Forge};

use super::figures::{Figure, Figures, Unit};
use super::server::{Requests, Up};
use super::{build, say};

/// The polling interval, which is the precision of times.
const POLL: Duration = Duration::from_millis(250);
/// The timeout of each step.
const PATIENCE: Duration = Duration::from_mins(20);
/// The field manager.
const MANAGER: &str = "windlass-bench";
/// The namespace of all objects.
const NAMESPACE: &str = "default";
/// The HelmChartProxy, and its chart.
const CHART: &str = "oven";
/// The target for the memory of a chart on 200 clusters, in addition to the clusters, in MiB.
const MEMORY: f64 = 150.0;
/// The number of clusters of that target.
const FLEET: u32 = 200;

/// Options of `bench addons`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Options {
    /// How many simulated clusters, of one machine each
    #[arg(long, value_name = "N", default_value_t = FLEET, value_parser = clap::value_parser!(u32).range(1..))]
    clusters: u32,
    /// How long the settled fleet is left alone, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    idle: u64,
    /// The helm to run [default: the one that `cargo xtask tools` has built]
    #[arg(long, value_name = "FILE")]
    helm: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Measures and prints.
pub(crate) fn run(root: &Path, options: &Options) -> Result<(), String> {
    let program = build(root, &["windlass"])?.join("windlass");
    let helm = options
        .helm
        .clone()
        .unwrap_or_else(|| crate::cargo::target(root).join("tools/helm"));
    if !helm.exists() {
        return Err(format!(
            "{}: there is no helm; `cargo xtask tools` builds one, or name yours with --helm",
            helm.display()
        ));
    }
    let runtime = Runtime::new().map_err(|error| error.to_string())?;
    let mut figures = Figures::of_this_machine();
    runtime.block_on(fleet(root, &program, &helm, options, &mut figures))?;
    if options.json {
        anstream::println!("{}", figures.json());
    } else {
        anstream::print!("{}", figures.text());
    }
    Ok(())
}

async fn fleet(
    root: &Path,
    program: &Path,
    helm: &Path,
    options: &Options,
    figures: &mut Figures,
) -> Result<(), String> {
    let forge = Forge::start().await;
    let forge = forge.map_err(|error| format!("cannot listen on loopback: {error}"))?;
    forge.chart("charts", &chart());
    let line = ["--helm", &helm.to_string_lossy()].map(str::to_owned);
    let up = Up::start(program, &line)?;
    let client = up.client().await?;

    let count = options.clusters;
    say(&format!("{count} clusters without the chart"));
    for object in class(root)? {
        apply(&client, &object).await?;
    }
    for number in 0..count {
        apply(&client, &cluster(number)).await?;
    }
    let whole = |status: &Value| status["initialization"]["controlPlaneInitialized"] == true;
    wait(&client, "cluster.x-k8s.io/v1beta2", "Cluster", count, whole).await?;
    up.rest().await?;
    let title = format!("{count} clusters without a chart, left alone for {} s", options.idle);
    idle(&up, options, &title, figures).await?;

    let title = format!("one chart on {count} clusters");
    let before = Mark::of(&up)?;
    say(&title);
    let helms = up.children();
    apply(&client, &proxy(&forge, "small")).await?;
    wait(&client, ADDONS, "HelmReleaseProxy", count, deployed(1)).await?;
    let installed = Mark::of(&up)?;
    let most = helms.most();
    installed.since(&before, &format!("{title}, installed"), figures);
    figures.add(Figure::new(
        format!("{title}, installed: memory of the helms at work together, at most"),
        Unit::Mebibytes,
        vec![most],
        None,
    ));
    up.rest().await?;

    say("other values for all of them");
    let before = Mark::of(&up)?;
    apply(&client, &proxy(&forge, "large")).await?;
    wait(&client, ADDONS, "HelmReleaseProxy", count, deployed(2)).await?;
    Mark::of(&up)?.since(&before, &format!("{title}, upgraded to other values"), figures);
    up.rest().await?;

    idle(
        &up,
        options,
        &format!("{title}, left alone for {} s", options.idle),
        figures,
    )
    .await?;
    up.stop()
}

/// The cost of an idle fleet. Connections to workload clusters exist with and without a chart, so they are counted separately.
async fn idle(up: &Up, options: &Options, title: &str, figures: &mut Figures) -> Result<(), String> {
    say(title);
    let before = Mark::of(up)?;
    sleep(Duration::from_secs(options.idle)).await;
    let after = Mark::of(up)?;
    let requests = after.requests - before.requests;
    let processor = after.processor.0 - before.processor.0;
    for (what, unit, value, target) in [
        (
            "helm processes",
            Unit::Count,
            after.processes - before.processes,
            Some(0.0),
        ),
        (
            "requests but probes and watches",
            Unit::Count,
            requests.decided(),
            Some(0.0),
        ),
        ("probes of connections", Unit::Count, requests.probes, None),
        ("watches renewed", Unit::Count, requests.watches, None),
        ("processor time of windlass", Unit::Seconds, processor, None),
    ] {
        figures.add(Figure::new(format!("{title}: {what}"), unit, vec![value], target));
    }
    Ok(())
}

/// The resources used so far.
struct Mark {
    at: Instant,
    /// Processor time of Windlass, and of its child processes.
    processor: (f64, f64),
    memory: f64,
    requests: Requests,
    processes: f64,
}

impl Mark {
    fn of(up: &Up) -> Result<Self, String> {
        Ok(Self {
            at: Instant::now(),
            processor: up.processor_time()?,
            memory: up.memory_now()?,
            requests: up.requests()?,
            processes: up.metric("windlass_helm_processes_total")?,
        })
    }

    /// The resources used since.
    fn since(&self, before: &Self, title: &str, figures: &mut Figures) {
        let memory = (title.ends_with("installed") && title.contains(&format!("{FLEET} "))).then_some(MEMORY);
        for (what, unit, value, target) in [
            ("time", Unit::Seconds, (self.at - before.at).as_secs_f64(), None),
            (
                "processor time of windlass",
                Unit::Seconds,
                self.processor.0 - before.processor.0,
                None,
            ),
            (
                "processor time of helm",
                Unit::Seconds,
                self.processor.1 - before.processor.1,
                None,
            ),
            ("helm processes", Unit::Count, self.processes - before.processes, None),
            (
                "requests but probes and watches",
                Unit::Count,
                (self.requests - before.requests).decided(),
                None,
            ),
            (
                "memory beyond the clusters",
                Unit::Mebibytes,
                self.memory - before.memory,
                memory,
            ),
        ] {
            figures.add(Figure::new(format!("{title}: {what}"), unit, vec![value], target));
        }
    }
}

/// The API of add-ons.
const ADDONS: &str = "addons.cluster.x-k8s.io/v1alpha1";

/// Whether a release has this revision and is deployed.
fn deployed(revision: u32) -> impl Fn(&Value) -> bool {
    move |status| status["status"] == "deployed" && status["revision"] == revision
}

/// A typical add-on chart: a service account, permissions, settings, a Deployment and a Service.
fn chart() -> ChartLike {
    let object = |kind: &str, api: &str, rest: &str| {
        format!(
            "apiVersion: {api}\nkind: {kind}\nmetadata:\n  name: {{{{ .Release.Name }}}}\n  labels:\n    app: {CHART}\n{rest}"
        )
    };
    let pod = "spec:\n  replicas: {{ .Values.replicas }}\n  selector:\n    matchLabels:\n      app: oven\n  template:\n    metadata:\n      labels:\n        app: oven\n    spec:\n      containers:\n      - name: oven\n        image: oven:1.0\n";
    ChartLike::new(CHART, "1.0.0")
        .file("values.yaml", "replicas: 1\nsize: small\n")
        .file("templates/account.yaml", &object("ServiceAccount", "v1", ""))
        .file(
            "templates/settings.yaml",
            &object(
                "ConfigMap",
                "v1",
                "data:\n  size: {{ .Values.size }}\n  pods: {{ .Values.pods | quote }}\n",
            ),
        )
        .file(
            "templates/service.yaml",
            &object(
                "Service",
                "v1",
                "spec:\n  selector:\n    app: oven\n  ports:\n  - port: 80\n",
            ),
        )
        .file("templates/deployment.yaml", &object("Deployment", "apps/v1", pod))
}

/// The class of the examples.
fn class(root: &Path) -> Result<Vec<Value>, String> {
    let path = root.join("examples/clusterclass-quick-start.yaml");
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let objects: Result<Vec<Value>, _> = serde_saphyr::from_multiple(&text);
    objects.map_err(|error| format!("{}: {error}", path.display()))
}

fn cluster(number: u32) -> Value {
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": {"name": format!("fleet-{number:03}"), "labels": {"oven": "hot"}},
        "spec": {
            "clusterNetwork": {"pods": {"cidrBlocks": [format!("10.{}.0.0/16", number % 256)]}},
            "topology": {
                "classRef": {"name": "quick-start"},
                "version": "v1.35.0",
                "controlPlane": {"replicas": 1},
            },
        },
    })
}

fn proxy(forge: &Forge, size: &str) -> Value {
    json!({
        "apiVersion": ADDONS, "kind": "HelmChartProxy", "metadata": {"name": CHART},
        "spec": {
            "clusterSelector": {"matchLabels": {"oven": "hot"}},
            "repoURL": format!("http://{}/charts", forge.plain()),
            "tlsConfig": {"insecureSkipTLSVerify": true},
            "chartName": CHART, "releaseName": CHART, "version": "1.0.0",
            "valuesTemplate": format!(
                "size: {size}\npods: {{{{ index .Cluster.spec.clusterNetwork.pods.cidrBlocks 0 }}}}\n"
            ),
        },
    })
}

fn api(client: &kube::Client, api_version: &str, kind: &str) -> Api<DynamicObject> {
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    let mut resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    if kind.ends_with("Proxy") {
        resource.plural = kind.to_lowercase().replace("proxy", "proxies");
    }
    Api::namespaced_with(client.clone(), NAMESPACE, &resource)
}

async fn apply(client: &kube::Client, object: &Value) -> Result<(), String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (version, kind, name) = (
        text(&object["apiVersion"]),
        text(&object["kind"]),
        text(&object["metadata"]["name"]),
    );
    let api = api(client, &version, &kind);
    let sent = api
        .patch(&name, &PatchParams::apply(MANAGER), &Patch::Apply(object))
        .await;
    sent.map(drop)
        .map_err(|error| format!("cannot apply {kind} {name}: {error}"))
}

/// Waits until this many objects of a kind have the desired status.
async fn wait(
    client: &kube::Client,
    version: &str,
    kind: &str,
    count: u32,
    is_so: impl Fn(&Value) -> bool,
) -> Result<(), String> {
    let (api, started) = (api(client, version, kind), Instant::now());
    loop {
        let all = api
            .list(&ListParams::default())
            .await
            .map_err(|error| error.to_string())?;
        let right = all.iter().filter(|object| is_so(&object.data["status"])).count();
        if u32::try_from(right).is_ok_and(|right| right >= count) {
            return Ok(());
        }
        if started.elapsed() > PATIENCE {
            let wrong = all.iter().find(|object| !is_so(&object.data["status"]));
            let wrong = wrong.map(|object| object.data["status"].to_string());
            return Err(format!(
                "waited in vain for {count} {kind}: {right} are as they should; another: {}",
                wrong.unwrap_or_default()
            ));
        }
        sleep(POLL).await;
    }
}
