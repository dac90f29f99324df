//! Creates objects from templates.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::{Map, Value, json};
use windlass_api::{annotations, labels};

use crate::path::{str_at, value_at};

/// The inputs of a clone.
#[derive(Clone, Debug)]
pub struct Cloning<'a> {
    /// The template object.
    pub template: &'a Value,
    /// Namespace of the clone.
    pub namespace: &'a str,
    /// Name of the clone.
    pub name: &'a str,
    /// The name of its cluster.
    pub cluster_name: &'a str,
    /// Its owner.
    pub owner: Option<OwnerReference>,
    /// Labels in addition to those of the template.
    pub labels: BTreeMap<String, String>,
    /// Annotations in addition to those of the template.
    pub annotations: BTreeMap<String, String>,
}

/// Whether an object has a `spec.template` to clone.
pub fn is_template(object: &Value) -> bool {
    value_at(object, &["spec", "template"]).is_some_and(Value::is_object)
}

/// The object from `spec.template` of a template, with its origin in annotations and its cluster in a label.
pub fn clone_template(from: &Cloning<'_>) -> Value {
    let template = from.template;
    let mut object = value_at(template, &["spec", "template"])
        .filter(|value| value.is_object())
        .cloned()
        .unwrap_or_else(|| json!({}));
    let kind = str_at(template, &["kind"]).unwrap_or_default();
    let api_version = str_at(template, &["apiVersion"]).unwrap_or_default();
    let group = api_version.split_once('/').map_or("", |(group, _)| group);

    let mut labels_of = strings(&object, "labels");
    labels_of.extend(from.labels.clone());
    labels_of.insert(labels::CLUSTER_NAME.to_owned(), from.cluster_name.to_owned());
    let mut annotations_of = strings(&object, "annotations");
    annotations_of.extend(from.annotations.clone());
    let template_name = str_at(template, &["metadata", "name"]).unwrap_or_default();
    annotations_of.insert(annotations::CLONED_FROM_NAME.to_owned(), template_name.to_owned());
    let group_kind = if group.is_empty() {
        kind.to_owned()
    } else {
        format!("{kind}.{group}")
    };
    annotations_of.insert(annotations::CLONED_FROM_GROUP_KIND.to_owned(), group_kind);

    let mut meta = Map::new();
    meta.insert("name".to_owned(), json!(from.name));
    meta.insert("namespace".to_owned(), json!(from.namespace));
    meta.insert("labels".to_owned(), json!(labels_of));
    meta.insert("annotations".to_owned(), json!(annotations_of));
    if let Some(owner) = &from.owner {
        meta.insert("ownerReferences".to_owned(), json!([owner]));
    }
    object["metadata"] = Value::Object(meta);
    if str_at(&object, &["apiVersion"]).is_none() {
        object["apiVersion"] = json!(api_version);
    }
    if str_at(&object, &["kind"]).is_none() {
        object["kind"] = json!(kind.strip_suffix("Template").unwrap_or(kind));
    }
    object
}

fn strings(object: &Value, field: &str) -> BTreeMap<String, String> {
    value_at(object, &["metadata", field])
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clone_knows_its_origin_and_its_cluster() {
        let template = json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2",
            "kind": "DevMachineTemplate",
            "metadata": {"name": "workers", "uid": "u"},
            "spec": {"template": {
                "metadata": {"labels": {"a": "template", "b": "template"}, "annotations": {"x": "1"}, "finalizers": ["f"]},
                "spec": {"backend": {"inMemory": {}}},
            }},
        });
        let object = clone_template(&Cloning {
            template: &template,
            namespace: "default",
            name: "m-1",
            cluster_name: "c",
            owner: Some(OwnerReference {
                name: "m-1".to_owned(),
                ..OwnerReference::default()
            }),
            labels: [("a".to_owned(), "mine".to_owned())].into(),
            annotations: BTreeMap::new(),
        });
        assert_eq!(
            object,
            json!({
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2",
                "kind": "DevMachine",
                "metadata": {
                    "name": "m-1",
                    "namespace": "default",
                    "labels": {"a": "mine", "b": "template", "cluster.x-k8s.io/cluster-name": "c"},
                    "annotations": {
                        "x": "1",
                        "cluster.x-k8s.io/cloned-from-name": "workers",
                        "cluster.x-k8s.io/cloned-from-groupkind": "DevMachineTemplate.infrastructure.cluster.x-k8s.io",
                    },
                    "ownerReferences": [{"apiVersion": "", "kind": "", "name": "m-1", "uid": ""}],
                },
                "spec": {"backend": {"inMemory": {}}},
            })
        );
    }

    #[test]
    fn a_template_without_content_is_tolerated() {
        let template = json!({"apiVersion": "v1", "kind": "FooTemplate", "metadata": {"name": "t"}, "spec": {}});
        let object = clone_template(&Cloning {
            template: &template,
            namespace: "n",
            name: "x",
            cluster_name: "c",
            owner: None,
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
        });
        assert_eq!(object["kind"], "Foo");
        assert_eq!(
            object["metadata"]["annotations"]["cluster.x-k8s.io/cloned-from-groupkind"],
            "FooTemplate"
        );
        assert_eq!(object.get("spec"), None);
    }
}
