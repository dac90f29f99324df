//! Namespace, Node, Event, Lease, PodDisruptionBudget, PriorityClass, CertificateSigningRequest, RuntimeClass, quotas, limits,
//! HorizontalPodAutoscaler, APIService.

use std::collections::HashSet;

use base64::Engine as _;
use serde_json::{Value, json};
use windlass_schema::FieldError;

use super::field::{
    Errors, Field, immutable, is_network, items_mut, maybe_one_of, must_be_named, non_negative, not_over_all,
    number_or_percent, or_set, positive, present, qualified,
};
use super::selectors;
use windlass_objects::metadata::{meta, meta_mut};
use windlass_objects::names::{label_problems, label_value_problems, subdomain_problems};

pub(crate) fn default_namespace(object: &mut Value) {
    let name = meta(object, "name").to_owned();
    if !name.is_empty() {
        let labels = meta_mut(object).entry("labels").or_insert_with(|| json!({}));
        super::field::set(labels, "kubernetes.io/metadata.name", name);
    }
}

pub(crate) fn default_node(object: &mut Value) {
    let Some(Value::Object(capacity)) = object.pointer("/status/capacity").cloned() else {
        return;
    };
    or_set(&mut object["status"], "allocatable", json!({}));
    for (name, amount) in capacity {
        or_set(&mut object["status"]["allocatable"], &name, amount);
    }
}

pub(crate) fn node(object: &Value, old: Option<&Value>, errors: &mut Errors) {
    let spec = Field::of(object, "spec");
    // A changed node is validated as a new one and then as a changed one.
    for _ in 0..=usize::from(old.is_some()) {
        taints(&spec, errors);
    }
    let networks = spec.get("podCIDRs");
    for network in networks.items() {
        if !is_network(network.text()) {
            errors.push(network.invalid("must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"));
        }
    }
    let Some(old) = old else { return };
    let was = &old["spec"]["podCIDRs"];
    if was.as_array().is_some_and(|w| !w.is_empty()) && was != networks.value {
        errors.push(networks.forbidden("node updates may not change podCIDR except from \"\" to valid"));
    }
    let id = spec.get("providerID");
    let was = &old["spec"]["providerID"];
    if was.as_str().is_some_and(|w| !w.is_empty()) && was != id.value {
        errors.push(id.forbidden("node updates may not change providerID except from \"\" to valid"));
    }
}

fn taints(spec: &Field<'_>, errors: &mut Errors) {
    let mut seen = HashSet::new();
    for (i, taint) in spec.get("taints").items().enumerate() {
        // Kubernetes uses the path `metadata` for fields of the spec.
        let at = |key: &str| Field {
            path: format!("metadata.taints[{i}].{key}"),
            value: taint.get(key).value,
        };
        let (key, effect) = (at("key"), at("effect"));
        present(&key, errors);
        qualified(&key, errors);
        let value = at("value");
        errors.extend(label_value_problems(value.text()).into_iter().map(|p| value.invalid(p)));
        match effect.text() {
            "NoSchedule" | "PreferNoSchedule" | "NoExecute" => {}
            "" => errors.push(effect.required("")),
            _ => errors.push(effect.unsupported(&["NoSchedule", "PreferNoSchedule", "NoExecute"])),
        }
        let same = (key.text(), effect.text());
        if !seen.insert(same) {
            let mut twice = taint.duplicate();
            twice.path = format!("metadata.taints[{i}]");
            "taints must be unique by key and effect pair".clone_into(&mut twice.detail);
            errors.push(twice);
        }
    }
}

/// Validates an event of either group, in the form of the core group.
pub(crate) fn event(object: &Value, old: Option<&Value>, in_events_group: bool, errors: &mut Errors) {
    let (involved, series) = if in_events_group {
        ("regarding", "series")
    } else {
        ("involvedObject", "series")
    };
    let about = object
        .pointer(&format!("/{involved}/namespace"))
        .and_then(Value::as_str);
    let (about, here) = (about.unwrap_or(""), meta(object, "namespace"));
    // Events about cluster-scoped objects belong to the default namespace.
    let matches = about == here || about.is_empty() && here == "default";
    if !matches && old.is_none() {
        errors.push(FieldError::invalid(
            "involvedObject.namespace",
            about.into(),
            "does not match event.namespace",
        ));
    }
    let time = Field::of(object, "eventTime");
    if in_events_group && old.is_none() {
        if !time.is_set() {
            errors.push(time.required(""));
        }
        let kind = Field::of(object, "type");
        if !matches!(kind.text(), "Normal" | "Warning") {
            let shown = kind.text();
            errors.push(FieldError::invalid(
                "type",
                shown.into(),
                format!("has invalid value: {shown}"),
            ));
        }
        if time.is_set() {
            for key in ["reportingController", "reportingInstance", "action", "reason"] {
                present(&Field::of(object, key), errors);
            }
        }
    }
    non_negative(&Field::of(object, series).get("count"), errors);
}

pub(crate) fn lease(object: &Value, _: Option<&Value>, errors: &mut Errors) {
    let spec = Field::of(object, "spec");
    positive(&spec.get("leaseDurationSeconds"), errors);
    non_negative(&spec.get("leaseTransitions"), errors);
}

pub(crate) fn budget(object: &Value, _: Option<&Value>, errors: &mut Errors) {
    let spec = Field::of(object, "spec");
    let (least, most) = (spec.get("minAvailable"), spec.get("maxUnavailable"));
    let (selector, policy) = (spec.get("selector"), spec.get("unhealthyPodEvictionPolicy"));
    if least.is_set() && most.is_set() {
        let shown = json!({
            "MinAvailable": least.value, "Selector": selector.value, "MaxUnavailable": most.value,
            "UnhealthyPodEvictionPolicy": policy.value,
        });
        errors.push(FieldError::invalid(
            spec.path.clone(),
            shown,
            "minAvailable and maxUnavailable cannot be both set",
        ));
    }
    for share in [&least, &most] {
        number_or_percent(share, errors);
        not_over_all(share, errors);
    }
    if selector.is_set() {
        selectors::check(&selector, errors);
    }
    maybe_one_of(&policy, &["AlwaysAllow", "IfHealthyBudget"], errors);
}

pub(crate) fn default_priority_class(object: &mut Value) {
    or_set(object, "preemptionPolicy", "PreemptLowerPriority");
}

pub(crate) fn priority_class(object: &Value, old: Option<&Value>, errors: &mut Errors) {
    const HIGHEST: i64 = 1_000_000_000;
    let value = Field::of(object, "value");
    let name = meta(object, "name");
    if let Some(old) = old {
        if old.get("value") != object.get("value") {
            errors.push(value.forbidden("may not be changed in an update."));
        }
        immutable(object, old, "preemptionPolicy", errors);
        return;
    }
    let system = matches!(name, "system-cluster-critical" | "system-node-critical");
    if name.starts_with("system-") && !system {
        errors.push(FieldError::forbidden(
            "metadata.name",
            format!("priority class names with 'system-' prefix are reserved for system use only. error: {name} is not a known system priority class"),
        ));
    } else if !system && value.int().is_some_and(|n| n > HIGHEST) {
        errors.push(value.forbidden(format!("maximum allowed value of a user defined priority is {HIGHEST}")));
    }
    maybe_one_of(
        &Field::of(object, "preemptionPolicy"),
        &["PreemptLowerPriority", "Never"],
        errors,
    );
}

const USAGES: [&str; 23] = [
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

pub(crate) fn signing_request(object: &Value, old: Option<&Value>, errors: &mut Errors) {
    if old.is_some() {
        return;
    }
    let spec = Field::of(object, "spec");
    let request = spec.get("request");
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(request.text())
        .unwrap_or_default();
    if !String::from_utf8_lossy(&bytes).contains("-----BEGIN CERTIFICATE REQUEST-----") {
        errors.push(request.invalid("PEM block type must be CERTIFICATE REQUEST"));
    }
    let usages = spec.get("usages");
    if usages.is_empty() {
        errors.push(usages.required(""));
    }
    let mut seen = HashSet::new();
    let mut twice = Vec::new();
    for usage in usages.items() {
        if !USAGES.contains(&usage.text()) {
            errors.push(usage.unsupported(&USAGES));
        }
        if !seen.insert(usage.text()) {
            twice.push(usage.duplicate());
        }
    }
    errors.extend(twice);
    let signer = spec.get("signerName");
    if signer.is_empty() {
        errors.push(signer.required(""));
    } else {
        let fine = signer.text().split_once('/').is_some_and(|(domain, path)| {
            domain.contains('.') && subdomain_problems(domain).is_empty() && !path.is_empty()
        });
        if !fine {
            errors.push(
                signer.invalid("must be a fully qualified domain and path of the form 'example.com/signer-name'"),
            );
        }
    }
    let duration = spec.get("expirationSeconds");
    if duration.int().is_some_and(|n| n < 600) {
        errors.push(duration.invalid("may not specify a duration less than 600 seconds (10 minutes)"));
    }
}

pub(crate) fn runtime_class(object: &Value, old: Option<&Value>, errors: &mut Errors) {
    must_be_named(&Field::of(object, "handler"), label_problems, errors);
    if let Some(old) = old {
        immutable(object, old, "handler", errors);
    }
}

pub(crate) fn quota(object: &Value, _: Option<&Value>, errors: &mut Errors) {
    const STANDARD: [&str; 21] = [
        "cpu",
        "memory",
        "ephemeral-storage",
        "requests.cpu",
        "requests.memory",
        "requests.storage",
        "requests.ephemeral-storage",
        "limits.cpu",
        "limits.memory",
        "limits.ephemeral-storage",
        "storage",
        "pods",
        "services",
        "services.nodeports",
        "services.loadbalancers",
        "replicationcontrollers",
        "resourcequotas",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "bindings",
    ];
    for (name, amount) in Field::of(object, "spec").get("hard").entries() {
        if !name.contains('/') && !STANDARD.contains(&name) && !name.starts_with("hugepages-") {
            for words in [
                "must be a standard resource type or fully qualified",
                "must be a standard resource for quota",
            ] {
                errors.push(FieldError::invalid(amount.path.clone(), name.into(), words));
            }
        }
        if amount.text().starts_with('-') {
            errors.push(amount.invalid("must be greater than or equal to 0"));
        }
    }
}

/// A container's limit defaults its default limit, and that its default request.
pub(crate) fn default_limits(object: &mut Value) {
    for limit in items_mut(object, "/spec/limits") {
        if limit["type"] != "Container" {
            continue;
        }
        for (from, to) in [
            ("max", "default"),
            ("default", "defaultRequest"),
            ("min", "defaultRequest"),
        ] {
            let Some(Value::Object(amounts)) = limit.get(from).cloned() else {
                continue;
            };
            or_set(limit, to, json!({}));
            for (name, amount) in amounts {
                or_set(&mut limit[to], &name, amount);
            }
        }
    }
}

/// Defaults of a version 1 autoscaler, which has no metrics.
pub(crate) fn default_old_autoscaler(object: &mut Value) {
    if let Some(spec) = object.get_mut("spec").filter(|s| s.is_object()) {
        or_set(spec, "minReplicas", 1);
    }
}

pub(crate) fn default_autoscaler(object: &mut Value) {
    let Some(spec) = object.get_mut("spec").filter(|s| s.is_object()) else {
        return;
    };
    or_set(spec, "minReplicas", 1);
    if let Some(behavior) = spec.get_mut("behavior").filter(|b| b.is_object()) {
        let all = json!({"type": "Percent", "value": 100, "periodSeconds": 15});
        let four = json!({"type": "Pods", "value": 4, "periodSeconds": 15});
        or_set(behavior, "scaleUp", json!({}));
        or_set(behavior, "scaleDown", json!({}));
        or_set(&mut behavior["scaleUp"], "stabilizationWindowSeconds", 0);
        for (rules, policies) in [("scaleUp", json!([four, all])), ("scaleDown", json!([all]))] {
            or_set(&mut behavior[rules], "selectPolicy", "Max");
            or_set(&mut behavior[rules], "policies", policies);
        }
    }
    let none = spec["metrics"].as_array().is_none_or(Vec::is_empty);
    if none {
        let usual = json!([{"type": "Resource", "resource": {
            "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80},
        }}]);
        super::field::set(spec, "metrics", usual);
    }
}

pub(crate) fn autoscaler(object: &Value, _: Option<&Value>, errors: &mut Errors) {
    let spec = Field::of(object, "spec");
    let (least, most) = (spec.get("minReplicas"), spec.get("maxReplicas"));
    if least.int().is_some_and(|n| n < 1) {
        errors.push(least.invalid("must be greater than or equal to 1"));
    }
    if most.int().unwrap_or(0) < 1 {
        errors.push(most.required("must be set and greater than 0"));
    }
    if most.int() < least.int() {
        errors.push(most.invalid("must be greater than or equal to `minReplicas`"));
    }
    let target = spec.get("scaleTargetRef");
    for key in ["kind", "name"] {
        present(&target.get(key), errors);
    }
    let version = target.get("apiVersion");
    if !version.text().contains('/') && target.get("kind").text() != "ReplicationController" {
        errors.push(FieldError::invalid(
            version.path.clone(),
            version.text().into(),
            "apiVersion must specify API group",
        ));
    }
}

pub(crate) fn default_api_service(object: &mut Value) {
    if let Some(service) = object.pointer_mut("/spec/service") {
        or_set(service, "port", 443);
    }
}

pub(crate) fn api_service(object: &Value, _: Option<&Value>, errors: &mut Errors) {
    let spec = Field::of(object, "spec");
    let (group, version) = (spec.get("group"), spec.get("version"));
    let want = format!("{}.{}", version.text(), group.text());
    let name = meta(object, "name");
    if name != want {
        errors.push(FieldError::invalid(
            "metadata.name",
            name.into(),
            format!("must be `spec.version+\".\"+spec.group`: {want:?}"),
        ));
    }
    if !group.is_empty() {
        errors.extend(subdomain_problems(group.text()).into_iter().map(|p| group.invalid(p)));
    }
    errors.extend(label_problems(version.text()).into_iter().map(|p| version.invalid(p)));
    for (key, most) in [("groupPriorityMinimum", 20_000), ("versionPriority", 1_000)] {
        let number = spec.get(key);
        let value = number.int().unwrap_or(0);
        if value <= 0 || value > most {
            errors.push(number.invalid(format!("must be positive and less than {most}")));
        }
    }
    let service = spec.get("service");
    if !service.is_set() {
        if !spec.get("caBundle").is_empty() {
            errors.push(
                spec.get("caBundle")
                    .invalid("local APIServices may not have a caBundle"),
            );
        }
        if spec.get("insecureSkipTLSVerify").is_true() {
            errors.push(
                spec.get("insecureSkipTLSVerify")
                    .invalid("local APIServices may not have insecureSkipTLSVerify"),
            );
        }
        return;
    }
    for key in ["namespace", "name"] {
        present(&service.get(key), errors);
    }
    if spec.get("insecureSkipTLSVerify").is_true() && !spec.get("caBundle").is_empty() {
        errors.push(
            spec.get("insecureSkipTLSVerify")
                .invalid("may not be true if caBundle is present"),
        );
    }
}

/// Defaults of webhooks and their match criteria.
pub(crate) fn default_webhooks(object: &mut Value, mutating: bool) {
    for hook in items_mut(object, "/webhooks") {
        for (key, value) in [
            ("failurePolicy", json!("Fail")),
            ("matchPolicy", json!("Equivalent")),
            ("namespaceSelector", json!({})),
            ("objectSelector", json!({})),
            ("timeoutSeconds", json!(10)),
        ] {
            or_set(hook, key, value);
        }
        if mutating {
            or_set(hook, "reinvocationPolicy", "Never");
        }
        if let Some(service) = hook.pointer_mut("/clientConfig/service") {
            or_set(service, "port", 443);
        }
        for rule in items_mut(hook, "/rules") {
            or_set(rule, "scope", "*");
        }
    }
}
