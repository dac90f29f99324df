//! Pods and pod templates: defaults, validation, and mutable fields.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::{Map, Value, json};
use windlass_schema::FieldError;

use super::field::{
    Errors, Field, items_mut, label, maybe_one_of, named, one_of, or_set, present, qualified, set, subdomain, within,
};
use super::{containers, volumes};
use crate::quantity::Quantity;
use windlass_objects::Part;
use windlass_objects::metadata::text;
use windlass_objects::names::{check_annotations, check_labels, label_value_problems};

const ONLY: &str = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// Defaults of a pod.
pub(crate) fn default(object: &mut Value) {
    let Some(spec) = object.get_mut("spec") else {
        return;
    };
    default_spec(spec);
    containers::request_limits(spec);
    or_set(spec, "enableServiceLinks", true);
    if spec["hostNetwork"] == Value::Bool(true) {
        for list in ["/containers", "/initContainers"] {
            for container in items_mut(spec, list) {
                for port in items_mut(container, "/ports") {
                    if let Some(number) = port.get("containerPort").cloned() {
                        or_set(port, "hostPort", number);
                    }
                }
            }
        }
    }
}

/// Defaults of a pod spec, also in a template.
pub(crate) fn default_spec(spec: &mut Value) {
    if !spec.is_object() {
        return;
    }
    or_set(spec, "dnsPolicy", "ClusterFirst");
    or_set(spec, "restartPolicy", "Always");
    or_set(spec, "securityContext", json!({}));
    or_set(spec, "terminationGracePeriodSeconds", 30);
    or_set(spec, "schedulerName", "default-scheduler");
    if spec["terminationGracePeriodSeconds"].as_i64().is_some_and(|n| n < 0) {
        set(spec, "terminationGracePeriodSeconds", 1);
    }
    name_account_twice(spec);
    containers::default(spec);
    volumes::default(spec);
}

/// Keeps the deprecated field for the service account equal to the current one.
fn name_account_twice(spec: &mut Value) {
    let name = ["serviceAccountName", "serviceAccount"]
        .into_iter()
        .find_map(|key| spec[key].as_str().filter(|name| !name.is_empty()))
        .map(str::to_owned);
    if let Some(name) = name {
        set(spec, "serviceAccountName", name.clone());
        set(spec, "serviceAccount", name);
    }
}

/// Defaults of the template at a pointer.
pub(crate) fn default_template(object: &mut Value, pointer: &str) {
    if let Some(spec) = object.pointer_mut(&format!("{pointer}/spec")) {
        default_spec(spec);
    }
}

/// Sets the status of a new pod.
pub(crate) fn on_create(object: &mut Value) {
    let mut status = json!({"phase": "Pending", "qosClass": qos(&object["spec"])});
    if object
        .pointer("/spec/schedulingGates")
        .and_then(Value::as_array)
        .is_some_and(|g| !g.is_empty())
    {
        status["conditions"] = json!([{
            "type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "observedGeneration": 1,
            "lastProbeTime": null, "lastTransitionTime": null,
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }]);
    }
    set(object, "status", status);
}

/// The quality of service class of a pod.
fn qos(spec: &Value) -> &'static str {
    let mut sums: [BTreeMap<String, Vec<Quantity>>; 2] = Default::default();
    let mut guaranteed = true;
    for list in ["containers", "initContainers"] {
        for container in spec[list].as_array().into_iter().flatten() {
            let mut limited = 0;
            for (sum, key) in sums.iter_mut().zip(["requests", "limits"]) {
                for (name, amount) in container["resources"][key].as_object().into_iter().flatten() {
                    let amount = Quantity::parse(amount.as_str().unwrap_or(""));
                    let counts = matches!(name.as_str(), "cpu" | "memory");
                    if let Some(amount) = amount.filter(|a| counts && a.sign() == Ordering::Greater) {
                        sum.entry(name.clone()).or_default().push(amount);
                        limited += usize::from(key == "limits");
                    }
                }
            }
            guaranteed &= limited == 2;
        }
    }
    let [requests, limits] = &sums;
    if requests.is_empty() && limits.is_empty() {
        return "BestEffort";
    }
    let equal = |a: &[Quantity], b: &[Quantity]| {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.compare(*b) == Ordering::Equal)
    };
    let same = limits.len() == requests.len()
        && limits
            .iter()
            .all(|(name, l)| requests.get(name).is_some_and(|r| equal(r, l)));
    if guaranteed && same { "Guaranteed" } else { "Burstable" }
}

/// Validates a pod.
pub(crate) fn check(object: &Value, old: Option<&Value>, part: Part, errors: &mut Errors) {
    let spec = Field::of(object, "spec");
    check_spec(&spec, true, errors);
    for list in ["containers", "initContainers"] {
        for container in spec.get(list).items() {
            let image = container.get("image");
            if image.text().trim() != image.text() {
                errors.push(image.invalid("must not have leading or trailing whitespace"));
            }
        }
    }
    if let Some(old) = old {
        if part == Part::Containers {
            check_added(
                &spec.get("ephemeralContainers"),
                &old["spec"]["ephemeralContainers"],
                errors,
            );
        } else {
            check_update(&spec, &old["spec"], errors);
        }
    }
}

/// Checks that ephemeral containers are only added, never changed.
fn check_added(list: &Field<'_>, old: &Value, errors: &mut Errors) {
    let before = old.as_array().map_or(&[][..], Vec::as_slice);
    let mut by_name = HashMap::new();
    for container in list.items() {
        by_name.entry(&container.value["name"]).or_insert(container);
    }
    for was in before {
        match by_name.get(&was["name"]) {
            None => errors.push(list.forbidden(format!(
                "existing ephemeral containers {:?} may not be removed\n",
                text(was, "name")
            ))),
            Some(is) if is.value != was => errors.push(list.forbidden(format!(
                "existing ephemeral containers {:?} may not be changed\n",
                text(was, "name")
            ))),
            Some(_) => {}
        }
    }
}

/// Validates a pod template.
pub(crate) fn check_template(template: &Field<'_>, errors: &mut Errors) {
    let metadata = template.get("metadata");
    check_labels(
        metadata.get("labels").value,
        &format!("{}.labels", template.path),
        errors,
    );
    check_annotations(
        metadata.get("annotations").value,
        &format!("{}.annotations", template.path),
        errors,
    );
    check_spec(&template.get("spec"), false, errors);
    if !template.get("spec").get("ephemeralContainers").is_empty() {
        errors.push(
            template
                .get("spec")
                .get("ephemeralContainers")
                .forbidden("ephemeral containers not allowed in pod template"),
        );
    }
}

fn check_spec(spec: &Field<'_>, in_pod: bool, errors: &mut Errors) {
    let names = volumes::check(spec, in_pod, errors);
    let main = spec.get("containers");
    if main.is_empty() {
        errors.push(main.required(""));
    }
    containers::check(&main, &names, false, errors);
    containers::check(&spec.get("initContainers"), &names, true, errors);
    containers::check(&spec.get("ephemeralContainers"), &names, false, errors);
    let taken: HashSet<&Value> = main.items().map(|container| container.get("name").value).collect();
    for container in spec.get("initContainers").items() {
        let name = container.get("name");
        if taken.contains(name.value) {
            errors.push(name.duplicate());
        }
    }
    one_of(&spec.get("restartPolicy"), &["Always", "OnFailure", "Never"], errors);
    one_of(
        &spec.get("dnsPolicy"),
        &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"],
        errors,
    );
    check_labels(spec.get("nodeSelector").value, &spec.get("nodeSelector").path, errors);
    security(&spec.get("securityContext"), errors);
    subdomain(&spec.get("serviceAccountName"), errors);
    subdomain(&spec.get("nodeName"), errors);
    within(&spec.get("activeDeadlineSeconds"), 1, i64::from(i32::MAX), errors);
    label(&spec.get("hostname"), errors);
    label(&spec.get("subdomain"), errors);
    tolerations(&spec.get("tolerations"), errors);
    for alias in spec.get("hostAliases").items() {
        super::field::ip(&alias.get("ip"), errors);
        for name in alias.get("hostnames").items() {
            subdomain(&name, errors);
        }
    }
    subdomain(&spec.get("priorityClassName"), errors);
    subdomain(&spec.get("runtimeClassName"), errors);
    maybe_one_of(
        &spec.get("preemptionPolicy"),
        &["PreemptLowerPriority", "Never"],
        errors,
    );
    spread(&spec.get("topologySpreadConstraints"), errors);
    host_ports(spec, errors);
}

fn security(context: &Field<'_>, errors: &mut Errors) {
    for key in ["runAsUser", "runAsGroup", "fsGroup"] {
        let id = context.get(key);
        if id.int().is_some_and(|n| n < 0 || n > i64::from(i32::MAX)) {
            errors.push(id.invalid("must be between 0 and 2147483647, inclusive"));
        }
    }
}

fn tolerations(list: &Field<'_>, errors: &mut Errors) {
    for toleration in list.items() {
        let (key, operator) = (toleration.get("key"), toleration.get("operator"));
        qualified(&key, errors);
        if key.is_empty() && operator.text() != "Exists" {
            errors.push(
                operator.invalid(
                    "operator must be Exists when `key` is empty, which means \"match all values and all keys\"",
                ),
            );
        }
        let effect = toleration.get("effect");
        if toleration.get("tolerationSeconds").is_set() && effect.text() != "NoExecute" {
            errors.push(FieldError::invalid(
                effect.path.clone(),
                effect.text().into(),
                "effect must be 'NoExecute' when `tolerationSeconds` is set",
            ));
        }
        match operator.text() {
            "" | "Equal" => named(&toleration.get("value"), label_value_problems, errors),
            "Exists" => {
                if !toleration.get("value").is_empty() {
                    errors.push(operator_value(&operator, &toleration));
                }
            }
            _ => errors.push(operator.unsupported(&["Equal", "Exists"])),
        }
        if !effect.is_empty() {
            maybe_one_of(&effect, &["NoSchedule", "PreferNoSchedule", "NoExecute"], errors);
        }
    }
}

fn operator_value(operator: &Field<'_>, toleration: &Field<'_>) -> FieldError {
    FieldError::invalid(
        operator.path.clone(),
        toleration.get("value").value.clone(),
        "value must be empty when `operator` is 'Exists'",
    )
}

fn spread(list: &Field<'_>, errors: &mut Errors) {
    for constraint in list.items() {
        let skew = constraint.get("maxSkew");
        if skew.int().unwrap_or(0) <= 0 {
            errors.push(skew.invalid("must be greater than zero"));
        }
        let key = constraint.get("topologyKey");
        if key.is_empty() {
            errors.push(key.required("can not be empty"));
        }
        maybe_one_of(
            &constraint.get("whenUnsatisfiable"),
            &["DoNotSchedule", "ScheduleAnyway"],
            errors,
        );
    }
}

fn host_ports(spec: &Field<'_>, errors: &mut Errors) {
    if !spec.get("hostNetwork").is_true() {
        return;
    }
    for container in spec.get("containers").items() {
        for port in container.get("ports").items() {
            let (host, number) = (port.get("hostPort"), port.get("containerPort"));
            if host.int().unwrap_or(0) != 0 && host.value != number.value {
                errors.push(host.invalid("must match `containerPort` when `hostNetwork` is true"));
            }
        }
    }
}

/// Checks that an update changes only mutable fields of a pod.
fn check_update(spec: &Field<'_>, old: &Value, errors: &mut Errors) {
    for list in ["containers", "initContainers"] {
        let now = spec.get(list);
        let count = |value: &Value| value.as_array().map_or(0, Vec::len);
        if count(now.value) != count(&old[list]) {
            errors.push(now.forbidden(if list == "containers" {
                "pod updates may not add or remove containers"
            } else {
                "pod updates may not add or remove initContainers"
            }));
            return;
        }
    }
    let deadline = spec.get("activeDeadlineSeconds");
    if let Some(was) = old["activeDeadlineSeconds"].as_i64() {
        match deadline.int() {
            None => errors.push(deadline.invalid("must not update from a positive integer to nil value")),
            Some(is) if is > was => {
                errors.push(deadline.invalid("must be less than or equal to previous value"));
            }
            _ => {}
        }
    }
    let tolerations = spec.get("tolerations");
    let strip = |toleration: &Value| {
        let mut toleration = toleration.clone();
        toleration.as_object_mut().map(|map| map.remove("tolerationSeconds"));
        toleration
    };
    let kept: HashSet<Value> = tolerations.items().map(|toleration| strip(toleration.value)).collect();
    let mut before = old["tolerations"].as_array().into_iter().flatten();
    if !before.all(|toleration| kept.contains(&strip(toleration))) {
        errors.push(tolerations.forbidden("existing toleration can not be modified except its tolerationSeconds"));
        return;
    }
    let mut is = comparable(spec.value);
    let was = comparable(old);
    let gates = |v: &Value| -> HashSet<Value> {
        let list = v["schedulingGates"].as_array().into_iter().flatten();
        list.cloned().collect()
    };
    if !gates(spec.value).is_subset(&gates(old)) {
        let added = FieldError::forbidden(
            format!("{}.schedulingGates", spec.path),
            "only deletion is allowed, but found new scheduling gate",
        );
        errors.push(added);
    }
    if !gates(old).is_empty() {
        // The node selection of a gated pod can be narrowed.
        for key in ["nodeSelector", "affinity"] {
            match was.get(key) {
                Some(value) => is.insert(key.to_owned(), value.clone()),
                None => is.remove(key),
            };
        }
    }
    if is != was {
        errors.push(spec.forbidden(ONLY));
    }
}

/// The immutable fields of a spec.
fn comparable(spec: &Value) -> Map<String, Value> {
    let mut out = spec.as_object().cloned().unwrap_or_default();
    for key in ["activeDeadlineSeconds", "tolerations", "schedulingGates"] {
        out.remove(key);
    }
    if out
        .get("terminationGracePeriodSeconds")
        .and_then(Value::as_i64)
        .is_some_and(|n| n < 0)
    {
        out.insert("terminationGracePeriodSeconds".to_owned(), 1.into());
    }
    for list in ["containers", "initContainers"] {
        for container in out.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            container.as_object_mut().map(|c| c.remove("image"));
        }
    }
    out
}

/// Adds tolerations for failing nodes, if a pod has none.
pub(crate) fn tolerate_failing_nodes(object: &mut Value) {
    let Some(spec) = object.get_mut("spec").filter(|s| s.is_object()) else {
        return;
    };
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let list = spec["tolerations"].as_array();
        let tolerated = list.into_iter().flatten().any(|t| {
            let (k, effect) = (text(t, "key"), text(t, "effect"));
            (k == key || k.is_empty()) && (effect == "NoExecute" || effect.is_empty())
        });
        if tolerated {
            continue;
        }
        or_set(spec, "tolerations", json!([]));
        if let Some(list) = spec["tolerations"].as_array_mut() {
            list.push(json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}));
        }
    }
}

/// Validates a Binding of a pod to a node.
pub(crate) fn check_binding(binding: &Value, errors: &mut Errors) {
    let target = Field::of(binding, "target");
    let kind = target.get("kind");
    if !matches!(kind.text(), "" | "Node") {
        errors.push(kind.unsupported(&["Node", "<empty>"]));
    }
    present(&target.get("name"), errors);
}
