//! Answers that their clients do not read, and documents that many clients ask for.

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use serde_json::json;
use windlass_meta::budget;

use crate::hostile::post;
use crate::rbac::{make, start, user};
use crate::support::{install, widget_crd};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn get(client: &Client, path: &str, header: (&str, &str)) -> Response<Body> {
    let request = Request::get(path).header(header.0, header.1);
    client.send(request.body(Body::empty()).unwrap()).await.unwrap()
}

/// Small ones count as well, and compressed ones.
#[tokio::test]
async fn unread_answers_to_a_user() {
    let (server, admin) = start().await;
    make(
        &admin,
        "{kind: ClusterRoleBinding, metadata: {name: edit}, roleRef: {kind: ClusterRole, name: edit}, subjects: [{kind: User, name: a}, {kind: User, name: b}]}",
    )
    .await;
    let map = |name: &str, size: usize| json!({"metadata": {"name": name}, "data": {"k": "x".repeat(size)}});
    for (name, size) in [("large", 1_000_000), ("small", 10_000)] {
        let created = admin
            .send(post(MAPS, map(name, size).to_string().into()).map(Into::into))
            .await;
        assert_eq!(created.unwrap().status(), 201);
    }
    let (a, b) = (user(&server, "a", &[]), user(&server, "b", &[]));
    let large = format!("{MAPS}/large");
    let mut unread = Vec::new();
    for at in 0..budget::ANSWER_BYTES_OF_A_USER / 1_000_000 - 1 {
        let encoding = ["gzip", "identity"][at % 2];
        let answered = get(&a, &large, ("accept-encoding", encoding)).await;
        assert_eq!(answered.status(), 200);
        assert_eq!(answered.headers().contains_key("content-encoding"), encoding == "gzip");
        unread.push(answered);
    }
    let small = format!("{MAPS}/small");
    let mut refused = None;
    for _ in 0..2 * 1_000_000 / 10_000 {
        let answered = get(&a, &small, ("x", "y")).await;
        if answered.status() != 200 {
            refused = Some(answered);
            break;
        }
        unread.push(answered);
    }
    let refused = refused.expect("they are too many");
    assert_eq!(
        (refused.status().as_u16(), &refused.headers()["retry-after"]),
        (429, &"1".parse().unwrap())
    );
    for client in [&b, &admin] {
        assert_eq!(get(client, &large, ("x", "y")).await.status(), 200);
    }
    // What is written is answered, as long as there is room at all.
    let created = a
        .send(post(MAPS, map("more", 100_000).to_string().into()).map(Into::into))
        .await
        .unwrap();
    assert_eq!(created.status(), 201);
    unread.push(created);
    let full = a
        .send(post(MAPS, map("most", 10).to_string().into()).map(Into::into))
        .await
        .unwrap();
    assert_eq!(full.status(), 429);
    assert_eq!(
        get(&admin, &format!("{MAPS}/most"), ("x", "y")).await.status(),
        404,
        "it is not written"
    );
    unread.clear();
    assert_eq!(get(&a, &large, ("x", "y")).await.status(), 200);
}

/// The part of a large object that is sent next may be one that is no longer stored.
#[tokio::test]
async fn pieces_of_unread_watches_of_a_user() {
    let (server, admin) = start().await;
    make(
        &admin,
        "{kind: ClusterRoleBinding, metadata: {name: view}, roleRef: {kind: ClusterRole, name: view}, subjects: [{kind: User, name: a}, {kind: User, name: b}]}",
    )
    .await;
    let map = json!({"metadata": {"name": "m"}, "data": {"k": "x".repeat(1_000_000)}});
    let created = admin.send(post(MAPS, map.to_string().into()).map(Into::into)).await;
    assert_eq!(created.unwrap().status(), 201);
    let begun = async |client: &Client| {
        let mut watch = get(client, &format!("{MAPS}?watch=1"), ("x", "y")).await;
        let first = watch.body_mut().frame().await.unwrap().unwrap().into_data().unwrap();
        (first, watch)
    };
    let (a, b) = (user(&server, "a", &[]), user(&server, "b", &[]));
    let mut unread = Vec::new();
    let most = budget::ANSWER_BYTES_OF_A_USER / 1_000_000;
    for _ in 0..most - 1 {
        let (first, watch) = begun(&a).await;
        assert!(first.starts_with(b"{\"type\":\"ADDED\""), "{first:?}");
        unread.push(watch);
    }
    unread.push(begun(&a).await.1);
    unread.push(begun(&a).await.1);
    let (refused, _watch) = begun(&a).await;
    assert!(refused.ends_with(b"\"type\":\"ERROR\"}\n"), "{refused:?}");
    for client in [&b, &admin] {
        assert!(begun(client).await.0.starts_with(b"{\"type\":\"ADDED\""));
    }
    unread.clear();
    assert!(begun(&a).await.0.starts_with(b"{\"type\":\"ADDED\""));
}

async fn bytes(client: &Client, path: &str, header: (&str, &str)) -> Bytes {
    let answered = get(client, path, header).await;
    assert_eq!(answered.status(), 200, "{path}");
    answered.into_body().collect().await.unwrap().to_bytes()
}

#[tokio::test]
async fn documents_are_encoded_once() {
    let (_server, admin) = start().await;
    let aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let v2 = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    let asked = [
        ("/openapi/v3", ("accept", "*/*")),
        ("/openapi/v3/api/v1", ("accept", "application/json")),
        ("/openapi/v3/api/v1?pretty=1", ("accept", "application/json")),
        ("/openapi/v3/api/v1", ("accept-encoding", "gzip")),
        ("/openapi/v2", ("accept", v2)),
        ("/openapi/v2", ("accept-encoding", "gzip")),
        ("/apis", ("accept", aggregated)),
        ("/apis", ("accept", "application/json")),
        ("/api/v1", ("accept", "application/json")),
    ];
    for (path, header) in asked {
        let (one, other) = (bytes(&admin, path, header).await, bytes(&admin, path, header).await);
        assert_eq!(one.as_ptr(), other.as_ptr(), "{path} {header:?}");
    }
    let before = bytes(&admin, "/apis", asked[7].1).await;
    assert_eq!(get(&admin, "/apis/example.com/v1", asked[7].1).await.status(), 404);
    install(&admin, &widget_crd()).await;
    assert_ne!(bytes(&admin, "/apis", asked[7].1).await, before);
    assert_eq!(get(&admin, "/apis/example.com/v1", asked[7].1).await.status(), 200);
}
