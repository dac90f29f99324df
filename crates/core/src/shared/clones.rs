//! Objects made from provider templates.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::{Map, Value, json};

use crate::shared::keys::annotations;

/// What a clone is given beside what its template says.
#[derive(Clone, Debug, Default)]
pub(crate) struct CloneInput<'a> {
    pub(crate) name: &'a str,
    pub(crate) namespace: &'a str,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) annotations: BTreeMap<String, String>,
    pub(crate) owner: Option<OwnerReference>,
}

fn strings(value: Option<&Value>) -> BTreeMap<String, String> {
    let pairs = value.and_then(Value::as_object).into_iter().flatten();
    pairs
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect()
}

/// The group of an `apiVersion`.
pub(crate) fn group_of(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

/// The object that `template` describes; `Err` says what is wrong with the template.
pub(crate) fn clone_template(template: &Value, input: &CloneInput<'_>) -> Result<Value, String> {
    let text = |path: &str| template.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let (kind, api_version, name) = (text("/kind"), text("/apiVersion"), text("/metadata/name"));
    let body = template
        .pointer("/spec/template")
        .and_then(Value::as_object)
        .ok_or_else(|| format!("{kind} {}/{name} has no spec.template to clone", input.namespace))?;
    let metadata = body.get("metadata");
    let mut labels = strings(metadata.and_then(|metadata| metadata.get("labels")));
    labels.extend(input.labels.clone());
    let mut notes = strings(metadata.and_then(|metadata| metadata.get("annotations")));
    notes.extend(input.annotations.clone());
    notes.insert(annotations::CLONED_FROM_NAME.to_owned(), name.to_owned());
    notes.insert(
        annotations::CLONED_FROM_GROUP_KIND.to_owned(),
        format!("{kind}.{}", group_of(api_version)),
    );

    let mut clone: Map<String, Value> = body.iter().filter(|(key, _)| *key != "metadata").map(own).collect();
    let mut meta = json!({ "name": input.name, "namespace": input.namespace, "labels": labels, "annotations": notes });
    if let Some(owner) = &input.owner {
        meta["ownerReferences"] = json!([owner]);
    }
    clone.insert("metadata".to_owned(), meta);
    clone.insert("apiVersion".to_owned(), json!(api_version));
    clone.insert("kind".to_owned(), json!(kind.strip_suffix("Template").unwrap_or(kind)));
    Ok(Value::Object(clone))
}

fn own((key, value): (&String, &Value)) -> (String, Value) {
    (key.clone(), value.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clone_carries_where_it_came_from() {
        let template = json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "DevMachineTemplate",
            "metadata": { "name": "t" },
            "spec": { "template": { "metadata": { "labels": { "a": "template", "b": "template" } }, "spec": { "x": 1 } } },
        });
        let input = CloneInput {
            name: "m",
            namespace: "ns",
            labels: [("a".to_owned(), "machine".to_owned())].into(),
            ..CloneInput::default()
        };
        let clone = clone_template(&template, &input).unwrap();
        assert_eq!(clone["kind"], "DevMachine");
        assert_eq!(clone["spec"], json!({ "x": 1 }));
        assert_eq!(clone["metadata"]["labels"], json!({ "a": "machine", "b": "template" }));
        assert_eq!(
            clone["metadata"]["annotations"],
            json!({
                "cluster.x-k8s.io/cloned-from-name": "t",
                "cluster.x-k8s.io/cloned-from-groupkind": "DevMachineTemplate.infrastructure.cluster.x-k8s.io",
            })
        );
    }

    #[test]
    fn a_template_without_content_is_named() {
        let template = json!({ "kind": "XTemplate", "metadata": { "name": "t" }, "spec": {} });
        let input = CloneInput {
            name: "m",
            namespace: "ns",
            ..CloneInput::default()
        };
        assert_eq!(
            clone_template(&template, &input),
            Err("XTemplate ns/t has no spec.template to clone".to_owned())
        );
    }
}
