//! One webhook of a configuration. Pure.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use windlass_cel::Condition;

use crate::http::webhook_client::Endpoint;
use windlass_objects::metadata::{meta, strings, text};
use windlass_objects::selector::LabelSelector;

/// The default timeout of a webhook.
const TIMEOUT_SECONDS: u64 = 10;

/// A rule: which requests a webhook reviews.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Rule {
    pub(crate) operations: Vec<String>,
    pub(crate) groups: Vec<String>,
    pub(crate) versions: Vec<String>,
    /// `pods`, `pods/status`, `*/scale`, ...
    pub(crate) resources: Vec<String>,
    pub(crate) scope: Scope,
}

/// The scope of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Scope {
    /// Any scope.
    #[default]
    Any,
    /// Cluster-scoped objects.
    Cluster,
    /// Namespaced objects.
    Namespaced,
}

/// The version of AdmissionReview that a webhook receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReviewVersion {
    V1,
    V1beta1,
}

impl ReviewVersion {
    /// Its apiVersion.
    pub(crate) fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "admission.k8s.io/v1",
            Self::V1beta1 => "admission.k8s.io/v1beta1",
        }
    }
}

/// A webhook.
#[derive(Debug)]
pub(crate) struct Hook {
    pub(crate) name: String,
    pub(crate) configuration: String,
    pub(crate) rules: Vec<Rule>,
    /// Whether a failed call is ignored.
    pub(crate) ignore_failures: bool,
    /// Whether a rule for one version of a resource applies to all of its versions.
    pub(crate) equivalent: bool,
    pub(crate) namespaces: LabelSelector,
    pub(crate) objects: LabelSelector,
    /// The match conditions; all must hold. A condition that does not compile is kept as its error: it may be older than the
    /// rules for conditions.
    pub(crate) conditions: Vec<Result<Condition, String>>,
    pub(crate) timeout: Duration,
    /// Whether it may be called for a dry run.
    pub(crate) dry_run: bool,
    /// Whether it is called again after other webhooks have changed the object.
    pub(crate) again: bool,
    pub(crate) version: ReviewVersion,
    pub(crate) endpoint: Arc<Endpoint>,
}

/// The webhooks of a configuration. Webhooks with an unchanged endpoint keep their connections.
pub(crate) fn parse(configuration: &Value, before: &[Arc<Hook>]) -> Vec<Arc<Hook>> {
    let name = meta(configuration, "name");
    let hooks = configuration.get("webhooks").and_then(Value::as_array);
    hooks
        .into_iter()
        .flatten()
        .map(|hook| Arc::new(one(name, hook, before)))
        .collect()
}

fn one(configuration: &str, hook: &Value, before: &[Arc<Hook>]) -> Hook {
    let client = hook.get("clientConfig").unwrap_or(&Value::Null);
    let endpoint = Endpoint::of(client, before.iter().map(|b| &b.endpoint));
    let selector = |key| hook.get(key).map(LabelSelector::from_object).unwrap_or_default();
    let known = strings(hook.get("admissionReviewVersions"));
    let version = known.iter().find_map(|v| match *v {
        "v1" => Some(ReviewVersion::V1),
        "v1beta1" => Some(ReviewVersion::V1beta1),
        _ => None,
    });
    Hook {
        name: text(hook, "name").to_owned(),
        configuration: configuration.to_owned(),
        rules: hook
            .get("rules")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .map(rule)
            .collect(),
        ignore_failures: text(hook, "failurePolicy") == "Ignore",
        equivalent: text(hook, "matchPolicy") != "Exact",
        namespaces: selector("namespaceSelector"),
        objects: selector("objectSelector"),
        conditions: hook
            .get("matchConditions")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .map(|condition| Condition::compile(text(condition, "expression")))
            .collect(),
        timeout: Duration::from_secs(
            hook.get("timeoutSeconds")
                .and_then(Value::as_u64)
                .unwrap_or(TIMEOUT_SECONDS),
        ),
        dry_run: matches!(text(hook, "sideEffects"), "None" | "NoneOnDryRun"),
        again: text(hook, "reinvocationPolicy") == "IfNeeded",
        version: version.unwrap_or(ReviewVersion::V1),
        endpoint,
    }
}

fn rule(rule: &Value) -> Rule {
    let list = |key| strings(rule.get(key)).into_iter().map(str::to_owned).collect();
    Rule {
        operations: list("operations"),
        groups: list("apiGroups"),
        versions: list("apiVersions"),
        resources: list("resources"),
        scope: match text(rule, "scope") {
            "Cluster" => Scope::Cluster,
            "Namespaced" => Scope::Namespaced,
            _ => Scope::Any,
        },
    }
}
