//! Metrics and the log level: for users with rights, over TLS; without authentication only on demand.

use std::sync::Arc;

use http::{Method, Request};
use http_body_util::BodyExt as _;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use windlass_controller_runtime::{ApiClient, Metrics, Tasks, transport};
use windlass_manager::{DiagnosticsOptions, Embedded, EmbeddedOptions, ManagerError, diagnostics};
use windlass_testkit::wait::{TIMEOUT, looks};
use windlass_testkit::{Kind, Server};

const USERS: [&str; 2] = ["scraper", "stranger"];

enum World {
    Ours(Embedded, TempDir),
    Real(Server),
}

impl World {
    async fn start() -> Self {
        if Kind::chosen() == Kind::Real {
            return Self::Real(Server::start().await);
        }
        let folder = tempfile::tempdir().unwrap();
        let tokens = folder.path().join("tokens");
        let lines = USERS.map(|user| format!("token-of-{user},{user},\n"));
        std::fs::write(&tokens, lines.concat()).unwrap();
        let options = EmbeddedOptions {
            data_dir: folder.path().join("data"),
            kubeconfig: None,
            port: 0,
            tokens: Some(tokens),
            gates: windlass_manager::FeatureGates::default(),
            built_ins: windlass_manager::BuiltIns::default(),
            definitions: false,
        };
        Self::Ours(Embedded::start(options).await.unwrap(), folder)
    }

    fn client(&self) -> kube::Client {
        match self {
            Self::Ours(embedded, _) => embedded.client("diagnostics", &Metrics::new()),
            Self::Real(server) => server.client("diagnostics"),
        }
    }

    /// The name of a user, and a token.
    async fn user(&self, name: &str) -> (String, String) {
        let Self::Real(_) = self else {
            return (name.to_owned(), format!("token-of-{name}"));
        };
        let client = ApiClient::from(&self.client());
        let url = "/api/v1/namespaces/default/serviceaccounts";
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}});
        client.post_value(url, &account).await.unwrap();
        let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
        let made = client
            .post_value(&format!("{url}/{name}/token"), &request)
            .await
            .unwrap();
        let token = made["status"]["token"].as_str().unwrap().to_owned();
        (format!("system:serviceaccount:default:{name}"), token)
    }

    /// Lets a user do these on paths.
    async fn allow(&self, user: &str, rules: &Value) {
        let client = ApiClient::from(&self.client());
        let (api, url) = ("rbac.authorization.k8s.io/v1", "/apis/rbac.authorization.k8s.io/v1");
        let role = json!({"apiVersion": api, "kind": "ClusterRole", "metadata": {"name": "metrics"}, "rules": rules});
        let binding = json!({
            "apiVersion": api, "kind": "ClusterRoleBinding", "metadata": {"name": "metrics"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "metrics"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
        });
        client.post_value(&format!("{url}/clusterroles"), &role).await.unwrap();
        client
            .post_value(&format!("{url}/clusterrolebindings"), &binding)
            .await
            .unwrap();
    }

    async fn stop(self) {
        match self {
            Self::Ours(embedded, folder) => {
                embedded.shutdown().await;
                drop(folder);
            }
            Self::Real(server) => server.stop().await,
        }
    }
}

/// A diagnostics server.
struct Diagnostics {
    url: String,
    tasks: Tasks,
    levels: Arc<Mutex<Vec<String>>>,
}

impl Diagnostics {
    async fn start(client: &kube::Client, insecure: bool) -> Result<Self, ManagerError> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let scheme = if insecure { "http" } else { "https" };
        let url = format!("{scheme}://{}", listener.local_addr().unwrap());
        let (tasks, levels) = (Tasks::new(), Arc::new(Mutex::new(Vec::new())));
        let set = levels.clone();
        let options = DiagnosticsOptions {
            listener,
            insecure,
            set_log_level: Arc::new(move |level| {
                set.lock().push(level.to_owned());
                Ok("done".to_owned())
            }),
        };
        let metrics = Metrics::new();
        diagnostics::start(options, client, &metrics, &tasks)?;
        Ok(Self { url, tasks, levels })
    }

    async fn ask(&self, token: Option<&str>, method: Method, path: &str, body: &str) -> (u16, String) {
        let mut config = kube::Config::new(self.url.parse().unwrap());
        // It signs itself.
        config.accept_invalid_certs = true;
        config.auth_info.token = token.map(|token| token.to_owned().into());
        let client = transport::connect(&config, &Metrics::new()).unwrap();
        let request = Request::builder().method(method).uri(path);
        let request = request.body(Body::from(body.as_bytes().to_vec())).unwrap();
        let answer = client.send(request).await.unwrap();
        let status = answer.status().as_u16();
        let text = answer.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(text.to_vec()).unwrap())
    }

    async fn get(&self, token: Option<&str>, path: &str) -> (u16, String) {
        self.ask(token, Method::GET, path, "").await
    }
}

#[tokio::test]
async fn metrics_and_the_log_level_are_for_users_who_may() {
    let world = World::start().await;
    let (scraper, token) = world.user(USERS[0]).await;
    let (_, stranger) = world.user(USERS[1]).await;
    let rules = json!([
        {"nonResourceURLs": ["/metrics"], "verbs": ["get"]},
        {"nonResourceURLs": ["/debug/flags/v"], "verbs": ["put"]},
    ]);
    world.allow(&scraper, &rules).await;
    let served = Diagnostics::start(&world.client(), false).await.unwrap();

    let mut looks = looks();
    let scraped = tokio::time::timeout(TIMEOUT, async {
        loop {
            // A real server learns of roles by a watch.
            let (status, text) = served.get(Some(&token), "/metrics").await;
            if status == 200 {
                return text;
            }
            looks.tick().await;
        }
    });
    let text = scraped.await.unwrap();
    assert!(text.ends_with("# EOF\n"), "{text}");

    assert_eq!(served.get(None, "/metrics").await.0, 401);
    assert_eq!(served.get(Some("no-such-token"), "/metrics").await.0, 401);
    let (status, text) = served.get(Some(&stranger), "/metrics").await;
    assert!(status == 403 && text.contains("stranger"), "{status} {text}");
    // All users may get the health of an API server. It is not here.
    assert_eq!(served.get(Some(&token), "/healthz").await.0, 404);
    for path in ["/", "/debug/pprof/", "/metrics/x"] {
        assert_eq!(served.get(Some(&token), path).await.0, 403, "{path}");
        assert_eq!(served.get(None, path).await.0, 401, "{path}");
    }

    let level = "/debug/flags/v";
    for (token, expect) in [(None, 401), (Some(stranger.as_str()), 403)] {
        assert_eq!(served.ask(token, Method::PUT, level, "5").await.0, expect);
    }
    assert_eq!(
        served.get(Some(&token), level).await.0,
        403,
        "get of it is another right"
    );
    let long = "5".repeat(1000);
    assert_eq!(served.ask(Some(&token), Method::PUT, level, &long).await.0, 400);
    assert!(served.levels.lock().is_empty());
    assert_eq!(served.ask(Some(&token), Method::PUT, level, "5\n").await.0, 200);
    assert_eq!(*served.levels.lock(), ["5"]);

    // Plain HTTP.
    let mut stream = tokio::net::TcpStream::connect(served.url.trim_start_matches("https://"))
        .await
        .unwrap();
    let request =
        format!("GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    assert!(!answer.starts_with(b"HTTP/"), "{}", String::from_utf8_lossy(&answer));
    served.tasks.shutdown().await;
    world.stop().await;
}

#[tokio::test]
async fn no_user_has_access_when_the_api_server_cannot_be_asked() {
    let world = World::start().await;
    let (_, token) = world.user(USERS[0]).await;
    let config = kube::Config::new("https://127.0.0.1:1".parse().unwrap());
    let nowhere = transport::connect(&config, &Metrics::new()).unwrap();
    let served = Diagnostics::start(&nowhere, false).await.unwrap();
    assert_eq!(served.get(Some(&token), "/metrics").await.0, 500);
    assert_eq!(served.get(None, "/metrics").await.0, 401);
    served.tasks.shutdown().await;
    world.stop().await;
}

#[tokio::test]
async fn insecure_diagnostics_are_the_metrics_alone() {
    let world = World::start().await;
    let served = Diagnostics::start(&world.client(), true).await.unwrap();
    let (status, text) = served.get(None, "/metrics").await;
    assert!(status == 200 && text.ends_with("# EOF\n"), "{status} {text}");
    assert_eq!(served.ask(None, Method::POST, "/metrics", "").await.0, 405);
    for path in ["/", "/healthz", "/debug/flags/v", "/debug/pprof/"] {
        assert_eq!(served.get(None, path).await.0, 404, "{path}");
        assert_eq!(served.ask(None, Method::PUT, path, "5").await.0, 404, "{path}");
    }
    assert!(served.levels.lock().is_empty());
    served.tasks.shutdown().await;
    world.stop().await;
}
