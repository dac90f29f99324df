//! Writes of roles and bindings: escalation checks, aggregation, and completion of the defaults.

use std::time::Duration;

use http::Request;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::client::Body;
use serde_json::{Value, json};
use tower::Service as _;
use windlass_apiserver::UserInfo;
use windlass_store::{Limits, Store};

use crate::rbac::{make, start, start_on, try_make, user};
use crate::support::status;

#[tokio::test]
async fn users_cannot_grant_permissions_that_they_lack() {
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
    // A binding grants permissions, too.
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
    // Aggregation does not bypass the check.
    let gathering =
        json!({"kind": "ClusterRole", "metadata": {"name": "g"}, "aggregationRule": {"clusterRoleSelectors": [{}]}});
    let refused = status(try_make(&eve, &gathering).await);
    assert!(
        refused.message.contains("cluster-admin privileges"),
        "{}",
        refused.message
    );
    // Joining an aggregated role needs only its rules; the verbs `escalate` and `bind` allow more.
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
    // The defaults are aggregated from the start, over two steps.
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
    // Rules written into an aggregated role are replaced.
    roles
        .patch("view", &PatchParams::default(), &Patch::Merge(&json!({"rules": []})))
        .await
        .unwrap();
    assert!(has("view", "games").await);
    roles.delete("toys-view", &DeleteParams::default()).await.unwrap();
    assert!(!has("view", "games").await && !has("admin", "games").await);
}

/// What a client that goes away has taken back is taken back.
#[tokio::test]
async fn a_binding_is_gone_for_the_server_when_its_client_does_not_wait_for_the_answer() {
    let folder = tempfile::tempdir().unwrap();
    let (server, admin) = start_on(Store::open(folder.path(), Limits::default()).unwrap()).await;
    make(
        &admin,
        "{kind: RoleBinding, metadata: {name: eve, namespace: default}, roleRef: {kind: ClusterRole, name: view}, subjects: [{kind: User, name: eve}]}",
    )
    .await;
    let maps: Api<ConfigMap> = Api::default_namespaced(user(&server, "eve", &[]));
    maps.list(&ListParams::default()).await.unwrap();
    let path = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings/eve";
    let request = Request::delete(path).body(Body::empty()).unwrap();
    let mut answer = Box::pin(server.client_service(UserInfo::admin("test")).call(request));
    assert!(
        futures::poll!(&mut answer).is_pending(),
        "the store writes it to a disk"
    );
    drop(answer);
    let is_gone = async {
        while maps.list(&ListParams::default()).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), is_gone).await.unwrap();
    let bindings: Api<RoleBinding> = Api::default_namespaced(admin);
    assert!(bindings.get_opt("eve").await.unwrap().is_none());
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
