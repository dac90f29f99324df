//! A separate API server for each test, a driver that talks to it, and a layer between them that injects faults.

use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, TryStreamExt};
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use kube::Api;
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;
use tower::{BoxError, Service, ServiceExt};
use windlass_api::core::Cluster;
use windlass_controller_runtime::{Clock, ControllerEntry, Metrics, Runtime, SystemClock, transport};
use windlass_testkit::{Counted, Server};

use crate::gadget::{Gadget, GadgetController, Probe, definition};

pub(crate) struct Bench {
    _server: Server,
    /// Talks to the server directly.
    pub(crate) admin: kube::Client,
    pub(crate) kit: Runtime,
    pub(crate) faults: Faults,
    pub(crate) probe: Arc<Probe>,
}

impl Bench {
    pub(crate) async fn start() -> Self {
        Self::start_at(SystemClock).await
    }

    /// Starts with the clock of a test.
    pub(crate) async fn start_at(clock: impl Clock + 'static) -> Self {
        let server = Server::with([definition(), windlass_api::crd::crd::<Cluster>()]).await;
        let admin = server.client("test");
        let faults = Faults::default();
        let service = Faulty {
            inner: server.service("windlass"),
            faults: faults.clone(),
        };
        let metrics = Metrics::new();
        let client = transport::in_process(service, &metrics);
        Self {
            _server: server,
            admin,
            kit: Runtime::builder(client).clock(clock).metrics(metrics).build(),
            faults,
            probe: Arc::default(),
        }
    }

    /// Starts the Gadget controller.
    pub(crate) fn run(&self) {
        let controller = GadgetController(self.probe.clone());
        self.kit
            .start(vec![ControllerEntry::of(controller).with_concurrency(4)]);
    }

    pub(crate) fn gadgets(&self) -> Api<Gadget> {
        Api::namespaced(self.admin.clone(), "default")
    }

    pub(crate) async fn make(&self, gadget: &Gadget) -> Gadget {
        self.gadgets().create(&PostParams::default(), gadget).await.unwrap()
    }

    /// Applies any object as an administrator.
    pub(crate) async fn apply(&self, object: Value) -> Value {
        let (group, plural) = match object["kind"].as_str().unwrap() {
            "CustomResourceDefinition" => ("apis/apiextensions.k8s.io/v1", "customresourcedefinitions"),
            "Cluster" => ("apis/cluster.x-k8s.io/v1beta2", "namespaces/default/clusters"),
            "Gadget" => ("apis/test.windlass.io/v1", "namespaces/default/gadgets"),
            "ConfigMap" => ("api/v1", "namespaces/default/configmaps"),
            kind => panic!("no path for {kind}"),
        };
        let name = object["metadata"]["name"].as_str().unwrap();
        let request = Request::patch(format!("/{group}/{plural}/{name}?fieldManager=admin&force=true"))
            .header("content-type", "application/apply-patch+yaml")
            .body(serde_json::to_vec(&object).unwrap())
            .unwrap();
        self.admin.request(request).await.unwrap()
    }

    pub(crate) async fn patch(&self, name: &str, patch: Value) -> Gadget {
        self.gadgets()
            .patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await
            .unwrap()
    }

    pub(crate) async fn maps(&self) -> Vec<k8s_openapi::api::core::v1::ConfigMap> {
        let maps: Api<k8s_openapi::api::core::v1::ConfigMap> = Api::namespaced(self.admin.clone(), "default");
        let mut list = maps.list(&kube::api::ListParams::default()).await.unwrap().items;
        list.retain(|m| m.metadata.name.as_deref() != Some("kube-root-ca.crt"));
        list
    }

    /// Waits until `f` accepts a Gadget.
    pub(crate) async fn until(&self, name: &str, what: &str, f: impl Fn(&Gadget) -> bool) -> Gadget {
        eventually(what, async || {
            self.gadgets().get_opt(name).await.unwrap().filter(|g| f(g))
        })
        .await
    }

    /// Waits until a Gadget reports `size` parts.
    pub(crate) async fn settled(&self, name: &str, size: usize) -> Gadget {
        self.until(name, &format!("{name} has made {size}"), |g| {
            g.status.as_ref().is_some_and(|s| {
                s.made == size && s.conditions.iter().any(|c| c.type_ == "Ready" && c.status == "True")
            })
        })
        .await
    }

    /// Waits until no reconcile has started for a while.
    pub(crate) async fn quiet(&self) {
        let mut last = self.faults.log().len();
        let mut same = 0;
        while same < 6 {
            tokio::time::sleep(Duration::from_millis(20)).await;
            let now = self.faults.log().len();
            same = if now == last { same + 1 } else { 0 };
            last = now;
        }
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.kit.tasks().stop();
    }
}

/// The log lines of one test, as long as it exists: a test and all its tasks run on one thread.
pub(crate) struct Logged {
    lines: Lines,
    _until: tracing::subscriber::DefaultGuard,
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Logged {
    /// Keeps lines of this level and above.
    pub(crate) fn from(level: tracing::Level) -> Self {
        // While there is but one subscriber, a line that another thread uses first is off for all threads.
        static OTHER: OnceLock<tracing::Dispatch> = OnceLock::new();
        OTHER.get_or_init(|| tracing::Dispatch::new(tracing::subscriber::NoSubscriber::new()));
        let lines = Lines::default();
        let format = tracing_subscriber::fmt().with_ansi(false).with_max_level(level);
        let writer = lines.clone();
        let subscriber = format.with_writer(move || writer.clone()).finish();
        Self {
            lines,
            _until: tracing::subscriber::set_default(subscriber),
        }
    }

    /// The lines with this text.
    pub(crate) fn with(&self, text: &str) -> Vec<String> {
        let lines = String::from_utf8(self.lines.0.lock().clone()).unwrap();
        lines
            .lines()
            .filter(|line| line.contains(text))
            .map(str::to_owned)
            .collect()
    }
}

pub(crate) fn meta(name: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        namespace: Some("default".to_owned()),
        ..ObjectMeta::default()
    }
}

/// Asks repeatedly until there is an answer.
pub(crate) async fn eventually<T>(what: &str, f: impl AsyncFn() -> Option<T>) -> T {
    let found = async {
        loop {
            if let Some(found) = f().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), found)
        .await
        .unwrap_or_else(|_| panic!("waited in vain until {what}"))
}

type BoxedBody = UnsyncBoxBody<Bytes, BoxError>;
type Matches = Box<dyn Fn(&str, &str) -> bool + Send>;

/// A fault.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// The server refuses with this code and reason, and does nothing.
    Refuse(u16, &'static str),
    /// The server carries out the request, but the answer is lost.
    LoseAnswer,
    /// The server does nothing, and never answers.
    Hang,
    /// The answer's body (a watch) comes in pieces that are delayed by this time.
    Slow(Duration),
    /// This answer replaces the server's.
    Say(Vec<u8>),
}

struct Rule {
    matches: Matches,
    times: usize,
    fault: Fault,
}

/// Rules for faults, and a log of requests.
#[derive(Clone)]
pub(crate) struct Faults(Arc<FaultsInner>);

struct FaultsInner {
    rules: Mutex<Vec<Rule>>,
    log: Mutex<Vec<String>>,
    /// Counts up to cut all open watches.
    cut: watch::Sender<u32>,
}

impl Default for Faults {
    fn default() -> Self {
        Self(Arc::new(FaultsInner {
            rules: Mutex::default(),
            log: Mutex::default(),
            cut: watch::Sender::new(0),
        }))
    }
}

impl Faults {
    /// The next `times` requests that match get the fault.
    pub(crate) fn add(&self, times: usize, fault: Fault, matches: impl Fn(&str, &str) -> bool + Send + 'static) {
        self.0.rules.lock().push(Rule {
            matches: Box::new(matches),
            times,
            fault,
        });
    }

    /// Ends all open answers in the middle.
    pub(crate) fn cut_watches(&self) {
        self.0.cut.send_modify(|n| *n += 1);
    }

    /// `METHOD path?query` of all requests so far.
    pub(crate) fn log(&self) -> Vec<String> {
        self.0.log.lock().clone()
    }

    pub(crate) fn clear_log(&self) {
        self.0.log.lock().clear();
    }

    /// Requests that write.
    pub(crate) fn writes(&self) -> Vec<String> {
        let mut log = self.log();
        log.retain(|line| !line.starts_with("GET ") && !line.contains("/events"));
        log
    }

    fn take(&self, method: &str, uri: &str) -> Option<Fault> {
        let mut rules = self.0.rules.lock();
        let at = rules.iter().position(|r| r.times > 0 && (r.matches)(method, uri))?;
        rules[at].times -= 1;
        Some(rules[at].fault.clone())
    }
}

/// The layer that injects faults.
struct Faulty {
    inner: Counted,
    faults: Faults,
}

impl Service<Request<Body>> for Faulty {
    type Response = Response<BoxedBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<BoxedBody>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let method = request.method().to_string();
        let uri = request.uri().to_string();
        self.faults.0.log.lock().push(format!("{method} {uri}"));
        let fault = self.faults.take(&method, &uri);
        let (inner, faults) = (self.inner.clone(), self.faults.clone());
        async move { answer(inner, request, fault, &faults).await }.boxed()
    }
}

async fn answer(
    inner: Counted,
    request: Request<Body>,
    fault: Option<Fault>,
    faults: &Faults,
) -> Result<Response<BoxedBody>, BoxError> {
    match &fault {
        Some(Fault::Refuse(code, reason)) => {
            let status = json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "reason": reason, "message": "told to refuse", "code": code,
            });
            let body = whole(serde_json::to_vec(&status).unwrap());
            return Ok(Response::builder().status(*code).body(body).unwrap());
        }
        Some(Fault::Hang) => std::future::pending().await,
        Some(Fault::Say(bytes)) => return Ok(Response::new(whole(bytes.clone()))),
        _ => {}
    }
    let response = inner.oneshot(request).await?;
    if let Some(Fault::LoseAnswer) = fault {
        return Err("the answer was lost".into());
    }
    let delay = match fault {
        Some(Fault::Slow(delay)) => delay,
        _ => Duration::ZERO,
    };
    let (parts, body) = response.into_parts();
    let mut cut = faults.0.cut.subscribe();
    cut.mark_unchanged();
    let pieces = body
        .into_data_stream()
        .map_err(BoxError::from)
        .then(move |piece| async move {
            if !delay.is_zero() {
                tokio::time::sleep(delay).await;
            }
            piece
        });
    let pieces = pieces.take_until(async move {
        let _ = cut.changed().await;
    });
    let frames = pieces.map(|piece| piece.map(http_body::Frame::data));
    Ok(Response::from_parts(parts, StreamBody::new(frames).boxed_unsync()))
}

fn whole(bytes: Vec<u8>) -> BoxedBody {
    Full::new(Bytes::from(bytes))
        .map_err(|never| match never {})
        .boxed_unsync()
}
