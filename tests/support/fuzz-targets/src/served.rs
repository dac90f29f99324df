//! A server with a tenant, for targets that send whole requests: what a request may cost is bounded there, not in its parsers.

use std::sync::{LazyLock, Mutex, PoisonError};

use http::{HeaderValue, Request};
use http_body_util::BodyExt as _;
use kube::Client;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use windlass_apiserver::{ApiServer, Authorization, Options, UserInfo};
use windlass_store::{Limits, Store};

/// The content of a Secret that the tenant may not read.
pub(crate) const HIDDEN: &str = "hidden-from-the-tenant";
/// Requests to a server, which then makes room for an empty one.
const REQUESTS: usize = 500;

/// The runtime of all servers.
pub(crate) static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().expect("a runtime")
});
static SERVED: Mutex<Option<Served>> = Mutex::new(None);

struct Served {
    _server: ApiServer,
    tenant: Client,
    requests: usize,
}

/// The status and the body of an answer.
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) bytes: Vec<u8>,
}

/// The answers to some requests of the tenant, who has the role `admin` in the namespace `default` and no other right.
pub(crate) fn answers(requests: Vec<Request<Vec<u8>>>) -> Vec<Answer> {
    let mut served = SERVED.lock().unwrap_or_else(PoisonError::into_inner);
    RUNTIME.block_on(async {
        if served.as_ref().is_none_or(|served| served.requests > REQUESTS) {
            *served = Some(start().await);
        }
        let mut answers = Vec::new();
        let Some(served) = served.as_mut() else { return answers };
        for request in requests {
            served.requests += 1;
            answers.push(send(&served.tenant, request).await);
        }
        answers
    })
}

/// A request with a JSON body.
pub(crate) fn request(method: &str, path: &str, body: &Value) -> Request<Vec<u8>> {
    let json = HeaderValue::from_static("application/json");
    let request = Request::builder().method(method).uri(path).header("content-type", json);
    request.body(body.to_string().into_bytes()).expect("a request")
}

async fn send(client: &Client, request: Request<Vec<u8>>) -> Answer {
    let answer = client.send(request.map(Into::into)).await.expect("an answer");
    let code = answer.status().as_u16();
    // A watch has no end: what it has at once is enough.
    let mut body = answer.into_body();
    let mut bytes = Vec::new();
    let soon = std::time::Duration::from_millis(50);
    while let Ok(Some(Ok(frame))) = tokio::time::timeout(soon, body.frame()).await {
        bytes.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data));
    }
    assert!(!contains(&bytes, HIDDEN), "a Secret of another namespace is shown");
    Answer { code, bytes }
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|part| part == text.as_bytes())
}

async fn start() -> Served {
    let mut options = Options::new(Store::memory(Limits::default()));
    options.authorization = Authorization::Rbac;
    let server = ApiServer::start(options).await.expect("a server");
    let masters = UserInfo::new("admin", &["system:masters"]);
    let admin = Client::new(server.client_service(masters), "default");
    let grant = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "tenant"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "tenant"}],
    });
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}});
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"a": HIDDEN}, "type": HIDDEN});
    for (path, object) in [
        (
            "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings",
            grant,
        ),
        ("/api/v1/namespaces", namespace),
        ("/api/v1/namespaces/other/secrets", secret),
    ] {
        let made = send_as(&admin, request("POST", path, &object)).await;
        assert_eq!(made, 201, "{path}");
    }
    let tenant = UserInfo::new("tenant", &["system:authenticated"]);
    Served {
        tenant: Client::new(server.client_service(tenant), "default"),
        _server: server,
        requests: 0,
    }
}

async fn send_as(client: &Client, request: Request<Vec<u8>>) -> u16 {
    let answer = client.send(request.map(Into::into)).await.expect("an answer");
    answer.status().as_u16()
}
