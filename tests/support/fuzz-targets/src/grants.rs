//! Rules that a tenant puts into a role, as JSON: nothing is granted that the tenant does not have.

use serde_json::{Value, json};

use crate::served::{self, request};

const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
/// What an answer may have beside what was sent.
const MOST: usize = 1 << 20;

/// Runs the target on one input; a panic is a bug in what it calls.
pub fn run(data: &[u8]) {
    let Ok(rules) = serde_json::from_slice::<Value>(data) else {
        return;
    };
    let group = "rbac.authorization.k8s.io";
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "r", "namespace": "default"}, "rules": rules,
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "r", "namespace": "default"},
        "roleRef": {"apiGroup": group, "kind": "Role", "name": "r"}, "subjects": [{"apiGroup": group, "kind": "User", "name": "tenant"}],
    });
    // A right that the role `admin` does not have.
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"namespace": "default", "verb": "impersonate", "resource": "users"}},
    });
    let bindings = ROLES.replace("/roles", "/rolebindings");
    let empty = json!({});
    let answers = served::answers(vec![
        request("POST", ROLES, &role),
        request("POST", &bindings, &binding),
        request("POST", REVIEWS, &review),
        request("DELETE", &format!("{bindings}/r"), &empty),
        request("DELETE", &format!("{ROLES}/r"), &empty),
    ]);
    let reviewed: Value = serde_json::from_slice(&answers[2].bytes).unwrap_or_default();
    assert_eq!(reviewed["status"]["allowed"], false, "{reviewed}");
    for answer in answers {
        assert!(
            answer.bytes.len() <= MOST + 4 * data.len(),
            "{} bytes for {}",
            answer.bytes.len(),
            data.len()
        );
    }
}
