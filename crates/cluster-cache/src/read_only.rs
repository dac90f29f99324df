//! Connections that only read: a program that tries what controllers would do must not change workload clusters.

use std::collections::BTreeSet;
use std::sync::Arc;

use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use kube::client::Body;
use parking_lot::Mutex;
use tower::BoxError;
use windlass_controller_runtime::ObjectKey;

/// The most writes that are remembered.
const MOST: usize = 10_000;

/// Refuses writes to workload clusters, and remembers them. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct ReadOnly(Arc<Mutex<BTreeSet<RefusedWrite>>>);

/// A write to a workload cluster that was refused.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RefusedWrite {
    /// The Cluster.
    pub cluster: ObjectKey,
    /// The request: method and path, or the call to etcd.
    pub what: String,
}

impl ReadOnly {
    /// The writes that were refused so far, each once.
    pub fn refused(&self) -> BTreeSet<RefusedWrite> {
        self.0.lock().clone()
    }

    /// Remembers a write that is refused.
    pub fn refuse(&self, cluster: &ObjectKey, what: String) {
        let mut all = self.0.lock();
        if all.len() < MOST {
            let cluster = cluster.clone();
            all.insert(RefusedWrite { cluster, what });
        }
    }

    /// A client of a cluster that sends reads and port-forwards only.
    pub(crate) fn fence(&self, cluster: &ObjectKey, client: kube::Client) -> kube::Client {
        let (namespace, cluster) = (client.default_namespace().to_owned(), cluster.clone());
        let read_only = self.clone();
        let fence = tower::service_fn(move |request: Request<Body>| {
            let path = request.uri().path();
            let is_read = reads(request.method(), path);
            if !is_read {
                read_only.refuse(&cluster, format!("{} {path}", request.method()));
            }
            let client = client.clone();
            async move {
                if is_read {
                    return Ok::<_, BoxError>(client.send(request).await?);
                }
                Ok(refusal())
            }
        });
        kube::Client::new(fence, namespace)
    }
}

/// Whether a request changes nothing. Tunnels to pods are there to ask etcd and API servers.
fn reads(method: &Method, path: &str) -> bool {
    match path.rsplit('/').next() {
        Some("exec" | "attach" | "proxy") => false,
        Some("portforward") => true,
        _ => matches!(*method, Method::GET | Method::HEAD),
    }
}

fn refusal() -> Response<Body> {
    let body = br#"{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"nothing is written to workload clusters here"}"#;
    let mut refusal = Response::new(Body::from(body.to_vec()));
    *refusal.status_mut() = StatusCode::FORBIDDEN;
    let json = HeaderValue::from_static("application/json");
    refusal.headers_mut().insert(header::CONTENT_TYPE, json);
    refusal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_tunnels_are_let_through() {
        let pod = "/api/v1/namespaces/kube-system/pods/etcd-a";
        assert!(reads(&Method::GET, "/version") && reads(&Method::GET, pod));
        for method in [Method::GET, Method::POST] {
            assert!(reads(&method, &format!("{pod}/portforward")));
            assert!(!reads(&method, &format!("{pod}/exec")));
        }
        for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            assert!(!reads(&method, pod), "{method}");
        }
    }

    #[tokio::test]
    async fn a_write_is_refused_and_remembered_once() {
        let never = tower::service_fn(|_: Request<Body>| async {
            panic!("nothing is sent");
            #[allow(unreachable_code, reason = "the type of the answer")]
            Ok::<_, BoxError>(Response::new(Body::empty()))
        });
        let (read_only, cluster) = (ReadOnly::default(), ObjectKey::new("default", "a"));
        let client = read_only.fence(&cluster, kube::Client::new(never, "default"));
        for _ in 0..2 {
            let request = Request::patch("/api/v1/nodes/x").body(Body::empty()).unwrap();
            assert_eq!(client.send(request).await.unwrap().status(), StatusCode::FORBIDDEN);
        }
        let what = "PATCH /api/v1/nodes/x".to_owned();
        assert_eq!(read_only.refused(), BTreeSet::from([RefusedWrite { cluster, what }]));
    }
}
