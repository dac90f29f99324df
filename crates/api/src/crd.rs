//! Builds CustomResourceDefinitions from the static facts of kinds.

use schemars::SchemaGenerator;
use serde_json::{Map, Value, json};

use crate::kind::{ApiKind, Column, Scale};
use crate::{labels, schema};

/// The facts of one kind, so that the definitions of all kinds are made by the same code.
struct Facts {
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
    is_namespaced: bool,
    short_names: &'static [&'static str],
    categories: &'static [&'static str],
    provider: &'static str,
    labels: &'static [(&'static str, &'static str)],
    has_contract: bool,
    columns: &'static [Column],
    has_status: bool,
    scale: Option<Scale>,
    required: &'static [&'static str],
    description: &'static str,
    properties: fn(&mut SchemaGenerator, &mut Map<String, Value>),
}

impl Facts {
    const fn of<K: ApiKind>() -> Self {
        Self {
            group: K::GROUP,
            version: K::VERSION,
            kind: K::KIND,
            plural: K::PLURAL,
            is_namespaced: K::NAMESPACED,
            short_names: K::SHORT_NAMES,
            categories: K::CATEGORIES,
            provider: K::PROVIDER,
            labels: K::LABELS,
            has_contract: K::CONTRACT,
            columns: K::COLUMNS,
            has_status: K::STATUS_SUBRESOURCE,
            scale: K::SCALE,
            required: K::REQUIRED,
            description: K::DESCRIPTION,
            properties: K::properties,
        }
    }
}

/// The CustomResourceDefinition of a kind.
pub fn crd<K: ApiKind>() -> Value {
    definition(&const { Facts::of::<K>() })
}

/// The entry in `spec.versions` of a version that is served, but not the storage version. The API server warns of a deprecated one.
pub fn older_version<K: ApiKind>(is_deprecated: bool) -> Value {
    let mut version = version(&const { Facts::of::<K>() });
    version["storage"] = json!(false);
    if is_deprecated {
        version["deprecated"] = json!(true);
    }
    version
}

/// The structural schema of a kind.
pub fn open_api_schema<K: ApiKind>() -> Value {
    structural(&const { Facts::of::<K>() })
}

fn definition(facts: &Facts) -> Value {
    let mut names = json!({
        "kind": facts.kind,
        "listKind": format!("{}List", facts.kind),
        "plural": facts.plural,
        "singular": facts.kind.to_lowercase(),
    });
    if !facts.categories.is_empty() {
        names["categories"] = json!(facts.categories);
    }
    if !facts.short_names.is_empty() {
        names["shortNames"] = json!(facts.short_names);
    }
    // clusterctl moves objects of the definitions that have its label, and no others.
    let mut labels = json!({(labels::CLUSTERCTL): ""});
    if !facts.provider.is_empty() {
        labels[labels::PROVIDER] = json!(facts.provider);
    }
    for (label, value) in facts.labels {
        labels[*label] = json!(value);
    }
    if facts.has_contract {
        labels["cluster.x-k8s.io/v1beta2"] = json!(facts.version);
    }
    let mut version = version(facts);
    version["storage"] = json!(true);
    let scope = if facts.is_namespaced { "Namespaced" } else { "Cluster" };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{}.{}", facts.plural, facts.group), "labels": labels},
        "spec": {"group": facts.group, "names": names, "scope": scope, "versions": [version]},
    })
}

/// The entry of a version in `spec.versions`, except for whether it is the storage version.
fn version(facts: &Facts) -> Value {
    let mut version = json!({
        "name": facts.version,
        "served": true,
        "schema": {"openAPIV3Schema": structural(facts)},
    });
    if !facts.columns.is_empty() {
        version["additionalPrinterColumns"] = facts.columns.iter().map(column).collect();
    }
    if let Some(subresources) = subresources(facts) {
        version["subresources"] = subresources;
    }
    version
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

fn subresources(facts: &Facts) -> Option<Value> {
    let mut subresources = Map::new();
    if facts.has_status {
        subresources.insert("status".to_owned(), json!({}));
    }
    if let Some(scale) = &facts.scale {
        let mut paths = json!({
            "specReplicasPath": scale.spec_replicas_path,
            "statusReplicasPath": scale.status_replicas_path,
        });
        if let Some(selector) = scale.label_selector_path {
            paths["labelSelectorPath"] = json!(selector);
        }
        subresources.insert("scale".to_owned(), paths);
    }
    (!subresources.is_empty()).then_some(Value::Object(subresources))
}

fn structural(facts: &Facts) -> Value {
    let mut properties = Map::new();
    (facts.properties)(&mut schema::generator(), &mut properties);
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
        "description": facts.description.trim(),
        "type": "object",
        "properties": properties,
    });
    if !facts.required.is_empty() {
        root["required"] = json!(facts.required);
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
        assert_eq!(
            labels,
            json!({"clusterctl.cluster.x-k8s.io": "", "cluster.x-k8s.io/provider": "cluster-api"})
        );
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
