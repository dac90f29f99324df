//! What admission costs with many Clusters: `cargo xtask bench admission`. Prints figures beside their targets, asserts nothing.
//!
//! In process, a figure is of a whole dry run of an update: what is new is decoded, patched, completed, checked and answered. Of the webhook
//! server it is of a review over a connection that stays. The server has a thread of its own, so it uses one core at most. On a small machine
//! the clients compete with it, so its rate is reported per second of processor time of this thread, too (on Linux).

use std::error::Error;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{Method, Request as HttpRequest};
use k8s_openapi::api::core::v1::Secret;
use kube::api::Api;
use kube::client::Body;
use kube::config::KubeConfigOptions;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use windlass_apiserver::{ApiServer, Authorization, Options, UserInfo};
use windlass_manager::registry::{admission, install, kinds};
use windlass_manager::{FeatureGates, InProcess, OlderVersions};
use windlass_store::{Limits, Store};
use windlass_webhook::{Certificates, SECRET_NAME, Target};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Failure = Box<dyn Error + Send + Sync>;

const CLASS: &str = include_str!("../../../examples/clusterclass-quick-start.yaml");
const CLUSTER: &str = include_str!("../../../examples/cluster-quick-start.yaml");
/// Clusters of the class that is changed.
const USERS: usize = 1000;
/// The Cluster that is changed. It has a control plane, as a change of its version asks for one.
const CHANGED: usize = 5000;
/// The version that it gets.
const NEXT: &str = "v1.36.0";
/// Machines of each Cluster; it has one MachineDeployment.
const MACHINES: usize = 2;
/// Updates and reviews for a median.
const RUNS: usize = 200;
/// Connections to the webhook server.
const CONNECTIONS: usize = 8;
/// How long they send reviews.
const LOAD: Duration = Duration::from_secs(5);

fn main() -> Result<(), Failure> {
    let count: usize = std::env::args().nth(1).unwrap_or_else(|| "10000".to_owned()).parse()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(run(count))
}

fn say(text: &str) -> Result<(), Failure> {
    Ok(writeln!(std::io::stdout(), "{text}")?)
}

async fn run(count: usize) -> Result<(), Failure> {
    let mut options = Options::new(Store::memory(Limits::default()));
    options.authorization = Authorization::Rbac;
    options.admission.push(Arc::new(InProcess::default()));
    options.converter = Some(Arc::new(OlderVersions));
    let server = ApiServer::start(options).await?;
    let user = UserInfo::new("admin", &["system:masters"]);
    let client = kube::Client::new(server.client_service(user), "default");
    install::install(&client, &kinds::all_crds(), install::Conversion::InProcess).await?;
    let mut class: Value = serde_saphyr::from_multiple::<Value>(CLASS)?.swap_remove(0);
    let mut cluster: Value = serde_saphyr::from_str(CLUSTER)?;
    for name in ["quick-start", "used"] {
        class["metadata"]["name"] = name.into();
        send(&client, Method::POST, &url("clusterclasses", ""), &class).await?;
    }
    let begun = Instant::now();
    for number in 0..count {
        cluster["metadata"]["name"] = format!("c-{number}").into();
        let class = if number < USERS { "used" } else { "quick-start" };
        cluster["spec"]["topology"]["classRef"]["name"] = class.into();
        if number == CHANGED {
            cluster["spec"]["controlPlaneRef"] =
                json!({"apiGroup": "controlplane.cluster.x-k8s.io", "kind": "KubeadmControlPlane", "name": "cp"});
        }
        send(&client, Method::POST, &url("clusters", ""), &cluster).await?;
        cluster["spec"]
            .as_object_mut()
            .and_then(|spec| spec.remove("controlPlaneRef"));
    }
    let each = begun.elapsed() / u32::try_from(count)?;
    say(&format!(
        "{count} Clusters, {USERS} of them of one class; creation of each: {each:?}"
    ))?;

    let version = cluster["spec"]["topology"]["version"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    workers(&client, count, &version).await?;
    control_plane(&client, &version).await?;

    let one = url("clusters", &format!("/c-{CHANGED}"));
    let change = json!({"spec": {"topology": {"controlPlane": {"replicas": 5}}}});
    let took = updates(&client, &one, &change).await?;
    say(&format!(
        "update of a Cluster, in process:        {took:?} (target of its admission 1 ms)"
    ))?;
    let change = json!({"spec": {"topology": {"version": NEXT}}});
    let took = updates(&client, &one, &change).await?;
    say(&format!(
        "change of its version, in process:      {took:?}, with {count} MachineDeployments and {} Machines",
        count * MACHINES
    ))?;
    let used = url("clusterclasses", "/used");
    let change = json!({"metadata": {"labels": {"changed": "yes"}}, "spec": {"variables": changed(&class)}});
    let took = updates(&client, &used, &change).await?;
    say(&format!(
        "update of the used ClusterClass, in process: {took:?} (target 100 ms)"
    ))?;

    by_webhooks(&client, (&one, &used), &changed(&class)).await
}

/// Reviews of changes of a Cluster, and of the variables of a class.
async fn by_webhooks(client: &kube::Client, (one, used): (&str, &str), variables: &Value) -> Result<(), Failure> {
    let webhooks = Serving::start(client.clone()).await?;
    let stored = send(client, Method::GET, one, &Value::Null).await?;
    let mut new = stored.clone();
    new["spec"]["topology"]["controlPlane"]["replicas"] = 5.into();
    let of_cluster = review("Cluster", &stored, &new);
    let stored = send(client, Method::GET, used, &Value::Null).await?;
    let mut new = stored.clone();
    new["spec"]["variables"] = variables.clone();
    let of_class = review("ClusterClass", &stored, &new);
    let sender = webhooks.sender().await?;
    for (what, path, body) in [
        (
            "completion of a Cluster",
            "mutate-cluster-x-k8s-io-v1beta2-cluster",
            &of_cluster,
        ),
        (
            "check of a Cluster",
            "validate-cluster-x-k8s-io-v1beta2-cluster",
            &of_cluster,
        ),
        (
            "check of the used ClusterClass",
            "validate-cluster-x-k8s-io-v1beta2-clusterclass",
            &of_class,
        ),
    ] {
        let mut took = Vec::new();
        for _ in 0..RUNS {
            let begun = Instant::now();
            sender.review(path, body).await?;
            took.push(begun.elapsed());
        }
        say(&format!("{what}, by the webhook server: {:?}", median(took)))?;
    }
    for (what, path) in [
        ("completions", "mutate-cluster-x-k8s-io-v1beta2-cluster"),
        ("checks", "validate-cluster-x-k8s-io-v1beta2-cluster"),
    ] {
        let (rate, of_core) = webhooks.load(path, &of_cluster).await?;
        let of_core = of_core.map_or_else(|| "not known".to_owned(), |rate| format!("{rate:.0}"));
        say(&format!(
            "{what} of Clusters by the webhook server: {rate:.0} /s, per second of its core: {of_core} (target 2000)"
        ))?;
    }
    Ok(())
}

/// A MachineDeployment and Machines of each Cluster, at rest.
async fn workers(client: &kube::Client, count: usize, version: &str) -> Result<(), Failure> {
    let reference =
        |kind: &str| json!({"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": kind, "name": "workers"});
    for number in 0..count {
        let cluster = format!("c-{number}");
        let labels = json!({"cluster.x-k8s.io/cluster-name": cluster, "topology.cluster.x-k8s.io/owned": ""});
        let spec = |kind: &str| {
            json!({
                "clusterName": cluster, "version": version, "bootstrap": {"dataSecretName": "data"},
                "infrastructureRef": reference(kind),
            })
        };
        let deployment = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineDeployment",
            "metadata": {"name": cluster, "labels": labels},
            "spec": {
                "clusterName": cluster, "replicas": MACHINES, "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": spec("DevMachineTemplate")},
            },
        });
        send(client, Method::POST, &url("machinedeployments", ""), &deployment).await?;
        for machine in 0..MACHINES {
            let machine = json!({
                "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
                "metadata": {"name": format!("{cluster}-{machine}"), "labels": labels}, "spec": spec("DevMachine"),
            });
            send(client, Method::POST, &url("machines", ""), &machine).await?;
        }
    }
    Ok(())
}

/// The control plane of the Cluster that is changed, at rest.
async fn control_plane(client: &kube::Client, version: &str) -> Result<(), Failure> {
    let machine = json!({"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachineTemplate", "name": "cp"});
    let control_plane = json!({
        "apiVersion": "controlplane.cluster.x-k8s.io/v1beta2", "kind": "KubeadmControlPlane", "metadata": {"name": "cp"},
        "spec": {
            "replicas": 1, "version": version, "kubeadmConfigSpec": {"verbosity": 1},
            "machineTemplate": {"spec": {"infrastructureRef": machine}},
        },
    });
    let all = "/apis/controlplane.cluster.x-k8s.io/v1beta2/namespaces/default/kubeadmcontrolplanes";
    send(client, Method::POST, all, &control_plane).await?;
    let status = json!({"status": {
        "version": version, "replicas": 1, "readyReplicas": 1, "availableReplicas": 1, "upToDateReplicas": 1,
    }});
    send(client, Method::PATCH, &format!("{all}/cp/status"), &status).await?;
    Ok(())
}

/// The variables of the class with a longer limit.
fn changed(class: &Value) -> Value {
    let mut variables = class["spec"]["variables"].clone();
    variables[2]["schema"]["openAPIV3Schema"]["maxLength"] = 62.into();
    variables
}

fn url(resource: &str, rest: &str) -> String {
    format!("/apis/cluster.x-k8s.io/v1beta2/namespaces/default/{resource}{rest}")
}

/// Sends a request without a socket.
async fn send(client: &kube::Client, method: Method, url: &str, body: &Value) -> Result<Value, Failure> {
    let media = match method {
        Method::PATCH => "application/merge-patch+json",
        _ => "application/json",
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
    let body = answer.into_body().collect_bytes().await?;
    if !status.is_success() {
        return Err(format!("{url}: {status}: {}", String::from_utf8_lossy(&body)).into());
    }
    Ok(serde_json::from_slice(&body)?)
}

/// The median time of dry runs of an update.
async fn updates(client: &kube::Client, url: &str, change: &Value) -> Result<Duration, Failure> {
    let mut took = Vec::new();
    for _ in 0..RUNS {
        let begun = Instant::now();
        send(client, Method::PATCH, &format!("{url}?dryRun=All"), change).await?;
        took.push(begun.elapsed());
    }
    Ok(median(took))
}

fn median(mut took: Vec<Duration>) -> Duration {
    took.sort();
    took[took.len() / 2]
}

fn review(kind: &str, old: &Value, new: &Value) -> Vec<u8> {
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u", "operation": "UPDATE", "namespace": "default", "name": old["metadata"]["name"],
            "kind": {"group": "cluster.x-k8s.io", "version": "v1beta2", "kind": kind},
            "userInfo": {"username": "admin", "groups": ["system:masters"]},
            "oldObject": old, "object": new,
        },
    });
    review.to_string().into_bytes()
}

/// A webhook server on a thread of its own.
struct Serving {
    authority: String,
    address: std::net::SocketAddr,
    /// Where the kernel reports the processor time of the thread.
    times: Option<PathBuf>,
}

impl Serving {
    async fn start(client: kube::Client) -> Result<Self, Failure> {
        let (tell, told) = tokio::sync::oneshot::channel();
        let of_server = client.clone();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let Ok(runtime) = runtime else { return };
            let serving = async {
                let listener = TcpListener::bind("127.0.0.1:0")
                    .await
                    .map_err(|error| error.to_string())?;
                let address = listener.local_addr().map_err(|error| error.to_string())?;
                let target = Target::service("default/webhook")?;
                let certificates = Certificates::Secret {
                    namespace: "default".to_owned(),
                };
                let options = windlass_webhook::Options::new(
                    listener,
                    target,
                    certificates,
                    admission::rules(&FeatureGates::default()),
                );
                let webhooks = windlass_webhook::start(of_server, options).await;
                Ok::<_, String>((address, webhooks.map_err(|error| error.to_string())?))
            };
            let (address, _webhooks) = match runtime.block_on(serving) {
                Ok(serving) => serving,
                Err(error) => return drop(tell.send(Err(error))),
            };
            let thread = std::fs::read_link("/proc/thread-self").ok();
            let times = thread.map(|thread| Path::new("/proc").join(thread).join("schedstat"));
            let _ = tell.send(Ok((address, times)));
            runtime.block_on(std::future::pending::<()>());
        });
        let (address, times) = told.await??;
        let secret: Secret = Api::default_namespaced(client).get(SECRET_NAME).await?;
        let data = secret.data.unwrap_or_default();
        let authority = data.get("ca.crt").ok_or("the Secret has no ca.crt")?;
        // Its caches fill meanwhile.
        tokio::time::sleep(Duration::from_secs(5)).await;
        Ok(Self {
            authority: String::from_utf8(authority.0.clone())?,
            address,
            times,
        })
    }

    /// The processor time that the thread of the server has used.
    fn used(&self) -> Option<Duration> {
        let times = std::fs::read_to_string(self.times.as_ref()?).ok()?;
        Some(Duration::from_nanos(times.split_whitespace().next()?.parse().ok()?))
    }

    /// A client that keeps its connection, as API servers do.
    async fn sender(&self) -> Result<Sender, Failure> {
        let cluster = json!({
            "server": format!("https://{}", self.address), "tls-server-name": "webhook.default.svc",
            "certificate-authority-data": STANDARD.encode(&self.authority),
        });
        let kubeconfig = json!({
            "current-context": "it", "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
            "clusters": [{"name": "it", "cluster": cluster}], "users": [{"name": "it", "user": {}}],
        });
        let options = KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(serde_json::from_value(kubeconfig)?, &options).await?;
        Ok(Sender(kube::Client::try_from(config)?))
    }

    /// Reviews of all connections per second, and per second of processor time of the server.
    async fn load(&self, path: &'static str, body: &[u8]) -> Result<(f64, Option<f64>), Failure> {
        let used = self.used();
        let (done, begun) = (Arc::new(AtomicU64::new(0)), Instant::now());
        let mut tasks = JoinSet::new();
        for _ in 0..CONNECTIONS {
            let (sender, done, body) = (self.sender().await?, Arc::clone(&done), body.to_vec());
            tasks.spawn(async move {
                while begun.elapsed() < LOAD {
                    sender.review(path, &body).await?;
                    done.fetch_add(1, Ordering::Relaxed);
                }
                Ok::<_, Failure>(())
            });
        }
        while let Some(ended) = tasks.join_next().await {
            ended??;
        }
        let done = f64::from(u32::try_from(done.load(Ordering::Relaxed))?);
        let used = self
            .used()
            .zip(used)
            .map(|(after, before)| after.saturating_sub(before));
        let of_core = used.map(|used| done / used.as_secs_f64());
        Ok((done / begun.elapsed().as_secs_f64(), of_core))
    }
}

/// A connection to the webhook server.
struct Sender(kube::Client);

impl Sender {
    async fn review(&self, path: &str, body: &[u8]) -> Result<(), Failure> {
        let request = HttpRequest::post(format!("/{path}")).header("content-type", "application/json");
        let answer = self.0.send(request.body(Body::from(body.to_vec()))?).await?;
        let review: Value = serde_json::from_slice(&answer.into_body().collect_bytes().await?)?;
        if review["response"]["allowed"] != true {
            return Err(format!("{path}: {review}").into());
        }
        Ok(())
    }
}
