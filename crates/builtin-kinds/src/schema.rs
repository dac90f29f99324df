//! Schemas of the built-in kinds, derived from those that a real server publishes.
//!
//! A published schema describes the wire format. The stored form follows from it. A field that is required, or has a zero value
//! as default, is always written, as Go's encoder does. A required list or time is written as null if it is not set. The
//! validation of kube-apiserver (required fields, enums, limits) is not part of the schema, but in `rules`, with its own
//! messages.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use windlass_schema::Schema;

use super::data;

/// Fields with a zero value as published default that are omitted if they have it.
const LEFT_OUT: &[(&str, &str)] = &[
    ("ConfigMapEnvSource", "name"),
    ("ConfigMapKeySelector", "name"),
    ("ConfigMapProjection", "name"),
    ("ConfigMapVolumeSource", "name"),
    ("LocalObjectReference", "name"),
    ("SecretEnvSource", "name"),
    ("SecretKeySelector", "name"),
    ("SecretProjection", "name"),
    ("ReplicationControllerSpec", "minReadySeconds"),
    ("ScaleSpec", "replicas"),
    ("NodeRuntimeHandler", "name"),
];

/// Optional fields that are written as null.
const NULL: &[(&str, &str)] = &[
    ("io.k8s.api.core.v1.Event", "firstTimestamp"),
    ("io.k8s.api.core.v1.Event", "lastTimestamp"),
    ("io.k8s.api.core.v1.Event", "eventTime"),
    ("io.k8s.api.events.v1.Event", "deprecatedFirstTimestamp"),
    ("io.k8s.api.events.v1.Event", "deprecatedLastTimestamp"),
    ("io.k8s.api.discovery.v1.EndpointSlice", "endpoints"),
    ("io.k8s.api.discovery.v1.EndpointSlice", "ports"),
    ("io.k8s.api.rbac.v1.Role", "rules"),
    ("io.k8s.api.rbac.v1.ClusterRole", "rules"),
    (
        "io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerStatus",
        "currentMetrics",
    ),
];

/// Times that are written as null if they are not set: those of conditions and of container states.
const TIMES: &[&str] = &[
    "finishedAt",
    "lastHeartbeatTime",
    "lastProbeTime",
    "lastTransitionTime",
    "lastUpdateTime",
    "startedAt",
];

/// Types that accept any JSON value.
const ANY: &[&str] = &[
    "JSON",
    "JSONSchemaPropsOrArray",
    "JSONSchemaPropsOrBool",
    "JSONSchemaPropsOrStringArray",
];

/// The schema of a built-in type.
pub fn parsed(name: &str) -> Option<Arc<Schema>> {
    let definitions = Value::Object(closure(name));
    match Schema::open_api(definitions.get(name)?, &definitions) {
        Ok(schema) => Some(Arc::new(schema)),
        Err(error) => {
            tracing::error!(%error, name, "the schema of a built-in type cannot be used");
            None
        }
    }
}

/// The zero value of a kind: nested structs, and zeros that are always written. No field manager owns these fields.
pub fn nothing(schema: &Schema) -> Value {
    fn zeros(value: &mut Value) {
        if let Value::Object(map) = value {
            map.retain(|_, v| match v {
                Value::Null | Value::Object(_) | Value::Bool(false) => true,
                Value::String(text) => text.is_empty(),
                Value::Number(n) => n.as_f64() == Some(0.0),
                _ => false,
            });
            map.values_mut().for_each(zeros);
        }
    }
    let mut out = json!({});
    windlass_schema::default(schema, &mut out);
    zeros(&mut out);
    out
}

/// A definition and all definitions that it refers to, in the stored form.
fn closure(name: &str) -> Map<String, Value> {
    let mut out = Map::new();
    let mut queue = vec![name.to_owned()];
    while let Some(name) = queue.pop() {
        if out.contains_key(&name) {
            continue;
        }
        let Some(mut definition) = data::definition(&name) else {
            continue;
        };
        references(&definition, &mut queue);
        adapt(&name, &mut definition);
        out.insert(name, definition);
    }
    out
}

/// The names of the definitions that a schema refers to.
pub fn references(schema: &Value, out: &mut Vec<String>) {
    match schema {
        Value::Object(map) => {
            for (key, value) in map {
                match (key.as_str(), value) {
                    ("$ref", Value::String(text)) => out.extend(text.rsplit('/').next().map(str::to_owned)),
                    _ => references(value, out),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|v| references(v, out)),
        _ => {}
    }
}

/// Converts a definition from the published to the stored form.
fn adapt(name: &str, definition: &mut Value) {
    let short = name.rsplit('.').next().unwrap_or(name);
    if ANY.contains(&short) {
        *definition = json!({"x-kubernetes-preserve-unknown-fields": true});
        return;
    }
    match short {
        // The whole value is atomic.
        "RawExtension" => {
            *definition = json!({
                "type": "object", "x-kubernetes-preserve-unknown-fields": true, "x-kubernetes-map-type": "atomic",
            });
        }
        "FieldsV1" => *definition = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
        "IntOrString" | "Quantity" => *definition = json!({"x-kubernetes-int-or-string": true}),
        _ => {}
    }
    let Some(map) = definition.as_object_mut() else {
        return;
    };
    let required = map.remove("required");
    let required = windlass_objects::metadata::strings(required.as_ref());
    let Some(Value::Object(properties)) = map.get_mut("properties") else {
        return;
    };
    for (field, property) in properties {
        let is_time = || property.to_string().contains("Time\"}");
        let null = NULL.contains(&(name, field))
            || TIMES.contains(&field.as_str()) && is_time()
            || required.contains(&field.as_str())
                && property.get("default").is_none()
                && (property["type"] == "array" || is_time());
        let Some(property) = property.as_object_mut() else {
            continue;
        };
        property.remove("enum");
        if let Some(Value::Object(items)) = property.get_mut("items") {
            items.remove("enum");
            // Items are never created by defaulting.
            items.remove("default");
        }
        if null {
            property.insert("nullable".into(), true.into());
            property.insert("default".into(), Value::Null);
        }
        if LEFT_OUT.contains(&(short, field)) {
            property.remove("default");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_resource_has_a_usable_schema() {
        for kind in crate::KINDS {
            assert!(parsed(&kind.type_name()).is_some(), "{}", kind.kind);
        }
    }

    #[test]
    fn every_reference_leads_to_a_definition() {
        for name in data::definitions() {
            let mut found = Vec::new();
            references(&data::definition(name).unwrap(), &mut found);
            for target in found {
                assert!(data::definition(&target).is_some(), "{name} refers to {target}");
            }
        }
    }

    #[test]
    fn every_exception_names_a_field() {
        for (name, field) in NULL {
            let definition = data::definition(name).unwrap();
            assert!(definition["properties"].get(field).is_some(), "{name} {field}");
        }
        for (short, field) in LEFT_OUT {
            let known = data::definitions()
                .filter(|name| name.rsplit('.').next() == Some(short))
                .filter_map(data::definition)
                .any(|d| d["properties"].get(field).is_some());
            assert!(known, "{short} {field}");
        }
    }

    #[test]
    fn what_go_always_writes_is_filled_in() {
        let schema = parsed("io.k8s.api.discovery.v1.EndpointSlice").unwrap();
        let mut object = json!({"metadata": {"name": "a"}, "addressType": "IPv4"});
        windlass_schema::default(&schema, &mut object);
        assert_eq!(
            object,
            json!({"metadata": {"name": "a"}, "addressType": "IPv4", "endpoints": null, "ports": null})
        );
    }
}
