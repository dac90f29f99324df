//! Who may see diagnostics: the API server knows the user of a token (TokenReview) and the user's rights (SubjectAccessReview).
//!
//! Its answers are kept for a short time: scrapers ask often, and strangers must not make the API server work. When it cannot be asked, no user has
//! access.

use std::collections::HashMap;
use std::time::Duration;

use http::{Request, header};
use parking_lot::Mutex;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;
use windlass_controller_runtime::{ApiClient, RequestError};
use windlass_http_server::{Place, Turns};

/// How long a right is taken to last, also after the token or the role is gone.
const KEEP_ALLOWED: Duration = Duration::from_mins(1);
/// How long a refusal is taken to last.
const KEEP_REFUSED: Duration = Duration::from_secs(10);
/// The number of answers that are kept.
const MOST: usize = 1000;
/// The number of questions at a time.
const AT_A_TIME: usize = 8;
/// The number of questions that wait for that. Unknown tokens must not make others wait for long.
const WAITING: usize = 64;
/// The time limit of a question, with the wait for its turn.
const ANSWER: Duration = Duration::from_secs(10);
/// The longest token.
const LONGEST_TOKEN: usize = 16 << 10;
/// The longest path.
const LONGEST_PATH: usize = 1 << 10;

const TOKEN_REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
const ACCESS_REVIEWS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

/// The answer to a request for access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The user may.
    Allowed,
    /// The request has no token of a user.
    Unknown,
    /// The user of this name may not.
    Refused(String),
}

/// Why the API server could not be asked.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoAnswer {
    #[error("{0}")]
    Request(#[from] RequestError),
    #[error("the API server did not answer within {} s", ANSWER.as_secs())]
    Late,
    #[error("more than {WAITING} requests wait for an answer of the API server")]
    Busy,
}

/// A request by the digest of its token, its verb and its path.
type Question = ([u8; 32], String, String);

/// Asks the API server.
pub(super) struct Access {
    client: ApiClient,
    turns: Turns,
    known: Mutex<HashMap<Question, (Verdict, Instant)>>,
}

impl Access {
    pub(super) fn new(client: &kube::Client) -> Self {
        Self {
            client: ApiClient::from(client),
            turns: Turns::new(AT_A_TIME, WAITING),
            known: Mutex::default(),
        }
    }

    /// Whether a request may be answered.
    pub(super) async fn judge<B>(&self, request: &Request<B>) -> Result<Verdict, NoAnswer> {
        let path = request.uri().path();
        let Some(token) = bearer(request).filter(|_| path.len() <= LONGEST_PATH) else {
            return Ok(Verdict::Unknown);
        };
        let verb = request.method().as_str().to_ascii_lowercase();
        let question: Question = (Sha256::digest(token).into(), verb, path.to_owned());
        if let Some(known) = self.known(&question) {
            return Ok(known);
        }
        let place = self.turns.queue().ok_or(NoAnswer::Busy)?;
        let asked = tokio::time::timeout(ANSWER, self.ask(token, &question, place)).await;
        let verdict = asked.map_err(|_| NoAnswer::Late)??;
        self.keep(question, verdict.clone());
        Ok(verdict)
    }

    fn known(&self, question: &Question) -> Option<Verdict> {
        let known = self.known.lock();
        let (verdict, end) = known.get(question)?;
        (Instant::now() < *end).then(|| verdict.clone())
    }

    fn keep(&self, question: Question, verdict: Verdict) {
        let now = Instant::now();
        let mut known = self.known.lock();
        if known.len() >= MOST {
            known.retain(|_, (_, end)| now < *end);
        }
        if known.len() >= MOST {
            // Refusals end first.
            let first = known.iter().min_by_key(|(_, (_, end))| *end);
            if let Some(first) = first.map(|(question, _)| question.clone()) {
                known.remove(&first);
            }
        }
        let limit = if verdict == Verdict::Allowed {
            KEEP_ALLOWED
        } else {
            KEEP_REFUSED
        };
        known.insert(question, (verdict, now + limit));
    }

    async fn ask(&self, token: &str, (_, verb, path): &Question, place: Place<'_>) -> Result<Verdict, NoAnswer> {
        let _turn = place.turn().await;
        let review = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token},
        });
        let reviewed = self.client.post_value(TOKEN_REVIEWS, &review).await?;
        let status = &reviewed["status"];
        if status["authenticated"] != json!(true) {
            return Ok(Verdict::Unknown);
        }
        let user = &status["user"];
        let mut spec = json!({"nonResourceAttributes": {"path": path, "verb": verb}, "user": user["username"]});
        for field in ["uid", "groups", "extra"] {
            if !user[field].is_null() {
                spec[field] = user[field].clone();
            }
        }
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec,
        });
        let reviewed = self.client.post_value(ACCESS_REVIEWS, &review).await?;
        let status = &reviewed["status"];
        let allowed = status["allowed"] == json!(true) && status["denied"] != json!(true);
        let name = user["username"].as_str().unwrap_or_default().to_owned();
        Ok(if allowed {
            Verdict::Allowed
        } else {
            Verdict::Refused(name)
        })
    }
}

/// The token of a request.
fn bearer<B>(request: &Request<B>) -> Option<&str> {
    let mut values = request.headers().get_all(header::AUTHORIZATION).iter();
    let value = values.next()?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    let token = token.trim();
    let is_token = scheme.eq_ignore_ascii_case("bearer") && !token.is_empty() && token.len() <= LONGEST_TOKEN;
    (is_token && values.next().is_none()).then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access() -> Access {
        let nowhere = tower::service_fn(|_: Request<kube::client::Body>| async {
            Err::<http::Response<kube::client::Body>, _>(std::io::Error::other("no server"))
        });
        Access::new(&kube::Client::new(nowhere, "default"))
    }

    fn question(number: usize) -> Question {
        (
            Sha256::digest(number.to_string()).into(),
            "get".to_owned(),
            "/metrics".to_owned(),
        )
    }

    #[tokio::test(start_paused = true)]
    async fn answers_are_kept_for_a_short_time_and_in_a_small_number() {
        let access = access();
        access.keep(question(0), Verdict::Allowed);
        for number in 1..2 * MOST {
            access.keep(question(number), Verdict::Unknown);
        }
        assert_eq!(access.known.lock().len(), MOST);
        assert_eq!(access.known(&question(0)), Some(Verdict::Allowed), "refusals go first");
        let last = question(2 * MOST - 1);
        assert_eq!(access.known(&last), Some(Verdict::Unknown));
        tokio::time::advance(KEEP_REFUSED).await;
        assert_eq!(
            (access.known(&last), access.known(&question(0)).is_some()),
            (None, true)
        );
        tokio::time::advance(KEEP_ALLOWED).await;
        assert_eq!(access.known(&question(0)), None);
    }

    #[tokio::test]
    async fn a_server_that_cannot_be_asked_gives_no_verdict_and_none_is_kept() {
        let access = access();
        let request = Request::get("/metrics").header(header::AUTHORIZATION, "Bearer x");
        let request = request.body(()).unwrap();
        assert!(access.judge(&request).await.is_err());
        assert!(access.known.lock().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn more_questions_than_may_wait_are_refused_and_known_answers_are_not() {
        let silent = tower::service_fn(|_: Request<kube::client::Body>| {
            std::future::pending::<std::io::Result<http::Response<kube::client::Body>>>()
        });
        let access = Access::new(&kube::Client::new(silent, "default"));
        let request = |token: usize| {
            let request = Request::get("/metrics").header(header::AUTHORIZATION, format!("Bearer {token}"));
            request.body(()).unwrap()
        };
        let known = (Sha256::digest("1000").into(), "get".to_owned(), "/metrics".to_owned());
        access.keep(known, Verdict::Allowed);
        let requests: Vec<Request<()>> = (0..=AT_A_TIME + WAITING).map(request).collect();
        let answers = futures::future::join_all(requests.iter().map(|request| access.judge(request))).await;
        let busy = answers.iter().filter(|answer| matches!(answer, Err(NoAnswer::Busy)));
        let late = answers.iter().filter(|answer| matches!(answer, Err(NoAnswer::Late)));
        assert_eq!((busy.count(), late.count()), (1, AT_A_TIME + WAITING));
        assert_eq!(access.judge(&request(1000)).await.unwrap(), Verdict::Allowed);
    }

    #[test]
    fn a_request_has_one_token_or_none() {
        let check = |values: &[&str], expect: Option<&str>| {
            let request = values.iter().fold(Request::get("/"), |request, value| {
                request.header(header::AUTHORIZATION, *value)
            });
            assert_eq!(bearer(&request.body(()).unwrap()), expect, "{values:?}");
        };
        check(&["Bearer abc"], Some("abc"));
        check(&["bearer abc "], Some("abc"));
        check(&["Bearer abc", "Bearer def"], None);
        check(&["Basic abc"], None);
        check(&["Bearer "], None);
        check(&[], None);
    }
}
