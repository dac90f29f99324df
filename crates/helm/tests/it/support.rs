//! The environment of a test: an engine, a cluster, and chart repositories.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use k8s_openapi::api::core::v1::Secret as Stored;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, PostParams};
use kube::{Client, Resource};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::OnceCell;
use windlass_apiserver::{ApiServer, Authorization, Options as ServerOptions, UserInfo, tls_config};
use windlass_envtest::{ControlPlane, Tools};
use windlass_fake_providers::{ChartLike, Forge, Proxy, hosts};
use windlass_helm::release::{self, Release};
use windlass_helm::{
    Chart, ChartSource, Engine as _, Freshness, Helm, Marker, Options, Secret, Settings, Stop, Target, Tls,
};
use windlass_meta::{Clock as _, SystemClock};
use windlass_pki::{CaRequest, CertificateAuthority, KeyAlgorithm, LeafRequest, PrivateKey};
use windlass_store::{Limits, Store};

/// A test that hangs fails after this time.
const TOO_LONG: Duration = Duration::from_mins(3);

/// Generates two tests from one, for each helm.
macro_rules! with_both {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        mod $name {
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn helm3() {
                $crate::support::run("helm", super::$name).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn helm4() {
                $crate::support::run("helm4", super::$name).await;
            }
        }
    };
}
pub(crate) use with_both;

/// Runs a test with a helm, and checks what it leaves behind.
pub(crate) async fn run<F: Future<Output = World>>(tool: &'static str, test: impl FnOnce(World) -> F) {
    let Some(program) = Tools::required(tool) else {
        return;
    };
    if tool == "helm" && on_a_real_server() {
        let thread = std::thread::current();
        let name = thread.name().unwrap_or("a test");
        // Not by a macro: the test harness shows their output only for tests that fail.
        let line =
            format!("left out on Real: {name}: one helm is enough there, the newer; both run on the embedded server\n");
        let _ = std::io::stderr().write_all(line.as_bytes());
        return;
    }
    let world = World::start(&program).await;
    let (folder, home) = (world.folder.clone(), world.home());
    let world = tokio::time::timeout(TOO_LONG, test(world)).await;
    let world = world.unwrap_or_else(|_| panic!("not done after {} s", TOO_LONG.as_secs()));
    world.helm.close().await;
    drop(world);
    assert_eq!(running(&home), 0, "no process is left");
    let left = fs::read_dir(&home).unwrap().count();
    assert_eq!(left, 0, "no file is left in {}", home.display());
    drop(folder);
}

/// The number of running processes that refer to a folder.
pub(crate) fn running(home: &Path) -> usize {
    let home = home.to_str().unwrap().as_bytes();
    let processes = fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| Some(entry.ok()?.path()));
    let has = |path: PathBuf| {
        let environment = fs::read(path.join("environ")).unwrap_or_default();
        environment.windows(home.len()).any(|part| part == home)
    };
    processes.filter(|path| has(path.clone())).count()
}

fn settings(home: &Path, program: &Path, proxy: &Proxy) -> Settings {
    let mut settings = Settings::new(home);
    program.clone_into(&mut settings.program);
    settings.search = None;
    settings.grace = Duration::from_secs(20);
    let proxy = format!("http://{}", proxy.address());
    let variable = |name: &str| (name.to_owned(), proxy.clone().into());
    settings.environment = ["HTTPS_PROXY", "HTTP_PROXY"].map(variable).into();
    settings
}

/// The environment of a test.
pub(crate) struct World {
    pub(crate) helm: Helm,
    pub(crate) cluster: Cluster,
    pub(crate) forge: Forge,
    pub(crate) proxy: Proxy,
    pub(crate) program: PathBuf,
    folder: Arc<TempDir>,
}

impl World {
    async fn start(program: &Path) -> Self {
        let folder = Arc::new(tempfile::tempdir().unwrap());
        let forge = Forge::start().await.unwrap();
        let proxy = Proxy::start(forge.hosts(), None).await.unwrap();
        let settings = settings(&folder.path().join("home"), program, &proxy);
        Self {
            helm: Helm::new(settings).unwrap(),
            cluster: Cluster::start(Authorization::AllowAuthenticated).await,
            forge,
            proxy,
            program: program.to_owned(),
            folder,
        }
    }

    /// The engine's home.
    pub(crate) fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// Another engine below the same home.
    pub(crate) fn engine(&self, change: impl FnOnce(&mut Settings)) -> Helm {
        let mut settings = settings(&self.home(), &self.program, &self.proxy);
        change(&mut settings);
        Helm::new(settings).unwrap()
    }

    /// Publishes a chart in the folder `charts` of the web server and fetches it.
    pub(crate) async fn chart(&self, chart: &ChartLike) -> Chart {
        self.forge.chart("charts", chart);
        let source = self.source(chart.name(), Some(chart.version()));
        self.helm.chart(&source, Freshness::Any).await.unwrap()
    }

    /// A chart of that folder.
    pub(crate) fn source(&self, chart: &str, version: Option<&str>) -> ChartSource {
        ChartSource {
            repo_url: format!("https://{}/charts", hosts::WEB),
            chart: chart.to_owned(),
            version: version.map(str::to_owned),
            tls: Some(self.trust()),
            ..ChartSource::default()
        }
    }

    /// The TLS settings that trust the forge.
    pub(crate) fn trust(&self) -> Tls {
        Tls {
            ca: Some(self.forge.authority()),
            insecure_skip_verify: false,
        }
    }

    /// The release `web`.
    pub(crate) fn target(&self) -> Target {
        self.cluster.target("web")
    }
}

/// A chart with one ConfigMap that shows its values.
pub(crate) fn simple(version: &str) -> ChartLike {
    ChartLike::new("web", version)
        .file("values.yaml", "greeting: hello\nextra: {}\n")
        .file(
            "templates/map.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\ndata:\n  greeting: {{ .Values.greeting | quote }}\n  \
             extra: {{ .Values.extra | toJson | quote }}\n  version: {{ .Chart.Version }}\n  kube: {{ .Capabilities.KubeVersion.Version }}\n",
        )
}

/// Options with short timeouts.
pub(crate) fn quick() -> Options {
    Options {
        timeout: Duration::from_mins(1),
        ..Options::default()
    }
}

/// A cluster over a socket: an embedded one per test, or a real one that all tests of this process share, each with its own
/// namespace.
pub(crate) struct Cluster {
    pub(crate) client: Client,
    /// The namespace of releases.
    pub(crate) namespace: String,
    url: String,
    ca: String,
    /// The embedded server, if it is one.
    ours: Option<(ApiServer, tokio::task::JoinHandle<()>)>,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The administrator's token.
pub(crate) const ADMIN: &str = "token-of-the-administrator";
/// The token of a user without permissions.
pub(crate) const NO_RIGHTS: &str = "token-without-rights";

/// Whether releases go to a real kube-apiserver.
pub(crate) fn on_a_real_server() -> bool {
    std::env::var("WINDLASS_TEST_SERVER").is_ok_and(|server| server == "real")
}

/// The real server. It ends with the process, and no other process uses it.
async fn real() -> &'static ControlPlane {
    static SHARED: OnceCell<ControlPlane> = OnceCell::const_new();
    SHARED
        .get_or_init(async || {
            let tokens = tempfile::NamedTempFile::new().unwrap();
            let lines = format!("{ADMIN},admin,1,system:masters\n{NO_RIGHTS},guest,2\n");
            fs::write(tokens.path(), lines).unwrap();
            let flag = format!("--token-auth-file={}", tokens.path().display());
            let options = windlass_envtest::Options {
                apiserver_flags: vec![flag],
                ..windlass_envtest::Options::default()
            };
            // Read once at its start.
            ControlPlane::start(&options).await.unwrap()
        })
        .await
}

impl Cluster {
    /// Starts a cluster; the embedded one has this authorization.
    pub(crate) async fn start(authorization: Authorization) -> Self {
        if on_a_real_server() {
            static MADE: AtomicUsize = AtomicUsize::new(1);
            let control_plane = real().await;
            return Self {
                client: control_plane.client().await.unwrap(),
                namespace: format!("apps-{}", MADE.fetch_add(1, Ordering::Relaxed)),
                url: control_plane.url().to_owned(),
                ca: BASE64_STANDARD.encode(control_plane.authority()),
                ours: None,
            };
        }
        let key = || PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap();
        let authority = CertificateAuthority::self_signed(&CaRequest::new("test"), key(), SystemClock.now()).unwrap();
        let own = key();
        let request = LeafRequest::server("kube-apiserver", vec!["127.0.0.1".to_owned()]);
        let certificate = authority.issue(&request, &own, SystemClock.now()).unwrap();
        let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(own.to_pkcs8_der()));
        let signer = rustls::crypto::aws_lc_rs::sign::any_supported_type(&private).unwrap();
        let chain = vec![CertificateDer::from(certificate.der().to_vec())];
        let certified = rustls::sign::CertifiedKey::new(chain, signer);
        let tls = tls_config(Arc::new(rustls::sign::SingleCertAndKey::from(certified)), &[]).unwrap();
        let mut options = ServerOptions::new(Store::memory(Limits::default()));
        options.authorization = authorization;
        options.tokens = BTreeMap::from([
            (ADMIN.to_owned(), UserInfo::admin("admin")),
            (NO_RIGHTS.to_owned(), UserInfo::new("guest", &[])),
        ]);
        let server = ApiServer::start(options).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}", listener.local_addr().unwrap());
        let serving = server.clone();
        let task = tokio::spawn(async move { drop(serving.serve(listener, tls).await) });
        Self {
            client: Client::new(server.client_service(UserInfo::admin("test")), "default"),
            namespace: "apps".to_owned(),
            url,
            ca: BASE64_STANDARD.encode(authority.certificate().to_pem()),
            ours: Some((server, task)),
        }
    }

    /// Makes it unreachable. A shared one is only no longer addressed.
    pub(crate) fn stop(&mut self) {
        match &self.ours {
            Some((server, task)) => {
                server.shutdown();
                task.abort();
            }
            None => "https://127.0.0.1:1".clone_into(&mut self.url),
        }
    }

    /// Its version.
    pub(crate) async fn version(&self) -> String {
        self.client.apiserver_version().await.unwrap().git_version
    }

    /// A kubeconfig with a token.
    pub(crate) fn kubeconfig(&self, token: &str) -> Secret {
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": self.url, "certificate-authority-data": self.ca}}],
            "users": [{"name": "u", "user": {"token": token}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        });
        Secret::new(config.to_string())
    }

    /// A release in the namespace.
    pub(crate) fn target(&self, release: &str) -> Target {
        Target {
            kubeconfig: self.kubeconfig(ADMIN),
            namespace: self.namespace.clone(),
            release: release.to_owned(),
            marker: Marker::owner("default.web"),
            stop: Stop::default(),
        }
    }

    /// All revisions of a release, oldest first.
    pub(crate) async fn history(&self, target: &Target) -> Vec<Release> {
        let secrets: Api<Stored> = Api::namespaced(self.client.clone(), &target.namespace);
        let params = ListParams::default().labels(&release::selector(&target.release));
        let secrets = secrets.list(&params).await.unwrap();
        let mut all: Vec<Release> = secrets.iter().map(|secret| release::decode(secret).unwrap()).collect();
        all.sort_by_key(|release| release.revision);
        all
    }

    /// The newest revision.
    pub(crate) async fn newest(&self, target: &Target) -> Option<Release> {
        let secrets: Api<Stored> = Api::namespaced(self.client.clone(), &target.namespace);
        let params = ListParams::default().labels(&release::selector(&target.release));
        let secrets = secrets.list(&params).await.unwrap();
        release::newest(&target.release, &secrets).map(|secret| release::decode(secret).unwrap())
    }

    /// An object of the namespace, or null.
    pub(crate) async fn get<K>(&self, name: &str) -> Value
    where
        K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
    {
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), &self.namespace, &ApiResource::erase::<K>(&()));
        let found = api.get_opt(name).await.unwrap();
        found.map_or(Value::Null, |found| serde_json::to_value(found).unwrap())
    }

    /// Creates an object, namespaced or cluster-scoped.
    pub(crate) async fn create(&self, object: Value) {
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        let types = object.types.clone().unwrap();
        let gvk = kube::core::GroupVersionKind::try_from(&types).unwrap();
        let resource = ApiResource::from_gvk(&gvk);
        let api: Api<DynamicObject> = match &object.metadata.namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        };
        api.create(&PostParams::default(), &object).await.unwrap();
    }
}
