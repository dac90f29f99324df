//! The HTTPS server.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use k8s_openapi::api::authentication::v1::UserInfo;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use windlass_admission::{Hook, Reference, Refusal, Rule};
use windlass_http_server::{Answer, DRAIN, Server, respond};
use windlass_meta::repeats::Repeats;

use crate::conversion;
use crate::definitions::Definitions;
use crate::queues::{Arrived, LARGE, Queues, Reading};
use crate::reads::Reads;
use crate::{review, reviewer};

/// The time limit for receiving a request: as long as API servers wait for the response.
const ARRIVAL: Duration = Duration::from_secs(10);
/// The time limit for what is read for a review: API servers wait for ten seconds.
const PATIENCE: Duration = Duration::from_secs(8);
/// The size limit of a body. A review has an object twice, and API servers accept objects of 3 MiB.
const MAX_BODY: usize = 8 << 20;
/// Why a review is not answered now.
pub(crate) const BUSY: &str = "too many reviews wait; try again";

/// Rules by their paths, and the API server that knows other objects and the rights of users.
pub(crate) struct Routes {
    rules: BTreeMap<String, (Hook, Arc<Rule>)>,
    client: Option<kube::Client>,
    reads: Reads,
    queues: Queues,
    /// What conversions look up; without it, nothing is converted.
    definitions: Option<Definitions>,
    /// What could not be decoded, as far as it was logged.
    said: Repeats,
}

impl Routes {
    /// With the conversion of our kinds between their versions.
    pub(crate) fn converting(mut self, definitions: Definitions) -> Self {
        self.definitions = Some(definitions);
        self
    }
}

/// What a path answers.
enum Asked<'a> {
    Admission(Hook, &'a Rule),
    Conversion(&'a Definitions),
}

pub(crate) fn routes(rules: &[Rule], client: Option<kube::Client>, reads: Reads) -> Routes {
    let mut paths = BTreeMap::new();
    for rule in rules {
        let shared = Arc::new(rule.clone());
        for hook in Hook::ALL.into_iter().filter(|hook| rule.has(*hook)) {
            paths.insert(rule.path(hook), (hook, Arc::clone(&shared)));
        }
    }
    Routes {
        rules: paths,
        client,
        reads,
        queues: Queues::new(),
        definitions: None,
        said: Repeats::default(),
    }
}

/// Answers requests until it is stopped. Running requests are completed.
pub(crate) async fn serve(
    listener: TcpListener,
    tls: Arc<rustls::ServerConfig>,
    routes: Routes,
    stop: CancellationToken,
) {
    let (routes, tls) = (Arc::new(routes), Some(tls));
    let server = Server {
        name: "a webhook",
        listener,
        tls,
        drain: DRAIN,
    };
    let handler = move |request| {
        let routes = Arc::clone(&routes);
        async move { answer(&routes, request).await }
    };
    server.serve(handler, stop).await;
}

async fn answer<B>(routes: &Routes, request: Request<B>) -> Answer
where
    B: http_body::Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let path = request.uri().path();
    let asked = match routes.rules.get(path) {
        Some((hook, rule)) => Some(Asked::Admission(*hook, rule)),
        None => (routes.definitions.as_ref())
            .filter(|_| path == conversion::PATH)
            .map(Asked::Conversion),
    };
    let Some(asked) = asked else {
        return words(StatusCode::NOT_FOUND, "there is no webhook at this path");
    };
    if request.method() != Method::POST {
        let mut answer = words(StatusCode::METHOD_NOT_ALLOWED, "a webhook takes POST only");
        answer
            .headers_mut()
            .insert(header::ALLOW, header::HeaderValue::from_static("POST"));
        return answer;
    }
    let kind = request
        .headers()
        .get(header::CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    let media_type = kind.and_then(|kind| kind.split(';').next()).map(str::trim);
    if !media_type.is_some_and(|kind| kind.eq_ignore_ascii_case("application/json")) {
        return words(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body must be application/json");
    }
    let is_large = request
        .body()
        .size_hint()
        .upper()
        .is_none_or(|most| most > LARGE as u64);
    let place = is_large.then(|| routes.queues.large());
    if matches!(place, Some(None)) {
        return words(StatusCode::SERVICE_UNAVAILABLE, BUSY);
    }
    let gathered = tokio::time::timeout(ARRIVAL, Limited::new(request.into_body(), MAX_BODY).collect()).await;
    let body = match gathered {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            let text = format!("the body is larger than {MAX_BODY} bytes");
            return words(StatusCode::PAYLOAD_TOO_LARGE, &text);
        }
        Ok(Err(_)) => return words(StatusCode::BAD_REQUEST, "the body did not arrive"),
        Err(_) => return words(StatusCode::REQUEST_TIMEOUT, "the body took too long to arrive"),
    };
    let Some(arrived) = routes.queues.arrived(body.len(), place.flatten()) else {
        return words(StatusCode::SERVICE_UNAVAILABLE, BUSY);
    };
    match asked {
        Asked::Admission(hook, rule) => admitted(routes, (hook, rule), &body, &arrived).await,
        Asked::Conversion(definitions) => converted(routes, definitions, &body, &arrived).await,
    }
}

/// Answers a ConversionReview.
async fn converted(routes: &Routes, definitions: &Definitions, body: &[u8], arrived: &Arrived<'_>) -> Answer {
    let work = arrived.work(|| conversion::answer(body, definitions));
    match tokio::time::timeout(PATIENCE, work).await {
        Err(_) => words(StatusCode::SERVICE_UNAVAILABLE, BUSY),
        Ok(Ok(review)) => respond(StatusCode::OK, "application/json", review),
        Ok(Err(why)) => {
            if let Some(repeated) = routes.said.line("ConversionReview", &why, Instant::now()) {
                tracing::warn!(reason = why, repeated, "the webhook cannot decode a ConversionReview");
            }
            words(StatusCode::BAD_REQUEST, &why)
        }
    }
}

/// Answers an AdmissionReview.
async fn admitted(routes: &Routes, (hook, rule): (Hook, &Rule), body: &[u8], arrived: &Arrived<'_>) -> Answer {
    let reviewed = arrived.work(|| review::read(rule, hook, body));
    let reviewed = match tokio::time::timeout(PATIENCE, reviewed).await {
        Err(_) => return words(StatusCode::SERVICE_UNAVAILABLE, BUSY),
        Ok(Ok(reviewed)) => reviewed,
        Ok(Err(why)) => {
            if let Some(repeated) = routes.said.line(rule.kind, &why, Instant::now()) {
                tracing::warn!(
                    kind = rule.kind,
                    why,
                    repeated,
                    "the webhook cannot decode an AdmissionReview"
                );
            }
            return words(StatusCode::BAD_REQUEST, &why);
        }
    };
    let judged = tokio::time::timeout(PATIENCE, judge(routes, (hook, rule), &reviewed, arrived)).await;
    let outcome = judged.unwrap_or_else(|_| {
        let why = "what the write depends on was not read in time; try again";
        Err(Refusal::Unknown(why.to_owned()))
    });
    let (outcome, refusal) = match outcome {
        Ok(outcome) => (outcome, Ok(())),
        Err(refusal) => (review::Outcome::default(), Err(refusal)),
    };
    let review = reviewed.judged(outcome).response(rule, refusal);
    respond(StatusCode::OK, "application/json", review.to_string())
}

/// Asks for the rights of the user, and then the rule.
async fn judge(
    routes: &Routes,
    (hook, rule): (Hook, &Rule),
    reviewed: &review::Reviewed,
    arrived: &Arrived<'_>,
) -> Result<review::Outcome, Refusal> {
    if let Some((reference, user)) = reviewed.reference(rule, hook) {
        let place = arrived.reading().ok_or_else(|| Refusal::Unknown(BUSY.to_owned()))?;
        rights(routes.client.as_ref(), &reference, user, place).await?;
    }
    let judging = routes.reads.judge(
        arrived,
        |view| reviewed.judge(rule, hook, view),
        review::Outcome::is_refusal,
    );
    judging.await.map_err(|unread| Refusal::Unknown(unread.why))
}

async fn rights(
    client: Option<&kube::Client>,
    reference: &Reference,
    user: &UserInfo,
    place: Reading<'_>,
) -> Result<(), Refusal> {
    let unknown = || Refusal::Unknown("no API server can be asked which rights the user has; try again".to_owned());
    reviewer::ask(client.ok_or_else(unknown)?, user, reference, place).await
}

fn words(status: StatusCode, text: &str) -> Answer {
    respond(status, "text/plain; charset=utf-8", format!("{text}\n"))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::StreamExt as _;
    use http_body_util::{Full, StreamBody};
    use windlass_controller_runtime::Tasks;

    use super::*;
    use crate::queues::{AT_A_TIME, LARGE_WAITING, WAITING};
    use crate::testing::rule;

    const PATH: &str = "/validate-infra-example-com-v1-testcluster";

    /// Every client that reaches the port can send reviews of any user.
    #[tokio::test(start_paused = true)]
    async fn more_reviews_than_may_wait_are_refused_and_the_api_server_is_asked_about_few_at_a_time() {
        let asked = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&asked);
        let silent = tower::service_fn(move |_: Request<kube::client::Body>| {
            counted.fetch_add(1, Ordering::SeqCst);
            std::future::pending::<Result<http::Response<kube::client::Body>, std::io::Error>>()
        });
        let client = kube::Client::new(silent, "default");
        let mut rule = rule();
        rule.admission.refers = Some(|_| {
            Some(Reference {
                field: "spec.class",
                group: "g.io",
                version: "v1",
                kind: "Class",
                resource: "classes",
                namespace: "theirs".to_owned(),
                name: "c".to_owned(),
                parts: |_| Vec::new(),
            })
        });
        let reads = Reads::new(&[], None, &Tasks::new());
        let routes = Arc::new(routes(&[rule], Some(client), reads));
        let send = || {
            let request = Request::post(PATH).header(header::CONTENT_TYPE, "application/json");
            let request = request.body(Full::new(Bytes::from(update()))).unwrap();
            let routes = Arc::clone(&routes);
            async move { answer(&routes, request).await }
        };
        let mut waiting = tokio::task::JoinSet::new();
        for _ in 0..AT_A_TIME + WAITING {
            waiting.spawn(send());
        }
        let probe = routes.queues.arrived(1, None).unwrap();
        while probe.reading().is_some() {
            tokio::task::yield_now().await;
        }
        let refused = send().await.into_body().collect().await.unwrap().to_bytes();
        let refused: serde_json::Value = serde_json::from_slice(&refused).unwrap();
        assert_eq!(refused["response"]["status"]["message"], BUSY);
        assert!(waiting.try_join_next().is_none());
        assert_eq!(asked.load(Ordering::SeqCst), AT_A_TIME);
        waiting.shutdown().await;
        let one = tokio::spawn(send());
        while asked.load(Ordering::SeqCst) == AT_A_TIME {
            tokio::task::yield_now().await;
        }
        one.abort();
    }

    /// Bodies are in memory while they arrive, and rules need a processor for them.
    #[tokio::test]
    async fn few_large_reviews_are_taken_at_a_time_and_small_ones_pass() {
        let routes = Arc::new(routes(&[rule()], None, Reads::new(&[], None, &Tasks::new())));
        let request = || Request::post(PATH).header(header::CONTENT_TYPE, "application/json");
        let send = |request: Request<Limited<StreamBody<Arriving>>>| {
            let routes = Arc::clone(&routes);
            Box::pin(async move { answer(&routes, request).await })
        };
        let arriving = || {
            let frames: Arriving = futures::stream::pending().boxed();
            send(request().body(Limited::new(StreamBody::new(frames), MAX_BODY)).unwrap())
        };
        let mut waiting: Vec<_> = (0..=LARGE_WAITING).map(|_| arriving()).collect();
        for review in &mut waiting {
            assert!(futures::poll!(review.as_mut()).is_pending());
        }
        let refused = arriving().await;
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
        let small = Full::new(Bytes::from(vec![b' '; LARGE]));
        let small = answer(&routes, request().body(small).unwrap()).await;
        assert_eq!(small.status(), StatusCode::BAD_REQUEST);
        drop(waiting);
        assert!(futures::poll!(arriving()).is_pending(), "there is room again");
    }

    /// Small ones, too: a task of the same runtime goes on while rules take their time.
    #[test]
    fn reviews_leave_a_worker_free() {
        static GATE: parking_lot::Mutex<()> = parking_lot::Mutex::new(());
        static ENTERED: AtomicUsize = AtomicUsize::new(0);
        let mut rule = rule();
        rule.admission.check = |_| {
            ENTERED.fetch_add(1, Ordering::SeqCst);
            drop(GATE.lock());
            Ok(windlass_admission::Verdict::default())
        };
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(2).enable_all().build().unwrap();
        let _entered = runtime.enter();
        let routes = Arc::new(routes(&[rule], None, Reads::new(&[], None, &Tasks::new())));
        let closed = GATE.lock();
        let reviews: Vec<_> = (0..4)
            .map(|_| {
                let routes = Arc::clone(&routes);
                let request = Request::post(PATH).header(header::CONTENT_TYPE, "application/json");
                let request = request.body(Full::new(Bytes::from(update()))).unwrap();
                runtime.spawn(async move { answer(&routes, request).await.status() })
            })
            .collect();
        while ENTERED.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        let (send, receive) = std::sync::mpsc::channel();
        for _ in 0..100 {
            let send = send.clone();
            runtime.spawn(async move { send.send(()) });
            let went_on = receive.recv_timeout(Duration::from_mins(1));
            assert_eq!((went_on, ENTERED.load(Ordering::SeqCst)), (Ok(()), 1));
        }
        drop(closed);
        for status in runtime.block_on(futures::future::join_all(reviews)) {
            assert_eq!(status.unwrap(), StatusCode::OK);
        }
    }

    /// The review of an update that is allowed.
    fn update() -> String {
        let review = serde_json::json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": {
                "uid": "1", "operation": "UPDATE", "kind": {"group": "infra.example.com", "kind": "TestCluster"},
                "object": {"spec": {"size": 2}}, "oldObject": {"spec": {"size": 1}},
            },
        });
        review.to_string()
    }

    type Arriving = futures::stream::BoxStream<'static, Result<http_body::Frame<Bytes>, std::convert::Infallible>>;

    #[tokio::test]
    async fn what_is_no_review_gets_words() {
        let routes = routes(&[rule()], None, Reads::new(&[], None, &Tasks::new()));
        let check = async |method: &str, path: &str, kind: &str, body: &str, expect: u16, text: &str| {
            let body = Full::new(Bytes::from(body.to_owned()));
            let request = Request::builder()
                .method(method)
                .uri(path)
                .header(header::CONTENT_TYPE, kind);
            let answered = answer(&routes, request.body(body).unwrap()).await;
            assert_eq!(answered.status().as_u16(), expect, "{method} {path}");
            let said = answered.into_body().collect().await.unwrap().to_bytes();
            let said = String::from_utf8(said.to_vec()).unwrap();
            assert!(said.contains(text), "{said:?}");
        };
        let json = "application/json";
        check("POST", "/", json, "{}", 404, "no webhook").await;
        check(
            "POST",
            "/validate-infra-example-com-v2-testcluster",
            json,
            "{}",
            404,
            "",
        )
        .await;
        check("GET", PATH, json, "", 405, "POST").await;
        check("POST", PATH, "text/yaml", "{}", 415, "application/json").await;
        check("POST", PATH, json, "{", 400, "no JSON").await;
        check(
            "POST",
            PATH,
            "application/json; charset=utf-8",
            "{}",
            400,
            "admission.k8s.io/v1",
        )
        .await;
        check("POST", PATH, json, &" ".repeat(MAX_BODY + 1), 413, "larger").await;
        let review = serde_json::json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": {
                "uid": "1", "operation": "UPDATE", "kind": {"group": "infra.example.com", "kind": "TestCluster"},
                "object": {"spec": {"size": 1}}, "oldObject": {"spec": {"size": 2}},
            },
        });
        check("POST", PATH, json, &review.to_string(), 200, "\"allowed\":false").await;
        let other = "/validate-infra-example-com-v1beta1-testcluster";
        check("POST", other, json, &review.to_string(), 404, "no webhook").await;
    }
}
