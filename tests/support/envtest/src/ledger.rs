//! Counts the writes of clients by object, on their way to the server.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, Response};
use kube::client::Body;
use tower::Service;

/// A kind of write to an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WriteTo {
    /// `create`, `update`, `patch`, `apply`, `delete` or `deletecollection`.
    pub verb: &'static str,
    /// The plural of the kind.
    pub resource: String,
    /// The namespace; empty for cluster scope.
    pub namespace: String,
    /// The name; empty for the creation of an object without one.
    pub name: String,
    /// The subresource; may be empty.
    pub subresource: String,
    /// The field manager; may be empty.
    pub manager: String,
    /// The name of the client.
    pub agent: &'static str,
    /// The status code of the answer; 0 without one.
    pub code: u16,
}

impl WriteTo {
    /// The write that a request is; none for a read.
    pub fn of(request: &Request<Body>, agent: &'static str) -> Option<Self> {
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
        let name = parts.next().unwrap_or_default();
        let query = request.uri().query().unwrap_or_default();
        let manager = query.split('&').find_map(|pair| pair.strip_prefix("fieldManager="));
        let format = request.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes);
        Some(Self {
            verb: match *request.method() {
                Method::POST => "create",
                Method::PUT => "update",
                Method::DELETE if name.is_empty() => "deletecollection",
                Method::DELETE => "delete",
                _ if format.is_some_and(|format| format.starts_with(b"application/apply-patch")) => "apply",
                _ => "patch",
            },
            resource: first.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            subresource: parts.next().unwrap_or_default().to_owned(),
            manager: manager.unwrap_or_default().to_owned(),
            agent,
            code: 0,
        })
    }

    /// Whether the write succeeded.
    pub fn succeeded(&self) -> bool {
        (200..300).contains(&self.code)
    }
}

/// Sees a write and returns its request.
pub type See = fn(&WriteTo, Request<Body>) -> Request<Body>;

/// Counts writes. A clone is another handle to the same counts.
#[derive(Clone, Debug, Default)]
pub struct Ledger(Arc<Mutex<BTreeMap<WriteTo, u64>>>);

impl Ledger {
    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<WriteTo, u64>> {
        // Counts are consistent between any two instructions.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A client whose writes this ledger counts, and which `see` sees before they are sent.
    pub fn wrap(&self, client: kube::Client, agent: &'static str, see: See) -> Counted {
        Counted {
            client,
            agent,
            see,
            ledger: self.clone(),
        }
    }

    /// All writes, including refused and unanswered ones.
    pub fn snapshot(&self) -> BTreeMap<WriteTo, u64> {
        self.lock().clone()
    }

    /// The number of writes.
    pub fn writes(&self) -> u64 {
        self.lock().values().sum()
    }

    /// The number of writes that `is_meant` selects.
    pub fn of(&self, is_meant: impl Fn(&WriteTo) -> bool) -> BTreeMap<WriteTo, u64> {
        let counts = self.lock();
        let found = counts.iter().filter(|(write, _)| is_meant(write));
        found.map(|(write, count)| (write.clone(), *count)).collect()
    }
}

/// A service whose writes are counted.
#[derive(Clone)]
pub struct Counted {
    client: kube::Client,
    agent: &'static str,
    see: See,
    ledger: Ledger,
}

impl std::fmt::Debug for Counted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Counted")
            .field("agent", &self.agent)
            .finish_non_exhaustive()
    }
}

impl Service<Request<Body>> for Counted {
    type Response = Response<Body>;
    type Error = kube::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, kube::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), kube::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let write = WriteTo::of(&request, self.agent);
        let request = match &write {
            Some(write) => (self.see)(write, request),
            None => request,
        };
        let (client, ledger) = (self.client.clone(), self.ledger.clone());
        Box::pin(async move {
            let answer = client.send(request).await;
            if let Some(mut write) = write {
                write.code = answer.as_ref().map_or(0, |answer| answer.status().as_u16());
                *ledger.lock().entry(write).or_default() += 1;
            }
            answer
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(method: &str, path: &str, expect: Option<[&str; 6]>) {
        let format = if path.contains("fieldManager") {
            "application/apply-patch+yaml"
        } else {
            "application/json"
        };
        let request = Request::builder().method(method).uri(path).header(CONTENT_TYPE, format);
        let request = request.body(Body::empty()).unwrap();
        let found = WriteTo::of(&request, "test");
        let found = found.as_ref().map(|write| {
            [
                write.verb,
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
    fn writes_are_counted_by_verb_object_and_manager() {
        check(
            "PATCH",
            "/apis/a.b/v1/namespaces/n/things/x/status?fieldManager=m&force=true",
            Some(["apply", "things", "n", "x", "status", "m"]),
        );
        check(
            "POST",
            "/api/v1/namespaces/n/events",
            Some(["create", "events", "n", "", "", ""]),
        );
        check(
            "DELETE",
            "/api/v1/namespaces/n",
            Some(["delete", "namespaces", "", "n", "", ""]),
        );
        check(
            "DELETE",
            "/api/v1/namespaces/n/pods",
            Some(["deletecollection", "pods", "n", "", "", ""]),
        );
        check("PUT", "/api/v1/nodes/x", Some(["update", "nodes", "", "x", "", ""]));
        check("PATCH", "/api/v1/nodes/x", Some(["patch", "nodes", "", "x", "", ""]));
        check("GET", "/api/v1/nodes/x", None);
    }
}
