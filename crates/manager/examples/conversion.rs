//! What older API versions cost: `cargo xtask bench conversion`. Prints figures beside their targets, asserts nothing.
//!
//! Conversions are of encoded objects, each way, for every kind with an older version that the examples have an object of. Lists and watches are
//! requests to the embedded API server in process; a figure of watches is the processor time of the process (on Linux) for changes
//! that ten watches show.

use std::error::Error;
use std::io::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{Method, Request as HttpRequest};
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde_json::{Value, json};
use windlass_api_older::{OLDER, OlderVersion, References, convert};
use windlass_apiserver::{ApiServer, Options, UserInfo};
use windlass_manager::OlderVersions;
use windlass_manager::registry::{install, kinds};
use windlass_meta::GroupKind;
use windlass_store::{Limits, Store};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Failure = Box<dyn Error + Send + Sync>;

const CLASS: &str = include_str!("../../../examples/clusterclass-quick-start.yaml");
const CLUSTER: &str = include_str!("../../../examples/cluster-quick-start.yaml");
/// Conversions for a median.
const RUNS: usize = 500;
/// The number of watches, and of changes that they show.
const WATCHES: usize = 10;
const CHANGES: usize = 2_000;

fn main() -> Result<(), Failure> {
    let count: usize = std::env::args().nth(1).unwrap_or_else(|| "10000".to_owned()).parse()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(run(count))
}

fn say(text: &str) -> Result<(), Failure> {
    Ok(writeln!(std::io::stdout(), "{text}")?)
}

/// All kinds are served in v1beta2.
struct Newest;

impl References for Newest {
    fn api_version(&self, kind: &GroupKind) -> Result<String, String> {
        Ok(format!("{}/v1beta2", kind.group))
    }
}

fn median(mut took: Vec<Duration>) -> Duration {
    took.sort();
    took[took.len() / 2]
}

/// Objects in hub versions, as users have them.
fn objects() -> Result<Vec<Value>, Failure> {
    let mut all: Vec<Value> = serde_saphyr::from_multiple(CLASS)?;
    all.push(serde_saphyr::from_str(CLUSTER)?);
    let template = all
        .iter()
        .find(|one| one["kind"] == "KubeadmControlPlaneTemplate")
        .cloned();
    if let Some(template) = template {
        let mut spec = template["spec"]["template"]["spec"].clone();
        spec["version"] = "v1.36.0".into();
        spec["replicas"] = 3.into();
        all.push(json!({
            "apiVersion": template["apiVersion"], "kind": "KubeadmControlPlane", "metadata": {"name": "cp"}, "spec": spec,
        }));
    }
    let class = all.iter().find(|one| one["kind"] == "ClusterClass").cloned();
    if let Some(mut large) = class {
        large["metadata"]["name"] = "large".into();
        for list in ["variables", "patches"] {
            let some = large["spec"][list].as_array().cloned().unwrap_or_default();
            let many = (0..20).flat_map(|at| {
                some.iter().cloned().map(move |mut one| {
                    one["name"] = format!("{}{at}", one["name"].as_str().unwrap_or_default()).into();
                    one
                })
            });
            large["spec"][list] = many.collect();
        }
        all.push(large);
    }
    all.push(machine(0));
    all.push(rule(0));
    for one in &mut all {
        one["metadata"]["namespace"] = "default".into();
    }
    Ok(all)
}

fn machine(number: usize) -> Value {
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
        "metadata": {"name": format!("m-{number}"), "labels": {"cluster.x-k8s.io/cluster-name": "c", "topology.cluster.x-k8s.io/owned": ""}},
        "spec": {
            "clusterName": "c", "version": "v1.36.0", "providerID": format!("dev:///m-{number}"),
            "bootstrap": {"configRef": {"apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfig", "name": "b"}},
            "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachine", "name": "i"},
            "deletion": {"nodeDrainTimeoutSeconds": 60, "nodeDeletionTimeoutSeconds": 10},
        },
    })
}

fn rule(number: usize) -> Value {
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineDrainRule", "metadata": {"name": format!("r-{number}")},
        "spec": {
            "drain": {"behavior": "Drain", "order": 5},
            "machines": [{"selector": {"matchLabels": {"a": "b"}}, "clusterSelector": {"matchLabels": {"c": "d"}}}],
            "pods": [{"selector": {"matchLabels": {"app": "x"}}}],
        },
    })
}

fn target(kind: &str) -> &'static str {
    match kind {
        "Cluster" => " (target 20 µs)",
        "KubeadmControlPlane" => " (target 50 µs)",
        "ClusterClass" => " (target of a large one 200 µs)",
        _ => "",
    }
}

fn conversions(older: &OlderVersion, object: &Value) -> Result<(), Failure> {
    let hub = serde_json::to_vec(object)?;
    let measured = |from: &[u8], to: &str| {
        let mut took = Vec::with_capacity(RUNS);
        let mut out = Vec::new();
        for _ in 0..RUNS {
            let begun = Instant::now();
            out = convert(from, to, &Newest)?;
            took.push(begun.elapsed());
        }
        Ok::<_, Failure>((median(took), out))
    };
    let (down, form) = measured(&hub, older.api_version)?;
    let (up, _) = measured(&form, older.hub_version)?;
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    say(&format!(
        "{} {name}, {} bytes, to {}: {down:?}, and back: {up:?}{}",
        older.kind,
        hub.len(),
        older.version,
        target(older.kind)
    ))
}

async fn run(count: usize) -> Result<(), Failure> {
    for object in objects()? {
        let is_of = |older: &&OlderVersion| object["kind"] == older.kind && object["apiVersion"] == older.hub_version;
        for older in OLDER.iter().filter(is_of) {
            conversions(older, &object)?;
        }
    }
    let mut options = Options::new(Store::memory(Limits::default()));
    options.converter = Some(Arc::new(OlderVersions));
    let server = ApiServer::start(options).await?;
    let client = kube::Client::new(server.client_service(UserInfo::admin("admin")), "default");
    install::install(&client, &kinds::all_crds(), install::Conversion::InProcess).await?;
    let has_machines = OLDER.iter().any(|older| older.kind == "Machine");
    let (make, plural): (fn(usize) -> Value, _) = if has_machines {
        (machine, "machines")
    } else {
        (rule, "machinedrainrules")
    };
    let url = |version: &str| format!("/apis/cluster.x-k8s.io/{version}/namespaces/default/{plural}");
    for number in 0..count {
        send(&client, Method::POST, &url("v1beta2"), &make(number)).await?;
    }
    for version in ["v1beta2", "v1beta1"] {
        let mut took = Vec::new();
        let mut size = 0;
        for _ in 0..5 {
            let begun = Instant::now();
            size = send(&client, Method::GET, &url(version), &Value::Null).await?.len();
            took.push(begun.elapsed());
        }
        let took = median(took);
        say(&format!(
            "list of {count} {plural} in {version}, {size} bytes: {took:?} (target in v1beta1 400 ms)"
        ))?;
    }
    let mut costs = Vec::new();
    for version in ["v1beta2", "v1beta1", "v1beta2", "v1beta1"] {
        let cost = watched(&client, version, &url("v1beta2"), &make(0)).await?;
        say(&format!(
            "{CHANGES} changes of an object for {WATCHES} watches in {version}: {cost:?} of processor time"
        ))?;
        costs.push(cost.as_secs_f64());
    }
    let ratio = costs[3] / costs[2];
    say(&format!(
        "watches in v1beta1 cost {ratio:.2} times as much as in v1beta2 (target 2)"
    ))
}

/// The processor time of changes that watches in a version show.
async fn watched(client: &kube::Client, version: &str, collection: &str, object: &Value) -> Result<Duration, Failure> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let one = format!("{collection}/{name}");
    let current: Value = serde_json::from_slice(&send(client, Method::GET, &one, &Value::Null).await?)?;
    let since = current["metadata"]["resourceVersion"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..WATCHES {
        let url = collection.replace("v1beta2", version);
        let url = format!("{url}?watch=true&resourceVersion={since}&fieldSelector=metadata.name%3D{name}");
        let request = HttpRequest::get(url).body(Body::empty())?;
        let mut body = client.send(request).await?.into_body();
        tasks.spawn(async move {
            // Nothing is decoded: the cost is that of the server.
            let mut lines = 0;
            while lines < CHANGES {
                let frame = body.frame().await.ok_or("the watch ended")??;
                let bytes = frame.into_data().unwrap_or_default();
                lines += bytes.split(|byte| *byte == b'\n').count() - 1;
            }
            Ok::<_, Failure>(())
        });
    }
    let before = processor()?;
    for number in 0..CHANGES {
        let patch = json!({"metadata": {"annotations": {"changed": number.to_string()}}});
        send(client, Method::PATCH, &one, &patch).await?;
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    Ok(processor()?.saturating_sub(before))
}

/// The processor time that this process has used, in whole hundredths of a second.
fn processor() -> Result<Duration, Failure> {
    let text = std::fs::read_to_string("/proc/self/stat")?;
    let (_, rest) = text.rsplit_once(')').ok_or("/proc/self/stat has another form")?;
    let ticks = rest.split_whitespace().skip(11).take(2);
    let ticks: Result<Vec<u64>, _> = ticks.map(str::parse).collect();
    Ok(Duration::from_millis(ticks?.iter().sum::<u64>() * 10))
}

async fn send(client: &kube::Client, method: Method, url: &str, body: &Value) -> Result<Vec<u8>, Failure> {
    let media = if method == Method::PATCH {
        "application/merge-patch+json"
    } else {
        "application/json"
    };
    let request = HttpRequest::builder()
        .method(method)
        .uri(url)
        .header("content-type", media);
    let body = if body.is_null() {
        Vec::new()
    } else {
        serde_json::to_vec(body)?
    };
    let answer = client.send(request.body(Body::from(body))?).await?;
    let status = answer.status();
    let body = answer.into_body().collect().await?.to_bytes();
    if !status.is_success() {
        return Err(format!("{url}: {status}: {}", String::from_utf8_lossy(&body)).into());
    }
    Ok(body.to_vec())
}
