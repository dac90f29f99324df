//! The ValidatingWebhookConfiguration of the server: its desired content, and the comparison with the stored one. Pure.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::rule::{Operation, Rule};
use crate::target::Target;

/// The name of the configuration.
pub const NAME: &str = "windlass-validating-webhook-configuration";
/// Its field manager.
pub const FIELD_MANAGER: &str = "windlass-webhooks";
/// How long an API server waits for a response.
const TIMEOUT_SECONDS: u32 = 10;

/// The desired configuration. Without CA certificates, those of other field managers stay.
pub(crate) fn desired(rules: &[Rule], target: &Target, authorities: Option<&str>) -> Value {
    let webhooks: Vec<Value> = rules.iter().map(|rule| webhook(rule, target, authorities)).collect();
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": NAME},
        "webhooks": webhooks,
    })
}

fn webhook(rule: &Rule, target: &Target, authorities: Option<&str>) -> Value {
    let version = rule.versions.first().map(String::as_str).unwrap_or_default();
    let mut client = target.client_config(&rule.path(version));
    if let Some(authorities) = authorities {
        client["caBundle"] = STANDARD.encode(authorities).into();
    }
    let operations: Vec<&str> = rule
        .operations
        .iter()
        .map(|operation| Operation::as_str(*operation))
        .collect();
    let mut webhook = json!({
        "name": rule.name(),
        "admissionReviewVersions": ["v1"],
        "clientConfig": client,
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "sideEffects": "None",
        "timeoutSeconds": TIMEOUT_SECONDS,
        "namespaceSelector": {},
        "objectSelector": {},
        // Subresources are not listed, so that status writes do not wait for the webhook.
        "rules": [{
            "apiGroups": [rule.group],
            "apiVersions": rule.versions,
            "operations": operations,
            "resources": [rule.resource],
            "scope": "Namespaced",
        }],
    });
    if let Some(condition) = rule.condition {
        webhook["matchConditions"] = json!([{"name": "concerned", "expression": condition}]);
    }
    webhook
}

fn webhooks(configuration: &Value) -> impl Iterator<Item = &Value> {
    configuration["webhooks"].as_array().into_iter().flatten()
}

/// A stored webhook without fields that other writers may set: unknown CA certificates.
fn comparable(stored: &Value, want: &Value) -> Value {
    let mut stored = stored.clone();
    if want["clientConfig"].get("caBundle").is_none()
        && let Some(client) = stored["clientConfig"].as_object_mut()
    {
        client.remove("caBundle");
    }
    stored
}

/// Whether a stored configuration is up to date: our webhooks as desired, and no obsolete ones of ours. Other webhooks
/// do not matter.
pub(crate) fn is_current(want: &Value, have: &Value) -> bool {
    let wanted: BTreeSet<&str> = webhooks(want).filter_map(|webhook| webhook["name"].as_str()).collect();
    webhooks(want).all(|want| {
        let stored = webhooks(have).find(|stored| stored["name"] == want["name"]);
        stored.is_some_and(|stored| comparable(stored, want) == *want)
    }) && applied(have).is_subset(&wanted)
}

/// The webhooks that we applied, from managedFields.
fn applied(have: &Value) -> BTreeSet<&str> {
    let entries = have["metadata"]["managedFields"].as_array().into_iter().flatten();
    let ours = entries.filter(|entry| entry["manager"] == FIELD_MANAGER && entry["operation"] == "Apply");
    let keys = ours
        .filter_map(|entry| entry["fieldsV1"]["f:webhooks"].as_object())
        .flatten();
    keys.filter_map(|(key, _)| key.strip_prefix("k:{\"name\":\"")?.strip_suffix("\"}"))
        .collect()
}

/// The stored configuration with our webhooks replaced. For drift that server-side apply does not repair: fields that
/// other managers added.
pub(crate) fn corrected(want: &Value, have: &Value) -> Value {
    let mut corrected = have.clone();
    let mut all: Vec<Value> = webhooks(have)
        .filter(|stored| !webhooks(want).any(|want| want["name"] == stored["name"]))
        .cloned()
        .collect();
    for want in webhooks(want) {
        let mut webhook = want.clone();
        let stored = webhooks(have).find(|stored| stored["name"] == want["name"]);
        let bundle = stored.and_then(|stored| stored["clientConfig"].get("caBundle"));
        if let (None, Some(bundle)) = (want["clientConfig"].get("caBundle"), bundle) {
            webhook["clientConfig"]["caBundle"] = bundle.clone();
        }
        all.push(webhook);
    }
    corrected["webhooks"] = all.into();
    corrected
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::rule;

    fn want() -> Value {
        desired(&[rule()], &Target::service("ns/name:9443").unwrap(), Some("PEM"))
    }

    // EX-084
    #[test]
    fn updates_of_all_versions_are_judged_and_refused_without_an_answer() {
        let webhook = &want()["webhooks"][0];
        assert_eq!(webhook["name"], "validation.testcluster.infra.example.com");
        assert_eq!(
            (&webhook["failurePolicy"], &webhook["matchPolicy"]),
            (&json!("Fail"), &json!("Equivalent"))
        );
        assert_eq!(
            (&webhook["sideEffects"], &webhook["timeoutSeconds"]),
            (&json!("None"), &json!(10))
        );
        let rules = json!([{
            "apiGroups": ["infra.example.com"], "apiVersions": ["v1", "v1beta1"], "operations": ["UPDATE"],
            "resources": ["testclusters"], "scope": "Namespaced",
        }]);
        assert_eq!(webhook["rules"], rules);
        let path = "/validate-infra-example-com-v1-testcluster";
        let service = json!({"namespace": "ns", "name": "name", "port": 9443, "path": path});
        assert_eq!(webhook["clientConfig"], json!({"service": service, "caBundle": "UEVN"}));
        let url = desired(&[rule()], &Target::url("https://h").unwrap(), None);
        let client = &url["webhooks"][0]["clientConfig"];
        assert_eq!(*client, json!({"url": format!("https://h:443{path}")}));
    }

    #[test]
    fn it_is_written_only_when_it_says_something_else() {
        let check = |change: &dyn Fn(&mut Value), expect: bool| {
            let mut have = want();
            have["metadata"]["resourceVersion"] = json!("7");
            change(&mut have);
            assert_eq!(is_current(&want(), &have), expect, "{have}");
            assert!(is_current(&want(), &corrected(&want(), &have)), "{have}");
        };
        check(&|_| {}, true);
        check(&|have| have["metadata"]["labels"] = json!({"a": "b"}), true);
        let other = |have: &mut Value| {
            let mut other = have["webhooks"][0].clone();
            other["name"] = json!("other.example.com");
            have["webhooks"].as_array_mut().unwrap().insert(0, other);
        };
        check(&other, true);
        for (field, value) in [
            ("failurePolicy", json!("Ignore")),
            ("timeoutSeconds", json!(30)),
            ("namespaceSelector", json!({"matchLabels": {"a": "b"}})),
            ("objectSelector", json!({"matchLabels": {"a": "b"}})),
            ("matchConditions", json!([{"name": "never", "expression": "false"}])),
            ("rules", json!([])),
            ("clientConfig", json!({"url": "https://elsewhere"})),
        ] {
            check(&|have| have["webhooks"][0][field] = value.clone(), false);
        }
        check(&|have| have["webhooks"] = json!([]), false);
        check(&|have| have["webhooks"] = Value::Null, false);
    }

    #[test]
    fn a_webhook_that_we_no_longer_have_is_noticed() {
        let mut have = want();
        let fields = json!({"f:webhooks": {".": {}, "k:{\"name\":\"old.example.com\"}": {".": {}}}});
        let entry = |manager: &str| json!([{"manager": manager, "operation": "Apply", "fieldsV1": fields}]);
        have["metadata"]["managedFields"] = entry("another-manager");
        assert!(is_current(&want(), &have));
        have["metadata"]["managedFields"] = entry(FIELD_MANAGER);
        assert!(!is_current(&want(), &have));
    }

    #[test]
    fn authorities_of_other_field_managers_stay() {
        let want = desired(&[rule()], &Target::url("https://h").unwrap(), None);
        let mut have = want.clone();
        have["webhooks"][0]["clientConfig"]["caBundle"] = json!("UEVN");
        assert!(is_current(&want, &have));
        have["webhooks"][0]["failurePolicy"] = json!("Ignore");
        let corrected = corrected(&want, &have);
        assert_eq!(corrected["webhooks"][0]["clientConfig"]["caBundle"], "UEVN");
    }
}
