//! An object as it is compared before and after the change-over: pure. Every field but those that a server counts up, the order of lists that
//! others depend on, and the managers of each field with what they did.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::recorded::flat::{Flat, element, flatten};

/// An object.
pub(super) fn view(object: &Value) -> Flat {
    let mut kept = object.clone();
    if let Some(metadata) = kept["metadata"].as_object_mut() {
        metadata.retain(|key, _| !matches!(key.as_str(), "managedFields" | "resourceVersion"));
    }
    // The only owner that goes, and its uid is another one in each run.
    for owner in kept["metadata"]["ownerReferences"].as_array_mut().into_iter().flatten() {
        if let Some(owner) = owner.as_object_mut().filter(|owner| owner["kind"] == "Secret") {
            owner.remove("uid");
        }
    }
    let mut flat = Flat::new();
    flatten("", &kept, &mut flat);
    let names = |list: &str, name: &dyn Fn(&Value) -> String| -> String {
        let items = object["metadata"][list].as_array().into_iter().flatten();
        items.map(name).collect::<Vec<_>>().join(", ")
    };
    let finalizers = names("finalizers", &|item| text(item).to_owned());
    flat.insert("metadata.finalizers.order".to_owned(), finalizers);
    let owners = names("ownerReferences", &|owner| {
        format!("{} {}", text(&owner["kind"]), text(&owner["name"]))
    });
    flat.insert("metadata.ownerReferences.order".to_owned(), owners);
    flat.extend(managers(object));
    flat
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The managers of fields. A condition is one field, and so is what is below the first level of a status. An apply of a status is one line:
/// Cluster API v1.14 applies none, so it is the status of a controller of ours, which comes beside those that are there.
fn managers(object: &Value) -> Flat {
    let names = owner_names(object);
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for entry in object["metadata"]["managedFields"].as_array().into_iter().flatten() {
        let who = format!("{} ({})", text(&entry["manager"]), text(&entry["operation"]));
        if entry["subresource"] == "status" && entry["operation"] == "Apply" {
            found.entry("status".to_owned()).or_default().insert(who);
            continue;
        }
        let mut add = |path: String| {
            let path = names.iter().fold(path, |path, (uid, name)| {
                path.replace(&format!("[{uid}]"), &format!("[{name}]"))
            });
            found.entry(path).or_default().insert(who.clone());
        };
        leaves("", &entry["fieldsV1"], &mut add);
    }
    let joined = found.into_iter().map(|(path, who)| {
        let who: Vec<String> = who.into_iter().collect();
        (format!("owner of {path}"), who.join(", "))
    });
    joined.collect()
}

/// The names of owners by their uids, which are others in each run.
fn owner_names(object: &Value) -> Vec<(String, String)> {
    let owners = object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    owners
        .map(|owner| {
            let name = format!("{} {}", text(&owner["kind"]), text(&owner["name"]));
            (text(&owner["uid"]).to_owned(), name)
        })
        .collect()
}

fn leaves(path: &str, fields: &Value, add: &mut impl FnMut(String)) {
    let below = fields.as_object().into_iter().flat_map(Map::iter);
    let below: Vec<(&String, &Value)> = below.filter(|(key, _)| *key != ".").collect();
    let is_condition = path.starts_with("status.conditions[");
    let is_status = path.starts_with("status.") && path != "status.conditions";
    if below.is_empty() || is_condition || is_status {
        add(path.to_owned());
        return;
    }
    for (key, fields) in below {
        leaves(&element(path, key), fields, add);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn managers_are_those_of_fields_and_conditions() {
        let object = json!({
            "metadata": {
                "resourceVersion": "7", "finalizers": ["b", "a"], "ownerReferences": [{"kind": "Cluster", "name": "c", "uid": "u"}],
                "managedFields": [
                    {"manager": "capi-manager", "operation": "Update", "subresource": "status", "fieldsV1": {"f:status": {
                        ".": {}, "f:phase": {}, "f:initialization": {".": {}, "f:provisioned": {}},
                        "f:conditions": {".": {}, "k:{\"type\":\"Ready\"}": {".": {}, "f:status": {}, "f:type": {}}}}}},
                    {"manager": "capi-topology", "operation": "Apply", "fieldsV1": {"f:spec": {"f:replicas": {}}}},
                    {"manager": "capi-manager", "operation": "Apply", "fieldsV1": {"f:spec": {"f:replicas": {}}}},
                ],
            },
        });
        let found = view(&object);
        let expect = [
            ("metadata.finalizers.order", "b, a"),
            ("metadata.finalizers[a]", "\"a\""),
            ("metadata.finalizers[b]", "\"b\""),
            ("metadata.ownerReferences.order", "Cluster c"),
            ("metadata.ownerReferences[Cluster c].kind", "\"Cluster\""),
            ("metadata.ownerReferences[Cluster c].name", "\"c\""),
            ("metadata.ownerReferences[Cluster c].uid", "\"u\""),
            ("owner of spec.replicas", "capi-manager (Apply), capi-topology (Apply)"),
            ("owner of status.conditions[Ready]", "capi-manager (Update)"),
            ("owner of status.initialization", "capi-manager (Update)"),
            ("owner of status.phase", "capi-manager (Update)"),
        ];
        let found: Vec<(&str, &str)> = found
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str()))
            .collect();
        assert_eq!(found, expect);
    }
}
