//! Watches.

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, ResourceExt as _};
use serde_json::json;

use crate::support::{start, status};

fn map(name: &str, label: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name, "labels": {"l": label}}})).unwrap()
}

fn show(event: &WatchEvent<ConfigMap>) -> String {
    match event {
        WatchEvent::Added(o) => format!("added {}", o.name_any()),
        WatchEvent::Modified(o) => format!("modified {}", o.name_any()),
        WatchEvent::Deleted(o) => format!("deleted {}", o.name_any()),
        WatchEvent::Bookmark(_) => "bookmark".to_owned(),
        WatchEvent::Error(e) => format!("error {}", e.code),
    }
}

async fn relabel(api: &Api<ConfigMap>, name: &str, label: &str) {
    let patch = json!({"metadata": {"labels": {"l": label}}});
    api.patch(name, &PatchParams::default(), &Patch::Merge(&patch))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_watch_sees_what_enters_and_leaves_its_selection() {
    let (_server, client) = start().await;
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    let version = api
        .list(&ListParams::default())
        .await
        .unwrap()
        .metadata
        .resource_version
        .unwrap();
    let params = WatchParams::default().labels("l=in").timeout(60);
    let events = api.watch(&params, &version).await.unwrap();
    api.create(&PostParams::default(), &map("a", "out")).await.unwrap();
    relabel(&api, "a", "in").await;
    api.create(&PostParams::default(), &map("b", "in")).await.unwrap();
    relabel(&api, "a", "out").await;
    api.delete("b", &DeleteParams::default()).await.unwrap();
    let seen: Vec<_> = events.take(4).map(|e| e.unwrap()).collect().await;
    let shown: Vec<String> = seen.iter().map(show).collect();
    assert_eq!(shown, ["added a", "added b", "deleted a", "deleted b"]);
    let WatchEvent::Deleted(left) = &seen[2] else {
        panic!("{:?}", seen[2]);
    };
    assert_eq!(left.labels()["l"], "in", "as it was when it was last selected");
    assert_eq!(left.resource_version(), api.get("a").await.unwrap().resource_version());
}

#[tokio::test]
async fn a_watch_from_a_known_revision_misses_nothing() {
    let (_server, client) = start().await;
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    let version = api
        .list(&ListParams::default())
        .await
        .unwrap()
        .metadata
        .resource_version
        .unwrap();
    for i in 0..50 {
        api.create(&PostParams::default(), &map(&format!("m{i}"), "x"))
            .await
            .unwrap();
    }
    let params = WatchParams::default().timeout(60);
    let seen: Vec<_> = api.watch(&params, &version).await.unwrap().take(50).collect().await;
    let names: Vec<_> = seen.into_iter().map(|e| show(&e.unwrap())).collect();
    let want: Vec<_> = (0..50).map(|i| format!("added m{i}")).collect();
    assert_eq!(names, want);
}

#[tokio::test]
async fn a_streamed_list_ends_with_a_bookmark() {
    let (_server, client) = start().await;
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    api.create(&PostParams::default(), &map("a", "x")).await.unwrap();
    let mut stream = watcher(api.clone(), watcher::Config::default().streaming_lists())
        .applied_objects()
        .boxed();
    assert_eq!(stream.next().await.unwrap().unwrap().name_any(), "a");
    api.create(&PostParams::default(), &map("b", "x")).await.unwrap();
    assert_eq!(stream.next().await.unwrap().unwrap().name_any(), "b");
}

#[tokio::test]
async fn a_watch_from_a_forgotten_revision_gets_an_error() {
    let store = windlass_store::Store::memory(windlass_store::Limits {
        log_events: 3,
        log_bytes: 1 << 20,
        ..windlass_store::Limits::default()
    });
    let server = windlass_apiserver::ApiServer::start(windlass_apiserver::Options::new(store))
        .await
        .unwrap();
    let client = crate::support::client(&server);
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    let version = api
        .list(&ListParams::default())
        .await
        .unwrap()
        .metadata
        .resource_version
        .unwrap();
    let page = api.list(&ListParams::default().limit(1)).await.unwrap();
    assert!(page.metadata.continue_.is_none());
    for i in 0..5 {
        api.create(&PostParams::default(), &map(&format!("m{i}"), "x"))
            .await
            .unwrap();
    }
    let mut events = api
        .watch(&WatchParams::default().timeout(60), &version)
        .await
        .unwrap()
        .boxed();
    assert_eq!(show(&events.next().await.unwrap().unwrap()), "error 410");
    let token = api
        .list(&ListParams::default().limit(1))
        .await
        .unwrap()
        .metadata
        .continue_
        .unwrap();
    for i in 0..5 {
        relabel(&api, &format!("m{i}"), "y").await;
    }
    let expired = status(api.list(&ListParams::default().limit(1).continue_token(&token)).await);
    assert_eq!((expired.code, expired.reason.as_str()), (410, "Expired"));
    // A revision of another server, such as the same one before it lost its history.
    let (_server, fresh) = start().await;
    let fresh: Api<ConfigMap> = Api::default_namespaced(fresh);
    let expired = status(fresh.list(&ListParams::default().continue_token(&token)).await);
    assert_eq!((expired.code, expired.reason.as_str()), (410, "Expired"));
}

/// No time can be computed from so many seconds.
#[tokio::test]
async fn a_watch_may_ask_for_any_number_of_seconds() {
    let (_server, client) = start().await;
    let api: Api<ConfigMap> = Api::default_namespaced(client.clone());
    for seconds in [i64::MAX, i64::from(u32::MAX)] {
        let path = format!("/api/v1/namespaces/default/configmaps?watch=1&timeoutSeconds={seconds}&resourceVersion=1");
        let request = http::Request::get(path).body(Vec::new()).unwrap();
        let mut events = client.request_events::<ConfigMap>(request).await.unwrap().boxed();
        api.create(&PostParams::default(), &map(&format!("a{seconds}"), "x"))
            .await
            .unwrap();
        assert!(matches!(events.next().await, Some(Ok(WatchEvent::Added(_)))));
    }
}

#[tokio::test]
async fn shutting_down_ends_watches() {
    let (server, client) = start().await;
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    let events = api.watch(&WatchParams::default(), "0").await.unwrap();
    server.shutdown();
    assert!(events.collect::<Vec<_>>().await.is_empty());
}
