//! The API server of a test: embedded in the process, embedded over a socket, or a real one, behind one interface.
//!
//! `WINDLASS_TEST_SERVER` selects it: `embedded` (the default), `socket` or `real`. Each test has a server for itself, which is
//! empty at first.

use std::fs::OpenOptions;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use http::HeaderValue;
use http::header::USER_AGENT;
use kube::api::{DynamicObject, PostParams};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use windlass_apiserver::UserInfo;
use windlass_controller_runtime::{Metrics, transport};
use windlass_envtest::{Counted, Ledger};
use windlass_manager::registry::install::Conversion;
use windlass_manager::registry::{install, kinds};
use windlass_manager::up::CONTROLLERS_AGENT;
use windlass_manager::{Embedded, FeatureGates, Selection, WebhookOptions, WebhookTarget, Webhooks, network, webhooks};

use crate::objects::Objects;
use crate::real::{self, Access};
use crate::{leaks, prepared, wait};

/// A kind of API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Embedded, in the process of the test and without a socket.
    Embedded,
    /// Embedded, over TLS.
    Socket,
    /// kube-apiserver with etcd and kube-controller-manager.
    Real,
}

impl Kind {
    /// The variable that selects it.
    pub const VARIABLE: &'static str = "WINDLASS_TEST_SERVER";

    /// The selected kind.
    pub fn chosen() -> Self {
        match std::env::var(Self::VARIABLE).as_deref() {
            Err(_) | Ok("" | "embedded") => Self::Embedded,
            Ok("socket") => Self::Socket,
            Ok("real") => Self::Real,
            Ok(other) => panic!("{} is \"{other}\": embedded, socket or real", Self::VARIABLE),
        }
    }

    /// Whether a test is left out because it does not apply to the selected server. Then a line with the reason, which can be
    /// counted, goes to standard error.
    pub fn leaves_out(only: &[Self], why: &str) -> bool {
        let chosen = Self::chosen();
        if only.contains(&chosen) {
            return false;
        }
        let thread = std::thread::current();
        let test = thread.name().unwrap_or("a test");
        // Not by a macro: the test harness shows their output only for tests that fail.
        let line = format!("left out on {chosen:?}: {test}: {why}\n");
        let _ = std::io::stderr().write_all(line.as_bytes());
        true
    }
}

/// What a server has before its test begins.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contents {
    /// The definitions of all our kinds.
    pub(crate) ours: bool,
    /// Our admission.
    pub(crate) admits: bool,
    /// Definitions of others.
    pub(crate) others: Arc<[Value]>,
}

impl Contents {
    /// Equal definitions have equal keys.
    pub(crate) fn key(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.ours.hash(&mut hasher);
        self.others.iter().for_each(|one| one.to_string().hash(&mut hasher));
        hasher.finish()
    }

    /// All definitions.
    pub(crate) fn definitions(&self) -> Vec<Value> {
        let ours = if self.ours { kinds::all_crds() } else { Vec::new() };
        ours.into_iter().chain(self.others.iter().cloned()).collect()
    }
}

enum Inner {
    Ours {
        embedded: Embedded,
        /// The configuration of clients, unless they connect in process.
        config: Option<Box<kube::Config>>,
    },
    Real(Box<Access>),
}

/// The API server of a test.
pub struct Server {
    kind: Kind,
    inner: Inner,
    ledger: Ledger,
    folder: Arc<TempDir>,
    contents: Contents,
    _leaks: leaks::Guard,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

impl Server {
    /// An empty server of the selected kind, without definitions.
    pub async fn start() -> Self {
        Self::start_with(Contents::default()).await
    }

    /// A server with the definitions of all our kinds and our admission.
    pub async fn with_definitions() -> Self {
        Self::with_definitions_and([]).await
    }

    /// [`Self::with_definitions`], and these definitions of other kinds.
    pub async fn with_definitions_and(others: impl IntoIterator<Item = Value>) -> Self {
        let contents = Contents {
            ours: true,
            admits: true,
            others: others.into_iter().collect(),
        };
        Self::start_with(contents).await
    }

    /// A server with the definitions of all our kinds, on which nothing admits: for objects that admission refuses now, and that were
    /// stored while its webhooks were off or before their rules.
    pub async fn without_admission() -> Self {
        Self::without_admission_and([]).await
    }

    /// [`Self::without_admission`], and these definitions of other kinds.
    pub async fn without_admission_and(others: impl IntoIterator<Item = Value>) -> Self {
        let contents = Contents {
            ours: true,
            admits: false,
            others: others.into_iter().collect(),
        };
        Self::start_with(contents).await
    }

    /// A server with these definitions only, and no admission: for what runs before our kinds are there, or has none of them. They are
    /// installed once, and restored for every other test of the process that has the same.
    pub async fn with(definitions: impl IntoIterator<Item = Value>) -> Self {
        let contents = Contents {
            others: definitions.into_iter().collect(),
            ..Contents::default()
        };
        Self::start_with(contents).await
    }

    async fn start_with(contents: Contents) -> Self {
        let folder = new_folder();
        if Kind::chosen() != Kind::Real {
            prepared::copy_to(folder.path(), &contents).await;
        }
        Self::start_in(folder, contents).await
    }

    async fn start_in(folder: Arc<TempDir>, contents: Contents) -> Self {
        let kind = Kind::chosen();
        note_test();
        leaks::start_logging();
        let inner = match kind {
            Kind::Embedded | Kind::Socket => start_ours(&folder, &contents, kind == Kind::Socket).await,
            Kind::Real => Inner::Real(Box::new(real::lease(&contents).await)),
        };
        Self {
            kind,
            inner,
            ledger: Ledger::default(),
            folder,
            contents,
            _leaks: leaks::Guard,
        }
    }

    /// Installs definitions, and returns when their kinds are served.
    pub async fn define(&self, definitions: &[Value]) {
        let conversion = match self.kind {
            Kind::Real => Conversion::Webhook,
            _ => Conversion::InProcess,
        };
        define_with(&self.client("definitions"), definitions, conversion).await;
    }

    /// Its kind.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Counts the writes of all clients from this server.
    pub fn counters(&self) -> &Ledger {
        &self.ledger
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        match &self.inner {
            Inner::Ours { embedded, .. } => embedded.kubeconfig().to_owned(),
            Inner::Real(access) => access.kubeconfig.clone(),
        }
    }

    /// An administrator's service, whose writes are counted under the name of an agent.
    pub fn service(&self, agent: &'static str) -> Counted {
        let client = match &self.inner {
            Inner::Ours { embedded, config: None } => embedded.client(agent, &Metrics::new()),
            Inner::Ours {
                config: Some(config), ..
            } => connect(config, Some(agent)),
            Inner::Real(access) => connect(&access.config, Some(agent)),
        };
        self.ledger.wrap(client, agent, leaks::search)
    }

    /// [`Self::service`] as a client.
    pub fn client(&self, agent: &'static str) -> kube::Client {
        transport::in_process(self.service(agent), &Metrics::new())
    }

    /// A client of another user, whose permissions come from Roles for the name and the groups. It is not counted.
    pub fn client_of(&self, user: &str, groups: &[&str]) -> kube::Client {
        match &self.inner {
            Inner::Ours { embedded, config: None } => {
                let service = embedded.server().client_service(UserInfo::new(user, groups));
                transport::in_process(service, &Metrics::new())
            }
            Inner::Ours {
                config: Some(config), ..
            } => impersonate(config, user, groups),
            Inner::Real(access) => impersonate(&access.config, user, groups),
        }
    }

    /// Stops it and starts it again from its data. A real one keeps running, as its durability is not under test.
    pub async fn restart(self) -> Self {
        match self.inner {
            Inner::Ours { embedded, .. } => {
                embedded.shutdown().await;
                drop(embedded);
                Self::start_in(self.folder, self.contents).await
            }
            inner @ Inner::Real(_) => Self {
                inner,
                ledger: Ledger::default(),
                ..self
            },
        }
    }

    /// Stops it.
    pub async fn stop(self) {
        match self.inner {
            Inner::Ours { embedded, .. } => embedded.shutdown().await,
            // It is reset and used by another test, see `real`.
            Inner::Real(_) => {}
        }
    }
}

fn impersonate(config: &kube::Config, user: &str, groups: &[&str]) -> kube::Client {
    let mut config = config.clone();
    config.auth_info.impersonate = Some(user.to_owned());
    let groups = groups.iter().map(|group| (*group).to_owned()).collect();
    config.auth_info.impersonate_groups = Some(groups);
    connect(&config, None)
}

/// Records that a test uses a server, in the file that `cargo xtask suites` sets: on other servers only these tests run.
fn note_test() {
    let Some(path) = std::env::var_os("WINDLASS_TESTS_WITH_SERVER") else {
        return;
    };
    let thread = std::thread::current();
    let line = format!(
        "{}\n",
        thread.name().expect("a server is started by the thread of a test")
    );
    let opened = OpenOptions::new().create(true).append(true).open(path);
    let written = opened.and_then(|mut file| file.write_all(line.as_bytes()));
    written.expect("the tests that have a server can be noted");
}

fn new_folder() -> Arc<TempDir> {
    Arc::new(tempfile::tempdir().expect("a temporary folder can be made"))
}

/// A service for a server behind a socket. Only controllers retry by themselves while the server cannot answer, as a real one
/// shortly after new definitions.
pub(crate) fn connect(config: &kube::Config, agent: Option<&'static str>) -> kube::Client {
    let mut config = config.clone();
    if let Some(agent) = agent {
        config.headers.push((USER_AGENT, HeaderValue::from_static(agent)));
    }
    let client = if agent == Some(CONTROLLERS_AGENT) {
        transport::connect(&config, &Metrics::new())
    } else {
        transport::connect_patiently(&config, &Metrics::new())
    };
    client.expect("the kubeconfig of a server can be used")
}

async fn start_ours(folder: &TempDir, contents: &Contents, over_socket: bool) -> Inner {
    let embedded = Embedded::start(prepared::options(folder.path(), contents)).await;
    let embedded = embedded.expect("the API server starts");
    let config = if over_socket {
        let config = network::config(Some(embedded.kubeconfig()), None).await;
        Some(Box::new(config.expect("the server's kubeconfig can be read")))
    } else {
        None
    };
    Inner::Ours { embedded, config }
}

/// Serves our admission for a server with our definitions, as a manager over the network does.
pub(crate) async fn serve_admission(config: &kube::Config) -> Webhooks {
    let client = &connect(config, None);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("there is a free port");
    let address = listener.local_addr().expect("a listener has an address");
    let options = WebhookOptions {
        listener,
        target: WebhookTarget::url(&format!("https://{address}")).expect("the URL is valid"),
        certificate_dir: None,
        gates: FeatureGates::default(),
        built_ins: Selection::all().built_ins(),
    };
    let webhooks = webhooks::start(client.clone(), options)
        .await
        .expect("a real server takes our webhooks");
    is_admitting(client).await;
    webhooks
}

/// Waits until a server calls our webhooks of both kinds: it follows their configurations by watches, so the first writes afterwards may
/// still bypass them, or reach those of the test before.
pub async fn is_admitting(client: &kube::Client) {
    let what = "the server never calls the webhooks for DevClusters";
    wait_admission(client, what, |bad, good| {
        bad.is_err() && good.is_ok_and(|good| is_completed(&good))
    })
    .await;
}

/// Waits until a server with our definitions calls no webhook any more.
pub(crate) async fn is_open(client: &kube::Client) {
    let what = "the server still calls webhooks for DevClusters";
    wait_admission(client, what, |bad, good| {
        bad.is_ok() && good.is_ok_and(|good| !is_completed(&good))
    })
    .await;
}

fn is_completed(cluster: &DynamicObject) -> bool {
    cluster.data["spec"]["controlPlaneEndpoint"]["port"] == 6443
}

/// Polls with dry runs of a DevCluster that our admission refuses and of one that it completes.
async fn wait_admission(
    client: &kube::Client,
    what: &str,
    is_so: impl Fn(kube::Result<DynamicObject>, kube::Result<DynamicObject>) -> bool,
) {
    let objects = Objects::new(client.clone()).dynamic("DevCluster");
    let dry = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let with = |docker: Value| -> DynamicObject {
        serde_json::from_value(json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "DevCluster",
            "metadata": {"name": "is-admitted"}, "spec": {"backend": {"docker": docker}},
        }))
        .expect("it is an object")
    };
    let bad = with(json!({"failureDomains": [{"name": "b"}, {"name": "a"}]}));
    let good = with(json!({}));
    let waiting = async {
        let mut looks = wait::looks();
        while !is_so(objects.create(&dry, &bad).await, objects.create(&dry, &good).await) {
            looks.tick().await;
        }
    };
    let in_time = tokio::time::timeout(wait::TIMEOUT, waiting).await;
    in_time.unwrap_or_else(|_| panic!("{what}"));
}

/// Installs definitions, and returns when their kinds are served.
pub async fn define(client: &kube::Client, definitions: &[Value]) {
    define_with(client, definitions, Conversion::InProcess).await;
}

/// [`define`], with the place where objects of our kinds are converted.
pub(crate) async fn define_with(client: &kube::Client, definitions: &[Value], conversion: Conversion) {
    let installed = install::install(client, definitions, conversion).await;
    installed.unwrap_or_else(|error| panic!("the server does not take definitions: {error}"));
    serves(client, definitions, conversion).await;
}

/// Polls until the kinds of definitions can be listed: a real server prepares a kind at its first request, and refuses meanwhile.
async fn serves(client: &kube::Client, definitions: &[Value], conversion: Conversion) {
    let converted = kinds::converted_crds();
    let mut looks = wait::looks();
    for definition in definitions {
        let spec = &definition["spec"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let versions = spec["versions"].as_array().into_iter().flatten();
        // A webhook that converts is set up later, if at all.
        let is_later = conversion == Conversion::Webhook
            && definition["metadata"]["name"]
                .as_str()
                .is_some_and(|name| converted.contains(name));
        let is_served = |version: &&Value| version["served"] == true && (!is_later || version["storage"] == true);
        for version in versions.filter(is_served) {
            let (group, plural) = (text(&spec["group"]), text(&spec["names"]["plural"]));
            let path = format!("/apis/{group}/{}/{plural}?limit=1", text(&version["name"]));
            let listed = async || {
                let request = http::Request::get(&path).body(Vec::new()).expect("the path is valid");
                client.request::<Value>(request).await.is_ok()
            };
            let waiting = async {
                while !listed().await {
                    looks.tick().await;
                }
            };
            let in_time = tokio::time::timeout(wait::TIMEOUT, waiting).await;
            in_time.unwrap_or_else(|_| panic!("{path} is never served"));
        }
    }
}
