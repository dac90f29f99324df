//! Access reviews: users query permissions.

use http::Request;
use kube::Client;
use serde_json::{Value, json};

use crate::rbac::{READER, make, start, user};
use crate::support::status;

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
    // Only a user with the permission may query those of others, and the review must be complete.
    assert_eq!(
        status(review(&bob, "subjectaccessreviews", about_bob.clone()).await).code,
        403
    );
    let elsewhere = "namespaces/kube-system/localsubjectaccessreviews";
    assert_eq!(status(review(&admin, elsewhere, about_bob).await).code, 422);
    assert_eq!(status(review(&bob, self_review, json!({})).await).code, 422);
    let subjectless = json!({"resourceAttributes": list});
    assert_eq!(
        status(review(&admin, "subjectaccessreviews", subjectless).await).code,
        422
    );
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
