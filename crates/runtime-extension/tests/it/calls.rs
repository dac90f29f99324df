//! Requests and answers.

use std::sync::Arc;

use http::Method;
use serde_json::json;
use tokio::sync::Notify;
use windlass_runtime_extension::hooks::Response as _;
use windlass_runtime_extension::hooks::lifecycle::{
    AfterControlPlaneInitialized, AfterControlPlaneInitializedResponse, BeforeClusterDelete,
    BeforeClusterDeleteRequest, BeforeClusterDeleteResponse,
};
use windlass_runtime_extension::{Extension, FailurePolicy, Handler};

use crate::support::{Served, json as body, text};

const DISCOVERY: &str = "/hooks.runtime.cluster.x-k8s.io/v1alpha1/discovery";
const GUARD: &str = "/hooks.runtime.cluster.x-k8s.io/v1alpha1/beforeclusterdelete/guard";
const LIMIT: usize = 20 << 20;

/// An extension with one handler for BeforeClusterDelete, named guard.
fn guard<F, A>(serve: F) -> Extension
where
    F: Fn(BeforeClusterDeleteRequest) -> A + Send + Sync + 'static,
    A: Future<Output = BeforeClusterDeleteResponse> + Send + 'static,
{
    Extension::new().handle(BeforeClusterDelete, "guard", serve).unwrap()
}

#[tokio::test]
async fn discovery_lists_the_handlers() {
    let noted = Handler::named("note")
        .timeout_seconds(25)
        .failure_policy(FailurePolicy::Ignore);
    let extension = guard(async |_| BeforeClusterDeleteResponse::success())
        .handle(AfterControlPlaneInitialized, noted, async |_| {
            AfterControlPlaneInitializedResponse::success()
        })
        .unwrap();
    let served = Served::start(extension).await;
    let version = "hooks.runtime.cluster.x-k8s.io/v1alpha1";
    let expect = json!({
        "apiVersion": version,
        "kind": "DiscoveryResponse",
        "status": "Success",
        "handlers": [
            {"name": "guard", "requestHook": {"apiVersion": version, "hook": "BeforeClusterDelete"}},
            {
                "name": "note",
                "requestHook": {"apiVersion": version, "hook": "AfterControlPlaneInitialized"},
                "timeoutSeconds": 25,
                "failurePolicy": "Ignore",
            },
        ],
    });
    let request = json!({"apiVersion": version, "kind": "DiscoveryRequest"});
    assert_eq!(body(&served.caller.post(DISCOVERY, request.to_string()).await), expect);
    let query = format!("{DISCOVERY}?timeout=10s");
    assert_eq!(body(&served.caller.post(&query, "{}").await), expect);
    assert_eq!(served.caller.words(DISCOVERY, "[]").await.0, 400);
}

#[tokio::test]
async fn a_handler_sees_the_request_and_its_settings() {
    let served = Served::start(guard(async |request: BeforeClusterDeleteRequest| {
        let name = request.cluster.metadata.name.unwrap_or_default();
        let seconds = request.settings["seconds"].parse().unwrap();
        BeforeClusterDeleteResponse::blocked(seconds, format!("{name} waits"))
    }))
    .await;
    let request = json!({
        "apiVersion": "hooks.runtime.cluster.x-k8s.io/v1alpha1",
        "kind": "BeforeClusterDeleteRequest",
        "settings": {"seconds": "7"},
        "cluster": {
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
            "metadata": {"name": "blue", "namespace": "default"}, "spec": {},
        },
        "later": {"unknown": true},
    });
    let expect = json!({
        "apiVersion": "hooks.runtime.cluster.x-k8s.io/v1alpha1",
        "kind": "BeforeClusterDeleteResponse",
        "status": "Success",
        "message": "blue waits",
        "retryAfterSeconds": 7,
    });
    let path = format!("{GUARD}?timeout=10s");
    assert_eq!(body(&served.caller.post(&path, request.to_string()).await), expect);
}

/// Cluster API's server sends an empty status, and its client refuses it.
#[tokio::test]
async fn a_missing_status_stays_missing() {
    let served = Served::start(guard(async |_| BeforeClusterDeleteResponse::default())).await;
    assert_eq!(body(&served.caller.post(GUARD, "{}").await)["status"], "");
}

#[tokio::test]
async fn what_is_no_call_gets_words() {
    let served = Served::start(guard(async |_| BeforeClusterDeleteResponse::success())).await;
    let check = async |path: &str, body: String, expect: u16, part: &str| {
        let (status, words) = served.caller.words(path, body).await;
        assert!(status == expect && words.contains(part), "{path}: {status} {words:?}");
    };
    check(GUARD, "{}".to_owned(), 200, "Success").await;
    let prefix = "/hooks.runtime.cluster.x-k8s.io/v1alpha1/beforeclusterdelete";
    for path in ["/", prefix, &format!("{GUARD}/"), &format!("{prefix}/other")] {
        check(path, "{}".to_owned(), 404, &format!("no handler at {path}\n")).await;
    }
    let got = served.caller.send(Method::GET, GUARD, "").await.unwrap();
    assert_eq!(
        (got.status.as_u16(), got.header("allow")),
        (405, Some("POST")),
        "{got:?}"
    );
    check(GUARD, "{".to_owned(), 400, "no BeforeClusterDeleteRequest: ").await;
    let other = json!({"kind": "BeforeClusterCreateRequest"});
    // The address says what it is, as in Cluster API.
    check(GUARD, other.to_string(), 200, "Success").await;
    let wrong = json!({"settings": {"seconds": 7}});
    check(GUARD, wrong.to_string(), 400, "expected a string").await;
    check(&format!("{GUARD}?timeout=soon"), "{}".to_owned(), 400, "\"soon\"").await;
    let padded = |length: usize| format!("{{}}{}", " ".repeat(length - 2));
    check(GUARD, padded(LIMIT), 200, "Success").await;
    check(GUARD, padded(LIMIT + 1), 413, "20971520 bytes").await;
}

#[tokio::test]
async fn a_panic_is_an_answer_without_its_message() {
    let served = Served::start(guard(async |request: BeforeClusterDeleteRequest| {
        assert!(request.settings.is_empty(), "the password is {:?}", request.settings);
        BeforeClusterDeleteResponse::success()
    }))
    .await;
    let request = json!({"settings": {"password": "1234"}}).to_string();
    let (status, words) = served.caller.words(GUARD, request).await;
    assert_eq!(status, 500);
    assert!(
        words.contains("guard") && words.contains("panicked") && !words.contains("1234"),
        "{words}"
    );
    assert_eq!(served.caller.words(GUARD, "{}").await.0, 200);
}

/// Also one in the function itself, before there is a future.
#[tokio::test]
async fn a_panic_before_the_future_is_an_answer() {
    let early = guard(|request| {
        let first = request.settings.into_values().next().unwrap();
        std::future::ready(BeforeClusterDeleteResponse::failure(first))
    });
    let served = Served::start(early).await;
    assert_eq!(served.caller.words(GUARD, "{}").await.0, 500);
    let request = json!({"settings": {"reason": "because"}});
    let answer = body(&served.caller.post(GUARD, request.to_string()).await);
    assert_eq!(
        (answer["status"].as_str(), answer["message"].as_str()),
        (Some("Failure"), Some("because"))
    );
}

/// Notifies when it is dropped.
struct Dropped(Arc<Notify>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

/// A handler that never answers; the first notification is its begin, the second its end.
fn endless() -> (Extension, Arc<Notify>, Arc<Notify>) {
    let (begun, ended) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (begin, end) = (Arc::clone(&begun), Arc::clone(&ended));
    let extension = guard(move |_| {
        let (begin, dropped) = (Arc::clone(&begin), Dropped(Arc::clone(&end)));
        async move {
            begin.notify_one();
            std::future::pending::<()>().await;
            drop(dropped);
            BeforeClusterDeleteResponse::success()
        }
    });
    (extension, begun, ended)
}

#[tokio::test]
async fn a_handler_ends_when_its_time_has_passed() {
    let (extension, begun, ended) = endless();
    let served = Served::start(extension).await;
    let answer = served.caller.post(&format!("{GUARD}?timeout=50ms"), "{}").await;
    let (status, words) = text(&answer);
    assert!(status == 504 && words.contains("within 50ms"), "{status} {words}");
    begun.notified().await;
    ended.notified().await;
}

#[tokio::test]
async fn a_handler_ends_when_its_client_has_gone() {
    let (extension, begun, ended) = endless();
    let served = Served::start(extension).await;
    let caller = served.caller.clone();
    let asking = tokio::spawn(async move { caller.post(GUARD, "{}").await });
    begun.notified().await;
    asking.abort();
    // Sooner than its timeout of ten seconds.
    let soon = std::time::Duration::from_secs(8);
    tokio::time::timeout(soon, ended.notified()).await.unwrap();
}
