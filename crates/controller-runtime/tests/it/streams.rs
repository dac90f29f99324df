//! Watches of servers that divide their answers in unusual ways, or answer with what is no event. Time runs ahead while nothing happens.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{BoxStream, StreamExt as _};
use http::{Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::StreamBody;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{WatchEvent, WatchParams};
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};
use windlass_controller_runtime::transport::in_process;
use windlass_controller_runtime::{Cache, Metrics, Tasks, gvk_from, watch_events};

use crate::harness::Logged;

/// An answer: its status, and the pieces of its body.
type Answer = (u16, BoxStream<'static, Bytes>);

/// A server that answers each request with a function of its number and its query.
fn client(answer: impl Fn(usize, &str) -> Answer + Send + Sync + 'static) -> (kube::Client, Arc<Mutex<Vec<String>>>) {
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let (answer, log) = (Arc::new(answer), asked.clone());
    let service = tower::service_fn(move |request: Request<Body>| {
        let query = request.uri().query().unwrap_or_default().to_owned();
        let number = log.lock().len();
        log.lock().push(query.clone());
        let (status, body) = answer(number, &query);
        let body = StreamBody::new(body.map(|bytes| Ok::<_, Infallible>(Frame::data(bytes))));
        let mut response = Response::new(body);
        *response.status_mut() = StatusCode::from_u16(status).unwrap();
        async move { Ok::<_, Infallible>(response) }
    });
    (in_process(service, &Metrics::new()), asked)
}

fn cache(client: &kube::Client, tasks: &Tasks) -> Cache<ConfigMap> {
    let gvk = gvk_from("v1", "ConfigMap");
    Cache::stand_alone(client.clone(), "/api/v1/configmaps", gvk, tasks)
}

/// A body in pieces of a size. It stays open after them if `stays`.
fn pieces(text: &str, size: usize, stays: bool) -> BoxStream<'static, Bytes> {
    let all: Vec<Bytes> = text
        .as_bytes()
        .chunks(size.max(1))
        .map(Bytes::copy_from_slice)
        .collect();
    let sent = futures::stream::iter(all);
    if stays {
        sent.chain(futures::stream::pending()).boxed()
    } else {
        sent.boxed()
    }
}

fn event(kind: &str, name: &str, version: u64) -> Value {
    json!({"type": kind, "object": {
        "kind": "ConfigMap", "apiVersion": "v1", "data": {"text": "{\"ä\": \"}\\\" 🙂"},
        "metadata": {"name": name, "namespace": "n", "uid": name, "resourceVersion": version.to_string()},
    }})
}

/// The bookmark that ends a list.
fn end(version: u64) -> Value {
    json!({"type": "BOOKMARK", "object": {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {
        "resourceVersion": version.to_string(), "annotations": {"k8s.io/initial-events-end": "true"},
    }}})
}

fn first(query: &str) -> bool {
    query.contains("sendInitialEvents=true")
}

fn names(cache: &Cache<ConfigMap>) -> Vec<String> {
    cache.all().iter().filter_map(|map| map.metadata.name.clone()).collect()
}

async fn wait_for(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..100_000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{what}");
}

/// Events as servers write them: a line each, several lines each, and without anything between them.
fn forms(events: &[Value]) -> [String; 4] {
    let lines: Vec<String> = events.iter().map(Value::to_string).collect();
    let pretty: Vec<String> = events
        .iter()
        .map(|event| serde_json::to_string_pretty(event).unwrap())
        .collect();
    [
        lines.join("\n") + "\n",
        lines.concat(),
        pretty.join("\n"),
        pretty.join("").replace('\n', "\r\n"),
    ]
}

#[tokio::test(start_paused = true)]
async fn a_watch_is_understood_however_it_is_divided() {
    let events = [
        event("ADDED", "ä-a", 1),
        event("ADDED", "b", 2),
        end(3),
        event("MODIFIED", "b", 4),
        event("ADDED", "c", 5),
        event("DELETED", "ä-a", 6),
    ];
    for form in forms(&events) {
        for size in [1, 2, 3, 7, 64, form.len()] {
            let text = form.clone();
            let (client, asked) = client(move |_, _| (200, pieces(&text, size, true)));
            let tasks = Tasks::new();
            let cache = cache(&client, &tasks);
            wait_for("all events are read", || cache.version() == 6).await;
            assert_eq!(names(&cache), ["b", "c"], "{size}: {form}");
            assert_eq!(asked.lock().len(), 1);
            tasks.shutdown().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_within_an_event_goes_on_before_it() {
    let list = format!("{}{}{}", event("ADDED", "a", 1), end(2), event("ADDED", "b", 3));
    let cut = event("ADDED", "c", 4).to_string();
    // At each byte, also within a letter.
    for kept in 1..cut.len() {
        let (list, cut) = (list.clone(), cut.clone());
        let (client, asked) = client(move |number, _| match number {
            0 => {
                let begun = pieces(&list, 1000, false);
                let rest = Bytes::copy_from_slice(&cut.as_bytes()[..kept]);
                (200, begun.chain(futures::stream::iter([rest])).boxed())
            }
            _ => (200, pieces(&cut, 1, true)),
        });
        let tasks = Tasks::new();
        let cache = cache(&client, &tasks);
        wait_for("the event is read", || cache.version() == 4).await;
        assert_eq!(names(&cache), ["a", "b", "c"]);
        let second = asked.lock()[1].clone();
        assert!(second.contains("resourceVersion=3"), "{second}");
        tasks.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_takes_no_notice_of_streamed_lists_is_listed() {
    let (client, asked) = client(|_, query| {
        if first(query) {
            // It sends what there is, as for any watch, and never that this was all.
            return (200, pieces(&event("ADDED", "a", 1).to_string(), 64, true));
        }
        if query.contains("watch=true") {
            return (200, pieces(&event("ADDED", "b", 3).to_string(), 64, true));
        }
        let list = json!({
            "kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": "2"},
            "items": [event("ADDED", "a", 1)["object"]],
        });
        (200, pieces(&list.to_string(), 64, false))
    });
    let tasks = Tasks::new();
    let cache = cache(&client, &tasks);
    let began = tokio::time::Instant::now();
    wait_for("the list and the watch after it are read", || cache.version() == 3).await;
    assert_eq!(names(&cache), ["a", "b"]);
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    assert_eq!(asked.lock().len(), 3);
    tasks.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_streams_no_lists_is_asked_for_pages_for_an_hour() {
    // It is silent, or it refuses.
    for silent in [true, false] {
        let (client, asked) = client(move |number, query| {
            let version = u64::try_from(number).unwrap() + 1;
            if first(query) {
                let (status, text) = if silent {
                    (200, event("ADDED", "a", 1).to_string())
                } else {
                    (422, String::new())
                };
                return (status, pieces(&text, 64, silent));
            }
            if query.contains("watch=true") {
                // The place of the watch is forgotten after four minutes.
                let wait = async {
                    tokio::time::sleep(Duration::from_mins(4)).await;
                    Bytes::from(BAD[5].replace("{n}", "1"))
                };
                return (200, futures::stream::once(wait).boxed());
            }
            let list = json!({
                "kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": version.to_string()},
                "items": [event("ADDED", "a", version)["object"]],
            });
            (200, pieces(&list.to_string(), 64, false))
        });
        let tasks = Tasks::new();
        let cache = cache(&client, &tasks);
        let lists = |streamed: bool| {
            let asked = asked.lock();
            let lists = asked
                .iter()
                .filter(|query| first(query) == streamed && (streamed || !query.contains("watch=true")));
            lists.count()
        };
        wait_for("the first list is read", || cache.is_synced()).await;
        assert_eq!((lists(true), lists(false)), (1, 1));
        tokio::time::sleep(Duration::from_mins(50)).await;
        assert_eq!(lists(true), 1);
        assert!(lists(false) > 10, "{}", lists(false));
        // The server may have been upgraded.
        wait_for("a list is asked for as a stream", || lists(true) == 2).await;
        tokio::time::sleep(Duration::from_mins(50)).await;
        assert_eq!(lists(true), 2);
        tasks.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_whose_objects_change_all_the_time_is_listed_as_well() {
    let (client, asked) = client(|_, query| {
        if first(query) {
            let changes = futures::stream::unfold(1, |version| async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                let change = event("MODIFIED", "a", version).to_string();
                Some((Bytes::from(change), version + 1))
            });
            return (200, changes.boxed());
        }
        if query.contains("watch=true") {
            return (200, pieces(&event("ADDED", "b", 103).to_string(), 64, true));
        }
        let list = json!({
            "kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": "102"},
            "items": [event("ADDED", "a", 101)["object"]],
        });
        (200, pieces(&list.to_string(), 64, false))
    });
    let tasks = Tasks::new();
    let cache = cache(&client, &tasks);
    wait_for("the list and the watch after it are read", || cache.version() == 103).await;
    assert_eq!(names(&cache), ["a", "b"]);
    assert_eq!(asked.lock().len(), 3);
    tasks.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_deleted_while_it_is_listed_is_not_there() {
    let events = [
        event("ADDED", "a", 1),
        event("ADDED", "b", 2),
        event("DELETED", "a", 3),
        end(3),
    ];
    let (client, _) = client(move |_, _| (200, pieces(&forms(&events)[0], 64, true)));
    let tasks = Tasks::new();
    let cache = cache(&client, &tasks);
    wait_for("the list is read", || cache.version() == 3).await;
    assert_eq!(names(&cache), ["b"]);
    tasks.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_silent_for_a_while_streams_its_list_afterwards() {
    let (client, asked) = client(|number, _| match number {
        0 => (200, pieces("", 1, true)),
        1 => (503, pieces("", 1, false)),
        _ => (200, pieces(&end(1).to_string(), 64, true)),
    });
    let tasks = Tasks::new();
    let cache = cache(&client, &tasks);
    wait_for("the list is read", || cache.version() == 1).await;
    let streamed: Vec<bool> = asked.lock().iter().map(|query| first(query)).collect();
    assert_eq!(streamed, [true, false, true]);
    tasks.shutdown().await;
}

/// What a server says instead of events; `{n}` is the number of the request.
const BAD: [&str; 7] = [
    "<html>error {n}</html>\n",
    "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":{n}}}}",
    "{\"type\":\"STRANGE\",\"object\":{\"a\":{n}}}",
    "{\"type\":\"ADDED\"}",
    "{\"type\":\"ERROR\",\"object\":{\"code\":500,\"reason\":\"InternalError\",\"message\":\"error {n} of etcd-{n}\"}}",
    "{\"type\":\"ERROR\",\"object\":{\"code\":410,\"reason\":\"Expired\",\"message\":\"too old: {n}\"}}",
    "{\"kind\":\"Status\",\"code\":500,\"message\":\"request {n}\"}\n",
];

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_no_watch_is_given_up_logged_and_tried_again_with_backoff() {
    for bad in BAD {
        let logged = Logged::from(tracing::Level::INFO);
        let (client, asked) = client(move |number, query| {
            let version = u64::try_from(number).unwrap() + 1;
            let good = format!("{}{}", event("ADDED", "a", 1), end(version));
            let bad = bad.replace("{n}", &number.to_string());
            let answer = if first(query) { good + &bad } else { bad };
            (200, pieces(&answer, 3, false))
        });
        let tasks = Tasks::new();
        let cache = cache(&client, &tasks);
        tokio::time::sleep(Duration::from_hours(1)).await;
        assert_eq!(names(&cache), ["a"], "{bad}: what is known stays");
        let requests = asked.lock().len();
        assert!((100..800).contains(&requests), "{bad}: {requests} requests in an hour");
        let lines = logged.with("the watch fails");
        assert!(
            (1..=60).contains(&lines.len()),
            "{bad}: {} lines in an hour",
            lines.len()
        );
        let all = logged.with("").len();
        assert!(all <= 120, "{bad}: {all} lines of all kinds");
        tasks.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_works_and_fails_in_turns_is_logged_once_a_minute() {
    let logged = Logged::from(tracing::Level::INFO);
    let (client, _) = client(move |number, query| {
        let version = u64::try_from(number).unwrap() + 2;
        let list = format!("{}{}", event("ADDED", "a", 1), end(version));
        let good = event("ADDED", &format!("b-{number}"), version + 1).to_string();
        let before = if first(query) { list + &good } else { good };
        (200, pieces(&(before + "garbage\n"), 64, false))
    });
    let tasks = Tasks::new();
    let cache = cache(&client, &tasks);
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert!(cache.is_synced());
    let lines = logged.with("the watch fails");
    assert!((1..=60).contains(&lines.len()), "{} lines in an hour", lines.len());
    assert!(lines[0].contains("an event cannot be decoded"), "{lines:?}");
    assert!(lines.last().unwrap().contains("repeated="), "{lines:?}");
    assert!(logged.with("").len() <= 120, "{:?}", logged.with("").len());
    tasks.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_decoded_is_logged_once_a_minute() {
    let logged = Logged::from(tracing::Level::INFO);
    // The object is changed ten times a second.
    let (client, _) = client(move |_, _| {
        let begin = Bytes::from(end(1).to_string());
        let events = futures::stream::unfold(2_u64, |version| async move {
            tokio::time::sleep(Duration::from_millis(100)).await;
            let mut event = event("MODIFIED", "bad", version);
            event["object"]["data"] = json!(version);
            Some((Bytes::from(event.to_string()), version + 1))
        });
        (200, futures::stream::iter([begin]).chain(events).boxed())
    });
    let tasks = Tasks::new();
    let _cache = cache(&client, &tasks);
    tokio::time::sleep(Duration::from_secs(200)).await;
    let lines = logged.with("cannot decode an object");
    assert_eq!(lines.len(), 4, "{lines:?}");
    assert!(
        lines[0].contains("n/bad") && lines[1].contains("repeated=599"),
        "{lines:?}"
    );
    tasks.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn an_event_without_an_end_takes_no_more_memory_than_the_largest_event() {
    let given = Arc::new(Mutex::new(0));
    let count = given.clone();
    let (client, asked) = client(move |number, query| {
        if number > 1 {
            return (200, pieces("", 1, true));
        }
        let count = count.clone();
        let begin = if first(query) {
            end(1).to_string()
        } else {
            String::new()
        };
        let endless = futures::stream::repeat_with(move || {
            *count.lock() += 1;
            Bytes::from(vec![b' '; 1 << 20])
        });
        let begin = Bytes::from(begin + "{\"type\":\"ADDED\",\"object\":{\"a\":\"");
        (200, futures::stream::iter([begin]).chain(endless).boxed())
    });
    let logged = Logged::from(tracing::Level::DEBUG);
    let tasks = Tasks::new();
    let _cache = cache(&client, &tasks);
    wait_for("it is tried again", || asked.lock().len() == 3).await;
    assert!(*given.lock() <= 2 * 18, "{} MiB were read", given.lock());
    assert_eq!(logged.with("an event is larger than 16 MiB").len(), 2);
    tasks.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_list_is_understood_however_it_is_divided() {
    let object =
        |name: &str| json!({"metadata": {"name": name, "namespace": "n", "uid": name, "resourceVersion": "1"}});
    let list = json!({"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": "7"}, "items": [object("ä"), object("b")]});
    for text in [list.to_string(), serde_json::to_string_pretty(&list).unwrap()] {
        for size in [1, 2, 5, text.len()] {
            let text = text.clone();
            let (client, _) = client(move |_, query| match query {
                query if first(query) => (422, pieces("{}", 9, false)),
                query if query.contains("watch=true") => (200, pieces("", 1, true)),
                _ => (200, pieces(&text, size, false)),
            });
            let tasks = Tasks::new();
            let cache = cache(&client, &tasks);
            wait_for("the list is read", || cache.version() == 7).await;
            assert_eq!(names(&cache), ["b", "ä"]);
            tasks.shutdown().await;
        }
    }
}

#[tokio::test]
async fn a_watch_without_a_cache_is_understood_however_it_is_divided() {
    let lease = |kind: &str, name: &str| json!({"type": kind, "object": {"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": {"name": name}}});
    for form in forms(&[lease("ADDED", "ä"), lease("DELETED", "b")]) {
        for size in 1..form.len() {
            let text = form.clone();
            let (client, _) = client(move |_, _| (200, pieces(&text, size, false)));
            let api: Api<Lease> = Api::namespaced(client, "n");
            let events = watch_events(&api, &WatchParams::default(), "0").await.unwrap();
            let found: Vec<String> = events
                .map(|event| match event {
                    Ok(WatchEvent::Added(lease)) => format!("added {}", lease.metadata.name.unwrap()),
                    Ok(WatchEvent::Deleted(lease)) => format!("deleted {}", lease.metadata.name.unwrap()),
                    other => format!("{other:?}"),
                })
                .collect()
                .await;
            assert_eq!(found, ["added ä", "deleted b"], "{size}: {form}");
        }
    }
    let endless = |_: usize, _: &str| (200, futures::stream::repeat(Bytes::from(vec![b'{'; 1 << 20])).boxed());
    let (client, _) = client(endless);
    let api: Api<Lease> = Api::namespaced(client, "n");
    let mut events = watch_events(&api, &WatchParams::default(), "0").await.unwrap();
    let error = events.next().await.unwrap().unwrap_err();
    assert_eq!(error, "an event is larger than 16 MiB");
    assert!(events.next().await.is_none());
}
