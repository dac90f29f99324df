//! The schema of a Pod's affinity.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};
use windlass_api::schema::label_selector;

/// The affinity of a Pod.
pub fn affinity(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "properties": {
            "nodeAffinity": node_affinity(),
            "podAffinity": pod_affinity(generator, "Pod affinity: schedules the Pods near the matching Pods."),
            "podAntiAffinity": pod_affinity(generator, "Pod anti-affinity: schedules the Pods away from the matching Pods."),
        },
    })
}

fn list(description: &str, items: &Value) -> Value {
    json!({"description": description, "type": "array", "x-kubernetes-list-type": "atomic", "items": items})
}

fn words(description: &str) -> Value {
    list(description, &json!({"type": "string"}))
}

fn node_selector_term() -> Value {
    let requirements = |description: &str| {
        let requirement = json!({
            "description": "A node selector requirement.",
            "type": "object",
            "required": ["key", "operator"],
            "properties": {
                "key": {"description": "Key of the label or field.", "type": "string"},
                "operator": {"description": "Operator: In, NotIn, Exists, DoesNotExist, Gt or Lt.", "type": "string"},
                "values": words("Values of the operator."),
            },
        });
        list(description, &requirement)
    };
    json!({
        "description": "A node selector term.",
        "type": "object",
        "x-kubernetes-map-type": "atomic",
        "properties": {
            "matchExpressions": requirements("Requirements on node labels."),
            "matchFields": requirements("Requirements on node fields."),
        },
    })
}

fn preferred(term: &str, what: &Value) -> Value {
    let preference = json!({
        "description": "A preferred scheduling term.",
        "type": "object",
        "required": [term, "weight"],
        "properties": {
            term: what,
            "weight": {"description": "Weight of the term, from 1 to 100.", "type": "integer", "format": "int32"},
        },
    });
    list(
        "Preferred scheduling terms. The scheduler favors nodes with a high sum of weights.",
        &preference,
    )
}

fn node_affinity() -> Value {
    let term = node_selector_term();
    json!({
        "description": "Node affinity: selects nodes for the Pods.",
        "type": "object",
        "properties": {
            "preferredDuringSchedulingIgnoredDuringExecution": preferred("preference", &term),
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "description": "Required scheduling terms. A node must match one of them.",
                "type": "object",
                "x-kubernetes-map-type": "atomic",
                "required": ["nodeSelectorTerms"],
                "properties": {"nodeSelectorTerms": list("Node selector terms. They are ORed.", &term)},
            },
        },
    })
}

fn pod_affinity(generator: &mut SchemaGenerator, description: &str) -> Value {
    let mut selector = |description: &str| {
        let mut schema = Value::from(label_selector(generator));
        schema["description"] = json!(description);
        schema
    };
    let term = json!({
        "description": "A Pod affinity term.",
        "type": "object",
        "required": ["topologyKey"],
        "properties": {
            "labelSelector": selector("Label selector of the Pods."),
            "matchLabelKeys": words("Label keys whose values must be equal to those of the scheduled Pod."),
            "mismatchLabelKeys": words("Label keys whose values must differ from those of the scheduled Pod."),
            "namespaceSelector": selector("Label selector of the namespaces of the Pods."),
            "namespaces": words("Namespaces of the Pods."),
            "topologyKey": {"description": "Node label that defines the topology domain.", "type": "string"},
        },
    });
    json!({
        "description": description,
        "type": "object",
        "properties": {
            "preferredDuringSchedulingIgnoredDuringExecution": preferred("podAffinityTerm", &term),
            "requiredDuringSchedulingIgnoredDuringExecution": list("Required scheduling terms. All of them must match.", &term),
        },
    })
}
