//! ExtensionConfigs: decisions and status.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use serde_json::{Value, json};
use windlass_api::codec::Codec as _;
use windlass_api::runtime::{ExtensionConfig, ExtensionHandler};
use windlass_controller_runtime::{Decision, Moment, Plan as _, Seen};

use super::observe::{Observed, Question, secret_key};
use super::plan::{Plan, plan};
use super::status::status;

fn now() -> Timestamp {
    "2026-03-01T10:00:00Z".parse().unwrap()
}

fn seen(change: &Value) -> Observed {
    let mut object = json!({
        "metadata": {"name": "ext", "uid": "u", "generation": 2},
        "spec": {"clientConfig": {"url": "https://x"}},
    });
    for (path, value) in change.as_object().unwrap() {
        object[path.as_str()] = value.clone();
    }
    Observed {
        config: Arc::new(ExtensionConfig::from_json(&object).unwrap()),
        secret: None,
        asked: None,
        discovery: None,
    }
}

/// Discovered at this generation, with a handler.
fn discovered(generation: i64) -> Observed {
    seen(&json!({"status": {
        "conditions": [{
            "type": "Discovered", "status": "True", "reason": "Discovered", "message": "",
            "observedGeneration": generation, "lastTransitionTime": "2026-03-01T09:00:00Z",
        }],
        "handlers": [{"name": "guard.ext", "requestHook": {"apiVersion": "g/v1", "hook": "H"}}],
    }}))
}

fn decided(seen: &Observed, now: &Moment) -> Option<Plan> {
    match plan(seen, now) {
        Decision::Plan(plan) => Some(plan),
        Decision::Ask(Question::Discovery) => None,
    }
}

fn handler(name: &str) -> ExtensionHandler {
    ExtensionHandler {
        name: name.to_owned(),
        ..ExtensionHandler::default()
    }
}

fn annotated(secret: Seen<Value>) -> Observed {
    let metadata = json!({
        "name": "ext", "uid": "u", "generation": 2,
        "annotations": {"runtime.cluster.x-k8s.io/inject-ca-from-secret": "ns/ca"},
    });
    let mut seen = seen(&json!({"metadata": metadata}));
    seen.secret = Some(secret.map(|secret| Arc::new(serde_json::from_value(secret).unwrap())));
    seen
}

#[test]
fn an_extension_is_asked_when_its_answer_is_not_known_or_old() {
    let moment = Moment::at(now());
    assert_eq!(decided(&seen(&json!({})), &moment), None, "a new one");
    assert_eq!(decided(&discovered(1), &moment), None, "another spec");
    assert_eq!(
        decided(&discovered(2), &moment),
        None,
        "a process that has just started"
    );
    let mut known = discovered(2);
    known.asked = Some("2026-03-01T09:55:00Z".parse().unwrap());
    let moment = Moment::at(now());
    assert!(decided(&known, &moment).is_some());
    let again = "2026-03-01T10:05:00Z".parse().unwrap();
    assert_eq!(moment.next_deadline(), Some(again), "it is asked again by itself");
    assert_eq!(decided(&known, &Moment::at(again)), None);
}

#[test]
fn handlers_stay_while_an_extension_does_not_answer() {
    let moment = Moment::at(now());
    let mut failing = discovered(2);
    failing.discovery = Some(Err("failed to discover extension \"ext\": no".to_owned()));
    let plan = decided(&failing, &moment).unwrap();
    assert!(plan.blocked().is_some(), "it is tried again");
    let told = status(&failing, &plan, None, now()).unwrap();
    assert_eq!(told.handlers.len(), 1);
    let condition = &told.conditions[0];
    let message = "Error in discovery: failed to discover extension \"ext\": no";
    assert_eq!(
        (
            condition.status.as_str(),
            condition.reason.as_str(),
            condition.message.as_str()
        ),
        ("False", "NotDiscovered", message)
    );
    let old = &told.deprecated.unwrap().v1beta1.unwrap().conditions[0];
    assert_eq!(
        (old.reason.as_deref(), old.severity.as_deref()),
        (Some("DiscoveryFailed"), Some("Error"))
    );
    let mut answered = failing;
    answered.discovery = Some(Ok(vec![handler("other.ext")]));
    let plan = decided(&answered, &moment).unwrap();
    let told = status(&answered, &plan, None, now()).unwrap();
    assert_eq!(told.handlers, [handler("other.ext")]);
    assert_eq!(told.conditions[0].status, "True");
    assert_eq!(told.conditions[0].observed_generation, Some(2));
    assert_eq!(
        plan.requeue(),
        Some(Duration::from_mins(10)),
        "it is asked again by itself"
    );
    answered.discovery = Some(Ok(Vec::new()));
    let told = status(&answered, &plan, None, now()).unwrap();
    assert!(told.handlers.is_empty(), "an extension may serve nothing any more");
}

#[test]
fn certificates_of_a_secret_go_into_the_spec_before_the_extension_is_asked() {
    let moment = Moment::at(now());
    let found = annotated(Seen::Found(json!({"data": {"ca.crt": "Y2E="}})));
    let plan = decided(&found, &moment).unwrap();
    assert_eq!(plan.bundle, Some(ByteString(b"ca".to_vec())));
    assert_eq!(status(&found, &plan, None, now()), None, "nothing was learned yet");
    let mut written = found;
    Arc::make_mut(&mut written.config).spec.client_config.ca_bundle = Some(ByteString(b"ca".to_vec()));
    assert_eq!(decided(&written, &moment), None, "now it is asked");
    let text = "runtime.cluster.x-k8s.io/inject-ca-from-secret";
    for (secret, why) in [
        (
            Seen::NotFound,
            format!("annotation {text}: Secret ns/ca does not exist"),
        ),
        (
            Seen::Found(json!({"data": {}})),
            format!("annotation {text}: Secret ns/ca has no ca.crt"),
        ),
        (Seen::Failed("no".to_owned()), format!("annotation {text}: no")),
    ] {
        let without = annotated(secret.clone());
        let plan = decided(&without, &moment).unwrap();
        assert!(plan.blocked().is_some());
        let told = status(&without, &plan, None, now()).unwrap();
        assert_eq!(told.conditions[0].message, format!("Error in discovery: {why}"));
        let mut with = annotated(secret);
        Arc::make_mut(&mut with.config).spec.client_config.ca_bundle = Some(ByteString(b"old".to_vec()));
        assert_eq!(decided(&with, &moment), None, "what is there goes on being used");
    }
}

#[test]
fn a_secret_is_named_by_namespace_and_name() {
    assert_eq!(secret_key("a/b").unwrap().to_string(), "a/b");
    for wrong in ["", "a", "/b", "a/", "a/b/c"] {
        assert_eq!(secret_key(wrong), None, "{wrong}");
    }
}
