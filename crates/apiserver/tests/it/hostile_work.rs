//! Requests with as much of one thing as a body takes. The work grows with the size of the body, not with its square.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use http::Request;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client};
use serde_json::{Value, json};
use windlass_apiserver::{ApiServer, Authorization, UserInfo};
use windlass_meta::budget::{OBJECT_BYTES, PATH_BYTES, PATH_LEVELS};

use crate::edge::Edge;
use crate::hostile::{answer, post};
use crate::support::{client, gone, install, start, widget_crd};

/// Far more than any of the requests takes, and less than they would with quadratic work.
const LONG: Duration = Duration::from_mins(1);

pub(crate) fn patch(path: &str, kind: &str, body: &Value) -> Request<Vec<u8>> {
    let request = Request::patch(path).header("content-type", format!("application/{kind}"));
    request.body(body.to_string().into_bytes()).unwrap()
}

/// Sends a request that must not take long. Returns the text of the answer.
async fn soon(client: &Client, request: Request<Vec<u8>>, want: u16) -> String {
    let begun = Instant::now();
    let (code, text) = answer(client, request).await;
    let end = text.floor_char_boundary(400);
    assert_eq!(code, want, "{}", &text[..end]);
    assert!(begun.elapsed() < LONG, "it took {:?}", begun.elapsed());
    text
}

/// A resource whose objects may contain anything.
pub(crate) async fn anything() -> (ApiServer, Client) {
    let (server, admin) = start().await;
    let mut crd = widget_crd();
    let mut version = crd["spec"]["versions"][1].take();
    version["storage"] = true.into();
    crd["spec"]["versions"] = json!([version]);
    install(&admin, &crd).await;
    (server, admin)
}

pub(crate) const ANY: &str = "/apis/example.com/v1alpha1/namespaces/default/widgets";

#[tokio::test]
async fn items_with_keys_find_their_old_items() {
    let (_server, admin) = start().await;
    install(&admin, &widget_crd()).await;
    let parts: Vec<Value> = (0..40_000).map(|at| json!({"name": at.to_string()})).collect();
    let widget = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 1, "parts": parts}});
    let path = "/apis/example.com/v1/namespaces/default/widgets";
    let begun = Instant::now();
    let created = admin
        .send(post(path, widget.to_string().into()).map(Into::into))
        .await
        .unwrap();
    assert_eq!(created.status(), 201);
    let change = json!([{"op": "replace", "path": "/spec/size", "value": 2}]);
    let changed = admin
        .send(patch(&format!("{path}/w?dryRun=All"), "json-patch+json", &change).map(Into::into))
        .await
        .unwrap();
    assert_eq!(changed.status(), 200);
    assert!(begun.elapsed() < LONG, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn ports_of_a_service_are_checked_and_allocated_once() {
    let (_server, admin) = start().await;
    let service = |kind: &str, count: usize| {
        let port = |at: usize| json!({"name": format!("p{at}"), "port": at % 65_535 + 1});
        let ports: Vec<Value> = (0..count).map(port).collect();
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"type": kind, "ports": ports}})
    };
    let path = "/api/v1/namespaces/default/services";
    let many = service("ClusterIP", 75_000).to_string();
    let text = soon(&admin, post(path, many.into()), 422).await;
    assert!(text.contains("Duplicate value"), "{text}");
    let full = service("NodePort", 60_000).to_string();
    let text = soon(&admin, post(path, full.into()), 500).await;
    assert!(text.contains("failed to allocate a nodePort: range is full"), "{text}");
}

#[tokio::test]
async fn patches_move_a_bounded_number_of_items() {
    let (_server, admin) = anything().await;
    let items = vec![1; 1_000_000];
    let widget =
        json!({"apiVersion": "example.com/v1alpha1", "kind": "Widget", "metadata": {"name": "w"}, "items": items});
    let created = admin
        .send(post(ANY, widget.to_string().into()).map(Into::into))
        .await
        .unwrap();
    assert_eq!(created.status(), 201);
    let moves = vec![json!({"op": "move", "from": "/items/999999", "path": "/items/0"}); 1_000];
    let text = soon(
        &admin,
        patch(&format!("{ANY}/w"), "json-patch+json", &moves.into()),
        413,
    )
    .await;
    assert!(text.contains("may move at most"), "{text}");
    // All items move with their list.
    let there = json!({"op": "move", "from": "/items", "path": "/others"});
    let back = json!({"op": "move", "from": "/others", "path": "/items"});
    let moves = vec![[there, back]; 1_000].concat();
    let text = soon(
        &admin,
        patch(&format!("{ANY}/w"), "json-patch+json", &moves.into()),
        413,
    )
    .await;
    assert!(text.contains("may move at most"), "{text}");
}

/// The paths of columns are parsed after a definition is stored, and again at each start.
#[tokio::test]
async fn columns_with_deep_or_long_paths_are_refused() {
    let (_server, admin) = start().await;
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let nested = |levels: usize| format!(".a{}", "[?(@".repeat(levels));
    let long = format!(".{}", "a".repeat(PATH_BYTES));
    for (column, words) in [
        (nested(20_000), "must have at most"),
        (nested(PATH_LEVELS + 1), "must not nest filters"),
        (long, "must have at most"),
    ] {
        let mut crd = widget_crd();
        crd["spec"]["versions"][0]["additionalPrinterColumns"] =
            json!([{"name": "a", "type": "string", "jsonPath": column}]);
        let text = soon(&admin, post(path, crd.to_string().into()), 422).await;
        assert!(
            text.contains("additionalPrinterColumns[0].JSONPath") && text.contains(words),
            "{text}"
        );
    }
}

#[tokio::test]
async fn lists_of_strategic_patches_are_united_once() {
    let (_server, admin) = start().await;
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}});
    let path = "/api/v1/namespaces/default/configmaps";
    soon(&admin, post(path, map.to_string().into()), 201).await;
    let finalizers: Vec<String> = (0..150_000).map(|at| format!("a.b/{at}")).collect();
    let change = json!({"metadata": {"finalizers": finalizers}});
    let send = |name: &str| patch(&format!("{path}/{name}"), "strategic-merge-patch+json", &change);
    for _ in 0..2 {
        let begun = Instant::now();
        let answered = admin.send(send("m").map(Into::into)).await.unwrap();
        assert_eq!(answered.status(), 200);
        assert!(begun.elapsed() < LONG, "{:?}", begun.elapsed());
    }
}

#[tokio::test]
async fn owner_references_are_compared_once() {
    let (_server, admin) = start().await;
    let owner = |at: usize| json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": at.to_string()});
    let mut owners: Vec<Value> = (0..40_000).map(owner).collect();
    // It is refused for this one, after they were compared.
    owners[0]["name"] = "".into();
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "ownerReferences": owners}});
    let text = soon(
        &admin,
        post("/api/v1/namespaces/default/configmaps", map.to_string().into()),
        422,
    )
    .await;
    assert!(text.contains("metadata.ownerReferences.name"), "{text}");
}

#[tokio::test]
async fn many_managers_are_compared_once() {
    let (_server, admin) = start().await;
    let entry = |at: usize| json!({"manager": format!("m{at}"), "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:a": {}}}});
    let entries: Vec<Value> = (0..20_000).map(entry).collect();
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "managedFields": entries}, "data": {"a": "b"}});
    let begun = Instant::now();
    let path = "/api/v1/namespaces/default/configmaps";
    let created = admin
        .send(post(path, map.to_string().into()).map(Into::into))
        .await
        .unwrap();
    assert_eq!(created.status(), 201);
    // A patch that changes nothing compares all that is stored.
    for change in [json!({"data": {"a": "c"}}), json!({})] {
        let change = patch(&format!("{path}/m"), "merge-patch+json", &change);
        let changed = admin.send(change.map(Into::into)).await.unwrap();
        assert_eq!(changed.status(), 200);
    }
    assert!(begun.elapsed() < LONG, "{:?}", begun.elapsed());
}

/// An object with so many owners is collected, and the garbage collector still comes to others.
#[tokio::test]
async fn many_owners_are_looked_for_once() {
    let (_server, admin) = start().await;
    let owner = |at: usize| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": at.to_string()});
    let path = "/api/v1/namespaces/default/configmaps";
    let begun = Instant::now();
    for (name, count) in [("many", 33_000), ("one", 1)] {
        let owners: Vec<Value> = (0..count).map(owner).collect();
        let map =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "ownerReferences": owners}});
        let created = admin
            .send(post(path, map.to_string().into()).map(Into::into))
            .await
            .unwrap();
        assert_eq!(created.status(), 201);
    }
    let maps: Api<ConfigMap> = Api::default_namespaced(admin.clone());
    for name in ["one", "many"] {
        gone(&maps, name).await;
    }
    assert!(begun.elapsed() < LONG, "{:?}", begun.elapsed());
}

/// Directives with lists of keys and items, beside an object with many.
#[tokio::test]
async fn directives_of_strategic_patches_are_looked_up_once() {
    let (_server, admin) = start().await;
    let data: serde_json::Map<String, Value> = (0..40_000).map(|at| (at.to_string(), "".into())).collect();
    let finalizers: Vec<String> = (0..40_000).map(|at| format!("a.b/{at}")).collect();
    let path = "/api/v1/namespaces/default/configmaps";
    for (name, map) in [
        ("data", json!({"data": data})),
        ("finalizers", json!({"metadata": {"finalizers": finalizers}})),
    ] {
        let mut map = map;
        (map["apiVersion"], map["kind"], map["metadata"]["name"]) = ("v1".into(), "ConfigMap".into(), name.into());
        let created = admin
            .send(post(path, map.to_string().into()).map(Into::into))
            .await
            .unwrap();
        assert_eq!(created.status(), 201);
    }
    let strangers: Vec<String> = (0..200_000).map(|at| format!("c.d/{at}")).collect();
    for (name, change) in [
        ("data", json!({"data": {"$retainKeys": strangers}})),
        (
            "finalizers",
            json!({"metadata": {"$deleteFromPrimitiveList/finalizers": strangers}}),
        ),
    ] {
        let begun = Instant::now();
        let change = patch(
            &format!("{path}/{name}?dryRun=All"),
            "strategic-merge-patch+json",
            &change,
        );
        let changed = admin.send(change.map(Into::into)).await.unwrap();
        assert_eq!(changed.status(), 200, "{name}");
        assert!(begun.elapsed() < LONG, "{name}: {:?}", begun.elapsed());
    }
}

/// Patches add to what is stored, so the limit of a body does not hold for an object.
#[tokio::test]
async fn an_object_has_no_more_bytes_than_a_request_could_replace() {
    let (_server, admin) = anything().await;
    let widget = |name: &str, content: String| json!({"apiVersion": "example.com/v1alpha1", "kind": "Widget", "metadata": {"name": name}, "content": content});
    soon(&admin, post(ANY, widget("w", String::new()).to_string().into()), 201).await;
    let add = |at: usize, query: &str| {
        let change = json!({at.to_string(): "x".repeat(OBJECT_BYTES / 4)});
        patch(&format!("{ANY}/w{query}"), "merge-patch+json", &change)
    };
    for at in 0..3 {
        let changed = admin.send(add(at, "").map(Into::into)).await.unwrap();
        assert_eq!(changed.status(), 200);
    }
    for query in ["?dryRun=All", ""] {
        let text = soon(&admin, add(3, query), 413).await;
        assert!(text.contains(&format!("limit is {OBJECT_BYTES}")), "{text}");
    }
    // A deletion adds a timestamp, and is possible for the largest object.
    let mut held = widget("held", String::new());
    held["metadata"]["finalizers"] = json!(["a.b/c"]);
    let made = soon(&admin, post(&format!("{ANY}?dryRun=All"), held.to_string().into()), 201).await;
    // The answer to a dry run has no resourceVersion. A deletion adds more than is left.
    held["content"] = "x".repeat(OBJECT_BYTES - made.len() - 60).into();
    for (request, code) in [
        (post(ANY, held.to_string().into()), 201),
        (Request::delete(format!("{ANY}/held")).body(Vec::new()).unwrap(), 200),
    ] {
        let answered = admin.send(request.map(Into::into)).await.unwrap();
        assert_eq!(answered.status().as_u16(), code);
    }
    // Its managed fields count.
    let large = widget("large", "x".repeat(OBJECT_BYTES - 200));
    soon(&admin, post(ANY, large.to_string().into()), 413).await;
}

/// The paths of fields below a long name are that long.
#[tokio::test]
async fn long_names_do_not_multiply_with_conflicts_and_errors() {
    let (_server, admin) = start().await;
    let mut crd = widget_crd();
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["names"] = json!({
        "type": "object", "additionalProperties": {"type": "object", "additionalProperties": {"type": "integer"}}
    });
    install(&admin, &crd).await;
    let key = "k".repeat(300_000);
    let path = "/apis/example.com/v1/namespaces/default/widgets/w";
    let widget = |value: &Value| {
        let fields: serde_json::Map<String, Value> = (0..20_000).map(|at| (at.to_string(), value.clone())).collect();
        json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 1}, "names": {&key: fields}})
    };
    let apply = |manager: &str, value: Value| {
        patch(
            &format!("{path}?fieldManager={manager}"),
            "apply-patch+yaml",
            &widget(&value),
        )
    };
    let created = admin.send(apply("a", 1.into()).map(Into::into)).await.unwrap();
    assert_eq!(created.status(), 201);
    let text = soon(&admin, apply("b", 2.into()), 409).await;
    assert!(text.contains("20000 conflicts") && text.contains(" more"), "{text}");
    let text = soon(&admin, apply("b", "2".into()), 500).await;
    assert!(text.contains("expected numeric"), "{text}");
    let (collection, _) = path.rsplit_once('/').unwrap();
    let wrong = widget(&"2".into()).to_string();
    let text = soon(&admin, post(collection, wrong.into()), 422).await;
    assert!(text.contains("more errors"), "{text}");
}

/// The addresses and ports of all services are known without decoding them for each write.
#[tokio::test]
async fn services_do_not_pay_for_those_of_others() {
    let (_server, admin) = start().await;
    let path = "/api/v1/namespaces/default/services";
    let selector: serde_json::Map<String, Value> = (0..20_000).map(|at| (format!("k{at}"), "v".into())).collect();
    let service = |name: &str| json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}});
    for at in 0..5 {
        let mut large = service(&format!("large-{at}"));
        large["spec"]["selector"] = selector.clone().into();
        let made = admin.send(post(path, large.to_string().into()).map(Into::into)).await;
        assert_eq!(made.unwrap().status(), 201);
    }
    // All together take no longer than one of the others may.
    let begun = Instant::now();
    for _ in 0..SERVICES {
        soon(
            &admin,
            post(&format!("{path}?dryRun=All"), service("small").to_string().into()),
            201,
        )
        .await;
        assert!(begun.elapsed() < LONG, "they decode the large ones");
    }
}

/// So many that they would take far too long if each decoded the others.
const SERVICES: usize = 300;

/// A resource with rules that cost a quarter of a second for a small object.
fn costly_crd() -> Value {
    let mut crd = widget_crd();
    let parts =
        &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["many"];
    *parts = json!({
        "type": "array", "maxItems": 1000, "items": {"type": "integer"},
        "x-kubernetes-validations": vec![json!({"rule": "self.all(x, self.all(y, x <= y || x > y))"}); 4],
    });
    crd
}

/// Three of the worst requests at a time, on a server with two threads.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn health_is_answered_while_all_threads_would_be_busy() {
    let edge = Edge::with(Authorization::AllowAuthenticated).await;
    let admin = client(&edge.server);
    install(&admin, &costly_crd()).await;
    let prober = Prober::start(&edge);
    let many: Vec<usize> = (0..300).collect();
    let send = |user: usize, name: usize| {
        let widget = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": format!("w{user}-{name}")}, "spec": {"size": 1, "many": many}});
        let service = edge.server.client_service(UserInfo::new(&format!("user-{user}"), &[]));
        let client = Client::new(service, "default");
        tokio::spawn(async move {
            let path = "/apis/example.com/v1/namespaces/default/widgets";
            loop {
                let request = post(path, widget.to_string().into());
                let code = client.send(request.map(Into::into)).await.unwrap().status().as_u16();
                // On a busy machine it is not its turn soon enough.
                if code != 429 {
                    return code;
                }
            }
        })
    };
    // The first ones, of which nothing is known, and then those that take turns.
    for round in 0..2 {
        let before = prober.answered();
        let all: Vec<_> = (0..3).map(|user| send(user, round)).collect();
        for one in all {
            assert_eq!(one.await.unwrap(), 201);
        }
        let during = prober.answered() - before;
        // One of them may have been asked for before.
        assert!(during >= 2, "{during} answers in round {round}");
    }
    prober.stop();
}

/// Asks for the health of a server, again and again.
pub(crate) struct Prober {
    running: Arc<AtomicBool>,
    answered: Arc<AtomicUsize>,
    thread: std::thread::JoinHandle<()>,
}

impl Prober {
    pub(crate) fn start(edge: &Edge) -> Self {
        let (running, answered) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicUsize::new(0)));
        let (still, count) = (Arc::clone(&running), Arc::clone(&answered));
        let url = edge.url.clone();
        let ca = edge.authority.certificate().to_pem();
        // The prober has threads of its own.
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let client = crate::edge::client_of(&url, &ca, &json!({"token": "sesame"})).await;
                while still.load(Ordering::Relaxed) {
                    let request = Request::get("/healthz").body(Vec::new()).unwrap();
                    assert_eq!(client.request_text(request).await.unwrap(), "ok");
                    count.fetch_add(1, Ordering::Relaxed);
                }
            });
        });
        Self {
            running,
            answered,
            thread,
        }
    }

    /// How many answers there were.
    pub(crate) fn answered(&self) -> usize {
        self.answered.load(Ordering::Relaxed)
    }

    pub(crate) fn stop(self) {
        self.running.store(false, Ordering::Relaxed);
        self.thread.join().unwrap();
    }
}
