//! Watches that their clients do not read.

use http::Request;
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use windlass_apiserver::{ApiServer, Options};
use windlass_meta::budget::LIGHT_BYTES;
use windlass_store::{Limits, Store};

use crate::hostile::post;
use crate::hostile_work::patch;
use crate::support::{client, start};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn map(name: &str, size: usize) -> Value {
    json!({"metadata": {"name": name, "labels": {"l": "x"}}, "data": {"k": "x".repeat(size)}})
}

async fn make(admin: &Client, name: &str, size: usize) {
    let request = post(MAPS, map(name, size).to_string().into());
    let created = admin.send(request.map(Into::into)).await.unwrap();
    assert_eq!(created.status(), 201);
}

async fn watch(client: &Client, query: &str) -> http::Response<Body> {
    let request = Request::get(format!("{MAPS}?watch=1&{query}"));
    let answered = client.send(request.body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(answered.status(), 200);
    answered
}

/// The events of a watch that ends.
async fn events(watch: http::Response<Body>) -> Vec<Value> {
    let body = watch.into_body().collect().await.unwrap().to_bytes();
    let lines = body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
}

/// What each event is about.
fn shown(events: &[Value]) -> Vec<String> {
    let show = |event: &Value| {
        let object = &event["object"];
        let about = object["metadata"]["name"].as_str().map(str::to_owned);
        format!(
            "{} {}",
            event["type"].as_str().unwrap(),
            about.unwrap_or_else(|| object["code"].to_string())
        )
    };
    events.iter().map(show).collect()
}

/// Its objects are those of the store, which forgets them.
#[tokio::test]
async fn an_unread_watch_keeps_no_objects() {
    let store = Store::memory(Limits {
        log_events: 1,
        ..Limits::default()
    });
    let server = ApiServer::start(Options::new(store)).await.unwrap();
    let admin = client(&server);
    for at in 0..4 {
        make(&admin, &format!("m{at}"), 500_000).await;
    }
    for query in ["timeoutSeconds=1", "timeoutSeconds=1&labelSelector=l%3Dx"] {
        let unread = watch(&admin, query).await;
        for value in ["a", "b"] {
            let change = patch(
                &format!("{MAPS}/m2"),
                "merge-patch+json",
                &json!({"data": {"j": value}}),
            );
            assert_eq!(admin.send(change.map(Into::into)).await.unwrap().status(), 200);
        }
        let seen = events(unread).await;
        assert_eq!(shown(&seen), ["ADDED m0", "ADDED m1", "ERROR 410"], "{query}");
    }
    let _ = server;
}

/// A change of an object that is sent in many pieces, and more objects than one piece has.
#[tokio::test]
async fn pieces_of_a_watch_are_in_order() {
    let (_server, admin) = start().await;
    let mut names: Vec<String> = (0..600).map(|at| format!("m{at:03}")).collect();
    for (at, name) in names.iter().enumerate() {
        // Small ones, one that is larger than a piece, and one whose bytes are not copied.
        let size = match at {
            100 => 700_000,
            200 => 100_000,
            _ => 10,
        };
        make(&admin, name, size).await;
    }
    let query = "timeoutSeconds=2&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
    let all = watch(&admin, query).await;
    let change = patch(
        &format!("{MAPS}/m100"),
        "merge-patch+json",
        &json!({"data": {"j": "y"}}),
    );
    assert_eq!(admin.send(change.map(Into::into)).await.unwrap().status(), 200);
    let seen = events(all).await;
    let list = admin
        .request::<Value>(Request::get(MAPS).body(Vec::new()).unwrap())
        .await
        .unwrap();
    let listed = list["items"].as_array().unwrap();
    for (event, object) in seen.iter().zip(listed) {
        let is_changed = object["metadata"]["name"] == "m100";
        assert_eq!(event["object"] == *object, !is_changed);
        names.remove(0);
        assert_eq!(event["type"], "ADDED");
    }
    assert!(names.is_empty());
    let [end, changed, ..] = &seen[listed.len()..] else {
        panic!("{:?}", shown(&seen));
    };
    let annotations = &end["object"]["metadata"]["annotations"];
    assert_eq!(
        (end["type"].as_str(), annotations["k8s.io/initial-events-end"].as_str()),
        (Some("BOOKMARK"), Some("true"))
    );
    assert_eq!(changed["type"], "MODIFIED");
    assert_eq!(changed["object"], listed[100]);
}

/// With so many watches, lines of small objects are shared between them. The bytes of large ones are those of the store.
#[tokio::test]
async fn large_and_small_changes_are_sent_in_their_order() {
    let (_server, admin) = start().await;
    let mut watches = Vec::new();
    for _ in 0..20 {
        watches.push(watch(&admin, "labelSelector=l%3Dx").await);
    }
    // No watch is read meanwhile, so all changes are in one piece.
    let names = ["large-a", "small-a", "large-b", "small-b"];
    for name in names {
        let is_large = name.starts_with('l');
        make(&admin, name, if is_large { 2 * LIGHT_BYTES } else { 1 }).await;
    }
    for watch in &mut watches {
        let mut text = Vec::new();
        while text.split(|byte| *byte == b'\n').count() <= names.len() {
            let frame = watch.body_mut().frame().await.unwrap().unwrap();
            text.extend_from_slice(&frame.into_data().unwrap());
        }
        let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let seen: Vec<Value> = lines.map(|line| serde_json::from_slice(line).unwrap()).collect();
        let seen = seen.iter().map(|event| event["object"]["metadata"]["name"].as_str());
        assert_eq!(seen.collect::<Vec<_>>(), names.map(Some));
    }
}
