//! Rules match requests.

#![allow(clippy::needless_pass_by_value, reason = "cases read best with values")]

use serde_json::json;

use super::super::hook;
use super::*;

/// The only webhook of a configuration, with these fields in its first rule.
fn with_rule(rule: serde_json::Value, more: serde_json::Value) -> Arc<Hook> {
    let mut hook = json!({"name": "a.b.c", "rules": [
        {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]},
    ]});
    for (key, value) in rule.as_object().unwrap() {
        hook["rules"][0][key] = value.clone();
    }
    for (key, value) in more.as_object().unwrap() {
        hook[key] = value.clone();
    }
    hook::parse(&json!({"metadata": {"name": "x"}, "webhooks": [hook]}), &[]).remove(0)
}

/// `UPDATE apps/v1 deployments/status in a namespace` as a target.
fn check(rule: serde_json::Value, want: bool) {
    let hook = with_rule(rule.clone(), json!({}));
    let target = Target {
        group: "apps",
        version: "v1",
        resource: "deployments",
        subresource: "status",
        operation: Operation::Update,
        namespaced: true,
    };
    assert_eq!(hook.rules[0].matches(&target), want, "{rule}");
}

#[test]
fn rules_are_compared_part_by_part() {
    check(json!({}), true);
    check(json!({"operations": ["CREATE", "UPDATE"]}), true);
    check(json!({"operations": ["CREATE", "DELETE", "CONNECT"]}), false);
    check(json!({"apiGroups": ["", "apps"]}), true);
    check(json!({"apiGroups": [""]}), false);
    check(json!({"apiVersions": ["v1"]}), true);
    check(json!({"apiVersions": ["v2"]}), false);
    check(json!({"scope": "Namespaced"}), true);
    check(json!({"scope": "Cluster"}), false);
}

#[test]
fn a_subresource_must_be_named() {
    for (resources, want) in [
        (json!(["deployments/status"]), true),
        (json!(["deployments/*"]), true),
        (json!(["*/status"]), true),
        (json!(["*/*"]), true),
        (json!(["*"]), false),
        (json!(["deployments"]), false),
        (json!(["deployments/scale"]), false),
        (json!(["pods/*"]), false),
        (json!(["pods", "deployments/status"]), true),
    ] {
        check(json!({"resources": resources}), want);
    }
}

fn events(group: &str) -> Arc<Resource> {
    let all = crate::builtin::resources();
    Arc::clone(all.iter().find(|r| r.group == group && r.kind == "Event").unwrap())
}

fn seen(rule: serde_json::Value, more: serde_json::Value) -> Option<String> {
    let hook = with_rule(rule, more);
    let others = || vec![events("events.k8s.io")];
    seen_as(&hook, &events(""), others, "", Operation::Create, true).map(|r| r.api_version().to_owned())
}

#[test]
fn a_request_is_seen_as_it_came_or_as_an_equivalent() {
    let named = |group: &str| json!({"apiGroups": [group], "resources": ["events"]});
    assert_eq!(seen(json!({"resources": ["events"]}), json!({})).as_deref(), Some("v1"));
    assert_eq!(seen(named(""), json!({})).as_deref(), Some("v1"));
    assert_eq!(
        seen(named("events.k8s.io"), json!({})).as_deref(),
        Some("events.k8s.io/v1")
    );
    assert_eq!(seen(named("events.k8s.io"), json!({"matchPolicy": "Exact"})), None);
    assert_eq!(seen(named("apps"), json!({})), None);
}

#[test]
fn webhooks_are_out_of_the_reach_of_webhooks() {
    let exempt: Vec<&str> = crate::builtin::resources()
        .iter()
        .filter(|r| is_exempt(r))
        .map(|r| r.kind.as_str())
        .collect();
    assert_eq!(
        exempt,
        ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"]
    );
}
