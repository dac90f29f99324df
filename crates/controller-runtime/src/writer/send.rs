//! Sends a write, and finds out its result if no answer comes.

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Method, Request, header};
use serde::Deserialize;
use serde_json::Value;
use windlass_api::codec::parse;

use super::{Target, Writer};
use crate::error::{ErrorKind, WriteError};
use crate::guard::Need;
use crate::object::{Gvk, ObjectKey};
use crate::request::{RequestError, send};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Read,
    Apply,
    ApplyStatus,
    Create,
    MergePatch,
    JsonPatch,
    Delete,
}

impl Verb {
    /// The verb in error texts: "failed to apply Machine ...".
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Apply => "apply",
            Self::ApplyStatus => "apply status of",
            Self::Create => "create",
            Self::MergePatch | Self::JsonPatch => "patch",
            Self::Delete => "delete",
        }
    }

    fn method(self) -> Method {
        match self {
            Self::Read => Method::GET,
            Self::Create => Method::POST,
            Self::Delete => Method::DELETE,
            Self::Apply | Self::ApplyStatus | Self::MergePatch | Self::JsonPatch => Method::PATCH,
        }
    }

    fn content_type(self) -> &'static str {
        match self {
            // JSON is YAML.
            Self::Apply | Self::ApplyStatus => "application/apply-patch+yaml",
            Self::MergePatch => "application/merge-patch+json",
            Self::JsonPatch => "application/json-patch+json",
            Self::Read | Self::Create | Self::Delete => "application/json",
        }
    }
}

/// One request.
pub(super) struct Call<'a> {
    pub(super) verb: Verb,
    pub(super) target: &'a Target,
    pub(super) url: String,
    pub(super) body: Option<&'a Value>,
}

impl Call<'_> {
    fn error(&self, kind: ErrorKind, message: impl Into<String>) -> WriteError {
        let target = self.target;
        WriteError::new(kind, self.verb.word(), &target.gvk, &target.key, message)
    }
}

impl Writer {
    pub(super) fn send<'a>(&'a self, call: &'a Call<'_>) -> BoxFuture<'a, Result<Answer, WriteError>> {
        self.send_once(call).boxed()
    }

    async fn send_once(&self, call: &Call<'_>) -> Result<Answer, WriteError> {
        // The body is never logged, as it may be a Secret's.
        tracing::debug!(
            controller = self.controller,
            verb = call.verb.word(),
            url = call.url,
            "request"
        );
        let body = match call.body {
            Some(body) => serde_json::to_vec(body).map_err(|e| call.error(ErrorKind::Encoding, e.to_string()))?,
            None => Vec::new(),
        };
        let request = Request::builder()
            .method(call.verb.method())
            .uri(&call.url)
            .header(header::CONTENT_TYPE, call.verb.content_type())
            .header(header::ACCEPT, "application/json")
            .body(body)
            .map_err(|e| call.error(ErrorKind::Encoding, e.to_string()))?;
        let answer = exchange(&self.ports.client, request).await;
        answer.map_err(|e| {
            let is_broken = matches!(e, RequestError::Transport(_));
            let error = call.error(kind_of(&e), e.to_string());
            WriteError { is_broken, ..error }
        })
    }

    /// Sends a request that can be repeated safely: once more if the connection broke. A server that failed, or did not answer in
    /// time, is asked again after the backoff.
    pub(super) async fn send_safe(&self, call: &Call<'_>) -> Result<Answer, WriteError> {
        match self.send(call).await {
            Err(error) if error.is_broken => {
                tracing::debug!(%error, "sending again, as the outcome is not known");
                self.send_or_doubt(call).await
            }
            other => self.doubt(call, other),
        }
    }

    /// Sends a request. If its outcome stays unknown, the next reconcile does not start before it is known.
    pub(super) async fn send_or_doubt(&self, call: &Call<'_>) -> Result<Answer, WriteError> {
        self.doubt(call, self.send(call).await)
    }

    fn doubt(&self, call: &Call<'_>, answer: Result<Answer, WriteError>) -> Result<Answer, WriteError> {
        let target = call.target;
        let is_unknown = answer.as_ref().is_err_and(|error| error.kind().is_ambiguous());
        if is_unknown && !target.key.name.is_empty() {
            self.journal.unsure(&target.gvk, &target.key, target.url(None));
        }
        answer
    }
}

/// A server's answer to a write: the stored object, or a `Status`.
pub(crate) struct Answer {
    body: Bytes,
    head: Head,
}

/// The fields that are read of every answer.
#[derive(Debug, Default, Deserialize)]
struct Head {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    metadata: HeadMeta,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct HeadMeta {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    uid: String,
    #[serde(default)]
    resource_version: String,
    #[serde(default)]
    generation: Option<i64>,
    #[serde(default)]
    deletion_timestamp: Option<String>,
    #[serde(default)]
    finalizers: Vec<String>,
}

impl Answer {
    fn read(body: Bytes) -> Result<Self, RequestError> {
        let head = serde_json::from_slice(&body)?;
        Ok(Self { body, head })
    }

    /// An answer as for an object that does not exist.
    pub(super) fn gone() -> Self {
        let head = Head {
            kind: "Status".to_owned(),
            ..Head::default()
        };
        Self {
            body: Bytes::new(),
            head,
        }
    }

    /// The object as text.
    pub(crate) fn json(&self) -> &[u8] {
        &self.body
    }

    /// The object as a value.
    pub(crate) fn value(&self) -> Value {
        parse(&self.body)
    }

    pub(super) fn name(&self) -> Option<&str> {
        self.head.metadata.name.as_deref()
    }

    pub(super) fn uid(&self) -> &str {
        &self.head.metadata.uid
    }

    /// The resourceVersion.
    pub(super) fn version(&self) -> &str {
        &self.head.metadata.resource_version
    }

    pub(super) fn generation(&self) -> Option<i64> {
        self.head.metadata.generation
    }

    pub(super) fn finalizers(&self) -> &[String] {
        &self.head.metadata.finalizers
    }

    /// Whether the object still exists, with a deletion timestamp.
    pub(super) fn is_going(&self) -> bool {
        self.head.kind != "Status" && self.head.metadata.deletion_timestamp.is_some()
    }
}

/// Reads the object of a write whose outcome is not known. Returns what the caches have to see: whether the write happened, the next
/// plan decides by them.
pub(crate) async fn look(
    client: &kube::Client,
    gvk: &Gvk,
    key: &ObjectKey,
    url: &str,
) -> Result<Option<Need>, WriteError> {
    let error = |kind, message: String| WriteError::new(kind, "read", gvk, key, message);
    let request = Request::get(url)
        .header(header::ACCEPT, "application/json")
        .body(Vec::new())
        .map_err(|e| error(ErrorKind::Encoding, e.to_string()))?;
    match exchange(client, request).await {
        Ok(answer) => Ok(answer.version().parse().ok().map(Need::Version)),
        Err(refused) if refused.is_not_found() => Ok(None),
        Err(refused) => Err(error(kind_of(&refused), refused.to_string())),
    }
}

/// Sends a request and reads the answer.
pub(super) async fn exchange(client: &kube::Client, request: Request<Vec<u8>>) -> Result<Answer, RequestError> {
    Answer::read(send(client, request).await?)
}

/// The category of a failed request, for callers of the writer.
pub(crate) fn kind_of(error: &RequestError) -> ErrorKind {
    match error {
        RequestError::Refused { code, reason, .. } => classify(*code, reason, error.is_denial()),
        RequestError::Transport(_) | RequestError::Late(_) => ErrorKind::Transport,
        RequestError::Decoding(_) => ErrorKind::Encoding,
    }
}

fn classify(code: u16, reason: &str, is_denial: bool) -> ErrorKind {
    match (code, reason) {
        // These codes would be about the object.
        (404 | 409 | 422, _) if is_denial => ErrorKind::Refused,
        (_, "AlreadyExists") => ErrorKind::AlreadyExists,
        (404, _) => ErrorKind::NotFound,
        (409, _) => ErrorKind::Conflict,
        (401 | 403, _) => ErrorKind::Forbidden,
        (429, _) => ErrorKind::TooManyRequests,
        (422, _) => ErrorKind::Invalid,
        (400..=499, _) => ErrorKind::Refused,
        _ => ErrorKind::Server,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_classified() {
        let check = |code, reason, expect| assert_eq!(classify(code, reason, false), expect);
        check(409, "AlreadyExists", ErrorKind::AlreadyExists);
        check(409, "Conflict", ErrorKind::Conflict);
        check(404, "NotFound", ErrorKind::NotFound);
        check(403, "Forbidden", ErrorKind::Forbidden);
        check(422, "Invalid", ErrorKind::Invalid);
        check(400, "BadRequest", ErrorKind::Refused);
        check(415, "UnsupportedMediaType", ErrorKind::Refused);
        check(429, "TooManyRequests", ErrorKind::TooManyRequests);
        check(500, "InternalError", ErrorKind::Server);
        check(504, "Timeout", ErrorKind::Server);
    }

    #[test]
    fn a_denial_by_admission_is_no_fact_about_the_object() {
        let check = |code, reason: &str, message: &str, expect| {
            let (reason, message) = (reason.to_owned(), message.to_owned());
            let error = RequestError::Refused {
                code,
                reason,
                message,
                causes: Vec::new(),
            };
            assert_eq!(kind_of(&error), expect);
        };
        let denied =
            "admission webhook \"a.example.com\" denied the request: X \"a\" is invalid: spec.b: Required value";
        check(422, "Invalid", denied, ErrorKind::Refused);
        check(404, "NotFound", denied, ErrorKind::Refused);
        check(409, "Conflict", denied, ErrorKind::Refused);
        check(409, "AlreadyExists", denied, ErrorKind::Refused);
        check(
            422,
            "Invalid",
            "deployments.apps \"a\" is forbidden: ValidatingAdmissionPolicy 'b' with binding 'c' denied request: no",
            ErrorKind::Refused,
        );
        check(
            422,
            "Invalid",
            "Deployment.apps \"a\" is invalid: spec.selector: Invalid value",
            ErrorKind::Invalid,
        );
    }
}
