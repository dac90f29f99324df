//! Each limit of the budget, at the limit and one beyond.

use bytes::Bytes;
use http::Request;
use k8s_openapi::api::core::v1::Pod;
use kube::api::PostParams;
use kube::client::Body;
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use windlass_apiserver::{ApiServer, Authorization, Options, UserInfo};
use windlass_meta::budget;
use windlass_store::{Limits, Store};

use crate::edge::Edge;
use crate::hostile::{answer, post};
use crate::hostile_work::{ANY, anything, patch};
use crate::rbac::{make, start, user};
use crate::stuck::connect;
use crate::support::client;

const MAPS: &str = "/api/v1/namespaces/default/configmaps?dryRun=All";

fn map(metadata: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
}

async fn send(client: &Client, path: &str, object: &Value) -> (u16, String) {
    answer(client, post(path, object.to_string().into())).await
}

#[tokio::test]
async fn bytes_of_a_body() {
    let (_server, admin) = start().await;
    let mut body = map(json!({"name": "a"})).to_string().into_bytes();
    body.resize(budget::BODY_BYTES, b' ');
    assert_eq!(answer(&admin, post(MAPS, body.clone())).await.0, 201);
    body.push(b' ');
    assert_eq!(answer(&admin, post(MAPS, body)).await.0, 413);
}

#[tokio::test]
async fn duplicate_fields_and_the_bytes_of_their_paths() {
    let (_server, admin) = start().await;
    let strict = format!("{MAPS}&fieldValidation=Strict");
    for count in [budget::STRICT_ERRORS, budget::STRICT_ERRORS + 1] {
        let fields: Vec<String> = (0..count).map(|at| format!(r#""a{at}":1,"a{at}":1"#)).collect();
        let fields = fields.join(",");
        let body = format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"a"}},"x":{{{fields}}}}}"#);
        let (code, text) = answer(&admin, post(&strict, body.into())).await;
        let listed = text.matches("duplicate field").count();
        assert_eq!((code, listed), (400, budget::STRICT_ERRORS), "{count}");
    }
    for (length, is_cut) in [(budget::PATH_BYTES, false), (budget::PATH_BYTES + 1, true)] {
        let mut object = map(json!({"name": "a"}));
        object["k".repeat(length)] = 1.into();
        let (code, text) = send(&admin, &strict, &object).await;
        assert_eq!((code, text.contains("k...")), (400, is_cut), "{length}");
    }
}

/// The same field may be wrong often. What comes after too many of them is not looked at.
#[tokio::test]
async fn duplicate_fields_that_are_looked_at() {
    let (_server, admin) = start().await;
    for (count, is_seen) in [
        (budget::STRICT_ERRORS_FOUND - 1, true),
        (budget::STRICT_ERRORS_FOUND, false),
    ] {
        let same = r#""a":1,"#.repeat(count + 1);
        let body = format!(
            r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"a"}},"x":{{{same}"last":1,"last":1}}}}"#
        );
        let (code, text) = answer(&admin, post(&format!("{MAPS}&fieldValidation=Strict"), body.into())).await;
        assert_eq!((code, text.contains("x.last")), (400, is_seen), "{count}: {text}");
    }
}

#[tokio::test]
async fn bytes_of_paths_and_names_in_errors() {
    let (_server, admin) = anything().await;
    for (length, is_cut) in [(budget::PATH_BYTES, false), (budget::PATH_BYTES + 1, true)] {
        let shown = |text: &str, of: &str| (text.contains(&of.repeat(length)), text.contains(&format!("{of}...")));
        let want = (!is_cut, is_cut);
        // A name.
        let (code, text) = send(&admin, MAPS, &map(json!({"name": "n".repeat(length)}))).await;
        let status: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            (code, shown(status["details"]["name"].as_str().unwrap(), "n")),
            (422, want)
        );
        // The path of a conflict, with its point.
        let key = "k".repeat(length - 1);
        let apply = |manager: &str, value: Value| {
            let widget = json!({"apiVersion": "example.com/v1alpha1", "kind": "Widget", "metadata": {"name": format!("w{length}")}, &key: value});
            let path = format!("{ANY}/w{length}?fieldManager={manager}");
            patch(&path, "apply-patch+yaml", &widget)
        };
        assert_eq!(answer(&admin, apply("a", 1.into())).await.0, 201);
        let (code, text) = answer(&admin, apply("b", 2.into())).await;
        let status: Value = serde_json::from_str(&text).unwrap();
        let field = status["details"]["causes"][0]["field"].as_str().unwrap();
        assert_eq!(
            (code, field.contains(&key), field.ends_with("k...")),
            (409, !is_cut, is_cut),
            "{field}"
        );
        // The path of a part that does not match the schema.
        let wrong = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {&key: 1}});
        let path = "/api/v1/namespaces/default/configmaps/a?fieldManager=a";
        let (code, text) = answer(&admin, patch(path, "apply-patch+yaml", &wrong)).await;
        assert_eq!(
            (code, text.contains(&key), text.contains("k...")),
            (500, !is_cut, is_cut),
            "{text}"
        );
    }
}

#[tokio::test]
async fn errors_of_fields() {
    let (_server, admin) = start().await;
    for (count, rest) in [
        (budget::FIELD_ERRORS, None),
        (budget::FIELD_ERRORS + 1, Some("and 1 more errors")),
    ] {
        let owner = |at: usize| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": at.to_string()});
        let owners: Vec<Value> = (0..count).map(owner).collect();
        let (code, text) = send(&admin, MAPS, &map(json!({"name": "a", "ownerReferences": owners}))).await;
        let status: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(code, 422);
        assert_eq!(
            status["details"]["causes"].as_array().unwrap().len(),
            budget::FIELD_ERRORS
        );
        let message = status["message"].as_str().unwrap();
        assert_eq!(message.contains(" more errors"), rest.is_some(), "{message}");
        assert!(rest.is_none_or(|rest| message.contains(rest)), "{message}");
    }
}

#[tokio::test]
async fn bytes_of_a_message() {
    let (_server, admin) = start().await;
    for (length, is_cut) in [(budget::MESSAGE_BYTES / 8, false), (budget::MESSAGE_BYTES, true)] {
        let (code, text) = send(&admin, MAPS, &map(json!({"name": "n".repeat(length)}))).await;
        let status: Value = serde_json::from_str(&text).unwrap();
        let message = status["message"].as_str().unwrap();
        assert_eq!((code, message.ends_with("...")), (422, is_cut), "{length}");
        assert!(message.len() <= budget::MESSAGE_BYTES + 3);
    }
}

#[tokio::test]
async fn owner_references_in_errors() {
    let (_server, admin) = start().await;
    let owner = |at: usize| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": format!("owner-{at}"), "uid": at.to_string(), "controller": true});
    let of = async |count: usize| {
        let owners: Vec<Value> = (0..count).map(owner).collect();
        let (code, text) = send(&admin, MAPS, &map(json!({"name": "a", "ownerReferences": owners}))).await;
        assert_eq!(code, 422);
        let status: Value = serde_json::from_str(&text).unwrap();
        (status["details"]["causes"].as_array().unwrap().len(), text)
    };
    let most = budget::CONTROLLER_ERRORS + 1;
    assert_eq!(of(most).await.0, budget::CONTROLLER_ERRORS);
    assert_eq!(of(most + 1).await.0, budget::CONTROLLER_ERRORS);
    let listed = budget::OWNERS_LISTED;
    assert!(!of(listed).await.1.contains(",...]"));
    let (_, more) = of(listed + 1).await;
    assert!(
        more.contains(",...]") && !more.contains(&format!("owner-{listed}")),
        "{more}"
    );
}

#[tokio::test]
async fn combinations_of_a_grant_and_missing_rights() {
    let (server, admin) = start().await;
    make(
        &admin,
        "{kind: RoleBinding, metadata: {name: tenants, namespace: default}, roleRef: {kind: ClusterRole, name: admin}, subjects: [{kind: User, name: tenant}]}",
    )
    .await;
    let tenant = user(&server, "tenant", &[]);
    let path = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
    let of = async |resources: usize| {
        let many: Vec<String> = (0..resources).map(|at| format!("r{at}")).collect();
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "all", "namespace": "default"},
            "rules": [{"apiGroups": ["g"], "resources": many, "verbs": ["v"]}],
        });
        let (code, text) = send(&tenant, path, &role).await;
        assert_eq!(code, 403);
        text
    };
    assert!(!of(budget::MISSING_RIGHTS).await.contains(" more"));
    assert!(of(budget::MISSING_RIGHTS + 1).await.contains("and 1 more"));
    assert!(of(budget::GRANTED_COMBINATIONS).await.contains("not currently held"));
    assert!(of(budget::GRANTED_COMBINATIONS + 1).await.contains("combinations"));
    // The rules that the tenant has are compared with each combination.
    let verbs: Vec<String> = (0..budget::GRANTED_COMPARISONS / budget::GRANTED_COMBINATIONS)
        .map(|at| format!("v{at}"))
        .collect();
    let verbs = verbs.join(", ");
    make(
        &admin,
        &format!("{{kind: Role, metadata: {{name: large, namespace: default}}, rules: [{{apiGroups: [h], resources: [h], verbs: [{verbs}]}}]}}"),
    )
    .await;
    make(
        &admin,
        "{kind: RoleBinding, metadata: {name: large, namespace: default}, roleRef: {kind: Role, name: large}, subjects: [{kind: User, name: tenant}]}",
    )
    .await;
    assert!(
        of(budget::GRANTED_COMBINATIONS / 10)
            .await
            .contains("not currently held")
    );
    assert!(of(budget::GRANTED_COMBINATIONS).await.contains("too many rules"));
}

#[tokio::test]
async fn operations_of_a_patch_and_what_they_move_and_copy() {
    let (_server, admin) = anything().await;
    let side = budget::PATCH_MOVED_ITEMS.isqrt();
    let widget = json!({
        "apiVersion": "example.com/v1alpha1", "kind": "Widget", "metadata": {"name": "w"},
        "list": vec![1; side], "text": "t".repeat(budget::PATCH_COPIED_BYTES / 32 - 2),
    });
    assert_eq!(
        answer(&admin, post(&format!("{ANY}?dryRun=All"), widget.to_string().into()))
            .await
            .0,
        201
    );
    let created = admin
        .send(post(ANY, widget.to_string().into()).map(Into::into))
        .await
        .unwrap();
    assert_eq!(created.status(), 201);
    let path = format!("{ANY}/w?dryRun=All");
    let of = async |operations: Vec<Value>| {
        let request = patch(&path, "json-patch+json", &operations.into());
        let answered = admin.send(request.map(Into::into)).await.unwrap();
        answered.status().as_u16()
    };
    let test = |count: usize| vec![json!({"op": "test", "path": "/kind", "value": "Widget"}); count];
    assert_eq!(of(test(budget::PATCH_OPERATIONS)).await, 200);
    assert_eq!(of(test(budget::PATCH_OPERATIONS + 1)).await, 413);
    // Each removal moves all items of the list, and the addition its value.
    let rotate = |count: usize| {
        let pair = [
            json!({"op": "remove", "path": "/list/0"}),
            json!({"op": "add", "path": "/list/-", "value": 1}),
        ];
        pair.into_iter().cycle().take(2 * count).collect::<Vec<Value>>()
    };
    let most = budget::PATCH_MOVED_ITEMS / (side + 1);
    assert_eq!(of(rotate(most)).await, 200);
    assert_eq!(of(rotate(most + 1)).await, 413);
    let copy = |count: usize| {
        // Each copy takes the place of the one before.
        vec![json!({"op": "copy", "from": "/text", "path": "/copy"}); count]
    };
    assert_eq!(of(copy(32)).await, 200);
    assert_eq!(of(copy(33)).await, 422);
}

#[tokio::test]
async fn problems_and_conflicts_of_an_applied_configuration() {
    let (_server, admin) = start().await;
    let data = |count: usize, value: &str| -> Value {
        let entries = (0..count).map(|at| (format!("k{at}"), Value::from(value)));
        Value::Object(entries.collect())
    };
    let apply = async |manager: &str, name: &str, content: (&str, Value)| {
        let mut object = map(json!({"name": name}));
        object[content.0] = content.1;
        let path = format!("/api/v1/namespaces/default/configmaps/{name}?fieldManager={manager}");
        answer(&admin, patch(&path, "apply-patch+yaml", &object)).await
    };
    for count in [budget::APPLY_PROBLEMS, budget::APPLY_PROBLEMS + 1] {
        let numbers = (0..count).map(|at| (format!("k{at}"), Value::from(1)));
        let (code, text) = apply("a", "wrong", ("data", Value::Object(numbers.collect()))).await;
        let problems = text.matches("expected string").count();
        assert_eq!((code, problems), (500, budget::APPLY_PROBLEMS), "{count}");
    }
    for (count, is_cut) in [(budget::CONFLICTS, false), (budget::CONFLICTS + 1, true)] {
        let name = format!("m{count}");
        assert_eq!(apply("a", &name, ("data", data(count, "1"))).await.0, 201);
        let (code, text) = apply("b", &name, ("data", data(count, "2"))).await;
        let status: Value = serde_json::from_str(&text).unwrap();
        let causes = status["details"]["causes"].as_array().unwrap().len();
        assert_eq!((code, causes), (409, budget::CONFLICTS));
        assert!(text.contains(&format!("{count} conflicts")), "{text}");
        assert_eq!(text.contains("and 1 more"), is_cut, "{text}");
    }
}

#[tokio::test]
async fn bytes_of_conflicts() {
    let (_server, admin) = start().await;
    // Each conflict takes a manager, which is quoted, and a path.
    let each = 256;
    let count = budget::CONFLICT_BYTES / each;
    let key = |at: usize, length: usize| format!("{at:k<width$}", width = length - r#""a".data."#.len());
    for (longer, is_cut) in [(0, false), (1, true)] {
        let apply = async |manager: &str, value: &str| {
            let entries =
                (0..count).map(|at| (key(at, if at == 0 { each + longer } else { each }), Value::from(value)));
            let mut object = map(json!({"name": format!("m{longer}")}));
            object["data"] = Value::Object(entries.collect());
            let path = format!("/api/v1/namespaces/default/configmaps/m{longer}?fieldManager={manager}");
            answer(&admin, patch(&path, "apply-patch+yaml", &object)).await
        };
        assert_eq!(apply("a", "1").await.0, 201);
        let (code, text) = apply("b", "2").await;
        let status: Value = serde_json::from_str(&text).unwrap();
        let causes = status["details"]["causes"].as_array().unwrap().len();
        assert_eq!((code, causes), (409, count - longer));
        assert_eq!(text.contains("and 1 more"), is_cut, "{text}");
    }
}

#[tokio::test]
async fn watches_of_a_user() {
    let (server, admin) = start().await;
    make(
        &admin,
        "{kind: ClusterRoleBinding, metadata: {name: viewers}, roleRef: {kind: ClusterRole, name: view}, subjects: [{kind: User, name: a}, {kind: User, name: b}]}",
    )
    .await;
    let watch = async |client: &Client| {
        let request = Request::get("/api/v1/configmaps?watch=true&resourceVersion=0");
        client.send(request.body(Body::empty()).unwrap()).await.unwrap()
    };
    let (a, b) = (user(&server, "a", &[]), user(&server, "b", &[]));
    let mut open = Vec::new();
    for _ in 0..budget::WATCHES_OF_A_USER {
        let watch = watch(&a).await;
        assert_eq!(watch.status(), 200);
        open.push(watch);
    }
    let refused = watch(&a).await;
    assert_eq!(
        (refused.status().as_u16(), &refused.headers()["retry-after"]),
        (429, &"1".parse().unwrap())
    );
    assert_eq!(
        (watch(&b).await.status(), watch(&admin).await.status()),
        (200.try_into().unwrap(), 200.try_into().unwrap())
    );
    open.pop();
    assert_eq!(watch(&a).await.status(), 200);
}

#[tokio::test]
async fn bytes_of_the_selectors_of_a_watch() {
    let (_server, admin) = start().await;
    let fields = "metadata.name!=a";
    for (size, want) in [
        (budget::WATCH_SELECTOR_BYTES, 200),
        (budget::WATCH_SELECTOR_BYTES + 1, 413),
    ] {
        let labels = size - fields.len();
        let many = (labels - 2) / 8;
        let labels = format!("{}!{}", "!k00000,".repeat(many), "k".repeat(labels - 8 * many - 1));
        let of = async |verb: &str| {
            let query = format!("{verb}=1&timeoutSeconds=1&labelSelector={labels}&fieldSelector=metadata.name%21%3Da");
            let request = Request::get(format!("/api/v1/namespaces/default/configmaps?{query}"));
            answer(&admin, request.body(Vec::new()).unwrap()).await.0
        };
        assert_eq!((of("watch").await, of("list").await), (want, 200), "{size}");
    }
}

/// Bodies that arrive slowly count, as they are kept in memory.
#[tokio::test]
async fn large_requests_of_a_user() {
    let (server, admin) = start().await;
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let large = || vec![b' '; budget::LIGHT_BYTES + 1];
    let unending = || {
        let start = futures::stream::iter([Ok::<_, std::io::Error>(http_body::Frame::data(Bytes::from(large())))]);
        let stream = futures::StreamExt::chain(start, futures::stream::pending());
        let body = http_body_util::StreamBody::new(stream);
        let request = Request::post(path).header("content-type", "application/json");
        let mut service = server.client_service(UserInfo::new("a", &[]));
        tokio::spawn(tower::Service::call(&mut service, request.body(body).unwrap()))
    };
    let (a, b) = (user(&server, "a", &[]), user(&server, "b", &[]));
    let open: Vec<_> = (0..budget::HEAVY_REQUESTS_OF_A_USER).map(|_| unending()).collect();
    loop {
        // The others arrive at the same time.
        let (code, text) = answer(&a, post(path, large())).await;
        if code == 429 {
            assert!(text.contains("Too many requests, please try again later."), "{text}");
            break;
        }
        assert_eq!(code, 400, "{text}");
        tokio::task::yield_now().await;
    }
    // Small ones, and those of others, are handled.
    for (client, size) in [
        (&a, budget::LIGHT_BYTES),
        (&b, budget::LIGHT_BYTES + 1),
        (&admin, budget::LIGHT_BYTES + 1),
    ] {
        assert_eq!(answer(client, post(path, vec![b' '; size])).await.0, 400);
    }
    for one in open {
        one.abort();
        let _ = one.await;
    }
    assert_eq!(answer(&a, post(path, large())).await.0, 400);
}

#[tokio::test]
async fn connections_of_a_user_and_without_one() {
    let edge = Edge::with(Authorization::AllowAuthenticated).await;
    let pods: Api<Pod> = Api::namespaced(client(&edge.server), "default");
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let pod = serde_json::from_value(pod).unwrap();
    pods.create(&PostParams::default(), &pod).await.unwrap();
    let send = async |request: &str| {
        let stream = tokio::net::TcpStream::connect(edge.url.trim_start_matches("https://"))
            .await
            .unwrap();
        let mut stream = connect(&edge, stream, rustls::ALL_VERSIONS).await;
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await.unwrap();
        (String::from_utf8(answer.to_vec()).unwrap(), stream)
    };
    let ask = async |token: &str| send(&format!("GET /version HTTP/1.1\r\nHost: a\r\n{token}\r\n")).await;
    let token = "Authorization: Bearer sesame\r\n";
    // A connection that forwards ports counts until its end.
    let path = "/api/v1/namespaces/default/pods/p/portforward";
    let spdy = "Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: portforward.k8s.io\r\n";
    let forwards = format!("POST {path} HTTP/1.1\r\nHost: a\r\n{token}{spdy}\r\n");
    let (answer, tunnel) = send(&forwards).await;
    assert_eq!(answer, "HTTP/1.1 101");
    let mut open = vec![tunnel];
    for _ in 1..budget::CONNECTIONS_OF_A_USER {
        let (answer, stream) = ask(token).await;
        assert_eq!(answer, "HTTP/1.1 200");
        open.push(stream);
    }
    let (answer, mut refused) = ask(token).await;
    assert_eq!(answer, "HTTP/1.1 429");
    let mut rest = Vec::new();
    let _ = refused.read_to_end(&mut rest).await;
    assert!(
        String::from_utf8_lossy(&rest).contains("Too many connections"),
        "and it is closed"
    );
    assert_eq!(ask("").await.0, "HTTP/1.1 200", "others are served");
    // Connections that have sent nothing make room for others.
    let address = edge.url.trim_start_matches("https://").to_owned();
    let mut silent = tokio::net::TcpStream::connect(&address).await.unwrap();
    let mut others = Vec::new();
    for _ in 0..=budget::UNKNOWN_CONNECTIONS {
        others.push(tokio::net::TcpStream::connect(&address).await.unwrap());
    }
    let mut byte = [0];
    assert!(
        matches!(silent.read(&mut byte).await, Ok(0) | Err(_)),
        "the oldest is closed"
    );
    // So do those that have asked without credentials: each of too many is answered.
    drop(others);
    let mut answered = Vec::new();
    for _ in 0..=budget::UNKNOWN_CONNECTIONS {
        let (answer, stream) = ask("").await;
        assert_eq!(answer, "HTTP/1.1 200");
        answered.push(stream);
    }
}

/// The administrators of a simulated cluster are not those of the process.
#[tokio::test]
async fn members_of_masters_are_counted_where_a_server_says_so() {
    let many = async |limits_masters: bool| {
        let mut options = Options::new(Store::memory(Limits::default()));
        options.limits_masters = limits_masters;
        let server = ApiServer::start(options).await.unwrap();
        let admin = client(&server);
        let mut open = Vec::new();
        for _ in 0..=budget::WATCHES_OF_A_USER {
            let request = Request::get("/api/v1/configmaps?watch=true&resourceVersion=0");
            open.push(admin.send(request.body(Body::empty()).unwrap()).await.unwrap());
        }
        open.pop().unwrap().status().as_u16()
    };
    assert_eq!((many(false).await, many(true).await), (200, 429));
}
