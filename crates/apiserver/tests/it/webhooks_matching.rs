//! Which requests webhooks see, and in which version.

use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::{DeleteParams, EvictParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use windlass_apiserver::{ApiServer, Authorization, Options, UserInfo};
use windlass_store::{Limits, Store};

use crate::hookserver::{HookServer, Say, forget, hook, mutating, validating};
use crate::support::{install, start, status, widget, widget_crd, widgets};

const ALL: &str = "*/*";

/// A rule for everything, with the fields of `more` replaced.
fn rules(more: Value) -> Value {
    let mut rule = json!({"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": [ALL]});
    for (key, value) in more.as_object().unwrap() {
        rule[key] = value.clone();
    }
    json!([rule])
}

fn everything(hooks: &HookServer, more: Value) -> Value {
    let mut all = json!({"rules": rules(json!({}))});
    for (key, value) in more.as_object().unwrap() {
        all[key] = value.clone();
    }
    json!([hook("all.example.com", hooks.config("/"), all)])
}

async fn make_map(client: &Client, namespace: &str, name: &str, labels: Value) -> kube::Result<ConfigMap> {
    let map: ConfigMap = serde_json::from_value(json!({"metadata": {"name": name, "labels": labels}})).unwrap();
    Api::namespaced(client.clone(), namespace)
        .create(&PostParams::default(), &map)
        .await
}

async fn make_namespace(client: &Client, name: &str, labels: Value) -> kube::Result<Namespace> {
    let namespace: Namespace = serde_json::from_value(json!({"metadata": {"name": name, "labels": labels}})).unwrap();
    Api::all(client.clone())
        .create(&PostParams::default(), &namespace)
        .await
}

#[tokio::test]
async fn an_equivalent_version_is_asked_about_in_the_version_of_the_rule() {
    let (_server, client) = start().await;
    install(&client, &widget_crd()).await;
    let hooks = HookServer::start(|path, request| {
        if path == "/change" {
            assert_eq!(request["object"]["apiVersion"], "example.com/v1");
            return Say::patch(json!([{"op": "replace", "path": "/spec/size", "value": 9}]));
        }
        Say::yes()
    })
    .await;
    validating(
        &client,
        "v",
        json!([hook("v.example.com", hooks.config("/see"), json!({}))]),
    )
    .await;
    let old = widgets(&client, "v1alpha1");
    let mut object = widget("a", json!({"size": 1}));
    object.types.as_mut().unwrap().api_version = "example.com/v1alpha1".to_owned();
    old.create(&PostParams::default(), &object).await.unwrap();
    let request = hooks.only();
    let name = |version: &str| json!({"group": "example.com", "version": version, "resource": "widgets"});
    let kind = |version: &str| json!({"group": "example.com", "version": version, "kind": "Widget"});
    assert_eq!(
        (&request["resource"], &request["requestResource"]),
        (&name("v1"), &name("v1alpha1"))
    );
    assert_eq!(
        (&request["kind"], &request["requestKind"]),
        (&kind("v1"), &kind("v1alpha1"))
    );
    assert_eq!(request["object"]["apiVersion"], "example.com/v1");
    forget(&client, "v").await;

    // Its changes come back in the version of the request.
    mutating(
        &client,
        "m",
        json!([hook("m.example.com", hooks.config("/change"), json!({}))]),
    )
    .await;
    let patch = json!({"spec": {"size": 2}});
    let now = old
        .patch("a", &PatchParams::default(), &Patch::Merge(&patch))
        .await
        .unwrap();
    assert_eq!(
        (now.types.unwrap().api_version.as_str(), &now.data["spec"]["size"]),
        ("example.com/v1alpha1", &json!(9))
    );
    assert_eq!(hooks.only()["oldObject"]["apiVersion"], "example.com/v1");

    validating(
        &client,
        "x",
        json!([hook(
            "x.example.com",
            hooks.config("/see"),
            json!({"matchPolicy": "Exact"})
        )]),
    )
    .await;
    old.patch("a", &PatchParams::default(), &Patch::Merge(&patch))
        .await
        .unwrap();
    assert_eq!(hooks.paths(), ["/change?timeout=10s"]);
}

#[tokio::test]
async fn selectors_choose_by_namespace_and_by_object() {
    let (_server, client) = start().await;
    let hooks = HookServer::start(|_, _| Say::yes()).await;
    make_namespace(&client, "dev", json!({"stage": "dev"})).await.unwrap();
    make_namespace(&client, "prod", json!({"stage": "prod"})).await.unwrap();
    let names = || -> Vec<String> {
        let seen = hooks.take();
        seen.iter()
            .map(|r| {
                format!(
                    "{}/{}",
                    r["request"]["namespace"].as_str().unwrap_or(""),
                    r["request"]["name"].as_str().unwrap()
                )
            })
            .collect()
    };
    let dev = json!({"namespaceSelector": {"matchLabels": {"stage": "dev"}}});
    validating(&client, "x", everything(&hooks, dev)).await;
    make_map(&client, "dev", "a", json!({})).await.unwrap();
    make_map(&client, "prod", "a", json!({})).await.unwrap();
    assert_eq!(names(), ["dev/a"]);
    // A new namespace is in itself; namespace selectors always match cluster-scoped objects.
    make_namespace(&client, "dev2", json!({"stage": "dev"})).await.unwrap();
    make_namespace(&client, "prod2", json!({"stage": "prod"}))
        .await
        .unwrap();
    install(&client, &widget_crd()).await;
    // A definition is reviewed again when its names are accepted.
    let mut seen = names();
    seen.dedup();
    assert_eq!(seen, ["dev2/dev2", "/widgets.example.com"]);
    let nowhere = status(make_map(&client, "none", "a", json!({})).await);
    assert_eq!(
        (nowhere.code, nowhere.message.as_str()),
        (404, "namespaces \"none\" not found")
    );
    forget(&client, "x").await;

    let red = json!({"objectSelector": {"matchExpressions": [{"key": "color", "operator": "In", "values": ["red"]}]}});
    validating(&client, "x", everything(&hooks, red)).await;
    make_map(&client, "dev", "b", json!({"color": "red"})).await.unwrap();
    make_map(&client, "dev", "c", json!({"color": "blue"})).await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "dev");
    // The old object is matched, too.
    let blue = json!({"metadata": {"labels": {"color": "blue"}}});
    maps.patch("b", &PatchParams::default(), &Patch::Merge(&blue))
        .await
        .unwrap();
    maps.patch(
        "b",
        &PatchParams::default(),
        &Patch::Merge(&json!({"data": {"a": "b"}})),
    )
    .await
    .unwrap();
    maps.delete("b", &DeleteParams::default()).await.unwrap();
    assert_eq!(names(), ["dev/b", "dev/b"]);
}

#[tokio::test]
async fn conditions_leave_requests_out_and_fail_by_policy() {
    let (_server, client) = start().await;
    let hooks = HookServer::start(|_, _| Say::yes()).await;
    let conditions = |list: &[&str], policy: &str| {
        let list: Vec<Value> = list
            .iter()
            .enumerate()
            .map(|(i, e)| json!({"name": format!("c{i}"), "expression": e}))
            .collect();
        everything(&hooks, json!({"matchConditions": list, "failurePolicy": policy}))
    };
    let mut count = 0;
    let mut asked = async |list: &[&str], policy: &str| {
        validating(&client, "x", conditions(list, policy)).await;
        count += 1;
        let made = make_map(&client, "default", &format!("m{count}"), json!({"a": "b"})).await;
        forget(&client, "x").await;
        made.map(|_| hooks.take().len())
    };
    let both = [
        "object.metadata.labels.a == 'b'",
        "request.operation == 'CREATE' && request.userInfo.username == 'test'",
    ];
    assert_eq!(asked(&both, "Fail").await.unwrap(), 1);
    assert_eq!(asked(&["oldObject != null"], "Fail").await.unwrap(), 0);
    assert_eq!(
        asked(&["request.resource.resource != 'configmaps'"], "Fail")
            .await
            .unwrap(),
        0
    );
    // A false condition takes precedence over one that fails to evaluate.
    assert_eq!(asked(&["object.spec.none == 1", "false"], "Fail").await.unwrap(), 0);
    assert_eq!(asked(&["object.spec.none == 1"], "Ignore").await.unwrap(), 0);
    let refused = status(asked(&["object.spec.none == 1"], "Fail").await);
    assert_eq!((refused.code, refused.reason.as_str()), (403, "Forbidden"));
    assert_eq!(
        refused.message,
        "configmaps \"m6\" is forbidden: expression 'object.spec.none == 1' resulted in error: no such key: spec"
    );
    assert!(hooks.take().is_empty());
}

#[tokio::test]
async fn conditions_ask_who_may_do_what() {
    let mut options = Options::new(Store::memory(Limits::default()));
    options.authorization = Authorization::Rbac;
    let server = ApiServer::start(options).await.unwrap();
    let client = Client::new(server.client_service(UserInfo::admin("test")), "default");
    let hooks = HookServer::start(|_, _| Say::yes()).await;
    // A user without one permission may have the other; masters have all permissions.
    let bob = Client::new(server.client_service(UserInfo::new("bob", &[])), "default");
    let role = json!({"metadata": {"name": "maker"}, "rules": [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]},
    ]});
    let roles: Api<ClusterRole> = Api::all(client.clone());
    roles
        .create(&PostParams::default(), &serde_json::from_value(role).unwrap())
        .await
        .unwrap();
    let binding = json!({"metadata": {"name": "maker"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "maker"},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "bob"}],
    });
    let bindings: Api<ClusterRoleBinding> = Api::all(client.clone());
    bindings
        .create(&PostParams::default(), &serde_json::from_value(binding).unwrap())
        .await
        .unwrap();
    let mut count = 0;
    let mut asked = async |who: &Client, expression: &str| {
        let condition = json!({"matchConditions": [{"name": "c", "expression": expression}]});
        validating(&client, "x", everything(&hooks, condition)).await;
        count += 1;
        make_map(who, "default", &format!("m{count}"), json!({})).await.unwrap();
        forget(&client, "x").await;
        !hooks.take().is_empty()
    };
    assert!(asked(&bob, "authorizer.requestResource.check('create').allowed()").await);
    assert!(!asked(&bob, "authorizer.requestResource.check('delete').allowed()").await);
    assert!(
        !asked(
            &bob,
            "authorizer.group('').resource('secrets').namespace('default').check('get').allowed()"
        )
        .await
    );
    assert!(
        asked(
            &client,
            "authorizer.group('').resource('secrets').check('get').allowed()"
        )
        .await
    );
    assert!(
        !asked(
            &client,
            "authorizer.serviceAccount('a', 'b').group('').resource('secrets').check('get').allowed()"
        )
        .await
    );
    assert!(!asked(&bob, "authorizer.path('/metrics').check('get').allowed()").await);
}

#[tokio::test]
async fn configurations_are_checked_and_never_shown_to_webhooks() {
    let (_server, client) = start().await;
    let hooks = HookServer::start(|_, _| Say::no("nothing at all")).await;
    validating(&client, "x", everything(&hooks, json!({}))).await;
    mutating(&client, "x", everything(&hooks, json!({}))).await;
    assert_eq!(status(make_map(&client, "default", "a", json!({})).await).code, 400);
    hooks.take();
    // Reviews are not objects.
    let review =
        serde_json::from_value(json!({"spec": {"nonResourceAttributes": {"path": "/", "verb": "get"}}})).unwrap();
    let reviews: Api<k8s_openapi::api::authorization::v1::SelfSubjectAccessReview> = Api::all(client.clone());
    reviews.create(&PostParams::default(), &review).await.unwrap();
    // Otherwise a webhook could prevent its own removal.
    let api: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    let stored = api.get("x").await.unwrap();
    let shown = serde_json::to_value(&stored.webhooks.unwrap()[0]).unwrap();
    for (key, want) in [
        ("failurePolicy", json!("Fail")),
        ("matchPolicy", json!("Equivalent")),
        ("timeoutSeconds", json!(10)),
        ("namespaceSelector", json!({})),
        ("objectSelector", json!({})),
    ] {
        assert_eq!(shown[key], want);
    }
    assert_eq!(shown["rules"][0]["scope"], "*");
    let wrong: ValidatingWebhookConfiguration = serde_json::from_value(json!({
        "metadata": {"name": "wrong"}, "webhooks": [hook("short", json!({"service": {"name": "a", "namespace": "b"}}), json!({"timeoutSeconds": 31}))],
    }))
    .unwrap();
    let refused = status(api.create(&PostParams::default(), &wrong).await);
    assert_eq!((refused.code, refused.reason.as_str()), (422, "Invalid"));
    let fields: Vec<String> = refused.details.unwrap().causes.into_iter().map(|c| c.field).collect();
    assert_eq!(fields, ["webhooks[0].name", "webhooks[0].timeoutSeconds"]);
    let patch = json!({"webhooks": [{"name": "all.example.com", "sideEffects": "Some"}]});
    let refused = status(api.patch("x", &PatchParams::default(), &Patch::Strategic(&patch)).await);
    assert_eq!(refused.code, 422);
    forget(&client, "x").await;
    let other: Api<k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration> =
        Api::all(client.clone());
    let shown = serde_json::to_value(other.get("x").await.unwrap()).unwrap();
    assert_eq!(shown["webhooks"][0]["reinvocationPolicy"], "Never");
    other.delete("x", &DeleteParams::default()).await.unwrap();
    assert!(hooks.take().is_empty());
    make_map(&client, "default", "a", json!({})).await.unwrap();
}

#[tokio::test]
async fn an_eviction_is_a_creation_and_no_deletion() {
    let (_server, client) = start().await;
    let hooks = HookServer::start(|_, request| {
        if request["name"] == "b" {
            Say::no("needed")
        } else {
            Say::yes()
        }
    })
    .await;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    for name in ["a", "b"] {
        let pod = serde_json::from_value(
            json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}}),
        )
        .unwrap();
        pods.create(&PostParams::default(), &pod).await.unwrap();
    }
    // A budget that allows one pod less than there are.
    let budgets: Api<PodDisruptionBudget> = Api::default_namespaced(client.clone());
    let labelled = json!({"metadata": {"labels": {"app": "b"}}});
    pods.patch("b", &PatchParams::default(), &Patch::Merge(&labelled))
        .await
        .unwrap();
    let running = json!({"status": {"phase": "Running"}});
    pods.patch_status("b", &PatchParams::default(), &Patch::Merge(&running))
        .await
        .unwrap();
    let budget =
        json!({"metadata": {"name": "b"}, "spec": {"minAvailable": 0, "selector": {"matchLabels": {"app": "b"}}}});
    budgets
        .create(&PostParams::default(), &serde_json::from_value(budget).unwrap())
        .await
        .unwrap();
    let allowed = json!({"status": {
        "observedGeneration": 1, "currentHealthy": 1, "desiredHealthy": 0, "disruptionsAllowed": 1, "expectedPods": 1,
    }});
    budgets
        .patch_status("b", &PatchParams::default(), &Patch::Merge(&allowed))
        .await
        .unwrap();
    validating(&client, "x", everything(&hooks, json!({}))).await;
    pods.evict("a", &EvictParams::default()).await.unwrap();
    let request = hooks.only();
    assert_eq!(
        (
            &request["operation"],
            &request["resource"]["resource"],
            &request["subResource"]
        ),
        (&json!("CREATE"), &json!("pods"), &json!("eviction"))
    );
    assert_eq!(
        request["kind"],
        json!({"group": "policy", "version": "v1", "kind": "Eviction"})
    );
    assert_eq!(
        request["object"]["metadata"],
        json!({"name": "a", "namespace": "default"})
    );
    assert!(pods.get_opt("a").await.unwrap().is_none());
    assert_eq!(status(pods.evict("b", &EvictParams::default()).await).code, 400);
    assert!(pods.get_opt("b").await.unwrap().is_some());
    // What a webhook refuses spends nothing of the budget.
    assert_eq!(
        budgets.get("b").await.unwrap().status.unwrap().disruptions_allowed,
        Some(1)
    );
}

#[tokio::test]
async fn scopes_tell_namespaces_from_what_is_in_them() {
    let (_server, client) = start().await;
    let hooks = HookServer::start(|_, _| Say::yes()).await;
    let mut seen = Vec::new();
    for scope in ["Cluster", "Namespaced"] {
        let rule = json!({"rules": rules(json!({"scope": scope, "operations": ["CREATE"]}))});
        validating(&client, "x", everything(&hooks, rule)).await;
        make_namespace(&client, &scope.to_lowercase(), json!({})).await.unwrap();
        make_map(&client, "default", &scope.to_lowercase(), json!({}))
            .await
            .unwrap();
        let asked = hooks.take();
        seen.extend(
            asked
                .iter()
                .map(|r| r["request"]["resource"]["resource"].as_str().unwrap().to_owned()),
        );
        forget(&client, "x").await;
    }
    assert_eq!(seen, ["namespaces", "configmaps"]);
}

#[tokio::test]
async fn a_name_that_the_server_chooses_is_known_to_those_that_judge() {
    let (_server, client) = start().await;
    let hooks = HookServer::start(|_, _| Say::yes()).await;
    validating(&client, "x", everything(&hooks, json!({}))).await;
    mutating(&client, "x", everything(&hooks, json!({}))).await;
    let map: ConfigMap = serde_json::from_value(json!({"metadata": {"generateName": "map-"}})).unwrap();
    let made = Api::<ConfigMap>::default_namespaced(client)
        .create(&PostParams::default(), &map)
        .await
        .unwrap();
    let requests = hooks.requests();
    assert!(requests[0].get("name").is_none());
    assert_eq!(requests[1]["name"], json!(made.metadata.name));
}
