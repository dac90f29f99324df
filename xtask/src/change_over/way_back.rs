//! What Cluster API v1.14 would write if it took the management cluster back. It applies the fields that each of its appliers had, with the
//! present values: that changes no value, and takes from the appliers of the same names the fields that ours had beside them. Everything else
//! it patches: there our field managers must not keep what it removes.

use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Map, Value, json};
use windlass_manager::registry::kinds;

use super::recording::named;

/// The field manager of the user who wrote the Cluster.
const USER: &str = "user";
/// The field managers that make bootstrap and infrastructure objects.
const CREATORS: [&str; 2] = ["capi-machineset", "capi-kubeadmcontrolplane"];

/// Applies to each object that is still there what was applied to it before: `before` has the managers of fields then, `now` the values.
pub(super) async fn apply_as_before(client: &Client, before: &[Value], now: &[Value]) -> Result<(), String> {
    for object in now {
        let Some(recorded) = before.iter().find(|recorded| named(recorded) == named(object)) else {
            continue;
        };
        for entry in recorded["metadata"]["managedFields"].as_array().into_iter().flatten() {
            let is_applier = entry["operation"] == "Apply" && entry["manager"] != USER;
            if is_applier && entry.get("subresource").is_none() {
                apply(client, object, entry).await?;
            }
        }
    }
    Ok(())
}

async fn apply(client: &Client, object: &Value, entry: &Value) -> Result<(), String> {
    let (kind, name) = named(object);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let version = text(&entry["apiVersion"]);
    let api = api(client, object, &version)?;
    let mut intent = part(&entry["fieldsV1"], object);
    intent["apiVersion"] = json!(version);
    intent["kind"] = json!(kind);
    intent["metadata"]["name"] = json!(name);
    intent["metadata"]["uid"] = object["metadata"]["uid"].clone();
    let parameters = PatchParams::apply(&text(&entry["manager"])).force();
    let applied = api.patch(&name, &parameters, &Patch::Apply(&intent)).await;
    applied.map(drop).map_err(|error| format!("{kind} {name}: {error}"))
}

/// Tries what Cluster API patches, without storing it: it removes each finalizer when it is done with an object, and writes the conditions of a
/// status as a whole. Fails where something of ours would stay.
pub(super) async fn patch_freely(client: &Client, objects: &[Value]) -> Result<(), String> {
    for object in objects.iter().filter(|object| object["kind"] != "Secret") {
        let (kind, name) = named(object);
        let wrong = |error: String| format!("{kind} {name}: {error}");
        let api = api(client, object, object["apiVersion"].as_str().unwrap_or_default())?;
        let parameters = PatchParams {
            dry_run: true,
            field_manager: Some("capi-manager".to_owned()),
            ..PatchParams::default()
        };
        if object["metadata"].get("finalizers").is_some() {
            let patch = json!({"metadata": {"finalizers": null}});
            let patched = api.patch(&name, &parameters, &Patch::Merge(&patch)).await;
            let left = patched.map_err(|error| wrong(error.to_string()))?.metadata.finalizers;
            if let Some(left) = left.filter(|left| !left.is_empty()) {
                return Err(wrong(format!(
                    "these finalizers stay although they were removed: {}",
                    left.join(", ")
                )));
            }
        }
        let Some((_, conditions)) = object["status"]["conditions"]
            .as_array()
            .and_then(|all| all.split_first())
        else {
            continue;
        };
        let patch = json!({"status": {"conditions": conditions}});
        let patched = api.patch_status(&name, &parameters, &Patch::Merge(&patch)).await;
        let patched = patched.map_err(|error| wrong(error.to_string()))?;
        let left = patched.data["status"]["conditions"].as_array().map_or(0, Vec::len);
        if left != conditions.len() {
            return Err(wrong(format!(
                "{left} conditions stay of {} that were written",
                conditions.len()
            )));
        }
    }
    Ok(())
}

/// Does to bootstrap and infrastructure objects that were made meanwhile what Cluster API v1.14 does to those of releases before v1.12, whose
/// creator also applied labels and annotations: it drops the creator's entry, and applies labels and annotations under another name. Fails where
/// anything else changes. Returns the number of these objects.
pub(super) async fn migrate_made(client: &Client, before: &[Value], now: &[Value]) -> Result<usize, String> {
    let is_made = |object: &&Value| {
        let kind = object["kind"] == "KubeadmConfig" || object["kind"] == "DevMachine";
        kind && !before.iter().any(|recorded| named(recorded) == named(object))
    };
    let mut made = 0;
    for object in now.iter().filter(is_made) {
        made += 1;
        let (kind, name) = named(object);
        let wrong = |error: &dyn std::fmt::Display| format!("{kind} {name}: {error}");
        let entries = object["metadata"]["managedFields"].as_array().into_iter().flatten();
        let is_creator = |entry: &&Value| CREATORS.iter().any(|creator| entry["manager"] == *creator);
        let (creator, mut rest): (Vec<&Value>, Vec<&Value>) = entries.partition(is_creator);
        let [creator] = creator.as_slice() else {
            return Err(wrong(&"expected one entry of the controller that made it"));
        };
        let manager = format!("{}-metadata", creator["manager"].as_str().unwrap_or_default());
        let seed = json!({
            "manager": manager, "operation": "Apply", "apiVersion": object["apiVersion"], "fieldsType": "FieldsV1",
            "time": creator["time"], "fieldsV1": {"f:metadata": {"f:name": {}}},
        });
        rest.push(&seed);
        let metadata = &object["metadata"];
        let patch = json!({"metadata": {"managedFields": rest, "resourceVersion": metadata["resourceVersion"]}});
        let api = api(client, object, object["apiVersion"].as_str().unwrap_or_default())?;
        let migrated = api.patch(&name, &PatchParams::default(), &Patch::Merge(&patch)).await;
        migrated.map_err(|error| wrong(&error))?;
        let mut annotations = metadata["annotations"].clone();
        if let Some(annotations) = annotations.as_object_mut() {
            annotations.retain(|key, _| !key.starts_with("cluster.x-k8s.io/cloned-from"));
        }
        let intent = json!({
            "apiVersion": object["apiVersion"], "kind": kind,
            "metadata": {"name": name, "uid": metadata["uid"], "labels": metadata["labels"], "annotations": annotations},
        });
        let parameters = PatchParams::apply(&manager).force();
        let applied = api.patch(&name, &parameters, &Patch::Apply(&intent)).await;
        let applied = serde_json::to_value(applied.map_err(|error| wrong(&error))?).map_err(|error| wrong(&error))?;
        for field in ["labels", "annotations", "finalizers", "ownerReferences", "generation"] {
            if applied["metadata"][field] != metadata[field] {
                return Err(wrong(&format!(
                    "metadata.{field} was {}, is {}",
                    metadata[field], applied["metadata"][field]
                )));
            }
        }
    }
    Ok(made)
}

/// Access to the kind of an object in a version.
fn api(client: &Client, object: &Value, version: &str) -> Result<Api<DynamicObject>, String> {
    let (kind, _) = named(object);
    let (group, short) = version.split_once('/').unwrap_or(("", version));
    let plural = kinds::find(&kind)
        .ok_or_else(|| format!("{kind} is none of our kinds"))?
        .plural;
    let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, short, &kind), plural);
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
    Ok(Api::namespaced_with(client.clone(), namespace, &resource))
}

/// The part of a value that a set of fields names.
fn part(fields: &Value, value: &Value) -> Value {
    let below = fields.as_object().into_iter().flat_map(Map::iter);
    let below: Vec<(&String, &Value)> = below.filter(|(key, _)| *key != ".").collect();
    match value {
        _ if below.is_empty() => value.clone(),
        Value::Object(map) => {
            let kept = below.into_iter().filter_map(|(key, fields)| {
                let name = key.strip_prefix("f:")?;
                let value = map.get(name)?;
                // A map of others, of which the applier had none: it applied an empty one.
                let is_empty = matches!(name, "labels" | "annotations") && fields == &json!({});
                Some((name.to_owned(), if is_empty { json!({}) } else { part(fields, value) }))
            });
            Value::Object(kept.collect())
        }
        // In the order of the list, which an apply sets.
        Value::Array(items) => Value::Array(items.iter().filter_map(|item| item_part(&below, item)).collect()),
        other => other.clone(),
    }
}

/// The part of a list's item, if a set of fields has it.
fn item_part(below: &[(&String, &Value)], item: &Value) -> Option<Value> {
    below.iter().find_map(|(key, fields)| {
        let (how, rest) = key.split_at_checked(2)?;
        let named: Value = serde_json::from_str(rest).ok()?;
        let keys = named.as_object().filter(|_| how == "k:");
        let Some(keys) = keys else {
            return (*item == named).then_some(named);
        };
        if !keys.iter().all(|(key, value)| item.get(key) == Some(value)) {
            return None;
        }
        let mut kept = part(fields, item);
        kept.as_object_mut()?.extend(keys.clone());
        Some(kept)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_of_an_applier_has_its_fields_and_the_keys_of_its_items() {
        let object = json!({
            "metadata": {"labels": {"a": "1", "b": "2"}, "annotations": {"c": "3"}, "finalizers": ["y", "z", "x"],
                "ownerReferences": [{"uid": "u", "kind": "K"}, {"uid": "v", "kind": "L"}]},
            "spec": {"list": [1, 2], "one": {"two": 2, "three": 3}, "named": [{"name": "n", "value": 1, "more": 2}]},
        });
        let fields = json!({
            "f:metadata": {"f:labels": {".": {}, "f:a": {}}, "f:annotations": {}, "f:finalizers": {"v:\"x\"": {}, "v:\"y\"": {}},
                "f:ownerReferences": {"k:{\"uid\":\"v\"}": {}}},
            "f:spec": {"f:list": {}, "f:one": {"f:two": {}}, "f:gone": {}, "f:named": {"k:{\"name\":\"n\"}": {".": {}, "f:value": {}}}},
        });
        let expect = json!({
            "metadata": {"labels": {"a": "1"}, "annotations": {}, "finalizers": ["y", "x"], "ownerReferences": [{"uid": "v", "kind": "L"}]},
            "spec": {"list": [1, 2], "one": {"two": 2}, "named": [{"name": "n", "value": 1}]},
        });
        assert_eq!(part(&fields, &object), expect);
    }
}
