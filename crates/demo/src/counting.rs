//! Counts the writes of a client, because the server does not report which client wrote.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::header::CONTENT_TYPE;
use http::{Method, Request, Response};
use kube::client::Body;
use parking_lot::Mutex;
use tower::Service;
use windlass_apiserver::RequestKey;

/// Counts of writes. A clone is another handle to the same counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts(Arc<Mutex<BTreeMap<RequestKey, u64>>>);

impl Counts {
    /// All writes so far; code 0 for those without an answer.
    pub(crate) fn snapshot(&self) -> BTreeMap<RequestKey, u64> {
        self.0.lock().clone()
    }
}

/// A client whose writes are counted.
#[derive(Clone)]
pub(crate) struct Counted {
    pub(crate) client: kube::Client,
    pub(crate) agent: &'static str,
    pub(crate) counts: Counts,
}

impl Service<Request<Body>> for Counted {
    type Response = Response<Body>;
    type Error = kube::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, kube::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), kube::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let write = write_of(&request, self.agent);
        let Self { client, counts, .. } = self.clone();
        Box::pin(async move {
            let answer = client.send(request).await;
            if let Some(mut write) = write {
                write.code = answer.as_ref().map_or(0, |answer| answer.status().as_u16());
                *counts.0.lock().entry(write).or_default() += 1;
            }
            answer
        })
    }
}

/// The key of a write; `None` for a read.
fn write_of<B>(request: &Request<B>, agent: &str) -> Option<RequestKey> {
    if request.method() == Method::GET {
        return None;
    }
    let parts: Vec<&str> = request
        .uri()
        .path()
        .split('/')
        .filter(|part| !part.is_empty())
        .collect();
    // `api` is followed by a version, `apis` by a group and a version.
    let parts = match *parts.first()? {
        "api" => parts.get(2..)?,
        _ => parts.get(3..)?,
    };
    let parts = match parts {
        ["namespaces", _, inner @ ..] if !inner.is_empty() => inner,
        all => all,
    };
    let (resource, name, subresource) = (*parts.first()?, parts.get(1), parts.get(2));
    let format = request.headers().get(CONTENT_TYPE);
    let verb = match *request.method() {
        Method::POST => "create",
        Method::PUT => "update",
        Method::DELETE if name.is_none() => "deletecollection",
        Method::DELETE => "delete",
        _ if format.is_some_and(|format| format.as_bytes().starts_with(b"application/apply-patch")) => "apply",
        _ => "patch",
    };
    Some(RequestKey {
        verb: verb.to_owned(),
        group: String::new(),
        resource: subresource.map_or_else(|| resource.to_owned(), |sub| format!("{resource}/{sub}")),
        agent: agent.to_owned(),
        code: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(method: &str, path: &str, format: &str, expect: Option<(&str, &str)>) {
        let request = Request::builder().method(method).uri(path).header(CONTENT_TYPE, format);
        let found = write_of(&request.body(()).unwrap(), "test");
        let found = found.as_ref().map(|key| (key.verb.as_str(), key.resource.as_str()));
        assert_eq!(found, expect, "{method} {path}");
    }

    #[test]
    fn writes_differ_by_verb_and_resource() {
        let (json, apply) = ("application/json", "application/apply-patch+yaml");
        let status = "/apis/a.b/v1/namespaces/n/things/x/status?fieldManager=m&force=true";
        check("PATCH", status, apply, Some(("apply", "things/status")));
        check("POST", "/api/v1/namespaces/n/events", json, Some(("create", "events")));
        check("DELETE", "/api/v1/namespaces/n", json, Some(("delete", "namespaces")));
        let pods = "/api/v1/namespaces/n/pods";
        check("DELETE", pods, json, Some(("deletecollection", "pods")));
        check("PUT", "/api/v1/nodes/x", json, Some(("update", "nodes")));
        check("PATCH", "/api/v1/nodes/x", json, Some(("patch", "nodes")));
        check("GET", "/api/v1/nodes/x", json, None);
    }
}
