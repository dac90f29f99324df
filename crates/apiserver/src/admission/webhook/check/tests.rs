//! Valid and invalid configurations.

#![allow(clippy::needless_pass_by_value, reason = "cases read best with values")]

use serde_json::json;

use super::*;

/// The errors of a webhook that is valid except for what `change` does to it.
fn found(change: impl FnOnce(&mut Value)) -> Vec<String> {
    let mut hook = json!({
        "name": "a.example.com", "clientConfig": {"url": "https://host/path"}, "sideEffects": "None",
        "admissionReviewVersions": ["v1"], "failurePolicy": "Fail", "matchPolicy": "Equivalent", "timeoutSeconds": 10,
        "namespaceSelector": {}, "objectSelector": {},
        "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "scope": "*"}],
    });
    change(&mut hook);
    errors(true, &json!({"webhooks": [hook]}), None)
        .iter()
        .map(|e| e.to_string().trim_start_matches("webhooks[0].").to_owned())
        .collect()
}

fn check(pointer: &str, value: Value, want: &[&str]) {
    let shown = value.clone();
    let got = found(|hook| {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        hook.pointer_mut(parent).unwrap()[key] = value;
    });
    assert_eq!(got, want, "{pointer} {shown}");
}

#[test]
fn what_is_in_order_has_no_errors() {
    assert_eq!(found(|_| {}), Vec::<String>::new());
    check(
        "/clientConfig",
        json!({"service": {"name": "a", "namespace": "b", "path": "/a/b/", "port": 1}}),
        &[],
    );
    check("/clientConfig/url", json!("https://[::1]:8443"), &[]);
    check("/rules/0/resources", json!(["*", "pods/log", "*/scale"]), &[]);
    check("/admissionReviewVersions", json!(["v2", "v1beta1"]), &[]);
    check(
        "/matchConditions",
        json!([{"name": "a/b", "expression": "object.a == request.name"}]),
        &[],
    );
}

#[test]
fn names_are_fully_qualified() {
    check("/name", json!(""), &["name: Required value"]);
    check(
        "/name",
        json!("example.com"),
        &["name: Invalid value: \"example.com\": should be a domain with at least three segments separated by dots"],
    );
    assert_eq!(found(|hook| hook["name"] = "A.b.c".into()).len(), 1);
}

#[test]
fn a_webhook_is_at_one_address() {
    let both = "clientConfig: Required value: exactly one of url or service is required";
    check("/clientConfig", json!({}), &[both]);
    check(
        "/clientConfig",
        json!({"url": "https://a", "service": {"name": "a", "namespace": "b"}}),
        &[both],
    );
    let form = "; desired format: https://host[/path]";
    check(
        "/clientConfig/url",
        json!("http://a"),
        &[&format!(
            "clientConfig.url: Invalid value: \"http\": 'https' is the only allowed URL scheme{form}"
        )],
    );
    check(
        "/clientConfig/url",
        json!("https:///a"),
        &[&format!(
            "clientConfig.url: Invalid value: \"\": host must be specified{form}"
        )],
    );
    check(
        "/clientConfig/url",
        json!("https://u:p@a/b?c=d#e"),
        &[
            "clientConfig.url: Invalid value: \"u:p\": user information is not permitted in the URL",
            "clientConfig.url: Invalid value: \"e\": fragments are not permitted in the URL",
            "clientConfig.url: Invalid value: \"c=d\": query parameters are not permitted in the URL",
        ],
    );
    check(
        "/clientConfig",
        json!({"service": {"path": "x//y", "port": 0}}),
        &[
            "clientConfig.service.name: Required value",
            "clientConfig.service.namespace: Required value",
            "clientConfig.service.port: Invalid value: 0: port is not valid: must be between 1 and 65535, inclusive",
            "clientConfig.service.path: Invalid value: \"x//y\": must start with a '/'",
            "clientConfig.service.path: Invalid value: \"x//y\": segment[0] may not be empty",
            "clientConfig.service.path: Invalid value: \"x//y\": segment[1] may not be empty",
        ],
    );
}

#[test]
fn policies_and_times_are_limited() {
    check(
        "/sideEffects",
        json!("Some"),
        &["sideEffects: Unsupported value: \"Some\": supported values: \"None\", \"NoneOnDryRun\""],
    );
    check(
        "/sideEffects",
        json!(null),
        &["sideEffects: Required value: must specify one of None, NoneOnDryRun"],
    );
    check(
        "/failurePolicy",
        json!("Maybe"),
        &["failurePolicy: Unsupported value: \"Maybe\": supported values: \"Fail\", \"Ignore\""],
    );
    check(
        "/reinvocationPolicy",
        json!("Always"),
        &["reinvocationPolicy: Unsupported value: \"Always\": supported values: \"IfNeeded\", \"Never\""],
    );
    for seconds in [0, 31] {
        check(
            "/timeoutSeconds",
            json!(seconds),
            &[&format!(
                "timeoutSeconds: Invalid value: {seconds}: the timeout value must be between 1 and 30 seconds"
            )],
        );
    }
    check(
        "/admissionReviewVersions",
        json!([]),
        &["admissionReviewVersions: Required value: must specify one of v1, v1beta1"],
    );
    check(
        "/admissionReviewVersions",
        json!(["v2", "v2"]),
        &[
            "admissionReviewVersions[1]: Invalid value: \"v2\": duplicate version",
            "admissionReviewVersions: Invalid value: [\"v2\",\"v2\"]: must include at least one of v1, v1beta1",
        ],
    );
}

#[test]
fn rules_name_something_and_wildcards_stand_alone() {
    check(
        "/rules",
        json!([{}]),
        &[
            "rules[0].operations: Required value",
            "rules[0].apiGroups: Required value",
            "rules[0].apiVersions: Required value",
            "rules[0].resources: Required value",
        ],
    );
    check(
        "/rules",
        json!([{"operations": ["*", "PATCH"], "apiGroups": ["*", ""], "apiVersions": ["*", ""], "resources": ["*/*", "pods", ""], "scope": "Here"}]),
        &[
            "rules[0].operations: Invalid value: [\"*\",\"PATCH\"]: if '*' is present, must not specify other operations",
            "rules[0].operations[1]: Unsupported value: \"PATCH\": supported values: \"*\", \"CONNECT\", \"CREATE\", \"DELETE\", \"UPDATE\"",
            "rules[0].apiGroups: Invalid value: [\"*\",\"\"]: if '*' is present, must not specify other API groups",
            "rules[0].apiVersions: Invalid value: [\"*\",\"\"]: if '*' is present, must not specify other API versions",
            "rules[0].apiVersions[1]: Required value",
            "rules[0].resources[2]: Required value",
            "rules[0].resources: Invalid value: [\"*/*\",\"pods\",\"\"]: if '*/*' is present, must not specify other resources",
            "rules[0].scope: Unsupported value: \"Here\": supported values: \"*\", \"Cluster\", \"Namespaced\"",
        ],
    );
    check(
        "/rules/0/resources",
        json!(["pods/*", "pods/status", "*/scale", "jobs/scale"]),
        &[
            "rules[0].resources[1]: Invalid value: \"pods/status\": if 'pods/*' is present, must not specify pods/status",
            "rules[0].resources[3]: Invalid value: \"jobs/scale\": if '*/scale' is present, must not specify jobs/scale",
        ],
    );
    check(
        "/rules/0/resources",
        json!(["*", "pods"]),
        &[
            "rules[0].resources: Invalid value: [\"*\",\"pods\"]: if '*' is present, must not specify other resources without subresources",
        ],
    );
}

#[test]
fn selectors_and_conditions_can_be_evaluated() {
    check(
        "/objectSelector",
        json!({"matchExpressions": [
            {"key": "a", "operator": "In"}, {"key": "a", "operator": "Exists", "values": ["x"]}, {"key": "a", "operator": "Is"},
        ]}),
        &[
            "objectSelector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
            "objectSelector.matchExpressions[1].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
            "objectSelector.matchExpressions[2].operator: Invalid value: \"Is\": not a valid selector operator",
        ],
    );
    assert_eq!(
        found(|hook| hook["namespaceSelector"] = json!({"matchLabels": {"-a": "-"}})).len(),
        2
    );
    check(
        "/matchConditions",
        json!([{"name": "a", "expression": "true"}, {"name": "a", "expression": " "}, {"expression": "1"}, {"name": "b", "expression": "x"}]),
        &[
            "matchConditions[1].expression: Required value",
            "matchConditions[1].name: Duplicate value: \"a\"",
            "matchConditions[2].expression: Invalid value: \"1\": must evaluate to bool but got int",
            "matchConditions[2].name: Required value",
            "matchConditions[3].expression: Invalid value: \"x\": compilation failed: ERROR: <input>:1:1: undeclared reference to 'x' (in container '')\n | x\n | ^",
        ],
    );
    let many: Vec<Value> = (0..65)
        .map(|i| json!({"name": format!("c{i}"), "expression": "true"}))
        .collect();
    check(
        "/matchConditions",
        many.into(),
        &["matchConditions: Too many: 65: must have at most 64 items"],
    );
}

#[test]
fn names_are_unique_and_what_stays_is_not_judged_again() {
    let hook = json!({
        "name": "a.b.c", "clientConfig": {"url": "https://a"}, "sideEffects": "None", "admissionReviewVersions": ["v1"],
    });
    let twice = json!({"webhooks": [hook, hook]});
    let found = errors(false, &twice, None);
    assert_eq!(found[0].to_string(), "webhooks[1].name: Duplicate value: \"a.b.c\"");
    assert!(errors(false, &twice, Some(&twice)).is_empty());
}
