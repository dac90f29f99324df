//! Builds CustomResourceDefinitions from the static facts of kinds.

use serde_json::{Map, Value, json};

use crate::kind::{ApiKind, Column};
use crate::schema;

/// The CustomResourceDefinition of a kind.
pub fn crd<K: ApiKind>() -> Value {
    let mut names = json!({
        "kind": K::KIND,
        "listKind": format!("{}List", K::KIND),
        "plural": K::PLURAL,
        "singular": K::KIND.to_lowercase(),
    });
    if !K::CATEGORIES.is_empty() {
        names["categories"] = json!(K::CATEGORIES);
    }
    if !K::SHORT_NAMES.is_empty() {
        names["shortNames"] = json!(K::SHORT_NAMES);
    }
    let mut labels = json!({});
    if !K::PROVIDER.is_empty() {
        labels["cluster.x-k8s.io/provider"] = json!(K::PROVIDER);
    }
    for (label, value) in K::LABELS {
        labels[*label] = json!(value);
    }
    if K::CONTRACT {
        labels["cluster.x-k8s.io/v1beta2"] = json!(K::VERSION);
    }
    let mut version = json!({
        "name": K::VERSION,
        "served": true,
        "storage": true,
        "schema": {"openAPIV3Schema": open_api_schema::<K>()},
    });
    if !K::COLUMNS.is_empty() {
        version["additionalPrinterColumns"] = K::COLUMNS.iter().map(column).collect();
    }
    if let Some(subresources) = subresources::<K>() {
        version["subresources"] = subresources;
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{}.{}", K::PLURAL, K::GROUP), "labels": labels},
        "spec": {"group": K::GROUP, "names": names, "scope": "Namespaced", "versions": [version]},
    })
}

fn column(column: &Column) -> Value {
    let mut value = json!({"name": column.name, "type": column.type_, "jsonPath": column.path});
    if !column.description.is_empty() {
        value["description"] = json!(column.description);
    }
    if column.priority != 0 {
        value["priority"] = json!(column.priority);
    }
    value
}

fn subresources<K: ApiKind>() -> Option<Value> {
    let mut subresources = Map::new();
    if K::STATUS_SUBRESOURCE {
        subresources.insert("status".to_owned(), json!({}));
    }
    if let Some(scale) = K::SCALE {
        subresources.insert(
            "scale".to_owned(),
            json!({
                "specReplicasPath": scale.spec_replicas_path,
                "statusReplicasPath": scale.status_replicas_path,
                "labelSelectorPath": scale.label_selector_path,
            }),
        );
    }
    (!subresources.is_empty()).then_some(Value::Object(subresources))
}

/// The structural schema of a kind.
pub fn open_api_schema<K: ApiKind>() -> Value {
    let mut properties = Map::new();
    K::properties(&mut schema::generator(), &mut properties);
    properties.insert(
        "apiVersion".to_owned(),
        json!({"type": "string", "description": "API group and version of this object."}),
    );
    properties.insert(
        "kind".to_owned(),
        json!({"type": "string", "description": "Kind of this object."}),
    );
    properties.insert("metadata".to_owned(), json!({"type": "object"}));
    let mut root = json!({
        "description": K::DESCRIPTION.trim(),
        "type": "object",
        "properties": properties,
    });
    if !K::REQUIRED.is_empty() {
        root["required"] = json!(K::REQUIRED);
    }
    schema::structural(&mut root);
    root
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::{Cluster, MachineSet};

    #[test]
    fn core_kinds_follow_no_contract_label() {
        let labels = crd::<Cluster>()["metadata"]["labels"].clone();
        assert_eq!(labels, json!({"cluster.x-k8s.io/provider": "cluster-api"}));
    }

    #[test]
    fn scalable_kinds_have_both_subresources() {
        let subresources = crd::<MachineSet>()["spec"]["versions"][0]["subresources"].clone();
        assert_eq!(subresources["status"], json!({}));
        assert_eq!(subresources["scale"]["labelSelectorPath"], ".status.selector");
    }

    #[test]
    fn limits_and_list_types_reach_the_schema() {
        let schema = open_api_schema::<Cluster>();
        let gates = &schema["properties"]["spec"]["properties"]["availabilityGates"];
        assert_eq!(gates["maxItems"], 32);
        assert_eq!(gates["x-kubernetes-list-map-keys"], json!(["conditionType"]));
        assert_eq!(schema["required"], json!(["spec"]));
        assert_eq!(schema["properties"]["spec"]["minProperties"], 1);
    }
}
