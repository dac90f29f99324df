//! Converts HorizontalPodAutoscalers between version 1 and version 2, the stored version. Pure.
//!
//! Version 1 has fields for CPU utilization only. The other fields of version 2 are texts in annotations.

use serde_json::{Map, Value, json};

use windlass_objects::metadata::{meta_value, set_meta, text};

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";

const PERCENT: &str = "targetCPUUtilizationPercentage";
const CURRENT_PERCENT: &str = "currentCPUUtilizationPercentage";

/// A field of a metric in version 1, its place in version 2, and whether version 1 always has it.
type Fields = &'static [(&'static str, &'static str, bool)];

/// By type of metric.
const WANTED: &[(&str, Fields)] = &[
    (
        "object",
        &[
            ("target", "/describedObject", false),
            ("metricName", "/metric/name", false),
            ("targetValue", "/target/value", true),
            ("selector", "/metric/selector", false),
            ("averageValue", "/target/averageValue", false),
        ],
    ),
    (
        "pods",
        &[
            ("metricName", "/metric/name", false),
            ("targetAverageValue", "/target/averageValue", true),
            ("selector", "/metric/selector", false),
        ],
    ),
    (
        "resource",
        &[
            ("name", "/name", false),
            ("targetAverageUtilization", "/target/averageUtilization", false),
            ("targetAverageValue", "/target/averageValue", false),
        ],
    ),
    (
        "containerResource",
        &[
            ("name", "/name", false),
            ("targetAverageUtilization", "/target/averageUtilization", false),
            ("targetAverageValue", "/target/averageValue", false),
            ("container", "/container", false),
        ],
    ),
    (
        "external",
        &[
            ("metricName", "/metric/name", false),
            ("metricSelector", "/metric/selector", false),
            ("targetValue", "/target/value", false),
            ("targetAverageValue", "/target/averageValue", false),
        ],
    ),
];

const CURRENT: &[(&str, Fields)] = &[
    (
        "object",
        &[
            ("target", "/describedObject", false),
            ("metricName", "/metric/name", false),
            ("currentValue", "/current/value", true),
            ("selector", "/metric/selector", false),
            ("averageValue", "/current/averageValue", false),
        ],
    ),
    (
        "pods",
        &[
            ("metricName", "/metric/name", false),
            ("currentAverageValue", "/current/averageValue", true),
            ("selector", "/metric/selector", false),
        ],
    ),
    (
        "resource",
        &[
            ("name", "/name", false),
            ("currentAverageUtilization", "/current/averageUtilization", false),
            ("currentAverageValue", "/current/averageValue", true),
        ],
    ),
    (
        "containerResource",
        &[
            ("name", "/name", false),
            ("currentAverageUtilization", "/current/averageUtilization", false),
            ("currentAverageValue", "/current/averageValue", true),
            ("container", "/container", false),
        ],
    ),
    (
        "external",
        &[
            ("metricName", "/metric/name", false),
            ("metricSelector", "/metric/selector", false),
            ("currentValue", "/current/value", true),
            ("currentAverageValue", "/current/averageValue", false),
        ],
    ),
];

/// The order of fields in the texts; other fields follow by name.
const ORDER: [&str; 33] = [
    "type",
    "status",
    "lastTransitionTime",
    "reason",
    "message",
    "object",
    "pods",
    "resource",
    "containerResource",
    "external",
    "target",
    "metricName",
    "metricSelector",
    "kind",
    "name",
    "apiVersion",
    "targetAverageUtilization",
    "currentAverageUtilization",
    "targetValue",
    "currentValue",
    "targetAverageValue",
    "currentAverageValue",
    "selector",
    "averageValue",
    "container",
    "matchLabels",
    "ScaleUp",
    "ScaleDown",
    "StabilizationWindowSeconds",
    "SelectPolicy",
    "Policies",
    "Type",
    "Value",
];

/// Writes a value in the field order of Go's types.
fn write(value: &Value, out: &mut String) {
    match value {
        Value::Object(map) => {
            let mut fields: Vec<_> = map.iter().collect();
            fields.sort_by_key(|(key, _)| ORDER.iter().position(|known| known == key).unwrap_or(ORDER.len()));
            for (i, (key, value)) in fields.into_iter().enumerate() {
                out.push(if i == 0 { '{' } else { ',' });
                out.push_str(&json!(key).to_string());
                out.push(':');
                if key == "matchLabels" {
                    out.push_str(&value.to_string());
                } else {
                    write(value, out);
                }
            }
            out.push_str(if map.is_empty() { "{}" } else { "}" });
        }
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write(item, out);
            }
            out.push(']');
        }
        other => out.push_str(&other.to_string()),
    }
}

fn written(value: &Value) -> String {
    let mut out = String::new();
    write(value, &mut out);
    // Go's encoder escapes characters with a meaning in HTML.
    for (sign, code) in [('<', "\\u003c"), ('>', "\\u003e"), ('&', "\\u0026")] {
        out = out.replace(sign, code);
    }
    out
}

fn metric_to_v1(metric: &Value, table: &[(&str, Fields)]) -> Value {
    let mut out = json!({"type": metric["type"]});
    for (sort, fields) in table {
        let Some(source) = metric.get(*sort) else { continue };
        let mut old = Map::new();
        for (name, place, always) in *fields {
            match source.pointer(place) {
                Some(value) => old.insert((*name).to_owned(), value.clone()),
                None if *always => old.insert((*name).to_owned(), "0".into()),
                None => None,
            };
        }
        out[*sort] = old.into();
    }
    out
}

fn metric_to_v2(metric: &Value, table: &[(&str, Fields)]) -> Value {
    let mut out = json!({"type": metric["type"]});
    for (sort, fields) in table {
        let Some(source) = metric.get(*sort) else { continue };
        let mut new = json!({});
        for (name, place, always) in *fields {
            let value = source.get(*name).filter(|v| !v.is_null());
            let Some(value) = value.filter(|v| !*always || *v != "0") else {
                continue;
            };
            let mut at = &mut new;
            for step in place.split('/').skip(1) {
                at = &mut at[step];
            }
            *at = value.clone();
        }
        if let Some(target) = new.get_mut("target") {
            let kind = if target.get("averageUtilization").is_some() {
                "Utilization"
            } else if target.get("averageValue").is_some() {
                "AverageValue"
            } else {
                "Value"
            };
            target["type"] = kind.into();
        }
        out[*sort] = new;
    }
    out
}

/// The target of a CPU metric, in percent of the request.
fn percent_of(metric: &Value, place: &str) -> Option<Value> {
    let resource = metric.get("resource").filter(|r| text(r, "name") == "cpu")?;
    resource
        .pointer(place)
        .filter(|_| text(metric, "type") == "Resource")
        .cloned()
}

fn taken(map: &mut Map<String, Value>, key: &str) -> Vec<Value> {
    match map.remove(key) {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    }
}

/// The behavior, with the field names of Go's types.
fn behavior_to_v1(behavior: &Value) -> Value {
    let field = |object: &Value, key: &str| object.get(key).cloned().unwrap_or_default();
    let policy = |policy: &Value| {
        json!({
            "Type": field(policy, "type"), "Value": field(policy, "value"), "PeriodSeconds": field(policy, "periodSeconds"),
        })
    };
    let rules = |key: &str| {
        behavior.get(key).filter(|r| r.is_object()).map(|rules| {
            let policies = rules.get("policies").and_then(Value::as_array);
            json!({
                "StabilizationWindowSeconds": field(rules, "stabilizationWindowSeconds"),
                "SelectPolicy": field(rules, "selectPolicy"),
                "Policies": policies.map(|all| all.iter().map(policy).collect::<Vec<_>>()),
                "Tolerance": field(rules, "tolerance"),
            })
        })
    };
    json!({"ScaleUp": rules("scaleUp"), "ScaleDown": rules("scaleDown")})
}

fn behavior_to_v2(value: &Value) -> Value {
    match value {
        Value::Object(map) => map
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(key, value)| {
                let mut chars = key.chars();
                let first = chars.next().map(|c| c.to_ascii_lowercase());
                (first.into_iter().chain(chars).collect(), behavior_to_v2(value))
            })
            .collect::<Map<String, Value>>()
            .into(),
        Value::Array(items) => items.iter().map(behavior_to_v2).collect(),
        other => other.clone(),
    }
}

/// From version 2 to version 1.
pub(crate) fn to_v1(object: &mut Value) {
    let mut notes: Vec<(&str, Value)> = Vec::new();
    let all_to_v1 = |metrics: &[Value], table| metrics.iter().map(|m| metric_to_v1(m, table)).collect::<Value>();
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
        let mut metrics = taken(spec, "metrics");
        let utilization = |metric: &Value| percent_of(metric, "/target/averageUtilization");
        let first = metrics.iter().find(|m| percent_of(m, "").is_some());
        if let Some(percent) = first.and_then(utilization) {
            spec.insert(PERCENT.to_owned(), percent);
        }
        metrics.retain(|metric| utilization(metric).is_none());
        if !metrics.is_empty() {
            notes.push((METRICS, all_to_v1(&metrics, WANTED)));
        }
        if let Some(behavior) = spec.remove("behavior").filter(|b| !b.is_null()) {
            notes.push((BEHAVIOR, behavior_to_v1(&behavior)));
        }
    }
    if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
        let metrics = taken(status, "currentMetrics");
        let percent = metrics
            .iter()
            .find_map(|m| percent_of(m, "/current/averageUtilization"));
        if let Some(percent) = percent {
            status.insert(CURRENT_PERCENT.to_owned(), percent);
        }
        if !metrics.is_empty() {
            notes.push((CURRENT_METRICS, all_to_v1(&metrics, CURRENT)));
        }
        let conditions = taken(status, "conditions");
        if !conditions.is_empty() {
            notes.push((CONDITIONS, conditions.into()));
        }
        for count in ["currentReplicas", "desiredReplicas"] {
            status.entry(count).or_insert_with(|| 0.into());
        }
    }
    if notes.is_empty() {
        return;
    }
    let mut annotations = meta_value(object, "annotations").cloned().unwrap_or_else(|| json!({}));
    for (key, value) in notes {
        annotations[key] = written(&value).into();
    }
    set_meta(object, "annotations", Some(annotations));
}

/// Removes the annotations for fields of version 2. Returns their contents, as far as they can be parsed.
fn notes_of(object: &mut Value) -> Map<String, Value> {
    let mut notes = Map::new();
    let Some(Value::Object(mut annotations)) = meta_value(object, "annotations").cloned() else {
        return notes;
    };
    for key in [METRICS, CURRENT_METRICS, CONDITIONS, BEHAVIOR] {
        let note = annotations.remove(key);
        let read = note.and_then(|note| serde_json::from_str(note.as_str()?).ok());
        notes.extend(read.map(|value: Value| (key.to_owned(), value)));
    }
    let left = (!annotations.is_empty()).then(|| annotations.into());
    set_meta(object, "annotations", left);
    notes
}

fn cpu(target: Value, key: &str) -> Value {
    let mut out = json!({"type": "Resource", "resource": {"name": "cpu"}});
    out["resource"][key] = target;
    out
}

/// From version 1 to version 2.
pub(crate) fn to_v2(object: &mut Value) {
    let notes = notes_of(object);
    let noted = |key: &str, table| {
        let metrics = notes.get(key).and_then(Value::as_array);
        metrics.map(|all| all.iter().map(|m| metric_to_v2(m, table)).collect::<Vec<_>>())
    };
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
        let mut metrics = noted(METRICS, WANTED).unwrap_or_default();
        if let Some(percent) = spec.remove(PERCENT).filter(|p| !p.is_null()) {
            metrics.push(cpu(
                json!({"type": "Utilization", "averageUtilization": percent}),
                "target",
            ));
        }
        if !metrics.is_empty() {
            spec.insert("metrics".to_owned(), metrics.into());
        }
        if let Some(behavior) = notes.get(BEHAVIOR) {
            spec.insert("behavior".to_owned(), behavior_to_v2(behavior));
        }
    }
    if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
        let percent = status.remove(CURRENT_PERCENT).filter(|p| !p.is_null());
        let told = percent.map(|percent| vec![cpu(json!({"averageUtilization": percent}), "current")]);
        let metrics = noted(CURRENT_METRICS, CURRENT).or(told);
        status.insert("currentMetrics".to_owned(), metrics.map_or(Value::Null, Value::from));
        if let Some(conditions) = notes.get(CONDITIONS) {
            status.insert("conditions".to_owned(), conditions.clone());
        }
        if status.get("currentReplicas").and_then(Value::as_i64) == Some(0) {
            status.remove("currentReplicas");
        }
    }
    crate::rules::cluster::default_autoscaler(object);
}

#[cfg(test)]
mod tests;
