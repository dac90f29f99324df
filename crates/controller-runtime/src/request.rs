//! Sends one request to an API server and reads the answer: the body, or the error.

use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::Request;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use kube::client::Body;
use serde::Deserialize;

use crate::error::with_causes;

/// Time limit for an answer.
const ANSWER: Duration = Duration::from_secs(30);
/// The most bytes of an answer, which may be a list. Servers of workload clusters are not to be trusted with the memory of the manager.
const ANSWER_BYTES: usize = 256 << 20;
/// The most bytes of a refusal.
const REFUSAL_BYTES: usize = 1 << 20;
/// The most bytes that an error shows of a body that is no `Status`, such as the page of a proxy. Messages are logged, and shown in
/// conditions and events.
pub(crate) const TEXT: usize = 2048;

/// A cause of a refusal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Cause {
    /// A word for machines, such as `DisruptionBudget`.
    #[serde(default)]
    pub reason: String,
    /// A sentence for people.
    #[serde(default)]
    pub message: String,
}

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The server answered with an error.
    #[error("{message}")]
    Refused {
        /// The HTTP status code.
        code: u16,
        /// The reason, as Kubernetes names it: `NotFound`, `Conflict`, ...
        reason: String,
        /// The server's message.
        message: String,
        /// The causes that the server adds to its message.
        causes: Vec<Cause>,
    },
    /// There was no answer.
    #[error("{0}")]
    Transport(String),
    /// There was no answer within this time.
    #[error("no answer in {} s", .0.as_secs())]
    Late(Duration),
    /// The answer cannot be decoded.
    #[error("cannot decode the answer: {0}")]
    Decoding(String),
}

impl RequestError {
    /// The HTTP status code of a refusal; 0 without an answer.
    pub fn code(&self) -> u16 {
        match self {
            Self::Refused { code, .. } => *code,
            Self::Transport(_) | Self::Late(_) | Self::Decoding(_) => 0,
        }
    }

    /// The causes that the server names for a refusal.
    pub fn causes(&self) -> &[Cause] {
        match self {
            Self::Refused { causes, .. } => causes,
            Self::Transport(_) | Self::Late(_) | Self::Decoding(_) => &[],
        }
    }

    /// Whether the object does not exist.
    pub fn is_not_found(&self) -> bool {
        self.code() == 404 && !self.is_denial()
    }

    /// Whether an object of the name exists already.
    pub fn is_already_exists(&self) -> bool {
        matches!(self, Self::Refused { reason, .. } if reason == "AlreadyExists") && !self.is_denial()
    }

    /// Whether the object has changed since the read.
    pub fn is_conflict(&self) -> bool {
        self.code() == 409 && !self.is_already_exists() && !self.is_denial()
    }

    /// Whether a webhook or a policy of admission refuses the request. These choose the code and the reason of their answers, which say
    /// nothing about the object of the request.
    pub(crate) fn is_denial(&self) -> bool {
        matches!(self, Self::Refused { message, .. } if is_denial(message))
    }

    /// A refusal from the body of an answer: a `Status`, or any text.
    pub(crate) fn refused(code: http::StatusCode, body: &[u8]) -> Self {
        let status: Status = serde_json::from_slice(body).unwrap_or_default();
        Self::Refused {
            code: code.as_u16(),
            reason: status.reason,
            message: status.message.unwrap_or_else(|| format!("{code}: {}", beginning(body))),
            causes: status.details.and_then(|details| details.causes).unwrap_or_default(),
        }
    }
}

/// Whether a message is that of a webhook or a policy of admission.
fn is_denial(message: &str) -> bool {
    let webhook = message.contains("admission webhook ") && message.contains(" denied the request");
    webhook || (message.contains("ValidatingAdmissionPolicy ") && message.contains(" denied request"))
}

/// The beginning of a body as text.
fn beginning(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(TEXT + 4)]);
    let shown = &text[..text.floor_char_boundary(TEXT)];
    let rest = if body.len() > shown.len() { "..." } else { "" };
    format!("{shown}{rest}")
}

impl From<serde_json::Error> for RequestError {
    fn from(error: serde_json::Error) -> Self {
        Self::Decoding(error.to_string())
    }
}

/// The fields of a `Status` that are read.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Status {
    #[serde(default)]
    pub(crate) code: u16,
    #[serde(default)]
    pub(crate) reason: String,
    #[serde(default)]
    pub(crate) message: Option<String>,
    #[serde(default)]
    details: Option<Details>,
}

#[derive(Debug, Default, Deserialize)]
struct Details {
    #[serde(default)]
    causes: Option<Vec<Cause>>,
}

/// Sends a request and returns the body of the answer. Boxed, so that it is compiled once.
pub(crate) fn send(client: &kube::Client, request: Request<Vec<u8>>) -> BoxFuture<'_, Result<Bytes, RequestError>> {
    Box::pin(async move {
        let answer = send_within(client, request, ANSWER).await?;
        Ok(answer.into_body())
    })
}

/// [`send`] with another time limit, and with the head of the answer.
pub(crate) fn send_within(
    client: &kube::Client,
    request: Request<Vec<u8>>,
    limit: Duration,
) -> BoxFuture<'_, Result<http::Response<Bytes>, RequestError>> {
    Box::pin(async move {
        let whole = async {
            let (head, body) = begin(client, request).await?.into_parts();
            let body = gather(body, ANSWER_BYTES).await?;
            Ok(http::Response::from_parts(head, body))
        };
        let late = |_| Err(RequestError::Late(limit));
        tokio::time::timeout(limit, whole).await.unwrap_or_else(late)
    })
}

/// Sends a request and returns the answer as soon as it begins. A refusal is an error.
pub(crate) async fn begin(
    client: &kube::Client,
    request: Request<Vec<u8>>,
) -> Result<http::Response<Body>, RequestError> {
    let answer = client.send(request.map(Body::from)).await;
    let answer = answer.map_err(|e| RequestError::Transport(with_causes(&e)))?;
    let status = answer.status();
    if status.is_success() {
        return Ok(answer);
    }
    let body = gather(answer.into_body(), REFUSAL_BYTES).await?;
    Err(RequestError::refused(status, &body))
}

/// Receives a body that has no more than this number of bytes.
async fn gather<B>(body: B, most: usize) -> Result<Bytes, RequestError>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<tower::BoxError>,
{
    match Limited::new(body, most).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(RequestError::Transport(format!(
            "the answer is larger than {} MiB",
            most >> 20
        ))),
        Err(error) => Err(RequestError::Transport(with_causes(&*error))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn answers_have_a_limit() {
        let body = || http_body_util::Full::new(Bytes::from(vec![b' '; 2 << 20]));
        assert_eq!(gather(body(), 2 << 20).await.unwrap().len(), 2 << 20);
        let error = gather(body(), (2 << 20) - 1).await.unwrap_err();
        assert_eq!(
            error,
            RequestError::Transport("the answer is larger than 1 MiB".to_owned())
        );
    }

    #[test]
    fn refusals_say_what_the_server_says() {
        let check = |body: &[u8], reason: &str, message: &str| {
            let error = RequestError::refused(http::StatusCode::CONFLICT, body);
            let expect = RequestError::Refused {
                code: 409,
                reason: reason.to_owned(),
                message: message.to_owned(),
                causes: Vec::new(),
            };
            assert_eq!(error, expect);
        };
        check(
            br#"{"kind":"Status","reason":"AlreadyExists","message":"a exists"}"#,
            "AlreadyExists",
            "a exists",
        );
        check(b"gone away", "", "409 Conflict: gone away");
        // A page of a proxy, with a letter of two bytes at the limit.
        let page = format!("{}\u{e9}{}", "x".repeat(2047), "x".repeat(100_000));
        check(page.as_bytes(), "", &format!("409 Conflict: {}...", "x".repeat(2047)));
        check(br#"{"message":"m","details":{"causes":null}}"#, "", "m");
        let caused = br#"{"message":"m","details":{"causes":[{"reason":"DisruptionBudget","message":"why"}]}}"#;
        let caused = RequestError::refused(http::StatusCode::TOO_MANY_REQUESTS, caused);
        assert_eq!(caused.causes()[0].message, "why");
        let exists = RequestError::refused(http::StatusCode::CONFLICT, br#"{"reason":"AlreadyExists"}"#);
        assert!(exists.is_already_exists() && !exists.is_conflict());
        assert!(RequestError::refused(http::StatusCode::NOT_FOUND, b"").is_not_found());
        for (code, reason) in [
            (http::StatusCode::NOT_FOUND, "NotFound"),
            (http::StatusCode::CONFLICT, "Conflict"),
            (http::StatusCode::CONFLICT, "AlreadyExists"),
        ] {
            let body =
                format!(r#"{{"reason":"{reason}","message":"admission webhook \"a.b.c\" denied the request: no"}}"#);
            let denied = RequestError::refused(code, body.as_bytes());
            assert!(denied.is_denial(), "{denied:?}");
            assert!(!denied.is_not_found() && !denied.is_conflict() && !denied.is_already_exists());
        }
        assert_eq!(RequestError::Transport(String::new()).code(), 0);
    }
}
