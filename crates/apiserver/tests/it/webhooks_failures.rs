//! Webhooks that cannot be called, or whose responses are unusable, and their effect on other requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::sync::Notify;
use windlass_apiserver::{ApiServer, Options};
use windlass_store::{Limits, Store};

use crate::hookserver::{HookServer, Say, forget, hook, mutating, validating};
use crate::support::{client, gone, install, start, status, widget, widget_crd, widgets};

async fn refused(client: &Client, name: &str) -> kube::core::Status {
    status(
        widgets(client, "v1")
            .create(&PostParams::default(), &widget(name, json!({"size": 1})))
            .await,
    )
}

/// The error text after `failed calling webhook "x.example.com": `.
async fn failure(client: &Client, hooks: Value) -> String {
    validating(client, "x", hooks).await;
    let failed = refused(client, "a").await;
    assert_eq!((failed.code, failed.reason.as_str()), (500, "InternalError"));
    let words = failed
        .message
        .strip_prefix("Internal error occurred: failed calling webhook \"x.example.com\": ");
    let words = words.unwrap_or_else(|| panic!("{}", failed.message)).to_owned();
    assert!(failed.details.unwrap().causes[0].message.ends_with(&words));
    forget(client, "x").await;
    words
}

#[tokio::test]
async fn a_webhook_that_cannot_be_asked_fails_the_request_with_the_reason() {
    let (_server, client) = start().await;
    install(&client, &widget_crd()).await;
    let hooks = HookServer::start(|path, _| match path {
        "/500" => Say::Raw(500, "out of order".to_owned()),
        "/404" => Say::Raw(404, "404 page not found".to_owned()),
        "/302" => Say::Raw(302, String::new()),
        "/text" => Say::Raw(200, "fine".to_owned()),
        "/uid" => Say::Review(json!({"uid": "another", "allowed": true})),
        "/patch" => Say::patch(json!([{"op": "remove", "path": "/spec"}])),
        _ => Say::nothing(),
    })
    .await;
    let one = |client: Value| json!([hook("x.example.com", client, json!({"timeoutSeconds": 1}))]);
    let path = |path: &str| one(hooks.config(path));
    let check = async |hooks: Value, want: &str| {
        let words = failure(&client, hooks).await;
        assert!(words.contains(want), "{words:?} should have {want:?}");
    };
    check(
        path("/500"),
        "failed to call webhook: an error on the server (\"out of order\") has prevented the request from succeeding",
    )
    .await;
    check(
        path("/404"),
        "failed to call webhook: the server could not find the requested resource",
    )
    .await;
    check(
        path("/302"),
        "failed to call webhook: the server responded with the status code 302",
    )
    .await;
    check(
        path("/text"),
        "failed to call webhook: couldn't get version/kind; json parse error: ",
    )
    .await;
    check(
        path("/uid"),
        "received invalid webhook response: expected response.uid=",
    )
    .await;
    check(
        path("/patch"),
        "received invalid webhook response: validating webhook may not return response.patch",
    )
    .await;
    let slow = format!(
        "failed to call webhook: Post \"https://{}/slow?timeout=1s\": context deadline exceeded",
        hooks.address
    );
    check(path("/slow"), &slow).await;
    // No server; a certificate of another authority; of none that the machine trusts; no authority at all.
    check(
        one(json!({"url": "https://127.0.0.1:1/x"})),
        "Post \"https://127.0.0.1:1/x?timeout=1s\": ",
    )
    .await;
    let other = HookServer::start(|_, _| Say::yes()).await;
    let mut stranger = hooks.config("/");
    stranger["caBundle"] = other.bundle.clone().into();
    check(one(stranger.clone()), "certificate").await;
    stranger["caBundle"] = json!(null);
    check(one(stranger.clone()), "certificate").await;
    stranger["caBundle"] = json!("bm8gcGVt");
    check(
        one(stranger),
        "could not get REST client: unable to load root certificates: unable to parse bytes as PEM block",
    )
    .await;
    assert!(!hooks.paths().is_empty() && other.paths().is_empty());
}

#[tokio::test]
async fn a_webhook_may_be_passed_over() {
    let (_server, client) = start().await;
    install(&client, &widget_crd()).await;
    let hooks = HookServer::start(|path, _| match path {
        "/no" => Say::no("no"),
        _ => Say::Raw(500, String::new()),
    })
    .await;
    let ignore = json!({"failurePolicy": "Ignore"});
    validating(
        &client,
        "v",
        json!([hook("v.example.com", hooks.config("/"), ignore.clone())]),
    )
    .await;
    mutating(
        &client,
        "m",
        json!([hook("m.example.com", hooks.config("/"), ignore.clone())]),
    )
    .await;
    let api = widgets(&client, "v1");
    api.create(&PostParams::default(), &widget("a", json!({"size": 1})))
        .await
        .unwrap();
    assert_eq!(hooks.take().len(), 2);
    // But its decision counts.
    validating(
        &client,
        "w",
        json!([hook("w.example.com", hooks.config("/no"), ignore)]),
    )
    .await;
    assert_eq!(
        refused(&client, "b").await.message,
        "admission webhook \"w.example.com\" denied the request: no"
    );
}

#[tokio::test]
async fn a_service_is_where_the_table_says() {
    let options = Options::new(Store::memory(Limits::default()));
    let services = options.webhook_services.clone();
    let server = ApiServer::start(options).await.unwrap();
    let client = client(&server);
    install(&client, &widget_crd()).await;
    let hooks = HookServer::start(|_, _| Say::no("seen")).await;
    let service = |path: Value| {
        let service = json!({"name": "hooks", "namespace": "system", "path": path});
        json!([hook(
            "x.example.com",
            json!({"service": service, "caBundle": hooks.bundle}),
            json!({})
        )])
    };
    assert_eq!(
        failure(&client, service(json!("/a"))).await,
        "failed to call webhook: Post \"https://hooks.system.svc:443/a?timeout=10s\": service \"hooks\" not found"
    );
    services.set("system", "hooks", hooks.address);
    for (path, want) in [(json!("/a/b"), "/a/b?timeout=10s"), (json!(null), "/?timeout=10s")] {
        validating(&client, "x", service(path)).await;
        assert_eq!(refused(&client, "a").await.code, 400);
        assert_eq!(hooks.paths(), [want]);
        hooks.take();
        forget(&client, "x").await;
    }
    services.remove("system", "hooks");
    assert!(
        failure(&client, service(json!("/a")))
            .await
            .ends_with("service \"hooks\" not found")
    );
}

#[tokio::test]
async fn connections_are_shared_and_survive_changes_of_the_configuration() {
    let (_server, client) = start().await;
    install(&client, &widget_crd()).await;
    let hooks = HookServer::start(|_, _| Say::yes()).await;
    validating(
        &client,
        "x",
        json!([hook("x.example.com", hooks.config("/"), json!({}))]),
    )
    .await;
    let api = widgets(&client, "v1");
    api.create(&PostParams::default(), &widget("a", json!({"size": 1})))
        .await
        .unwrap();
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    let patch = json!({"metadata": {"labels": {"a": "b"}}});
    configurations
        .patch("x", &PatchParams::default(), &Patch::Merge(&patch))
        .await
        .unwrap();
    let writes = (0..20).map(|i| {
        let api = api.clone();
        async move {
            api.create(&PostParams::default(), &widget(&format!("w{i}"), json!({"size": 1})))
                .await
        }
    });
    assert!(futures::future::join_all(writes).await.iter().all(Result::is_ok));
    assert_eq!(hooks.requests().len(), 21);
    assert_eq!(hooks.connections.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_server_may_speak_the_older_protocol_and_hang_up() {
    let (_server, client) = start().await;
    install(&client, &widget_crd()).await;
    let hooks = HookServer::start_with(&[], 2, |_, _| Say::yes()).await;
    validating(
        &client,
        "w",
        json!([hook("w.example.com", hooks.config("/"), json!({}))]),
    )
    .await;
    let api = widgets(&client, "v1");
    for i in 0..5 {
        let object = widget(&format!("w{i}"), json!({"size": 1}));
        api.create(&PostParams::default(), &object).await.unwrap();
    }
    assert_eq!(
        (hooks.requests().len(), hooks.connections.load(Ordering::Relaxed)),
        (5, 3)
    );
    // It gives up at once if the server's protocols do not match.
    let deaf = HookServer::start_with(&[b"http/1.1"], 0, |_, _| Say::yes()).await;
    let words = failure(&client, json!([hook("x.example.com", deaf.config("/"), json!({}))])).await;
    assert!(words.starts_with("failed to call webhook: Post "), "{words}");
    assert_eq!(deaf.connections.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn a_dry_run_is_only_for_webhooks_without_side_effects() {
    // Configurations with side effects are refused when they are written: this one is older than the rule.
    let store = Store::memory(Limits::default());
    let server = ApiServer::start(Options::new(store.clone())).await.unwrap();
    let first = client(&server);
    install(&first, &widget_crd()).await;
    let hooks = HookServer::start(|_, _| Say::yes()).await;
    validating(
        &first,
        "x",
        json!([hook(
            "x.example.com",
            hooks.config("/"),
            json!({"sideEffects": "NoneOnDryRun"})
        )]),
    )
    .await;
    let dry = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let api = widgets(&first, "v1");
    api.create(&dry, &widget("a", json!({"size": 1}))).await.unwrap();
    assert_eq!(hooks.only()["dryRun"], true);
    server.shutdown();
    let key = windlass_store::Key::new(
        &Arc::from("validatingwebhookconfigurations.admissionregistration.k8s.io"),
        "",
        "x",
    );
    let record = store.get(&key.resource, "", "x").unwrap();
    let text = String::from_utf8(record.value.to_vec())
        .unwrap()
        .replace("NoneOnDryRun", "Some");
    let at = text.find("\"resourceVersion\":\"").unwrap() + "\"resourceVersion\":\"".len();
    let end = at + text[at..].find('"').unwrap();
    let draft = windlass_store::Draft {
        header: record.header.clone(),
        value: format!("{}{}", &text[..at], &text[end..]).into_bytes(),
        rv_at: u32::try_from(at).unwrap(),
    };
    let write = windlass_store::Write {
        key,
        expect: windlass_store::Expect::Revision(record.revision),
        change: windlass_store::Change::Put(draft),
    };
    store.commit(vec![write]).await.unwrap();
    let server = ApiServer::start(Options::new(store)).await.unwrap();
    let api = widgets(&client(&server), "v1");
    let refused = status(api.create(&dry, &widget("a", json!({"size": 1}))).await);
    assert_eq!(
        (refused.code, refused.reason.as_str(), refused.message.as_str()),
        (
            400,
            "BadRequest",
            "admission webhook \"x.example.com\" does not support dry run"
        )
    );
    api.create(&PostParams::default(), &widget("a", json!({"size": 1})))
        .await
        .unwrap();
    assert_eq!(hooks.take().len(), 1, "configurations are read when a server starts");
}

#[tokio::test]
async fn a_write_that_is_tried_again_is_asked_about_again() {
    let (_server, client) = start().await;
    install(&client, &widget_crd()).await;
    let (other, first) = (client.clone(), AtomicBool::new(true));
    let hooks = HookServer::start(move |_, request| {
        // During the first call, another client writes.
        if request["object"]["metadata"]["labels"]["mine"].is_string() && first.swap(false, Ordering::Relaxed) {
            let api = widgets(&other, "v1");
            return Say::Later(Box::pin(async move {
                let patch = json!({"metadata": {"labels": {"theirs": "1"}}});
                api.patch("a", &PatchParams::default(), &Patch::Merge(&patch))
                    .await
                    .unwrap();
                Say::yes()
            }));
        }
        Say::yes()
    })
    .await;
    validating(
        &client,
        "x",
        json!([hook("x.example.com", hooks.config("/"), json!({}))]),
    )
    .await;
    let api = widgets(&client, "v1");
    api.create(&PostParams::default(), &widget("a", json!({"size": 1})))
        .await
        .unwrap();
    hooks.take();
    let patch = json!({"metadata": {"labels": {"mine": "1"}}});
    let now = api
        .patch("a", &PatchParams::default(), &Patch::Merge(&patch))
        .await
        .unwrap();
    assert_eq!(now.metadata.labels.unwrap().len(), 2);
    let seen: Vec<Value> = hooks
        .requests()
        .iter()
        .map(|r| json!([r["oldObject"]["metadata"]["labels"], r["object"]["metadata"]["labels"]]))
        .collect();
    assert_eq!(
        seen,
        [
            json!([null, {"mine": "1"}]),
            json!([null, {"theirs": "1"}]),
            json!([{"theirs": "1"}, {"theirs": "1", "mine": "1"}]),
        ]
    );
}

#[tokio::test]
async fn nothing_is_locked_while_a_webhook_thinks() {
    let (_server, client) = start().await;
    let (asked, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (tell, wait) = (Arc::clone(&asked), Arc::clone(&go));
    let hooks = HookServer::start(move |_, _| {
        let (tell, wait) = (Arc::clone(&tell), Arc::clone(&wait));
        Say::Later(Box::pin(async move {
            tell.notify_one();
            wait.notified().await;
            Say::yes()
        }))
    })
    .await;
    let slow = json!({"objectSelector": {"matchLabels": {"slow": "1"}}, "rules": [
        {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]},
    ]});
    validating(&client, "x", json!([hook("x.example.com", hooks.config("/"), slow)])).await;
    // The slow write is of a definition: those are serialized.
    let mut definition = widget_crd();
    definition["metadata"]["labels"] = json!({"slow": "1"});
    let api = client.clone();
    let waiting = tokio::spawn(async move { install(&api, &definition).await });
    asked.notified().await;
    let mut other = widget_crd();
    other["metadata"]["name"] = json!("gadgets.example.com");
    other["spec"]["names"] = json!({"plural": "gadgets", "kind": "Gadget"});
    install(&client, &other).await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let map: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "a"}})).unwrap();
    maps.create(&PostParams::default(), &map).await.unwrap();
    assert!(!waiting.is_finished());
    go.notify_one();
    waiting.await.unwrap();
}

#[tokio::test]
async fn validating_webhooks_are_asked_at_once_and_the_first_refusal_is_the_answer() {
    let (_server, client) = start().await;
    install(&client, &widget_crd()).await;
    let barrier = Arc::new(tokio::sync::Barrier::new(3));
    let hooks = HookServer::start(move |path, _| {
        let (barrier, path) = (Arc::clone(&barrier), path.to_owned());
        Say::Later(Box::pin(async move {
            barrier.wait().await;
            Say::Review(json!({"allowed": path == "/a", "status": {"message": path}, "warnings": [path, "twice"]}))
        }))
    })
    .await;
    let one = |name: &str| {
        hook(
            &format!("{name}.example.com"),
            hooks.config(&format!("/{name}")),
            json!({}),
        )
    };
    validating(&client, "x", json!([one("a"), one("b"), one("c")])).await;
    let body = serde_json::to_vec(&widget("a", json!({"size": 1}))).unwrap();
    let request = http::Request::post("/apis/example.com/v1/namespaces/default/widgets")
        .header("content-type", "application/json")
        .body(kube::client::Body::from(body))
        .unwrap();
    let response = client.send(request).await.unwrap();
    assert_eq!(response.status(), 400);
    let warnings: Vec<&str> = response
        .headers()
        .get_all("warning")
        .iter()
        .map(|v| v.to_str().unwrap())
        .collect();
    assert_eq!(
        warnings,
        ["299 - \"/a\"", "299 - \"twice\"", "299 - \"/b\"", "299 - \"/c\""]
    );
    let body = response.into_body().collect_bytes().await.unwrap();
    let refusal: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(
        refusal["message"],
        "admission webhook \"b.example.com\" denied the request: /b"
    );
}

#[tokio::test]
async fn warnings_of_webhooks_reach_the_client() {
    let (_server, client) = start().await;
    install(&client, &widget_crd()).await;
    let count = AtomicUsize::new(0);
    let hooks = HookServer::start(move |_, _| {
        let n = count.fetch_add(1, Ordering::Relaxed);
        Say::Review(json!({"allowed": true, "warnings": [format!("warning {n}")]}))
    })
    .await;
    mutating(
        &client,
        "m",
        json!([hook("m.example.com", hooks.config("/"), json!({}))]),
    )
    .await;
    validating(
        &client,
        "v",
        json!([hook("v.example.com", hooks.config("/"), json!({}))]),
    )
    .await;
    let body = serde_json::to_vec(&widget("a", json!({"size": 1}))).unwrap();
    let request = http::Request::post("/apis/example.com/v1/namespaces/default/widgets")
        .header("content-type", "application/json")
        .body(kube::client::Body::from(body))
        .unwrap();
    let response = client.send(request).await.unwrap();
    let request = http::Request::delete("/apis/example.com/v1/namespaces/default/widgets/a")
        .body(kube::client::Body::from(Vec::new()))
        .unwrap();
    let deleted = client.send(request).await.unwrap();
    let warnings: Vec<&str> = [&response, &deleted]
        .iter()
        .flat_map(|r| r.headers().get_all("warning"))
        .map(|v| v.to_str().unwrap())
        .collect();
    assert_eq!(
        warnings,
        [
            "299 - \"warning 0\"",
            "299 - \"warning 1\"",
            "299 - \"warning 2\"",
            "299 - \"warning 3\""
        ]
    );
}

#[tokio::test]
async fn clean_up_of_others_goes_on_while_a_webhook_keeps_something() {
    let (_server, client) = start().await;
    install(&client, &widget_crd()).await;
    let stays = Arc::new(AtomicBool::new(true));
    let asked = Arc::clone(&stays);
    let hooks = HookServer::start(move |path, _| match path {
        "/slow" if asked.load(Ordering::Relaxed) => Say::nothing(),
        _ if asked.load(Ordering::Relaxed) => Say::no("not now"),
        _ => Say::yes(),
    })
    .await;
    let deletions = |resources: &str, path: &str, name: &str| {
        hook(
            name,
            hooks.config(path),
            json!({"timeoutSeconds": 30, "rules": [
                {"operations": ["DELETE"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": [resources]},
            ]}),
        )
    };
    let both = json!([
        deletions("widgets", "/slow", "slow.example.com"),
        deletions("secrets", "/no", "no.example.com"),
    ]);
    validating(&client, "x", both).await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let owner: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "owner"}})).unwrap();
    let owner = maps.create(&PostParams::default(), &owner).await.unwrap();
    let metadata = |name: &str| {
        json!({"name": name, "ownerReferences": [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.metadata.uid},
        ]})
    };
    for i in 0..40 {
        let mut slow = widget("a", json!({"size": 1}));
        slow.metadata = serde_json::from_value(metadata(&format!("w{i}"))).unwrap();
        widgets(&client, "v1")
            .create(&PostParams::default(), &slow)
            .await
            .unwrap();
    }
    let secrets: Api<Secret> = Api::default_namespaced(client.clone());
    let secret = serde_json::from_value(json!({"metadata": metadata("s")})).unwrap();
    secrets.create(&PostParams::default(), &secret).await.unwrap();
    let other = serde_json::from_value(json!({"metadata": metadata("other")})).unwrap();
    maps.create(&PostParams::default(), &other).await.unwrap();

    maps.delete("owner", &DeleteParams::default()).await.unwrap();
    gone(&maps, "other").await;
    // A refused deletion is tried again.
    while hooks.paths().iter().filter(|path| path.starts_with("/no")).count() < 3 {
        tokio::task::yield_now().await;
    }
    assert!(secrets.get_opt("s").await.unwrap().is_some());
    assert_eq!(
        hooks.paths().iter().filter(|path| path.starts_with("/slow")).count(),
        40
    );
    stays.store(false, Ordering::Relaxed);
    gone(&secrets, "s").await;
}
