//! Defaults of variables are stored in Clusters.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http_body_util::BodyExt as _;
use kube::client::Body;
use serde_json::{Value, json};
use tower::{BoxError, ServiceExt as _};
use windlass_testkit::Server;

use crate::env::{DEFINITIONS, Env, documents};

fn class(variables: &[(&str, &str)]) -> Value {
    let variable = |(name, default): &(&str, &str)| {
        let schema = json!({"type": "string", "default": default});
        json!({"name": name, "required": false, "schema": {"openAPIV3Schema": schema}})
    };
    let variables: Vec<Value> = variables.iter().map(variable).collect();
    json!({"spec": {
        "variables": variables,
        "patches": [{"name": "server", "definitions": [{
            "selector": {
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "VSphereClusterTemplate",
                "matchResources": {"infrastructureCluster": true},
            },
            "jsonPatches": [{
                "op": "replace", "path": "/spec/template/spec/server", "valueFrom": {"variable": "server"},
            }],
        }]}],
    }})
}

// TO-089, TO-090, TO-091
#[tokio::test]
async fn a_default_that_comes_to_the_class_is_stored_and_stays_when_it_changes() {
    let env = Env::start().await;
    env.apply_example().await;
    let has = async |expected: Value| {
        env.wait("the defaults in the Cluster", async || {
            let cluster = env.get("Cluster", "foo").await?;
            (cluster["spec"]["topology"]["variables"] == expected).then_some(cluster)
        })
        .await
    };
    env.merge("ClusterClass", "mixed", class(&[("server", "first.example.com")]))
        .await;
    let first = json!({"name": "server", "value": "first.example.com"});
    has(json!([first])).await;
    let changed = env
        .wait("the default in the infrastructure", async || {
            let all = env.generated("VSphereCluster").await;
            (all[0]["spec"]["server"] == "first.example.com").then_some(all[0].clone())
        })
        .await;
    // The other one shows that the class was seen.
    let both = [("server", "second.example.com"), ("other", "x")];
    env.merge("ClusterClass", "mixed", class(&both)).await;
    let cluster = has(json!([first, {"name": "other", "value": "x"}])).await;
    env.reconciled("ReconcileSucceeded").await;
    assert_eq!(
        env.generated("VSphereCluster").await[0]["metadata"]["resourceVersion"],
        changed["metadata"]["resourceVersion"]
    );
    assert_eq!(
        env.get("Cluster", "foo").await.unwrap()["metadata"]["generation"],
        cluster["metadata"]["generation"],
        "it is written once"
    );
    env.stop().await;
}

/// What went through a client.
#[derive(Default)]
struct Counts {
    /// Writes of variables.
    variables: AtomicUsize,
    /// Reports of a failure after the first of them.
    failures: AtomicUsize,
}

/// A client whose first write of variables comes after a change by another client.
fn raced(server: &Server, counts: Arc<Counts>) -> kube::Client {
    let inner = server.service("windlass");
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let (inner, counts) = (inner.clone(), Arc::clone(&counts));
        async move {
            let (parts, body) = request.into_parts();
            let bytes = body.collect().await?.to_bytes();
            let text = String::from_utf8_lossy(&bytes);
            let path = parts.uri.path();
            let is_report = path.ends_with("/clusters/foo/status") && text.contains("ReconcileFailed");
            if is_report && counts.variables.load(Ordering::SeqCst) > 0 {
                counts.failures.fetch_add(1, Ordering::SeqCst);
            }
            let is_write = parts.method == http::Method::PATCH && path.ends_with("/clusters/foo");
            if is_write && text.contains("\"variables\"") && counts.variables.fetch_add(1, Ordering::SeqCst) == 0 {
                let change = json!({"metadata": {"labels": {"another": "client"}}}).to_string();
                let other = http::Request::patch(path)
                    .header(http::header::CONTENT_TYPE, "application/merge-patch+json")
                    .body(Body::from(change.into_bytes()))?;
                let changed = inner.clone().oneshot(other).await.map_err(BoxError::from)?;
                assert!(changed.status().is_success());
            }
            let request = http::Request::from_parts(parts, Body::from(bytes));
            let answer = inner.oneshot(request).await.map_err(BoxError::from)?;
            Ok::<_, BoxError>(answer.map(|body| body.map_err(BoxError::from).boxed_unsync()))
        }
    });
    kube::Client::new(service, "default")
}

#[tokio::test]
async fn defaults_are_stored_after_a_change_by_another_client_and_nothing_has_failed() {
    let counts = Arc::new(Counts::default());
    let of_client = Arc::clone(&counts);
    let env = Env::start_unadmitted_behind(documents(DEFINITIONS), |server| raced(server, of_client)).await;
    env.apply_example().await;
    env.merge("ClusterClass", "mixed", class(&[("server", "a.example.com")]))
        .await;
    let cluster = env
        .wait("the defaults in the Cluster", async || {
            let cluster = env.get("Cluster", "foo").await?;
            let expected = json!([{"name": "server", "value": "a.example.com"}]);
            (cluster["spec"]["topology"]["variables"] == expected).then_some(cluster)
        })
        .await;
    env.reconciled("ReconcileSucceeded").await;
    assert_eq!(cluster["metadata"]["labels"]["another"], "client");
    let writes = counts.variables.load(Ordering::SeqCst);
    assert!((2..6).contains(&writes), "{writes} writes");
    assert_eq!(counts.failures.load(Ordering::SeqCst), 0);
    env.stop().await;
}
