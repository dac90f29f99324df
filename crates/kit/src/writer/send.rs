//! Sending a write, and finding out what became of it when the answer does not come.

use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Method, Request, header};
use http_body_util::BodyExt;
use serde_json::Value;

use super::{Target, Writer};
use crate::error::{ErrorKind, WriteError, with_causes};
use crate::guard::Need;
use crate::object::{Gvk, ObjectKey};

/// How long an answer may take.
const ANSWER: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Read,
    Apply,
    ApplyStatus,
    Create,
    MergePatch,
    JsonPatch,
    Delete,
}

impl Verb {
    /// For error texts: "failed to apply Machine ...".
    pub(super) fn word(self) -> &'static str {
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
    pub(super) fn send<'a>(&'a self, call: &'a Call<'_>) -> BoxFuture<'a, Result<Value, WriteError>> {
        self.send_once(call).boxed()
    }

    async fn send_once(&self, call: &Call<'_>) -> Result<Value, WriteError> {
        // Never the body, which may be a Secret's.
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
        match tokio::time::timeout(ANSWER, exchange(&self.ports.client, request)).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err((kind, message))) => Err(call.error(kind, message)),
            Err(_) => Err(call.error(ErrorKind::Transport, "no answer in 30 s")),
        }
    }

    /// A request that may be sent again safely.
    pub(super) async fn send_again(&self, call: &Call<'_>, first: WriteError) -> Result<Value, WriteError> {
        tracing::debug!(error = %first, "sending again, as the outcome is not known");
        self.send_or_doubt(call).await
    }

    /// When the outcome stays unknown, the next reconcile will not start before it is known.
    pub(super) async fn send_or_doubt(&self, call: &Call<'_>) -> Result<Value, WriteError> {
        let error = match self.send(call).await {
            Err(error) if error.kind().is_ambiguous() => error,
            other => return other,
        };
        let target = call.target;
        if !target.key.name.is_empty() {
            self.journal.unsure(&target.gvk, &target.key, target.url(None));
        }
        Err(error)
    }
}

/// Finds out what became of a write that was not answered: what the caches have to see.
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
    match tokio::time::timeout(ANSWER, exchange(client, request)).await {
        Ok(Ok(answer)) => {
            let version = answer["metadata"]["resourceVersion"].as_str();
            Ok(version.and_then(|v| v.parse().ok()).map(Need::Version))
        }
        Ok(Err((ErrorKind::NotFound, _))) => Ok(None),
        Ok(Err((kind, message))) => Err(error(kind, message)),
        Err(_) => Err(error(ErrorKind::Transport, "no answer in 30 s".to_owned())),
    }
}

/// [`exchange`] that does not wait for ever.
pub(crate) fn fetch(
    client: &kube::Client,
    request: Request<Vec<u8>>,
) -> BoxFuture<'_, Result<Value, (ErrorKind, String)>> {
    Box::pin(async move {
        match tokio::time::timeout(ANSWER, exchange(client, request)).await {
            Ok(answer) => answer,
            Err(_) => Err((ErrorKind::Transport, "no answer in 30 s".to_owned())),
        }
    })
}

/// Sends a request and decodes the answer.
pub(super) async fn exchange(client: &kube::Client, request: Request<Vec<u8>>) -> Result<Value, (ErrorKind, String)> {
    let answer = client
        .send(request.map(kube::client::Body::from))
        .await
        .map_err(|e| (ErrorKind::Transport, with_causes(&e)))?;
    let status = answer.status();
    let bytes = answer
        .into_body()
        .collect()
        .await
        .map_err(|e| (ErrorKind::Transport, with_causes(&e)))?
        .to_bytes();
    if status.is_success() {
        return serde_json::from_slice(&bytes).map_err(|e| (ErrorKind::Encoding, e.to_string()));
    }
    let body: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let reason = body["reason"].as_str().unwrap_or_default();
    let message = match body["message"].as_str() {
        Some(message) => message.to_owned(),
        None => format!("{status}: {}", String::from_utf8_lossy(&bytes)),
    };
    Err((classify(status.as_u16(), reason), message))
}

fn classify(code: u16, reason: &str) -> ErrorKind {
    match (code, reason) {
        (_, "AlreadyExists") => ErrorKind::AlreadyExists,
        (404, _) => ErrorKind::NotFound,
        (409, _) => ErrorKind::Conflict,
        (401 | 403, _) => ErrorKind::Forbidden,
        (429, _) => ErrorKind::TooManyRequests,
        (400..=499, _) => ErrorKind::Invalid,
        _ => ErrorKind::Server,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_classified() {
        let check = |code, reason, expect| assert_eq!(classify(code, reason), expect);
        check(409, "AlreadyExists", ErrorKind::AlreadyExists);
        check(409, "Conflict", ErrorKind::Conflict);
        check(404, "NotFound", ErrorKind::NotFound);
        check(403, "Forbidden", ErrorKind::Forbidden);
        check(422, "Invalid", ErrorKind::Invalid);
        check(429, "TooManyRequests", ErrorKind::TooManyRequests);
        check(500, "InternalError", ErrorKind::Server);
        check(504, "Timeout", ErrorKind::Server);
    }
}
