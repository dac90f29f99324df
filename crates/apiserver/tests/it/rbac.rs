//! Users of different rights: who may do what, what is refused, and in which words.

use http::Request;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use windlass_apiserver::{ApiServer, Authorization, Options, UserInfo};
use windlass_store::{Limits, Store};

use crate::support::{client, status};

pub(crate) async fn start() -> (ApiServer, Client) {
    start_on(Store::memory(Limits::default())).await
}

async fn start_on(store: Store) -> (ApiServer, Client) {
    let mut options = Options::new(store);
    options.authorization = Authorization::Rbac;
    let server = ApiServer::start(options).await.unwrap();
    let admin = client(&server);
    (server, admin)
}

fn user(server: &ApiServer, name: &str, groups: &[&str]) -> Client {
    Client::new(server.client_service(UserInfo::new(name, groups)), "default")
}

fn parse<K: DeserializeOwned>(object: Value) -> K {
    serde_json::from_value(object).unwrap()
}

/// Makes objects of the RBAC group; plurals follow from kinds.
async fn make(client: &Client, yaml: &str) {
    let objects: Vec<Value> = serde_saphyr::from_multiple(yaml).unwrap();
    for object in objects {
        let made = try_make(client, &object).await;
        made.unwrap_or_else(|error| panic!("{object}: {error}"));
    }
}

async fn try_make(client: &Client, object: &Value) -> kube::Result<Value> {
    let plural = format!("{}s", object["kind"].as_str().unwrap().to_lowercase());
    let place = object["metadata"]["namespace"]
        .as_str()
        .map(|name| format!("/namespaces/{name}"));
    let path = format!(
        "/apis/rbac.authorization.k8s.io/v1{}/{plural}",
        place.unwrap_or_default()
    );
    let mut object = object.clone();
    object["apiVersion"] = "rbac.authorization.k8s.io/v1".into();
    let request = Request::post(path).header("content-type", "application/json");
    client
        .request(request.body(object.to_string().into_bytes()).unwrap())
        .await
}

fn config_map(name: &str) -> ConfigMap {
    parse(json!({"metadata": {"name": name}}))
}

const READER: &str = r#"
kind: Role
metadata: {name: reader, namespace: default}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get, list]}]
---
kind: RoleBinding
metadata: {name: readers, namespace: default}
roleRef: {kind: Role, name: reader}
subjects: [{kind: User, name: bob}, {kind: Group, name: dev}, {kind: ServiceAccount, name: robot}]
"#;

#[tokio::test]
async fn a_user_may_what_a_role_says_and_no_more() {
    let (server, admin) = start().await;
    let bob = user(&server, "bob", &[]);
    let maps: Api<ConfigMap> = Api::namespaced(bob.clone(), "default");
    let refused = status(maps.list(&ListParams::default()).await);
    assert_eq!(refused.code, 403);
    assert_eq!(
        refused.message,
        r#"configmaps is forbidden: User "bob" cannot list resource "configmaps" in API group "" in the namespace "default""#
    );
    // A binding to a role that is not there gives nothing, and says so.
    let [role, binding]: [Value; 2] = serde_saphyr::from_multiple(READER).unwrap().try_into().unwrap();
    try_make(&admin, &binding).await.unwrap();
    let refused = status(maps.list(&ListParams::default()).await);
    assert!(
        refused
            .message
            .ends_with(r#"in the namespace "default": RBAC: role.rbac.authorization.k8s.io "reader" not found"#),
        "{}",
        refused.message
    );
    try_make(&admin, &role).await.unwrap();
    maps.list(&ListParams::default()).await.unwrap();
    for (name, groups) in [("dan", &["dev"][..]), ("system:serviceaccount:default:robot", &[])] {
        let other: Api<ConfigMap> = Api::namespaced(user(&server, name, groups), "default");
        other.list(&ListParams::default()).await.unwrap();
    }
    assert_eq!(status(maps.get("none").await).code, 404);
    assert_eq!(
        status(maps.create(&PostParams::default(), &config_map("a")).await).code,
        403
    );
    let elsewhere: Api<ConfigMap> = Api::namespaced(bob.clone(), "kube-system");
    assert_eq!(status(elsewhere.list(&ListParams::default()).await).code, 403);
    let everywhere: Api<ConfigMap> = Api::all(bob);
    assert!(
        status(everywhere.list(&ListParams::default()).await)
            .message
            .ends_with("at the cluster scope")
    );
    // Taking the binding away counts at once.
    let bindings: Api<RoleBinding> = Api::namespaced(admin, "default");
    bindings.delete("readers", &DeleteParams::default()).await.unwrap();
    assert_eq!(status(maps.list(&ListParams::default()).await).code, 403);
}

/// What a user may do with `ConfigMaps` of one role's verbs.
#[tokio::test]
async fn every_verb_is_asked_for() {
    let (server, admin) = start().await;
    let all = [
        "get",
        "list",
        "watch",
        "create",
        "update",
        "patch",
        "delete",
        "deletecollection",
    ];
    let maps: Api<ConfigMap> = Api::namespaced(admin.clone(), "default");
    for verb in all {
        let name = format!("only-{verb}");
        let role = json!({"kind": "Role", "metadata": {"name": name, "namespace": "default"},
            "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": [verb]}]});
        try_make(&admin, &role).await.unwrap();
        let binding = json!({"kind": "RoleBinding", "metadata": {"name": name, "namespace": "default"},
            "roleRef": {"kind": "Role", "name": name}, "subjects": [{"kind": "User", "name": name}]});
        try_make(&admin, &binding).await.unwrap();
    }
    for verb in all {
        let own: Api<ConfigMap> = Api::namespaced(user(&server, &format!("only-{verb}"), &[]), "default");
        let stored = maps.create(&PostParams::default(), &config_map("x")).await.unwrap();
        let code = |result: Result<(), kube::Error>| match result {
            Ok(()) => 200,
            Err(kube::Error::Api(status)) => status.code,
            Err(error) => panic!("{error}"),
        };
        let data = json!({"data": {"a": verb}});
        let mut found = Vec::new();
        found.push(("get", code(own.get("x").await.map(drop))));
        found.push(("list", code(own.list(&ListParams::default()).await.map(drop))));
        let watch = own.watch(&kube::api::WatchParams::default(), "0").await;
        found.push(("watch", code(watch.map(drop))));
        found.push((
            "create",
            code(own.create(&PostParams::default(), &config_map("y")).await.map(drop)),
        ));
        found.push((
            "update",
            code(own.replace("x", &PostParams::default(), &stored).await.map(drop)),
        ));
        let patch = own.patch("x", &PatchParams::default(), &Patch::Merge(&data)).await;
        found.push(("patch", code(patch.map(drop))));
        found.push((
            "delete",
            code(own.delete("x", &DeleteParams::default()).await.map(drop)),
        ));
        let collection = own
            .delete_collection(&DeleteParams::default(), &ListParams::default())
            .await;
        found.push(("deletecollection", code(collection.map(drop))));
        for (asked, code) in found {
            let want = if asked == verb { 200 } else { 403 };
            assert_eq!(code, want, "{asked} with {verb}");
        }
        let rest = maps
            .delete_collection(&DeleteParams::default(), &ListParams::default())
            .await;
        rest.unwrap();
    }
}

#[tokio::test]
async fn applying_what_is_not_there_is_creating_it() {
    let (server, admin) = start().await;
    make(
        &admin,
        r#"
kind: ClusterRole
metadata: {name: patcher}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [patch]}]
---
kind: ClusterRoleBinding
metadata: {name: patcher}
roleRef: {kind: ClusterRole, name: patcher}
subjects: [{kind: User, name: pat}]
"#,
    )
    .await;
    let maps: Api<ConfigMap> = Api::namespaced(user(&server, "pat", &[]), "default");
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}});
    let apply = async || {
        maps.patch("a", &PatchParams::apply("pat"), &Patch::Apply(&object))
            .await
    };
    let refused = status(apply().await);
    assert_eq!(refused.code, 403);
    assert!(
        refused.message.contains(r#"cannot create resource "configmaps""#),
        "{}",
        refused.message
    );
    Api::<ConfigMap>::namespaced(admin, "default")
        .create(&PostParams::default(), &config_map("a"))
        .await
        .unwrap();
    assert_eq!(apply().await.unwrap().data.unwrap()["k"], "v");
}

#[tokio::test]
async fn names_subresources_and_namespaces_are_told_apart() {
    let (server, admin) = start().await;
    make(
        &admin,
        r#"
kind: Role
metadata: {name: one, namespace: default}
rules:
- {apiGroups: [""], resources: [configmaps], resourceNames: [mine], verbs: [get, list, watch, update]}
- {apiGroups: [""], resources: [pods/status], verbs: [patch]}
- {apiGroups: [""], resources: [namespaces], verbs: [get]}
---
kind: RoleBinding
metadata: {name: one, namespace: default}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: one}
subjects: [{kind: User, name: una}]
"#,
    )
    .await;
    let una = user(&server, "una", &[]);
    let maps: Api<ConfigMap> = Api::namespaced(una.clone(), "default");
    assert_eq!(status(maps.get("mine").await).code, 404);
    assert_eq!(status(maps.get("yours").await).code, 403);
    assert_eq!(status(maps.list(&ListParams::default()).await).code, 403);
    // A list of the one name that is allowed.
    maps.list(&ListParams::default().fields("metadata.name=mine"))
        .await
        .unwrap();
    assert_eq!(
        status(maps.list(&ListParams::default().fields("metadata.name!=mine")).await).code,
        403
    );
    let pods: Api<Pod> = Api::namespaced(una.clone(), "default");
    let patch = json!({"status": {"message": "x"}});
    let sent = pods
        .patch_status("p", &PatchParams::default(), &Patch::Merge(&patch))
        .await;
    assert_eq!(status(sent).code, 404);
    let sent = pods.patch("p", &PatchParams::default(), &Patch::Merge(&patch)).await;
    assert_eq!(status(sent).code, 403);
    let namespaces: Api<Namespace> = Api::all(una);
    namespaces.get("default").await.unwrap();
    assert_eq!(status(namespaces.get("kube-system").await).code, 403);
}

async fn get(client: &Client, path: &str) -> u16 {
    let request = Request::get(path).body(Vec::new()).unwrap();
    match client.request_text(request).await {
        Ok(_) => 200,
        Err(kube::Error::Api(status)) => status.code,
        Err(error) => panic!("{path}: {error}"),
    }
}

#[tokio::test]
async fn paths_are_open_to_those_who_may() {
    let (server, admin) = start().await;
    let bob = user(&server, "bob", &[]);
    let nobody = Client::new(server.client_service(UserInfo::anonymous()), "default");
    let watcher = user(&server, "prometheus", &["system:monitoring"]);
    for (path, known, strange, monitoring) in [
        ("/healthz", 200, 200, 200),
        ("/readyz", 200, 200, 200),
        ("/version", 200, 200, 200),
        ("/apis", 200, 403, 200),
        ("/apis/apps/v1", 200, 403, 200),
        ("/api/v1", 200, 403, 200),
        ("/openapi/v3", 200, 403, 200),
        ("/metrics", 403, 403, 200),
        ("/api/v1/namespaces", 403, 403, 403),
    ] {
        assert_eq!(get(&bob, path).await, known, "{path}");
        assert_eq!(get(&nobody, path).await, strange, "{path}");
        assert_eq!(get(&watcher, path).await, monitoring, "{path}");
        assert_eq!(get(&admin, path).await, 200, "{path}");
    }
    let request = Request::get("/metrics").body(Vec::new()).unwrap();
    let refused = status(bob.request_text(request).await);
    assert_eq!(refused.message, r#"forbidden: User "bob" cannot get path "/metrics""#);
    assert_eq!(refused.reason, "Forbidden");
}

#[tokio::test]
async fn nobody_gives_what_they_do_not_have() {
    let (server, admin) = start().await;
    make(
        &admin,
        r#"
kind: ClusterRole
metadata: {name: role-maker}
rules:
- {apiGroups: [rbac.authorization.k8s.io], resources: [roles, clusterroles, rolebindings, clusterrolebindings], verbs: ["*"], resourceNames: [own]}
- {apiGroups: [rbac.authorization.k8s.io], resources: [roles, clusterroles, rolebindings, clusterrolebindings], verbs: [create, get, update, patch]}
- {apiGroups: [""], resources: [pods], verbs: [get]}
---
kind: ClusterRoleBinding
metadata: {name: role-maker}
roleRef: {kind: ClusterRole, name: role-maker}
subjects: [{kind: User, name: eve}]
---
kind: Role
metadata: {name: strong, namespace: default}
rules: [{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}]
"#,
    )
    .await;
    let eve = user(&server, "eve", &["dev"]);
    let role =
        |rules: Value| json!({"kind": "Role", "metadata": {"name": "r", "namespace": "default"}, "rules": rules});
    let pods = |verbs: &[&str]| json!([{"apiGroups": [""], "resources": ["pods"], "verbs": verbs}]);
    let refused = status(try_make(&eve, &role(pods(&["get", "list", "delete"]))).await);
    assert_eq!(refused.code, 403);
    assert_eq!(
        refused.message,
        "roles.rbac.authorization.k8s.io \"r\" is forbidden: user \"eve\" (groups=[\"dev\" \"system:authenticated\"]) is attempting to grant RBAC permissions not currently held:\n{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"list\" \"delete\"]}"
    );
    try_make(&eve, &role(pods(&["get"]))).await.unwrap();
    let roles: Api<Role> = Api::namespaced(eve.clone(), "default");
    let more = json!({"rules": pods(&["*"])});
    let refused = status(roles.patch("r", &PatchParams::default(), &Patch::Merge(&more)).await);
    assert!(refused.message.contains("not currently held"), "{}", refused.message);
    // Binding is giving, too.
    let binding = |name: &str, role: &str| {
        json!({"kind": "RoleBinding", "metadata": {"name": name, "namespace": "default"},
            "roleRef": {"kind": "Role", "name": role}, "subjects": [{"kind": "User", "name": "eve"}]})
    };
    let refused = status(try_make(&eve, &binding("b", "strong")).await);
    assert!(
        refused
            .message
            .contains("{APIGroups:[\"*\"], Resources:[\"*\"], Verbs:[\"*\"]}"),
        "{}",
        refused.message
    );
    assert_eq!(status(try_make(&eve, &binding("b", "nowhere")).await).code, 404);
    try_make(&eve, &binding("b", "r")).await.unwrap();
    // Nor does gathering the rules of others help.
    let gathering =
        json!({"kind": "ClusterRole", "metadata": {"name": "g"}, "aggregationRule": {"clusterRoleSelectors": [{}]}});
    let refused = status(try_make(&eve, &gathering).await);
    assert!(
        refused.message.contains("cluster-admin privileges"),
        "{}",
        refused.message
    );
    // Becoming part of a role is no more than having the rules; but the verbs `escalate` and `bind` are.
    make(
        &admin,
        "
kind: ClusterRole
metadata: {name: trusted}
rules: [{apiGroups: [rbac.authorization.k8s.io], resources: [roles], verbs: [escalate, bind]}]
---
kind: RoleBinding
metadata: {name: trusted, namespace: default}
roleRef: {kind: ClusterRole, name: trusted}
subjects: [{kind: User, name: eve}]
",
    )
    .await;
    roles
        .patch("r", &PatchParams::default(), &Patch::Merge(&more))
        .await
        .unwrap();
    try_make(&eve, &binding("c", "strong")).await.unwrap();
    let elsewhere =
        json!({"kind": "Role", "metadata": {"name": "r", "namespace": "kube-public"}, "rules": pods(&["list"])});
    assert_eq!(status(try_make(&eve, &elsewhere).await).code, 403);
}

#[tokio::test]
async fn roles_gather_rules_when_either_side_is_written() {
    let (_server, admin) = start().await;
    let roles: Api<ClusterRole> = Api::all(admin.clone());
    let has = async |name: &str, resource: &str| {
        let role = roles.get(name).await.unwrap();
        role.rules
            .unwrap_or_default()
            .iter()
            .any(|rule| rule.resources.iter().flatten().any(|r| r == resource))
    };
    // The defaults are filled in from the start, over two steps.
    assert!(has("view", "configmaps").await && has("edit", "configmaps").await && has("admin", "configmaps").await);
    assert!(!has("view", "secrets").await && has("edit", "secrets").await && has("admin", "rolebindings").await);
    let toys = json!({"kind": "ClusterRole", "metadata": {"name": "toys-view", "labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}},
        "rules": [{"apiGroups": ["example.com"], "resources": ["toys"], "verbs": ["get"]}]});
    try_make(&admin, &toys).await.unwrap();
    for name in ["view", "edit", "admin"] {
        assert!(has(name, "toys").await, "{name}");
    }
    let other = json!({"rules": [{"apiGroups": ["example.com"], "resources": ["games"], "verbs": ["get"]}]});
    roles
        .patch("toys-view", &PatchParams::default(), &Patch::Merge(&other))
        .await
        .unwrap();
    assert!(has("admin", "games").await && !has("admin", "toys").await);
    // What is written into such a role does not last.
    roles
        .patch("view", &PatchParams::default(), &Patch::Merge(&json!({"rules": []})))
        .await
        .unwrap();
    assert!(has("view", "games").await);
    roles.delete("toys-view", &DeleteParams::default()).await.unwrap();
    assert!(!has("view", "games").await && !has("admin", "games").await);
}

#[tokio::test]
async fn defaults_are_completed_at_start_and_changes_kept() {
    let folder = tempfile::tempdir().unwrap();
    let (server, admin) = start_on(Store::open(folder.path(), Limits::default()).unwrap()).await;
    let roles: Api<ClusterRole> = Api::all(admin.clone());
    let bindings: Api<ClusterRoleBinding> = Api::all(admin);
    let masters = bindings.get("cluster-admin").await.unwrap();
    assert_eq!(masters.subjects.unwrap()[0].name, "system:masters");
    assert_eq!(
        masters.metadata.labels.unwrap()["kubernetes.io/bootstrapping"],
        "rbac-defaults"
    );
    bindings
        .delete("system:discovery", &DeleteParams::default())
        .await
        .unwrap();
    let mine = json!({"rules": [{"nonResourceURLs": ["/mine"], "verbs": ["get"]}]});
    roles
        .patch("system:monitoring", &PatchParams::default(), &Patch::Merge(&mine))
        .await
        .unwrap();
    let off =
        json!({"metadata": {"annotations": {"rbac.authorization.kubernetes.io/autoupdate": "false"}}, "rules": []});
    roles
        .patch("system:basic-user", &PatchParams::default(), &Patch::Merge(&off))
        .await
        .unwrap();
    server.shutdown();
    server.store().close().await;
    let (_server, admin) = start_on(Store::open(folder.path(), Limits::default()).unwrap()).await;
    let roles: Api<ClusterRole> = Api::all(admin.clone());
    Api::<ClusterRoleBinding>::all(admin)
        .get("system:discovery")
        .await
        .unwrap();
    let urls: Vec<String> = roles
        .get("system:monitoring")
        .await
        .unwrap()
        .rules
        .into_iter()
        .flatten()
        .flat_map(|rule| rule.non_resource_urls.unwrap_or_default())
        .collect();
    assert!(
        urls.contains(&"/mine".to_owned()) && urls.contains(&"/metrics".to_owned()),
        "{urls:?}"
    );
    assert!(
        roles
            .get("system:basic-user")
            .await
            .unwrap()
            .rules
            .unwrap_or_default()
            .is_empty()
    );
}

async fn review(client: &Client, path: &str, spec: Value) -> kube::Result<Value> {
    let (group, kind) = ("authorization.k8s.io/v1", path.rsplit('/').next().unwrap());
    let kind = match kind {
        "selfsubjectaccessreviews" => "SelfSubjectAccessReview",
        "subjectaccessreviews" => "SubjectAccessReview",
        "localsubjectaccessreviews" => "LocalSubjectAccessReview",
        _ => "SelfSubjectRulesReview",
    };
    let object = json!({"apiVersion": group, "kind": kind, "spec": spec});
    let request = Request::post(format!("/apis/{group}/{path}")).header("content-type", "application/json");
    let answer: Value = client
        .request(request.body(object.to_string().into_bytes()).unwrap())
        .await?;
    Ok(answer["status"].clone())
}

#[tokio::test]
async fn reviews_answer_with_reasons() {
    let (server, admin) = start().await;
    make(&admin, READER).await;
    let list = json!({"namespace": "default", "verb": "list", "resource": "configmaps"});
    let drop = json!({"namespace": "default", "verb": "delete", "resource": "configmaps"});
    let bob = user(&server, "bob", &[]);
    let check = async |client: &Client, path: &str, spec: Value, want: Value| {
        assert_eq!(review(client, path, spec.clone()).await.unwrap(), want, "{path} {spec}");
    };
    let yes = json!({"allowed": true, "reason": r#"RBAC: allowed by RoleBinding "readers/default" of Role "reader" to User "bob""#});
    let self_review = "selfsubjectaccessreviews";
    check(&bob, self_review, json!({"resourceAttributes": list}), yes.clone()).await;
    check(
        &bob,
        self_review,
        json!({"resourceAttributes": drop}),
        json!({"allowed": false}),
    )
    .await;
    check(
        &admin,
        self_review,
        json!({"resourceAttributes": drop}),
        json!({"allowed": true}),
    )
    .await;
    check(
        &bob,
        self_review,
        json!({"nonResourceAttributes": {"verb": "get", "path": "/metrics"}}),
        json!({"allowed": false}),
    )
    .await;
    let about_bob = json!({"user": "bob", "resourceAttributes": list});
    check(&admin, "subjectaccessreviews", about_bob.clone(), yes.clone()).await;
    check(
        &admin,
        "namespaces/default/localsubjectaccessreviews",
        about_bob.clone(),
        yes,
    )
    .await;
    let masters = json!({"groups": ["system:masters"], "resourceAttributes": drop});
    check(&admin, "subjectaccessreviews", masters, json!({"allowed": true})).await;
    // Only who may ask about others is answered; and the question must be whole.
    assert_eq!(
        status(review(&bob, "subjectaccessreviews", about_bob.clone()).await).code,
        403
    );
    let elsewhere = "namespaces/kube-system/localsubjectaccessreviews";
    assert_eq!(status(review(&admin, elsewhere, about_bob).await).code, 422);
    assert_eq!(status(review(&bob, self_review, json!({})).await).code, 422);
    let nobody = json!({"resourceAttributes": list});
    assert_eq!(status(review(&admin, "subjectaccessreviews", nobody).await).code, 422);
}

#[tokio::test]
async fn users_see_their_rules() {
    let (server, admin) = start().await;
    make(&admin, READER).await;
    let bob = user(&server, "bob", &[]);
    let path = "selfsubjectrulesreviews";
    let rules = review(&bob, path, json!({"namespace": "default"})).await.unwrap();
    let own = json!({"verbs": ["get", "list"], "apiGroups": [""], "resources": ["configmaps"]});
    assert!(rules["resourceRules"].as_array().unwrap().contains(&own), "{rules}");
    assert_eq!(rules["incomplete"], false);
    assert!(
        rules["nonResourceRules"]
            .as_array()
            .unwrap()
            .iter()
            .any(|rule| rule["nonResourceURLs"][0] == "/api")
    );
    let rules = review(&bob, path, json!({"namespace": "kube-system"})).await.unwrap();
    assert!(!rules["resourceRules"].as_array().unwrap().contains(&own), "{rules}");
    let rules = review(&admin, path, json!({"namespace": "default"})).await.unwrap();
    assert_eq!(rules["resourceRules"][0]["resources"], json!(["*"]));
    assert_eq!(status(review(&bob, path, json!({})).await).code, 400);
}

#[tokio::test]
async fn being_somebody_else_is_asked_for() {
    let (server, admin) = start().await;
    make(
        &admin,
        r#"
kind: ClusterRole
metadata: {name: actor}
rules:
- {apiGroups: [""], resources: [users], resourceNames: [bob], verbs: [impersonate]}
- {apiGroups: [""], resources: [groups], resourceNames: [dev], verbs: [impersonate]}
- {apiGroups: [authentication.k8s.io], resources: [userextras/scopes], resourceNames: [read], verbs: [impersonate]}
- {apiGroups: [authentication.k8s.io], resources: [uids], resourceNames: ["7"], verbs: [impersonate]}
---
kind: ClusterRoleBinding
metadata: {name: actor}
roleRef: {kind: ClusterRole, name: actor}
subjects: [{kind: User, name: ann}]
---
kind: RoleBinding
metadata: {name: actor, namespace: default}
roleRef: {kind: ClusterRole, name: edit}
subjects: [{kind: User, name: ann}]
"#,
    )
    .await;
    let ann = user(&server, "ann", &[]);
    let check = async |headers: &[(&str, &str)], want: Result<&str, u16>| {
        let mut request = Request::post("/apis/authentication.k8s.io/v1/selfsubjectreviews");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.header("content-type", "application/json");
        let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
        let answer: kube::Result<Value> = ann.request(request.body(body.to_string().into_bytes()).unwrap()).await;
        match (answer, want) {
            (Ok(answer), Ok(name)) => assert_eq!(answer["status"]["userInfo"]["username"], name),
            (Err(kube::Error::Api(status)), Err(code)) => assert_eq!(status.code, code, "{}", status.message),
            (answer, _) => panic!("{headers:?}: {answer:?}"),
        }
    };
    let bob = ("impersonate-user", "bob");
    check(&[bob], Ok("bob")).await;
    check(&[bob, ("impersonate-group", "dev")], Ok("bob")).await;
    check(&[bob, ("impersonate-group", "ops")], Err(403)).await;
    check(&[bob, ("impersonate-group", "system:masters")], Err(403)).await;
    check(
        &[bob, ("impersonate-extra-scopes", "read"), ("impersonate-uid", "7")],
        Ok("bob"),
    )
    .await;
    check(&[bob, ("impersonate-extra-scopes", "write")], Err(403)).await;
    check(&[bob, ("impersonate-extra-more", "read")], Err(403)).await;
    check(&[bob, ("impersonate-uid", "8")], Err(403)).await;
    check(&[("impersonate-user", "eve")], Err(403)).await;
    // Who may edit in a namespace may be its service accounts.
    let robot = "system:serviceaccount:default:robot";
    check(&[("impersonate-user", robot)], Ok(robot)).await;
    check(
        &[("impersonate-user", "system:serviceaccount:kube-system:robot")],
        Err(403),
    )
    .await;
}

#[tokio::test]
async fn bindings_are_whole_or_refused() {
    let (_server, admin) = start().await;
    let binding = json!({"kind": "RoleBinding", "metadata": {"name": "b", "namespace": "default"},
        "roleRef": {"kind": "Role", "name": "r"}, "subjects": [{"kind": "Group", "name": "g"}]});
    let stored = try_make(&admin, &binding).await.unwrap();
    assert_eq!(stored["roleRef"]["apiGroup"], "rbac.authorization.k8s.io");
    assert_eq!(stored["subjects"][0]["apiGroup"], "rbac.authorization.k8s.io");
    let bindings: Api<RoleBinding> = Api::namespaced(admin.clone(), "default");
    let other = json!({"roleRef": {"name": "s"}});
    let refused = status(
        bindings
            .patch("b", &PatchParams::default(), &Patch::Merge(&other))
            .await,
    );
    assert!(refused.message.contains("cannot change roleRef"), "{}", refused.message);
    let wrong = json!({"kind": "Role", "metadata": {"name": "r", "namespace": "default"}, "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": []}]});
    let refused = status(try_make(&admin, &wrong).await);
    assert!(
        refused.message.contains("rules[0].verbs: Required value"),
        "{}",
        refused.message
    );
}

#[tokio::test]
async fn a_server_without_roles_lets_everybody_known_and_has_none() {
    let (server, admin) = crate::support::start().await;
    let roles: Api<ClusterRole> = Api::all(admin);
    assert!(roles.list(&ListParams::default()).await.unwrap().items.is_empty());
    let bob = user(&server, "bob", &[]);
    let maps: Api<ConfigMap> = Api::namespaced(bob.clone(), "default");
    maps.create(&PostParams::default(), &config_map("a")).await.unwrap();
    let strong = json!({"kind": "ClusterRole", "metadata": {"name": "strong"},
        "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]});
    try_make(&bob, &strong).await.unwrap();
    let nobody = Client::new(server.client_service(UserInfo::anonymous()), "default");
    assert_eq!(get(&nobody, "/apis").await, 401);
}
