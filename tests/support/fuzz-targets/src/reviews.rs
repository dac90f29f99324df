//! A request to the webhook server: a line with the path, then a body.

use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use bytes::Bytes;
use http::Method;
use k8s_openapi::api::core::v1::Secret;
use kube::api::Api;
use serde_json::Value;
use tokio::net::TcpListener;
use windlass_apiserver::{ApiServer, Authorization, Options, UserInfo};
use windlass_http_client::{Answer, Client, Request, Settings, Url};
use windlass_manager::FeatureGates;
use windlass_manager::registry::admission;
use windlass_store::{Limits, Store};
use windlass_webhook::{Certificates, SECRET_NAME, Target, Webhooks};

use crate::served::RUNTIME;

/// What an answer may have beside what was sent. Its texts may need escapes.
const MOST: usize = 64 << 10;
/// The longest words about a body that is no review.
const WORDS: usize = 300;

static SERVED: LazyLock<Served> = LazyLock::new(|| RUNTIME.block_on(start()));
/// One input at a time is sent.
static TURN: Mutex<()> = Mutex::new(());

struct Served {
    _server: ApiServer,
    _webhooks: Webhooks,
    client: Client,
    base: Url,
}

/// Runs the target on one input; a panic is a bug in what it calls.
pub fn run(data: &[u8]) {
    let mut lines = data.splitn(2, |byte| *byte == b'\n');
    let path = lines.next().and_then(|line| std::str::from_utf8(line).ok());
    let (Some(path), Some(body)) = (path, lines.next()) else {
        return;
    };
    if !path.starts_with('/') || !path.bytes().all(|byte| byte.is_ascii_graphic()) || path.parse::<http::Uri>().is_err()
    {
        return;
    }
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let served = &*SERVED;
    let answer = RUNTIME.block_on(send(served, path, body));
    // Fields that are not read may have bytes that are no text, and numbers that are none for a value.
    let review: Value = serde_json::from_str(&String::from_utf8_lossy(body)).unwrap_or_default();
    if answer.status.as_u16() != 200 {
        let code = answer.status.as_u16();
        assert!(matches!(code, 400 | 404), "{code}");
        assert!(answer.body.len() <= WORDS, "{} bytes of words", answer.body.len());
        return;
    }
    let answered: Value = serde_json::from_slice(&answer.body).expect("a review is answered with JSON");
    assert_eq!(answered["apiVersion"], "admission.k8s.io/v1");
    assert_eq!(answered["kind"], "AdmissionReview");
    let response = &answered["response"];
    let uid = response["uid"].as_str().expect("a uid");
    assert!(!uid.is_empty());
    assert!(
        review.is_null() || review["request"]["uid"] == uid,
        "the answer is about the request"
    );
    if !path.starts_with("/mutate-") {
        assert_eq!(response.get("patch"), None, "nothing is changed");
    }
    if response["allowed"].as_bool().expect("a decision") {
        assert_eq!(response.get("status"), None, "{response}");
    } else {
        let status = &response["status"];
        let code = status["code"].as_u64().unwrap_or_default();
        assert!((400..600).contains(&code), "{status}");
        assert!(
            status["message"].as_str().is_some_and(|message| !message.is_empty()),
            "{status}"
        );
    }
    let most = MOST + 8 * body.len();
    assert!(
        answer.body.len() <= most,
        "{} bytes for {}",
        answer.body.len(),
        body.len()
    );
}

async fn send(served: &Served, path: &str, body: &[u8]) -> Answer {
    let url = served.base.at(path);
    let request = Request {
        method: Method::POST,
        url: &url,
        accept: "application/json",
        content_type: Some("application/json"),
        authorization: None,
        known_tag: None,
        body: Bytes::copy_from_slice(body),
    };
    served.client.send(&request).await.expect("an answer")
}

async fn start() -> Served {
    let mut options = Options::new(Store::memory(Limits::default()));
    options.authorization = Authorization::Rbac;
    let server = ApiServer::start(options).await.expect("a server");
    let admin = kube::Client::new(
        server.client_service(UserInfo::new("admin", &["system:masters"])),
        "default",
    );
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let target = Target::service("default/webhook").expect("a target");
    let certificates = Certificates::Secret {
        namespace: "default".to_owned(),
    };
    let options = windlass_webhook::Options::new(
        listener,
        target,
        certificates,
        admission::rules(&FeatureGates::default()),
    );
    let webhooks = windlass_webhook::start(admin.clone(), options).await.expect("webhooks");
    let secret: Secret = Api::default_namespaced(admin).get(SECRET_NAME).await.expect("a Secret");
    let data = secret.data.unwrap_or_default();
    let authority = String::from_utf8(data["ca.crt"].0.clone()).expect("a certificate");
    let settings = Settings {
        authorities: vec![authority],
        hosts: BTreeMap::from([("*".to_owned(), address)]),
        ..Settings::default()
    };
    Served {
        _server: server,
        _webhooks: webhooks,
        client: Client::new(settings).expect("a client"),
        base: Url::parse("https://webhook.default.svc/").expect("an address"),
    }
}
