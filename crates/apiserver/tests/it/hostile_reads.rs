//! Reads of large objects, in forms that are more work than to copy them.

use bytes::Bytes;
use futures::FutureExt as _;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use windlass_apiserver::{Authorization, UserInfo};
use windlass_meta::budget;

use crate::edge::Edge;
use crate::hostile::post;
use crate::hostile_turns::{slow_admission, takes_a_turn, without_places};
use crate::hostile_work::{ANY, Prober, anything, patch};
use crate::rbac::user;
use crate::support::{client, install, start, widget_crd};

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
const METADATA: &str = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
const JSON: &str = "application/json";
const YAML: &str = "application/yaml";

fn get(path: &str, accept: &str) -> Request<Vec<u8>> {
    let request = Request::get(path).header("accept", accept);
    request.body(Vec::new()).unwrap()
}

fn maps(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/configmaps")
}

async fn send(client: &Client, request: Request<Vec<u8>>) -> Response<Body> {
    client.send(request.map(Into::into)).await.unwrap()
}

async fn body(client: &Client, request: Request<Vec<u8>>) -> (u16, Bytes) {
    let answered = send(client, request).await;
    let code = answered.status().as_u16();
    (code, answered.into_body().collect().await.unwrap().to_bytes())
}

/// Creates an object, with a text of another length until its size is the wanted one.
async fn make_until(
    admin: &Client,
    path: &str,
    name: &str,
    want: usize,
    object: impl Fn(usize) -> Value,
    size: fn(&[u8]) -> usize,
) {
    let mut length = 1_000;
    loop {
        let mut object = object(length);
        object["metadata"]["name"] = name.into();
        let (code, stored) = body(admin, post(path, object.to_string().into())).await;
        assert_eq!(code, 201, "{stored:?}");
        let is = size(&stored);
        if is == want {
            return;
        }
        length = length + want - is;
        let gone = Request::delete(format!("{path}/{name}")).body(Vec::new()).unwrap();
        assert_eq!(body(admin, gone).await.0, 200);
    }
}

/// Creates a map that is stored in exactly this many bytes.
async fn make_of(admin: &Client, path: &str, name: &str, size: usize) {
    let map = |length| json!({"metadata": {}, "data": {"k": "x".repeat(length)}});
    let map = |length: usize| map(length.saturating_sub(900));
    make_until(admin, path, name, size, map, <[u8]>::len).await;
}

async fn make_namespace(admin: &Client, name: &str) {
    let namespace = json!({"metadata": {"name": name}}).to_string();
    let made = body(admin, post("/api/v1/namespaces", namespace.into())).await;
    assert_eq!(made.0, 201);
    let (_, listed) = body(admin, get(&maps(name), JSON)).await;
    assert!(listed.ends_with(b"\"items\":[]}"));
}

#[tokio::test]
async fn reads_of_large_objects_in_another_form_take_turns() {
    let (server, admin) = start().await;
    let path = maps("default");
    make_of(&admin, &path, "m1", budget::LIGHT_BYTES).await;
    make_of(&admin, &path, "m2", budget::LIGHT_BYTES + 1).await;
    let _busy = without_places(&server, "a").await;
    let a = user(&server, "a", &[]);
    for (name, is_large) in [("m1", false), ("m2", true)] {
        for (accept, is_work) in [(JSON, false), (TABLE, true), (METADATA, true)] {
            let takes = takes_a_turn(&a, get(&format!("{path}/{name}"), accept)).await;
            assert_eq!(takes, is_large && is_work, "{name} {accept}");
        }
    }
    for (query, accept) in [("?pretty=true", JSON), ("", YAML)] {
        assert!(takes_a_turn(&a, get(&format!("{path}/m2{query}"), accept)).await);
    }
}

/// The size of an answer shows when it is there.
#[tokio::test]
async fn answers_that_grow_when_they_are_indented_take_turns() {
    let (server, admin) = start().await;
    let path = maps("default");
    let pretty = async |name: &str| {
        body(&admin, get(&format!("{path}/{name}?pretty=true"), JSON))
            .await
            .1
            .len()
    };
    make_of(&admin, &path, "m0", 1_000).await;
    let more = pretty("m0").await - 1_000;
    make_of(&admin, &path, "m1", budget::LIGHT_BYTES - more).await;
    make_of(&admin, &path, "m2", budget::LIGHT_BYTES - more + 1).await;
    assert_eq!(pretty("m1").await, budget::LIGHT_BYTES);
    let _busy = without_places(&server, "a").await;
    let a = user(&server, "a", &[]);
    for (name, want) in [("m1", false), ("m2", true)] {
        for (query, accept) in [("?pretty=true", JSON), ("", YAML), ("", JSON)] {
            let takes = takes_a_turn(&a, get(&format!("{path}/{name}{query}"), accept)).await;
            assert_eq!(takes, want && (query, accept) != ("", JSON), "{name} {accept}");
        }
    }
}

/// Not how many they are counts, but their bytes, in the namespace that is listed.
#[tokio::test]
async fn lists_of_large_objects_take_turns() {
    let (server, admin) = start().await;
    for (namespace, size) in [("n1", budget::LIGHT_BYTES), ("n2", budget::LIGHT_BYTES + 1)] {
        make_namespace(&admin, namespace).await;
        make_of(&admin, &maps(namespace), "m1", 1_000).await;
        make_of(&admin, &maps(namespace), "m2", size - 1_000).await;
    }
    let crowd = without_places(&server, "a").await;
    let a = user(&server, "a", &[]);
    for (namespace, is_large) in [("n1", false), ("n2", true)] {
        let path = maps(namespace);
        for (query, accept, is_work) in [
            ("", JSON, false),
            ("?labelSelector=a%3Db", JSON, false),
            ("?fieldSelector=metadata.name%3Dm1", JSON, false),
            ("?fieldSelector=metadata.name%3Dm1", TABLE, false),
            ("", TABLE, true),
            ("?limit=1", TABLE, true),
            ("", METADATA_LIST, true),
        ] {
            let takes = takes_a_turn(&a, get(&format!("{path}{query}"), accept)).await;
            assert_eq!(takes, is_large && is_work, "{namespace} {query} {accept}");
        }
        let delete = Request::delete(&path).body(Vec::new()).unwrap();
        assert_eq!(takes_a_turn(&a, delete).await, is_large, "{namespace}");
    }
    drop(crowd);
}

#[tokio::test]
async fn lists_that_copy_much_take_turns() {
    let (server, admin) = start().await;
    for (namespace, size) in [
        ("n1", budget::LIGHT_COPIED_BYTES),
        ("n2", budget::LIGHT_COPIED_BYTES + 1),
    ] {
        make_namespace(&admin, namespace).await;
        for name in ["m1", "m2", "m3", "m4"] {
            make_of(&admin, &maps(namespace), name, 1_000_000).await;
        }
        make_of(&admin, &maps(namespace), "m5", size - 4_000_000).await;
    }
    let _busy = without_places(&server, "a").await;
    let a = user(&server, "a", &[]);
    for (namespace, want) in [("n1", false), ("n2", true)] {
        let listed = get(&format!("{}?fieldSelector=metadata.name%3Dm5", maps(namespace)), JSON);
        assert_eq!(takes_a_turn(&a, listed).await, want, "{namespace}");
    }
}

/// Fields that field selectors compare are in the objects.
#[tokio::test]
async fn selections_by_field_of_large_objects_take_turns() {
    let (server, admin) = start().await;
    install(&admin, &widget_crd()).await;
    let widgets = |namespace: &str| format!("/apis/example.com/v1/namespaces/{namespace}/widgets");
    for (namespace, size) in [("n1", budget::LIGHT_BYTES), ("n2", budget::LIGHT_BYTES + 1)] {
        make_namespace(&admin, namespace).await;
        let widget = |length| {
            json!({
                "apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"annotations": {"a": "x".repeat(length)}},
                "spec": {"size": 1},
            })
        };
        make_until(&admin, &widgets(namespace), "w", size, widget, <[u8]>::len).await;
    }
    let _busy = without_places(&server, "a").await;
    let a = user(&server, "a", &[]);
    for (namespace, is_large) in [("n1", false), ("n2", true)] {
        for (query, is_work) in [
            ("fieldSelector=spec.color%3Dred", true),
            ("fieldSelector=spec.color%3Dred&watch=1&timeoutSeconds=1", true),
            ("fieldSelector=spec.color%3Dred,metadata.name%3Dother", false),
            (
                "fieldSelector=spec.color%3Dred&watch=1&timeoutSeconds=1&resourceVersion=1",
                false,
            ),
            ("watch=1&timeoutSeconds=1", false),
            ("", false),
        ] {
            let path = format!("{}?{query}", widgets(namespace));
            let takes = takes_a_turn(&a, get(&path, JSON)).await;
            assert_eq!(takes, is_large && is_work, "{namespace} {query}");
        }
    }
}

/// A list of the past has the objects of the past.
#[tokio::test]
async fn lists_of_a_large_past_take_turns() {
    let (server, admin) = start().await;
    let path = maps("default");
    make_of(&admin, &path, "m", 2 * budget::LIGHT_BYTES).await;
    let (_, listed) = body(&admin, get(&path, METADATA_LIST)).await;
    let listed: Value = serde_json::from_slice(&listed).unwrap();
    let revision = listed["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    let small = patch(&format!("{path}/m"), "merge-patch+json", &json!({"data": {"k": null}}));
    assert_eq!(body(&admin, small).await.0, 200);
    let _busy = without_places(&server, "a").await;
    let a = user(&server, "a", &[]);
    assert!(!takes_a_turn(&a, get(&path, TABLE)).await);
    let past = format!("{path}?resourceVersion={revision}&resourceVersionMatch=Exact");
    assert!(takes_a_turn(&a, get(&past, TABLE)).await);
}

#[tokio::test]
async fn answers_in_another_form_have_a_largest_size() {
    let (server, admin) = anything().await;
    // Its levels indent each of the numbers.
    let widget = |numbers: usize, length: usize| {
        let deep = (0..100).fold(json!(vec![0; numbers]), |inner, _| json!([inner]));
        json!({
            "apiVersion": "example.com/v1alpha1", "kind": "Widget", "metadata": {}, "deep": deep, "text": "x".repeat(length),
        })
    };
    let pretty = |made: &[u8]| {
        let made: Value = serde_json::from_slice(made).unwrap();
        serde_json::to_vec_pretty(&made).unwrap().len()
    };
    let numbers = budget::ENCODED_BYTES / 210;
    let read = async |client: &Client, name: &str, query: &str, header: (&str, &str)| {
        let request = Request::get(format!("{ANY}/{name}{query}")).header(header.0, header.1);
        body(client, request.body(Vec::new()).unwrap()).await
    };
    let a = user(&server, "a", &[]);
    for (name, more) in [("w1", 0), ("w2", 1)] {
        let widget = |length| widget(numbers, length);
        make_until(&admin, ANY, name, budget::ENCODED_BYTES + more, widget, pretty).await;
        for client in [&a, &admin] {
            let (code, pretty) = read(client, name, "?pretty=true", ("accept", JSON)).await;
            if more == 0 {
                assert_eq!((code, pretty.len()), (200, budget::ENCODED_BYTES));
            } else {
                let status: Value = serde_json::from_slice(&pretty).unwrap();
                let message = status["message"].as_str().unwrap();
                assert_eq!(code, 413);
                assert!(message.contains("leave out the parameter \"pretty\""), "{message}");
            }
            // Programs for people have it indented if that is possible.
            let (code, shown) = read(client, name, "", ("user-agent", "curl/8")).await;
            assert_eq!((code, shown.len() < 4_000_000), (200, more == 1));
        }
    }
    let mut larger = widget(numbers + numbers / 10, 1);
    larger["metadata"]["name"] = "w3".into();
    assert_eq!(body(&admin, post(ANY, larger.to_string().into())).await.0, 201);
    let (code, refused) = read(&a, "w3", "", ("accept", YAML)).await;
    assert_eq!(code, 413);
    assert!(
        String::from_utf8_lossy(&refused).contains("ask for application/json"),
        "{refused:?}"
    );
    // What is written is written.
    let change = patch(
        &format!("{ANY}/w3?pretty=true"),
        "merge-patch+json",
        &json!({"text": "y"}),
    );
    let (code, written) = body(&a, change).await;
    assert_eq!(code, 200);
    assert_eq!(serde_json::from_slice::<Value>(&written).unwrap()["text"], "y");
}

/// A list is written object by object, and is the same as a document that is written at once.
#[tokio::test]
async fn forms_of_a_list_have_the_same_content() {
    let (_server, admin) = start().await;
    for name in ["a", "b"] {
        let map = json!({"metadata": {"name": name}, "data": {"k": "x\ny", "yes": "no"}});
        assert_eq!(
            body(&admin, post(&maps("default"), map.to_string().into())).await.0,
            201
        );
    }
    for accept in ["", ";as=Table;v=v1;g=meta.k8s.io"] {
        let plain = body(&admin, get(&maps("default"), &format!("{JSON}{accept}"))).await.1;
        let plain: Value = serde_json::from_slice(&plain).unwrap();
        let pretty = format!("{}?pretty=true", maps("default"));
        let pretty = body(&admin, get(&pretty, &format!("{JSON}{accept}"))).await.1;
        assert_eq!(serde_json::from_slice::<Value>(&pretty).unwrap(), plain);
        let yaml = body(&admin, get(&maps("default"), &format!("{YAML}{accept}"))).await.1;
        assert_eq!(
            String::from_utf8_lossy(&yaml),
            windlass_gocompat::yaml::document(&plain)
        );
    }
}

/// A map whose decoding takes long for its size.
fn many_keys(name: &str, value: &str) -> Value {
    let data: serde_json::Map<String, Value> = (0..40_000).map(|at| (format!("k{at}"), value.into())).collect();
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn health_is_answered_while_lists_are_encoded() {
    let edge = Edge::with(Authorization::AllowAuthenticated).await;
    let admin = client(&edge.server);
    for name in ["m1", "m2"] {
        let made = body(&admin, post(&maps("default"), many_keys(name, "v").to_string().into())).await;
        assert_eq!(made.0, 201);
    }
    let prober = Prober::start(&edge);
    while prober.answered() == 0 {
        tokio::task::yield_now().await;
    }
    for (query, accept) in [("?pretty=true", JSON), ("", YAML), ("", TABLE)] {
        let before = prober.answered();
        let mut all = JoinSet::new();
        for at in 0..4 {
            let service = edge.server.client_service(UserInfo::new(&format!("user-{at}"), &[]));
            let client = Client::new(service, "default");
            let list = format!("{}{query}", maps("default"));
            all.spawn(async move {
                loop {
                    let code = body(&client, get(&list, accept)).await.0;
                    // On a busy machine it is not its turn soon enough.
                    if code != 429 {
                        return code;
                    }
                }
            });
        }
        while let Some(code) = all.join_next().await {
            assert_eq!(code.unwrap(), 200);
        }
        let during = prober.answered() - before;
        // Thousands, or few where the threads of the server encode: then they are answered between the lists.
        assert!(during >= 20, "{during} answers during {accept}{query}");
    }
    prober.stop();
}

async fn watch(client: &Client, query: &str, accept: &str) -> Response<Body> {
    let path = format!("{}?watch=1&{query}", maps("default"));
    let answered = send(client, get(&path, accept)).await;
    assert_eq!(answered.status(), 200);
    answered
}

/// The next bytes of a watch.
async fn next(watch: &mut Response<Body>) -> Bytes {
    watch.body_mut().frame().await.unwrap().unwrap().into_data().unwrap()
}

/// The next line of a watch, and the largest piece in which it arrives.
async fn line(watch: &mut Response<Body>) -> (Value, Bytes) {
    let (mut line, mut largest) = (Vec::new(), Bytes::new());
    while !line.ends_with(b"\n") {
        let piece = next(watch).await;
        line.extend_from_slice(&piece);
        if piece.len() > largest.len() {
            largest = piece;
        }
    }
    (serde_json::from_slice(&line).unwrap(), largest)
}

/// What one watch has encoded is what others send.
#[tokio::test]
async fn watches_of_large_objects_share_what_they_encode() {
    let (server, admin) = start().await;
    let path = maps("default");
    let note = "x".repeat(2 * budget::LIGHT_BYTES);
    let map = json!({"metadata": {"name": "m", "labels": {"l": "x"}, "annotations": {"note": note}}});
    assert_eq!(body(&admin, post(&path, map.to_string().into())).await.0, 201);
    for (query, accept) in [
        ("includeObject=Object", TABLE),
        ("includeObject=Metadata", TABLE),
        ("", METADATA),
    ] {
        let mut watches = Vec::new();
        for name in ["a", "b", "b"] {
            let query = format!("{query}&labelSelector=l%3Dx");
            watches.push(watch(&user(&server, name, &[]), &query, accept).await);
        }
        // The object, a change, and the end of the selection: then the object is shown as it was, with the revision of the change.
        for (kind, change) in [
            ("ADDED", None),
            ("MODIFIED", Some(json!({"data": {"j": query}}))),
            ("DELETED", Some(json!({"metadata": {"labels": {"l": "y"}}}))),
            ("ADDED", Some(json!({"metadata": {"labels": {"l": "x"}}}))),
        ] {
            let mut revision = None;
            if let Some(change) = change {
                let (code, made) = body(&admin, patch(&format!("{path}/m"), "merge-patch+json", &change)).await;
                assert_eq!(code, 200);
                let made: Value = serde_json::from_slice(&made).unwrap();
                revision = Some(made["metadata"]["resourceVersion"].clone());
            }
            let (first, bytes) = line(&mut watches[0]).await;
            assert_eq!(first["type"], kind);
            let object = match accept {
                METADATA => &first["object"],
                _ => &first["object"]["rows"][0]["object"],
            };
            assert_eq!(object["metadata"]["name"], "m");
            assert_eq!(object["metadata"]["labels"]["l"], "x");
            if let Some(revision) = revision {
                assert_eq!(object["metadata"]["resourceVersion"], revision);
            }
            for other in &mut watches[1..] {
                let (other, shared) = line(other).await;
                assert_eq!(other, first);
                assert_eq!(shared.as_ptr(), bytes.as_ptr(), "{kind} {accept}");
            }
        }
    }
}

/// Also those that compare a field of large objects see what enters and what leaves.
#[tokio::test]
async fn watches_select_large_objects_by_field() {
    let (server, admin) = start().await;
    install(&admin, &widget_crd()).await;
    let path = "/apis/example.com/v1/namespaces/default/widgets";
    let widget = |name: &str, size: usize| {
        json!({
            "apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name, "annotations": {"a": "x".repeat(size)}},
            "spec": {"size": 1, "color": "red"},
        })
    };
    let mut watches = Vec::new();
    for at in 0..3 {
        let a = user(&server, &format!("user-{at}"), &[]);
        let query = format!("{path}?watch=1&fieldSelector=spec.color%3Dblue");
        watches.push(send(&a, get(&query, JSON)).await);
    }
    for (name, size) in [("small", 10), ("large", 2 * budget::LIGHT_BYTES)] {
        let made = body(&admin, post(path, widget(name, size).to_string().into())).await;
        assert_eq!(made.0, 201);
        for (color, want) in [
            ("blue", "ADDED"),
            ("red", "DELETED"),
            ("blue", "ADDED"),
            ("blue", "MODIFIED"),
        ] {
            let change = json!({"spec": {"color": color}, "metadata": {"labels": {"last": want}}});
            let changed = body(&admin, patch(&format!("{path}/{name}"), "merge-patch+json", &change)).await;
            assert_eq!(changed.0, 200);
            for watch in &mut watches {
                let (event, _) = line(watch).await;
                assert_eq!(
                    (&event["type"], &event["object"]["metadata"]["name"]),
                    (&want.into(), &name.into())
                );
                assert_eq!(event["object"]["spec"]["color"], "blue");
            }
        }
    }
}

/// A user whose turns are taken by requests that wait for a webhook: more than those that give their turn back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watches_decode_large_objects_in_turns() {
    let (server, admin) = start().await;
    install(&admin, &widget_crd()).await;
    let path = maps("default");
    make_of(&admin, &path, "m", 2 * budget::LIGHT_BYTES).await;
    let may = CancellationToken::new();
    let (_hooks, mut asked) = slow_admission(&admin, &may).await;
    let half = std::thread::available_parallelism()
        .map_or(2, std::num::NonZero::get)
        .max(2)
        / 2;
    let busy = budget::PARKED_OF_A_USER + half;
    let mut waiting = JoinSet::new();
    for at in 0..busy {
        let a = user(&server, "a", &[]);
        let widget = json!({
            "apiVersion": "example.com/v1", "kind": "Widget", "spec": {"size": 1},
            "metadata": {"name": format!("w{at}"), "annotations": {"long": "x".repeat(budget::LIGHT_BYTES)}},
        });
        waiting.spawn(async move {
            let path = "/apis/example.com/v1/namespaces/default/widgets";
            body(&a, post(path, widget.to_string().into())).await.0
        });
    }
    for _ in 0..busy {
        asked.recv().await.unwrap();
    }
    let mut of_a = watch(&user(&server, "a", &[]), "", TABLE).await;
    let mut of_b = watch(&user(&server, "b", &[]), "", TABLE).await;
    assert!(next(&mut of_a).now_or_never().is_none(), "it has no turn");
    assert_eq!(line(&mut of_b).await.0["type"], "ADDED");
    assert!(waiting.try_join_next().is_none(), "the webhook has not answered");
    may.cancel();
    assert_eq!(line(&mut of_a).await.0["type"], "ADDED");
    while let Some(code) = waiting.join_next().await {
        assert_eq!(code.unwrap(), 201);
    }
}

/// An eviction reads the disruption budgets of its namespace, and the pod.
#[tokio::test]
async fn evictions_beside_large_budgets_take_turns() {
    let (server, admin) = start().await;
    let small_pod = |length| {
        json!({
            "metadata": {"annotations": {"a": "x".repeat(length)}}, "spec": {"containers": [{"name": "c", "image": "i"}]},
        })
    };
    let budget = |length| {
        json!({
            "metadata": {"annotations": {"a": "x".repeat(length)}},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "other"}}},
        })
    };
    for (namespace, of_pod, of_budget) in [
        ("n1", budget::LIGHT_BYTES, budget::LIGHT_BYTES),
        ("n2", budget::LIGHT_BYTES + 1, 2_000),
        ("n3", 4_000, budget::LIGHT_BYTES + 1),
    ] {
        make_namespace(&admin, namespace).await;
        let path = format!("/api/v1/namespaces/{namespace}/pods");
        make_until(&admin, &path, "p", of_pod, small_pod, <[u8]>::len).await;
        let path = format!("/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets");
        make_until(&admin, &path, "b", of_budget, budget, <[u8]>::len).await;
    }
    let _busy = without_places(&server, "a").await;
    let a = user(&server, "a", &[]);
    for (namespace, want) in [("n1", false), ("n2", true), ("n3", true)] {
        let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}).to_string();
        let path = format!("/api/v1/namespaces/{namespace}/pods/p/eviction?dryRun=All");
        assert_eq!(
            takes_a_turn(&a, post(&path, eviction.into())).await,
            want,
            "{namespace}"
        );
    }
}
