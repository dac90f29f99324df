//! What controllers write to which object, counted at the door of the server.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Method, Request, Response};
use kube::client::Body;
use parking_lot::Mutex;
use tower::Service;
use windlass_suite::kinds::KINDS;

use crate::objects::NAMESPACE;

/// A sort of write to an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WriteTo {
    /// The method: `PATCH` and so on.
    pub method: String,
    /// The plural of the kind.
    pub resource: String,
    /// The namespace; empty for what lives in none.
    pub namespace: String,
    /// The name; empty for the creation of an object without one.
    pub name: String,
    /// The subresource, or nothing.
    pub subresource: String,
    /// The field manager, or nothing.
    pub manager: String,
    /// How the server answered.
    pub code: u16,
}

impl WriteTo {
    fn of(request: &Request<Body>) -> Option<Self> {
        if request.method() == Method::GET {
            return None;
        }
        let mut parts = request.uri().path().split('/').filter(|part| !part.is_empty());
        // `api` is followed by a version, `apis` by a group and a version.
        let before = usize::from(parts.next()? != "api");
        parts.nth(before)?;
        let mut first = parts.next()?;
        let mut namespace = "";
        let mut rest = parts.clone();
        if first == "namespaces" && rest.nth(1).is_some() {
            namespace = parts.next()?;
            first = parts.next()?;
        }
        let query = request.uri().query().unwrap_or_default();
        let manager = query.split('&').find_map(|pair| pair.strip_prefix("fieldManager="));
        Some(Self {
            method: request.method().to_string(),
            resource: first.to_owned(),
            namespace: namespace.to_owned(),
            name: parts.next().unwrap_or_default().to_owned(),
            subresource: parts.next().unwrap_or_default().to_owned(),
            manager: manager.unwrap_or_default().to_owned(),
            code: 0,
        })
    }

    /// Whether the server did it.
    pub fn succeeded(&self) -> bool {
        (200..300).contains(&self.code)
    }
}

/// Counts writes. A clone is another handle to the same counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger(Arc<Mutex<BTreeMap<WriteTo, u64>>>);

impl Ledger {
    /// The service with this ledger in front of it.
    pub(crate) fn wrap<S>(&self, inner: S) -> Counted<S> {
        Counted {
            inner,
            ledger: self.clone(),
        }
    }

    /// Writes to an object of one of our kinds in the namespace of tests.
    pub(crate) fn writes_to(&self, kind: &str, name: &str) -> BTreeMap<WriteTo, u64> {
        let entry = KINDS.iter().find(|entry| entry.kind == kind);
        let plural = entry.map_or("", |entry| entry.plural);
        let counts = self.0.lock();
        let found = counts
            .iter()
            .filter(|(write, _)| write.resource == plural && write.namespace == NAMESPACE && write.name == name);
        found.map(|(write, count)| (write.clone(), *count)).collect()
    }
}

/// A service whose writes are counted.
#[derive(Clone, Debug)]
pub(crate) struct Counted<S> {
    inner: S,
    ledger: Ledger,
}

impl<S, B> Service<Request<Body>> for Counted<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Future: Send + 'static,
    B: 'static,
    S::Error: 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let write = WriteTo::of(&request);
        let ledger = self.ledger.clone();
        let answer = self.inner.call(request);
        async move {
            let answer = answer.await;
            if let Some(mut write) = write {
                write.code = answer.as_ref().map_or(0, |answer| answer.status().as_u16());
                *ledger.0.lock().entry(write).or_default() += 1;
            }
            answer
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(method: &str, path: &str, expect: Option<[&str; 5]>) {
        let request = Request::builder().method(method).uri(path).body(Body::empty()).unwrap();
        let found = WriteTo::of(&request);
        let found = found.as_ref().map(|write| {
            [
                write.resource.as_str(),
                write.namespace.as_str(),
                write.name.as_str(),
                write.subresource.as_str(),
                write.manager.as_str(),
            ]
        });
        assert_eq!(found, expect, "{method} {path}");
    }

    #[test]
    fn writes_are_told_apart_by_object_and_manager() {
        check(
            "PATCH",
            "/apis/a.b/v1/namespaces/n/things/x/status?fieldManager=m&force=true",
            Some(["things", "n", "x", "status", "m"]),
        );
        check("POST", "/api/v1/namespaces/n/events", Some(["events", "n", "", "", ""]));
        check("DELETE", "/api/v1/namespaces/n", Some(["namespaces", "", "n", "", ""]));
        check("PUT", "/api/v1/nodes/x", Some(["nodes", "", "x", "", ""]));
        check("GET", "/api/v1/nodes/x", None);
    }
}
