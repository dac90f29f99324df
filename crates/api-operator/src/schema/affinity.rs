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
            "podAffinity": pod_affinity(generator, "Pods that these want to be near to."),
            "podAntiAffinity": pod_affinity(generator, "Pods that these want to be far from."),
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
            "description": "One requirement.",
            "type": "object",
            "required": ["key", "operator"],
            "properties": {
                "key": {"description": "What is looked at.", "type": "string"},
                "operator": {"description": "In, NotIn, Exists, DoesNotExist, Gt or Lt.", "type": "string"},
                "values": words("The values to compare with."),
            },
        });
        list(description, &requirement)
    };
    json!({
        "description": "Which nodes.",
        "type": "object",
        "x-kubernetes-map-type": "atomic",
        "properties": {
            "matchExpressions": requirements("Requirements on labels."),
            "matchFields": requirements("Requirements on fields."),
        },
    })
}

fn preferred(term: &str, what: &Value) -> Value {
    let preference = json!({
        "description": "One wish.",
        "type": "object",
        "required": [term, "weight"],
        "properties": {
            term: what,
            "weight": {"description": "How much it counts, from 1 to 100.", "type": "integer", "format": "int32"},
        },
    });
    list("Wishes, by weight.", &preference)
}

fn node_affinity() -> Value {
    let term = node_selector_term();
    json!({
        "description": "Nodes that the Pods want.",
        "type": "object",
        "properties": {
            "preferredDuringSchedulingIgnoredDuringExecution": preferred("preference", &term),
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "description": "Demands; a node must fit one of the terms.",
                "type": "object",
                "x-kubernetes-map-type": "atomic",
                "required": ["nodeSelectorTerms"],
                "properties": {"nodeSelectorTerms": list("The terms.", &term)},
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
        "description": "Which Pods, and how near.",
        "type": "object",
        "required": ["topologyKey"],
        "properties": {
            "labelSelector": selector("The labels of the Pods."),
            "matchLabelKeys": words("Labels in which the Pods must be like these."),
            "mismatchLabelKeys": words("Labels in which the Pods must differ from these."),
            "namespaceSelector": selector("The labels of the Pods' namespaces."),
            "namespaces": words("The Pods' namespaces."),
            "topologyKey": {"description": "The label of nodes that says what is near.", "type": "string"},
        },
    });
    json!({
        "description": description,
        "type": "object",
        "properties": {
            "preferredDuringSchedulingIgnoredDuringExecution": preferred("podAffinityTerm", &term),
            "requiredDuringSchedulingIgnoredDuringExecution": list("Demands, all of them.", &term),
        },
    })
}
