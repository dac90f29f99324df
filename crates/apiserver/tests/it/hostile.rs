//! Requests whose sender chooses what they cost: none costs much more than its size.

use http::{HeaderValue, Request};
use kube::Client;
use serde_json::{Value, json};

use crate::rbac::{make, start, user};
use crate::support::status;

/// Bytes that an answer may have, whatever was sent.
const MOST_ANSWERED: usize = 1024 * 1024;

pub(crate) fn post(path: &str, body: Vec<u8>) -> Request<Vec<u8>> {
    let request = Request::post(path).header("content-type", "application/json");
    request.body(body).unwrap()
}

/// What is answered, of any status: the code and the text, which has no more than [`MOST_ANSWERED`] bytes with the headers.
pub(crate) async fn answer(client: &Client, request: Request<Vec<u8>>) -> (u16, String) {
    let answer = client.send(request.map(Into::into)).await.unwrap();
    let headers: usize = answer.headers().values().map(HeaderValue::len).sum();
    let code = answer.status().as_u16();
    let body = http_body_util::BodyExt::collect(answer.into_body())
        .await
        .unwrap()
        .to_bytes();
    assert!(
        headers + body.len() < MOST_ANSWERED,
        "{headers} and {} bytes",
        body.len()
    );
    (code, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn duplicate_fields_below_a_long_name_are_listed_up_to_a_limit() {
    let (server, admin) = start().await;
    let bob = user(&server, "bob", &[]);
    let key = "k".repeat(100_000);
    let same = r#""a":1,"a":1"#.to_owned() + &r#","a":1"#.repeat(50_000);
    let different: Vec<String> = (0..50_000).map(|at| format!(r#""a{at}":1,"a{at}":1"#)).collect();
    for fields in [same, different.join(",")] {
        let map = format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"a"}},"{key}":{{{fields}}}}}"#);
        for (validation, code) in [("Strict", 400), ("Warn", 201), ("Ignore", 201)] {
            let path = format!("/api/v1/namespaces/default/configmaps?dryRun=All&fieldValidation={validation}");
            let (answered, text) = answer(&admin, post(&path, map.clone().into())).await;
            assert_eq!(answered, code, "{validation}: {text}");
            assert_eq!(text.contains("duplicate field"), code == 400, "{validation}: {text}");
        }
        // Everyone may send this one. It is refused for what it lacks, after it was read.
        let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
        let (answered, text) = answer(&bob, post(path, format!(r#"{{"{key}":{{{fields}}}}}"#).into())).await;
        assert_eq!(answered, 422, "{text}");
    }
}

#[tokio::test]
async fn references_to_many_controllers_are_refused_with_a_short_answer() {
    let (_server, admin) = start().await;
    let owner = |at: usize| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": format!("owner-{at}"), "uid": at.to_string(), "controller": true});
    let owners: Vec<Value> = (0..20_000).map(owner).collect();
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "ownerReferences": owners}});
    let path = "/api/v1/namespaces/default/configmaps?dryRun=All";
    let (code, text) = answer(&admin, post(path, map.to_string().into())).await;
    assert_eq!(code, 422);
    assert!(
        text.contains("Only one reference can have Controller set to true"),
        "{text}"
    );
}

#[tokio::test]
async fn objects_with_many_errors_list_some_of_them() {
    let (_server, admin) = start().await;
    let finalizers: Vec<String> = (0..20_000).map(|at| format!("no domain {at}")).collect();
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "finalizers": finalizers}});
    let (code, text) = answer(
        &admin,
        post("/api/v1/namespaces/default/configmaps", map.to_string().into()),
    )
    .await;
    let status: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(code, 422);
    assert!(status["message"].as_str().unwrap().contains(" more errors"), "{text}");
}

/// The rights of a role multiply: 80 groups, resources, names and verbs are 41 million.
#[tokio::test]
async fn roles_with_more_rights_than_can_be_checked_are_refused() {
    let (server, admin) = start().await;
    make(
        &admin,
        "{kind: RoleBinding, metadata: {name: tenants, namespace: default}, roleRef: {kind: ClusterRole, name: admin}, subjects: [{kind: User, name: tenant}]}",
    )
    .await;
    let tenant = user(&server, "tenant", &[]);
    let role = |size: usize| {
        let many = |prefix: &str| -> Vec<String> { (0..size).map(|at| format!("{prefix}{at}")).collect() };
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "all", "namespace": "default"},
            "rules": [{"apiGroups": many("g"), "resources": many("r"), "resourceNames": many("n"), "verbs": many("v")}],
        })
    };
    let path = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
    let (code, text) = answer(&tenant, post(path, role(80).to_string().into())).await;
    assert_eq!(code, 403);
    assert!(text.contains("40960000 combinations"), "{text}");
    // What can be checked is, and a few of the missing rights are listed.
    let (code, text) = answer(&tenant, post(path, role(10).to_string().into())).await;
    assert_eq!(code, 403);
    assert!(
        text.contains("not currently held") && text.contains("and 900 more"),
        "{text}"
    );
    // An administrator has them all.
    let (code, text) = answer(&admin, post(path, role(80).to_string().into())).await;
    assert_eq!(code, 201, "{text}");
}

/// Go reads null in a list of texts as the empty text. A rule that keeps the null would be one that no check can read.
#[tokio::test]
async fn null_in_a_list_of_texts_is_the_empty_text() {
    let (_server, admin) = start().await;
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "r", "namespace": "default"},
        "rules": [{"apiGroups": ["apps", null], "resources": ["pods"], "verbs": ["get"]}],
    });
    let path = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
    let (code, text) = answer(&admin, post(path, role.to_string().into())).await;
    assert!(
        code == 201 && text.contains(r#""apiGroups":["apps",""]"#),
        "{code} {text}"
    );
}

/// The right to a subresource is none to the object.
#[tokio::test]
async fn subresources_cannot_be_watched() {
    let (server, admin) = start().await;
    make(
        &admin,
        "{kind: ClusterRole, metadata: {name: status}, rules: [{apiGroups: ['*'], resources: ['*/status', 'pods/portforward'], verbs: [get, list, watch]}]}\n---\n\
         {kind: ClusterRoleBinding, metadata: {name: status}, roleRef: {kind: ClusterRole, name: status}, subjects: [{kind: User, name: alice}]}",
    )
    .await;
    let secret =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"key": "hidden"}});
    let (code, text) = answer(
        &admin,
        post("/api/v1/namespaces/default/secrets", secret.to_string().into()),
    )
    .await;
    assert_eq!(code, 201, "{text}");
    let alice = user(&server, "alice", &[]);
    for path in [
        "/api/v1/watch/namespaces/default/secrets/s/status",
        "/api/v1/watch/namespaces/default/pods/p/portforward",
    ] {
        for client in [&alice, &admin] {
            // A watch would end.
            let request = Request::get(format!("{path}?timeoutSeconds=1"))
                .body(Vec::new())
                .unwrap();
            assert_eq!(status(client.request_text(request).await).code, 404, "{path}");
        }
    }
}

/// A name that is not ASCII is a name, and one that cannot be read is refused: the request must not be one of the sender.
#[tokio::test]
async fn impersonated_names_are_utf8() {
    let (_server, admin) = start().await;
    let review = |header: &str, value: &[u8]| {
        let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
        let mut request = post(
            "/apis/authentication.k8s.io/v1/selfsubjectreviews",
            body.to_string().into(),
        );
        let value = HeaderValue::from_bytes(value).unwrap();
        request
            .headers_mut()
            .insert("impersonate-user", HeaderValue::from_static("bob"));
        request
            .headers_mut()
            .insert(http::HeaderName::try_from(header).unwrap(), value);
        request
    };
    let (code, text) = answer(&admin, review("impersonate-user", "müller".as_bytes())).await;
    assert!(code == 201 && text.contains("\"username\":\"müller\""), "{text}");
    for header in ["impersonate-user", "impersonate-group", "impersonate-extra-scopes"] {
        let (code, text) = answer(&admin, review(header, b"m\xfcller")).await;
        assert!(code == 400 && text.contains(header), "{code} {text}");
    }
}
