//! Users with different permissions: what is allowed, what is refused, and the wording of errors.

use http::Request;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use k8s_openapi::api::rbac::v1::{ClusterRole, RoleBinding};
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

pub(crate) async fn start_on(store: Store) -> (ApiServer, Client) {
    let mut options = Options::new(store);
    options.authorization = Authorization::Rbac;
    let server = ApiServer::start(options).await.unwrap();
    let admin = client(&server);
    (server, admin)
}

pub(crate) fn user(server: &ApiServer, name: &str, groups: &[&str]) -> Client {
    Client::new(server.client_service(UserInfo::new(name, groups)), "default")
}

fn parse<K: DeserializeOwned>(object: Value) -> K {
    serde_json::from_value(object).unwrap()
}

/// Creates objects of the RBAC group; plurals are derived from kinds.
pub(crate) async fn make(client: &Client, yaml: &str) {
    let objects: Vec<Value> = serde_saphyr::from_multiple(yaml).unwrap();
    for object in objects {
        let made = try_make(client, &object).await;
        made.unwrap_or_else(|error| panic!("{object}: {error}"));
    }
}

pub(crate) async fn try_make(client: &Client, object: &Value) -> kube::Result<Value> {
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

pub(crate) const READER: &str = r#"
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
    // A binding to a missing role grants nothing, and the error names the role.
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
    // Deleting the binding has an effect at once.
    let bindings: Api<RoleBinding> = Api::namespaced(admin, "default");
    bindings.delete("readers", &DeleteParams::default()).await.unwrap();
    assert_eq!(status(maps.list(&ListParams::default()).await).code, 403);
}

/// The operations on `ConfigMaps` that a user with these verbs can do.
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
async fn names_subresources_and_namespaces_are_distinguished() {
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
    let anonymous = Client::new(server.client_service(UserInfo::anonymous()), "default");
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
        assert_eq!(get(&anonymous, path).await, strange, "{path}");
        assert_eq!(get(&watcher, path).await, monitoring, "{path}");
        assert_eq!(get(&admin, path).await, 200, "{path}");
    }
    let request = Request::get("/metrics").body(Vec::new()).unwrap();
    let refused = status(bob.request_text(request).await);
    assert_eq!(refused.message, r#"forbidden: User "bob" cannot get path "/metrics""#);
    assert_eq!(refused.reason, "Forbidden");
}

#[tokio::test]
async fn impersonation_needs_a_permission() {
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
    // A user with the role `edit` in a namespace may impersonate its service accounts.
    let robot = "system:serviceaccount:default:robot";
    check(&[("impersonate-user", robot)], Ok(robot)).await;
    check(
        &[("impersonate-user", "system:serviceaccount:kube-system:robot")],
        Err(403),
    )
    .await;
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
    let anonymous = Client::new(server.client_service(UserInfo::anonymous()), "default");
    assert_eq!(get(&anonymous, "/apis").await, 401);
}
