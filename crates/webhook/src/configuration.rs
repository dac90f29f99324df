//! The webhook configurations of the server: their desired content, and the comparison with the stored ones. Pure.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use windlass_admission::{Hook, Operation, Rule, WRITES};

use crate::target::Target;

/// The field manager of the configurations.
pub const FIELD_MANAGER: &str = "windlass-webhooks";
/// How long an API server waits for a response.
const TIMEOUT_SECONDS: u32 = 10;

/// One of the two configurations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Configuration {
    /// Of webhooks that complete objects.
    Mutating,
    /// Of webhooks that check writes.
    Validating,
}

impl Configuration {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Mutating, Self::Validating];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mutating => "windlass-mutating-webhook-configuration",
            Self::Validating => "windlass-validating-webhook-configuration",
        }
    }

    /// Its kind.
    pub const fn kind(self) -> &'static str {
        match self {
            Self::Mutating => "MutatingWebhookConfiguration",
            Self::Validating => "ValidatingWebhookConfiguration",
        }
    }

    /// Its resource.
    pub const fn resource(self) -> &'static str {
        match self {
            Self::Mutating => "mutatingwebhookconfigurations",
            Self::Validating => "validatingwebhookconfigurations",
        }
    }

    /// The path of the configurations of its kind.
    pub(crate) fn collection(self) -> String {
        format!("/apis/admissionregistration.k8s.io/v1/{}", self.resource())
    }

    /// Its path.
    pub(crate) fn path(self) -> String {
        format!("{}/{}", self.collection(), self.name())
    }

    fn has(self, hook: Hook) -> bool {
        (hook == Hook::Complete) == (self == Self::Mutating)
    }
}

/// The desired configuration. Without CA certificates, those of other field managers stay.
pub(crate) fn desired(of: Configuration, rules: &[Rule], target: &Target, authorities: Option<&str>) -> Value {
    let hooks = rules
        .iter()
        .flat_map(|rule| Hook::ALL.map(|hook| (rule, hook)))
        .filter(|(rule, hook)| of.has(*hook) && rule.has(*hook));
    let webhooks: Vec<Value> = hooks
        .map(|(rule, hook)| webhook(rule, hook, target, authorities))
        .collect();
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": of.kind(),
        "metadata": {"name": of.name()},
        "webhooks": webhooks,
    })
}

fn webhook(rule: &Rule, hook: Hook, target: &Target, authorities: Option<&str>) -> Value {
    let mut client = target.client_config(&rule.path(hook));
    if let Some(authorities) = authorities {
        client["caBundle"] = STANDARD.encode(authorities).into();
    }
    let operations = match hook {
        Hook::Complete => WRITES,
        Hook::Check => rule.admission.operations,
        Hook::Scale => &[Operation::Update],
    };
    let operations: Vec<&str> = operations.iter().map(|operation| operation.as_str()).collect();
    // Other subresources are not listed, so that status writes do not wait for the webhook.
    let resource = match hook {
        Hook::Complete | Hook::Check => rule.resource.to_owned(),
        Hook::Scale => format!("{}/scale", rule.resource),
    };
    let mut webhook = json!({
        "name": rule.name(hook),
        "admissionReviewVersions": ["v1"],
        "clientConfig": client,
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "sideEffects": "None",
        "timeoutSeconds": TIMEOUT_SECONDS,
        "namespaceSelector": {},
        "objectSelector": {},
        "rules": [{
            "apiGroups": [rule.group],
            "apiVersions": [rule.version],
            "operations": operations,
            "resources": [resource],
            "scope": "*",
        }],
    });
    if hook == Hook::Complete {
        webhook["reinvocationPolicy"] = "Never".into();
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

/// Where a webhook is: the service, or the host of the URL, and the path.
fn address(webhook: &Value) -> Option<(String, String)> {
    let client = &webhook["clientConfig"];
    if let Some(url) = client["url"].as_str() {
        let at = url.find("://").map_or(0, |at| at + 3);
        let path = url[at..].find('/').map_or(url.len(), |path| at + path);
        return Some((url[..path].to_owned(), url[path..].to_owned()));
    }
    let service = client["service"].as_object()?;
    let text = |name: &str| service.get(name).and_then(Value::as_str).unwrap_or_default();
    let port = service.get("port").and_then(Value::as_i64).unwrap_or(443);
    let server = format!("{}/{}:{port}", text("namespace"), text("name"));
    Some((server, text("path").to_owned()))
}

/// Whether a webhook that is not desired would ask our server at a path that it does not have: one of another version of this program. It
/// would refuse every write.
fn is_obsolete(webhook: &Value, want: &Value) -> bool {
    let Some((server, path)) = address(webhook) else {
        return false;
    };
    let mut is_ours = false;
    for (ours, known) in webhooks(want).filter_map(address) {
        if known == path {
            return false;
        }
        is_ours |= ours == server;
    }
    is_ours
}

/// Whether a stored configuration is up to date: our webhooks as desired, and no obsolete ones of ours. Other webhooks
/// do not matter.
pub(crate) fn is_current(want: &Value, have: &Value) -> bool {
    let wanted: BTreeSet<&str> = webhooks(want).filter_map(|webhook| webhook["name"].as_str()).collect();
    webhooks(want).all(|want| {
        let stored = webhooks(have).find(|stored| stored["name"] == want["name"]);
        stored.is_some_and(|stored| comparable(stored, want) == *want)
    }) && applied(have).is_subset(&wanted)
        && !webhooks(have).any(|stored| {
            let is_wanted = stored["name"].as_str().is_some_and(|name| wanted.contains(name));
            !is_wanted && is_obsolete(stored, want)
        })
}

/// The webhooks that we applied, from managedFields. Caches are without them.
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
        .filter(|stored| !webhooks(want).any(|want| want["name"] == stored["name"]) && !is_obsolete(stored, want))
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
    use windlass_admission::Verdict;

    use super::*;
    use crate::testing::rule;

    const VALIDATING: Configuration = Configuration::Validating;

    fn want() -> Value {
        desired(
            VALIDATING,
            &[rule()],
            &Target::service("ns/name:9443").unwrap(),
            Some("PEM"),
        )
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
            "apiGroups": ["infra.example.com"], "apiVersions": ["v1"], "operations": ["UPDATE"],
            "resources": ["testclusters"], "scope": "*",
        }]);
        assert_eq!(webhook["rules"], rules);
        let path = "/validate-infra-example-com-v1-testcluster";
        let service = json!({"namespace": "ns", "name": "name", "port": 9443, "path": path});
        assert_eq!(webhook["clientConfig"], json!({"service": service, "caBundle": "UEVN"}));
        let url = desired(VALIDATING, &[rule()], &Target::url("https://h").unwrap(), None);
        let client = &url["webhooks"][0]["clientConfig"];
        assert_eq!(*client, json!({"url": format!("https://h:443{path}")}));
    }

    #[test]
    fn what_completes_objects_has_a_configuration_of_its_own() {
        let target = Target::url("https://h").unwrap();
        assert_eq!(
            desired(Configuration::Mutating, &[rule()], &target, None)["webhooks"],
            json!([])
        );
        let mut rule = rule();
        rule.admission = rule
            .admission
            .completing(|_, _| Ok(Verdict::default()))
            .scaling(|_, _| None);
        let both = |of| desired(of, std::slice::from_ref(&rule), &target, None);
        let (mutating, validating) = (both(Configuration::Mutating), both(VALIDATING));
        assert_eq!(mutating["kind"], "MutatingWebhookConfiguration");
        let webhook = &mutating["webhooks"][0];
        assert_eq!(webhook["name"], "default.testcluster.infra.example.com");
        assert_eq!(webhook["rules"][0]["operations"], json!(["CREATE", "UPDATE"]));
        assert_eq!(webhook["reinvocationPolicy"], "Never");
        assert_eq!(
            webhook["clientConfig"]["url"],
            "https://h:443/mutate-infra-example-com-v1-testcluster"
        );
        let scale = &validating["webhooks"][1];
        assert_eq!(scale["name"], "validation-scale.testcluster.infra.example.com");
        assert_eq!(scale["rules"][0]["resources"], json!(["testclusters/scale"]));
        assert_eq!(mutating["webhooks"].as_array().unwrap().len(), 1);
        assert_eq!(validating["webhooks"].as_array().unwrap().len(), 2);
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

    /// Its field manager does not matter: caches are without managedFields.
    #[test]
    fn a_webhook_with_an_unknown_path_of_our_server_is_obsolete() {
        let check = |target: &Target, change: fn(&mut Value), expect: bool| {
            let want = desired(VALIDATING, &[rule()], target, Some("PEM"));
            let mut have = want.clone();
            let mut other = want["webhooks"][0].clone();
            other["name"] = json!("other.example.com");
            change(&mut other);
            have["webhooks"].as_array_mut().unwrap().push(other);
            assert_eq!(is_current(&want, &have), !expect, "{have}");
            let kept = corrected(&want, &have)["webhooks"].as_array().unwrap().len();
            assert_eq!(kept, if expect { 1 } else { 2 });
        };
        let service = Target::service("ns/name:9443").unwrap();
        let url = Target::url("https://h:1").unwrap();
        check(&service, |_| {}, false);
        check(
            &service,
            |other| other["clientConfig"]["service"]["path"] = json!("/gone"),
            true,
        );
        check(
            &service,
            |other| other["clientConfig"] = json!({"service": {"name": "name", "namespace": "ns", "path": "/gone"}}),
            false,
        );
        check(
            &service,
            |other| other["clientConfig"] = json!({"url": "https://ns/gone"}),
            false,
        );
        check(
            &url,
            |other| other["clientConfig"]["url"] = json!("https://h:1/gone"),
            true,
        );
        check(
            &url,
            |other| other["clientConfig"]["url"] = json!("https://h:2/gone"),
            false,
        );
    }

    #[test]
    fn authorities_of_other_field_managers_stay() {
        let want = desired(VALIDATING, &[rule()], &Target::url("https://h").unwrap(), None);
        let mut have = want.clone();
        have["webhooks"][0]["clientConfig"]["caBundle"] = json!("UEVN");
        assert!(is_current(&want, &have));
        have["webhooks"][0]["failurePolicy"] = json!("Ignore");
        let corrected = corrected(&want, &have);
        assert_eq!(corrected["webhooks"][0]["clientConfig"]["caBundle"], "UEVN");
    }
}
