//! Which requests take turns, and that those that wait for a webhook have none.

use std::num::NonZero;

use bytes::Bytes;
use futures::StreamExt as _;
use http::Request;
use kube::Client;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use windlass_apiserver::{ApiServer, UserInfo};
use windlass_cel::Validator;
use windlass_meta::budget;

use crate::hookserver::{HookServer, Say, hook, validating};
use crate::hostile::{answer, post};
use crate::hostile_work::patch;
use crate::rbac::user;
use crate::support::{install, start, widget_crd};

const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";

/// Takes all places of a user, with large bodies that do not end, until the result is dropped.
pub(crate) async fn without_places(server: &ApiServer, name: &str) -> JoinSet<()> {
    let mut open = JoinSet::new();
    for _ in 0..budget::HEAVY_REQUESTS_OF_A_USER {
        let large = Bytes::from(vec![b' '; budget::LIGHT_BYTES + 1]);
        let start = futures::stream::iter([Ok::<_, std::io::Error>(http_body::Frame::data(large))]);
        let body = http_body_util::StreamBody::new(start.chain(futures::stream::pending()));
        let request = Request::post(REVIEWS).header("content-type", "application/json");
        let mut service = server.client_service(UserInfo::new(name, &[]));
        let answered = tower::Service::call(&mut service, request.body(body).unwrap());
        open.spawn(async move { drop(answered.await) });
    }
    let client = user(server, name, &[]);
    // They arrive at the same time as this one.
    while answer(&client, post(REVIEWS, vec![b' '; budget::LIGHT_BYTES + 1]))
        .await
        .0
        != 429
    {
        tokio::task::yield_now().await;
    }
    open
}

/// Whether a request of a user without places would take a turn.
pub(crate) async fn takes_a_turn(client: &Client, request: Request<Vec<u8>>) -> bool {
    let (code, text) = answer(client, request).await;
    assert!(matches!(code, 200 | 201 | 429), "{code} {text}");
    code == 429
}

#[tokio::test]
async fn changes_of_large_objects_take_turns() {
    let (server, admin) = start().await;
    let map =
        |name: &str, size: usize| json!({"metadata": {"name": name}, "data": {"k": "x".repeat(size)}}).to_string();
    let (code, text) = answer(&admin, post(MAPS, map("m0", 0).into())).await;
    assert_eq!(code, 201, "{text}");
    let empty = text.len();
    let _busy = without_places(&server, "a").await;
    let a = user(&server, "a", &[]);
    for (name, size, want) in [
        ("m1", budget::LIGHT_BYTES, false),
        ("m2", budget::LIGHT_BYTES + 1, true),
    ] {
        let (code, text) = answer(&admin, post(MAPS, map(name, size - empty).into())).await;
        assert_eq!((code, text.len()), (201, size), "what is answered is what is stored");
        let change = patch(
            &format!("{MAPS}/{name}"),
            "merge-patch+json",
            &json!({"data": {"j": "y"}}),
        );
        assert_eq!(takes_a_turn(&a, change).await, want, "{size}");
    }
}

#[tokio::test]
async fn long_queries_take_turns() {
    let (server, _admin) = start().await;
    let _busy = without_places(&server, "a").await;
    let a = user(&server, "a", &[]);
    for (length, want) in [
        (budget::LIGHT_QUERY_BYTES, false),
        (budget::LIGHT_QUERY_BYTES + 1, true),
    ] {
        let start = "labelSelector=a%3Db&x=";
        let query = format!("{start}{}", "y".repeat(length - start.len()));
        assert_eq!(query.len(), length);
        let request = Request::get(format!("{MAPS}?{query}")).body(Vec::new()).unwrap();
        assert_eq!(takes_a_turn(&a, request).await, want, "{length}");
    }
}

/// What a watch begins with is a list.
#[tokio::test]
async fn watches_with_long_queries_take_turns_to_begin() {
    let (server, _admin) = start().await;
    let _busy = without_places(&server, "a").await;
    let a = user(&server, "a", &[]);
    let start = "watch=1&timeoutSeconds=1&labelSelector=a%3Db";
    let initial = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
    for (more, may_wait) in [
        ("", true),
        ("resourceVersion=0", true),
        (initial, true),
        ("resourceVersion=1", false),
    ] {
        for (length, is_long) in [
            (budget::LIGHT_QUERY_BYTES, false),
            (budget::LIGHT_QUERY_BYTES + 1, true),
        ] {
            let start = format!("{start}&{more}&x=");
            let query = format!("{start}{}", "y".repeat(length - start.len()));
            let request = Request::get(format!("{MAPS}?{query}")).body(Vec::new()).unwrap();
            assert_eq!(takes_a_turn(&a, request).await, is_long && may_wait, "{length} {more}");
        }
    }
}

#[tokio::test]
async fn long_lists_take_turns() {
    let (server, admin) = start().await;
    let path = "/api/v1/namespaces/default/secrets";
    let make = async |at: usize| {
        let secret = json!({"metadata": {"name": format!("s{at}")}}).to_string();
        assert_eq!(answer(&admin, post(path, secret.into())).await.0, 201);
    };
    for at in 0..budget::LIGHT_LIST {
        make(at).await;
    }
    let _busy = without_places(&server, "a").await;
    let a = user(&server, "a", &[]);
    // One object is answered. All are looked at.
    let list = || Request::get(format!("{path}?limit=1")).body(Vec::new()).unwrap();
    assert!(!takes_a_turn(&a, list()).await);
    let watch = || {
        let request = Request::get(format!(
            "{path}?watch=1&timeoutSeconds=1&fieldSelector=metadata.name%3Ds0"
        ));
        request.body(Vec::new()).unwrap()
    };
    assert!(!takes_a_turn(&a, watch()).await);
    make(budget::LIGHT_LIST).await;
    assert!(takes_a_turn(&a, list()).await);
    assert!(takes_a_turn(&a, watch()).await);
}

/// Widgets whose rules cost one for ten bytes of `text`, and about a thousand for ten bytes of `wide`. What a pattern
/// costs is more than the time that it takes.
fn costly_crd() -> Value {
    let mut crd = widget_crd();
    let rules = |count: usize| -> Vec<Value> {
        let rule = |at: usize| json!({"rule": format!("!self.matches('{}')", "y".repeat(1_000 + at))});
        (0..count).map(rule).collect()
    };
    let schema = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    schema["properties"]["long"] = json!({"type": "object", "properties": {
        "text": {"type": "string", "maxLength": 100_000, "x-kubernetes-validations": [{"rule": "!self.matches('y')"}]},
        "wide": {"type": "string", "maxLength": 40_000, "x-kubernetes-validations": rules(12)},
    }});
    crd
}

/// A widget with texts of these lengths.
fn long(wide: usize, text: usize) -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 1},
        "long": {"wide": "x".repeat(wide), "text": "x".repeat(text)},
    })
}

/// A widget whose rules cost exactly this much.
fn costing(cost: u64) -> Value {
    let crd = costly_crd();
    let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let validator = Validator::crd(schema).unwrap();
    let is_enough = |widget: &Value, budget: u64| {
        let (mut errors, mut warnings) = (Vec::new(), Vec::new());
        validator
            .check_rest(widget, None, budget, &mut errors, &mut warnings)
            .is_some()
    };
    let all: Vec<u64> = (0..100_000).collect();
    let cost_of = |widget: &Value| all.partition_point(|budget| !is_enough(widget, *budget)) as u64;
    let least = cost_of(&long(10, 10));
    let each = cost_of(&long(20, 10)) - least;
    let length = |units: u64| 10 + 10 * usize::try_from(units).unwrap();
    let made = long(length((cost - least) / each), length((cost - least) % each));
    assert!(is_enough(&made, cost) && !is_enough(&made, cost - 1));
    made
}

/// Creates a widget whose rules cost exactly this much. Returns the code, and whether that was too much.
async fn make_costing(admin: &Client, cost: u64) -> (u16, bool) {
    let request = post(&format!("{WIDGETS}?dryRun=All"), costing(cost).to_string().into());
    let answered = admin.send(request.map(Into::into)).await.unwrap();
    let code = answered.status().as_u16();
    let body = http_body_util::BodyExt::collect(answered.into_body()).await.unwrap();
    let text = String::from_utf8(body.to_bytes().to_vec()).unwrap();
    (code, text.contains("running out of cost budget"))
}

#[tokio::test]
async fn objects_of_a_kind_with_expensive_rules_take_turns() {
    let (server, admin) = start().await;
    install(&admin, &costly_crd()).await;
    let _busy = without_places(&server, "a").await;
    let a = user(&server, "a", &[]);
    for (cost, want) in [(budget::LIGHT_RULE_COST, false), (budget::LIGHT_RULE_COST + 1, true)] {
        assert_eq!(make_costing(&admin, cost).await, (201, false));
        let small = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"generateName": "w"}, "spec": {"size": 1}});
        assert_eq!(
            takes_a_turn(&a, post(WIDGETS, small.to_string().into())).await,
            want,
            "{cost}"
        );
    }
}

#[tokio::test]
async fn rules_of_an_object_have_a_largest_cost() {
    let (_server, admin) = start().await;
    install(&admin, &costly_crd()).await;
    assert_eq!(make_costing(&admin, budget::RULE_COST).await, (201, false));
    assert_eq!(make_costing(&admin, budget::RULE_COST + 1).await, (422, true));
}

/// As many requests as there are turns, by users who have half of them at most. They wait for a webhook until the test lets it answer.
async fn waiting(
    server: &ApiServer,
    asked: &mut mpsc::UnboundedReceiver<()>,
    path: &'static str,
    object: Value,
) -> JoinSet<u16> {
    let mut all = JoinSet::new();
    let turns = std::thread::available_parallelism().map_or(2, NonZero::get).max(2);
    let half = (turns / 2).min(budget::HEAVY_REQUESTS_OF_A_USER);
    for at in 0..turns {
        let client = user(server, &format!("waiting-{}", at / half), &[]);
        let mut object = object.clone();
        object["metadata"] =
            json!({"name": format!("w{at}"), "annotations": {"long": "x".repeat(budget::LIGHT_BYTES)}});
        all.spawn(async move { answer(&client, post(path, object.to_string().into())).await.0 });
    }
    for _ in 0..turns {
        asked.recv().await.unwrap();
    }
    all
}

/// A webhook that answers when it may, and what it says for each request.
async fn slow(may: &CancellationToken, say: fn(&Value) -> Say) -> (HookServer, mpsc::UnboundedReceiver<()>) {
    let (sender, asked) = mpsc::unbounded_channel();
    let may = may.clone();
    let hooks = HookServer::start(move |_, request| {
        let (may, request) = (may.clone(), request.clone());
        sender.send(()).unwrap();
        Say::Later(Box::pin(async move {
            may.cancelled().await;
            say(&request)
        }))
    });
    (hooks.await, asked)
}

/// A webhook that is asked about Widgets and allows them when it may.
pub(crate) async fn slow_admission(
    admin: &Client,
    may: &CancellationToken,
) -> (HookServer, mpsc::UnboundedReceiver<()>) {
    let (hooks, asked) = slow(may, |_| Say::yes()).await;
    let patient = json!({"timeoutSeconds": 30});
    let hook = hook("slow.example.com", hooks.config("/"), patient);
    validating(admin, "slow", json!([hook])).await;
    (hooks, asked)
}

/// A large request of another user, for a kind without webhooks, is answered while the others wait. Then they are answered.
async fn others_are_served(server: &ApiServer, may: &CancellationToken, mut waiting: JoinSet<u16>) {
    let map = json!({"metadata": {"name": "m", "annotations": {"long": "x".repeat(budget::LIGHT_BYTES)}}});
    let (code, text) = answer(&user(server, "c", &[]), post(MAPS, map.to_string().into())).await;
    assert_eq!(code, 201, "{text}");
    assert!(waiting.try_join_next().is_none(), "the webhook has not answered");
    may.cancel();
    while let Some(code) = waiting.join_next().await {
        assert_eq!(code.unwrap(), 201);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_wait_for_admission_have_no_turn() {
    let (server, admin) = start().await;
    install(&admin, &widget_crd()).await;
    let may = CancellationToken::new();
    let (_hooks, mut asked) = slow_admission(&admin, &may).await;
    let widget = json!({"apiVersion": "example.com/v1", "kind": "Widget", "spec": {"size": 1}});
    let waiting = waiting(&server, &mut asked, WIDGETS, widget).await;
    others_are_served(&server, &may, waiting).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_wait_for_a_conversion_have_no_turn() {
    let (server, admin) = start().await;
    let may = CancellationToken::new();
    let (hooks, mut asked) = slow(&may, |request| {
        let convert = |object: &Value| {
            let mut object = object.clone();
            object["apiVersion"] = request["desiredAPIVersion"].clone();
            object
        };
        let objects: Vec<Value> = request["objects"].as_array().unwrap().iter().map(convert).collect();
        let response = json!({"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": objects});
        let review = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": response});
        Say::Raw(200, review.to_string())
    })
    .await;
    let mut crd = widget_crd();
    crd["spec"]["conversion"] = json!({
        "strategy": "Webhook", "webhook": {"clientConfig": hooks.config("/"), "conversionReviewVersions": ["v1"]},
    });
    install(&admin, &crd).await;
    let widget = json!({"apiVersion": "example.com/v1alpha1", "kind": "Widget", "spec": {"size": 1}});
    let path = "/apis/example.com/v1alpha1/namespaces/default/widgets";
    let waiting = waiting(&server, &mut asked, path, widget).await;
    others_are_served(&server, &may, waiting).await;
}
