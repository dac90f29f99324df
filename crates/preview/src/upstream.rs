//! The management cluster, of which only reads and dry runs are asked.

use http::{Method, Request, Response, StatusCode, header};
use kube::client::Body;
use serde_json::Value;

use crate::error::PreviewError;

/// Objects per page of a list.
const PAGE: u32 = 500;

/// A client that cannot write.
#[derive(Clone)]
pub(crate) struct Upstream(kube::Client);

/// Whether a request asks for a dry run.
pub(crate) fn is_dry(uri: &http::Uri) -> bool {
    uri.query()
        .is_some_and(|query| query.split('&').any(|one| one == "dryRun=All"))
}

impl Upstream {
    pub(crate) fn new(client: kube::Client) -> Self {
        Self(client)
    }

    /// Sends a request. What would write is refused here. So is every deletion: a server that gets options in the body of one does not look at
    /// the query.
    pub(crate) async fn send(&self, request: Request<Body>) -> Result<Response<Body>, kube::Error> {
        let is_read = request.method() == Method::GET;
        if !is_read && (!is_dry(request.uri()) || request.method() == Method::DELETE) {
            let mut refused = Response::new(Body::from(b"a preview writes nothing".to_vec()));
            *refused.status_mut() = StatusCode::FORBIDDEN;
            return Ok(refused);
        }
        self.0.send(request).await
    }

    /// Asks whether an object may be deleted. The options are our own, in the body and in the query.
    pub(crate) async fn try_delete(&self, path: &str) -> Result<Response<Body>, kube::Error> {
        let options = br#"{"apiVersion":"v1","kind":"DeleteOptions","dryRun":["All"]}"#;
        let request = Request::delete(format!("{path}?dryRun=All"))
            .header(header::CONTENT_TYPE, "application/json")
            .body(Body::from(options.to_vec()));
        self.0.send(request.map_err(kube::Error::HttpError)?).await
    }

    async fn get(&self, url: &str) -> Result<Value, PreviewError> {
        let failed = |why: String| PreviewError::Unreadable {
            what: url.split('?').next().unwrap_or_default().to_owned(),
            why,
        };
        let request = Request::get(url)
            .header(header::ACCEPT, "application/json")
            .body(Body::empty());
        let request = request.map_err(|error| failed(error.to_string()))?;
        let answer = self.send(request).await.map_err(|error| failed(causes(&error)))?;
        let status = answer.status();
        let body = answer.into_body().collect_bytes().await;
        let body = body.map_err(|error| failed(causes(&error)))?;
        let value: Value = serde_json::from_slice(&body)
            .map_err(|error| failed(format!("the answer ({status}) is no JSON: {error}")))?;
        if status.is_success() {
            return Ok(value);
        }
        let message = value["message"].as_str().unwrap_or("no reason is given");
        Err(failed(message.to_owned()))
    }

    /// All objects at a URL, page by page.
    pub(crate) async fn list(&self, url: &str) -> Result<Vec<Value>, PreviewError> {
        let mut all = Vec::new();
        let mut next = String::new();
        loop {
            let mut page = self.get(&format!("{url}?limit={PAGE}{next}")).await?;
            if let Value::Array(items) = page["items"].take() {
                all.extend(items);
            }
            match page["metadata"]["continue"].as_str().filter(|token| !token.is_empty()) {
                Some(token) => next = format!("&continue={token}"),
                None => return Ok(all),
            }
        }
    }
}

/// An error and its causes in one line.
fn causes(error: &dyn std::error::Error) -> String {
    let mut line = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let text = cause.to_string();
        if !line.ends_with(&text) {
            line = format!("{line}: {text}");
        }
        next = cause.source();
    }
    line
}
