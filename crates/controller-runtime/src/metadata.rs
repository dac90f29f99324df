//! Labels and annotations that an owner keeps up to date on an object that it created with one apply. Later it applies only
//! changes, under a separate field manager, and removes keys by name. Neither needs the old template.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::error::WriteError;
use crate::object::{ObjectKey, gvk_from};
use crate::writer::Writer;

/// Labels or annotations.
type Words = BTreeMap<String, String>;

/// The desired labels and annotations of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptMetadata {
    /// Labels.
    pub labels: Words,
    /// Annotations.
    pub annotations: Words,
}

/// The difference between desired and actual labels and annotations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetadataChange {
    /// All desired labels and annotations, if one is missing or different.
    pub apply: Option<KeptMetadata>,
    /// Labels to remove.
    pub lost_labels: Vec<String>,
    /// Annotations to remove.
    pub lost_annotations: Vec<String>,
}

impl KeptMetadata {
    /// The difference to an object's `metadata`; `None` if there is none. A key that both `owner` and the object still have, but
    /// that is no longer desired, came from the same template. It is removed, unless another field manager owns it. So the object
    /// must be changed before its owner.
    pub fn change(&self, owner: &Self, metadata: &Value) -> Option<MetadataChange> {
        let (labels, annotations) = (&metadata["labels"], &metadata["annotations"]);
        let complete = holds(labels, &self.labels) && holds(annotations, &self.annotations);
        let change = MetadataChange {
            apply: (!complete).then(|| self.clone()),
            lost_labels: lost(&self.labels, &owner.labels, labels),
            lost_annotations: lost(&self.annotations, &owner.annotations, annotations),
        };
        (change != MetadataChange::default()).then_some(change)
    }
}

fn holds(have: &Value, want: &Words) -> bool {
    want.iter().all(|(key, value)| have[key] == value.as_str())
}

fn lost(want: &Words, on_owner: &Words, on_object: &Value) -> Vec<String> {
    let gone = on_owner
        .iter()
        .filter(|(key, value)| !want.contains_key(*key) && on_object[key.as_str()] == value.as_str());
    gone.map(|(key, _)| key.clone()).collect()
}

impl Writer {
    /// Applies a change to an object given by apiVersion, kind and name. `made_by` is the field manager that created it,
    /// `manager` the one that changes it.
    pub async fn change_metadata(
        &self,
        made_by: &str,
        manager: &str,
        object: &Value,
        change: &MetadataChange,
    ) -> Result<(), WriteError> {
        let meta = &object["metadata"];
        if let Some(kept) = &change.apply {
            let patch = json!({
                "apiVersion": object["apiVersion"],
                "kind": object["kind"],
                "metadata": {
                    "name": meta["name"],
                    "namespace": meta["namespace"],
                    "uid": meta["uid"],
                    "labels": kept.labels,
                    "annotations": kept.annotations,
                },
            });
            self.apply_value(manager, &patch).await?;
        }
        if change.lost_labels.is_empty() && change.lost_annotations.is_empty() {
            return Ok(());
        }
        // Caches leave out managedFields.
        let live = self.read_value(object).await?;
        let managed = &live["metadata"]["managedFields"];
        let ours = [made_by, manager];
        let labels = removable(managed, "f:labels", &change.lost_labels, ours);
        let annotations = removable(managed, "f:annotations", &change.lost_annotations, ours);
        if labels.is_empty() && annotations.is_empty() {
            return Ok(());
        }
        let patch = json!({ "metadata": { "uid": meta["uid"], "labels": labels, "annotations": annotations } });
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let gvk = gvk_from(&text(&object["apiVersion"]), &text(&object["kind"]));
        let key = ObjectKey::new(text(&meta["namespace"]), text(&meta["name"]));
        self.merge_patch_value(manager, &gvk, &key, &patch).await?;
        Ok(())
    }
}

impl Writer {
    /// Takes away what the field manager of early objects owns of an object, given by apiVersion, kind and name. To be called before
    /// `manager` applies its specification: whatever two managers own is not removed when one of them leaves it out.
    pub async fn release_early(&self, manager: &str, object: &Value) -> Result<(), WriteError> {
        // Caches leave out managedFields.
        let live = self.read_value(object).await?;
        let meta = &live["metadata"];
        let Some(kept) = kept_managers(&meta["managedFields"], manager) else {
            return Ok(());
        };
        let patch = json!({
            "metadata": { "uid": meta["uid"], "resourceVersion": meta["resourceVersion"], "managedFields": kept },
        });
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let gvk = gvk_from(&text(&object["apiVersion"]), &text(&object["kind"]));
        let key = ObjectKey::new(text(&meta["namespace"]), text(&meta["name"]));
        self.merge_patch_value(manager, &gvk, &key, &patch).await?;
        Ok(())
    }
}

/// The field manager with which Cluster API before v1.12 created such objects. Whatever it set then came from the same template.
const CLASSIC: &str = "manager";

fn is_classic(entry: &Value) -> bool {
    entry["manager"] == CLASSIC && entry["operation"] == "Update"
}

/// The managers that an early object keeps; none if nothing changes. Before v1.12, `manager` applied labels and annotations only. Later
/// objects have their specification of it, and are left alone: providers, too, call themselves [`CLASSIC`].
fn kept_managers<'a>(managed: &'a Value, manager: &str) -> Option<Vec<&'a Value>> {
    let entries = managed.as_array()?;
    let is_of_status = |entry: &Value| entry["subresource"] == "status";
    let is_ours =
        |entry: &&Value| entry["manager"] == *manager && entry["operation"] == "Apply" && !is_of_status(entry);
    let fields = &entries.iter().find(is_ours)?["fieldsV1"];
    let is_early = fields["f:metadata"]["f:labels"].is_object() && fields["f:spec"].is_null();
    let stays = |entry: &&Value| !is_classic(entry) || is_of_status(entry);
    let kept: Vec<&Value> = entries.iter().filter(stays).collect();
    (is_early && kept.len() < entries.len()).then_some(kept)
}

/// The keys that our field managers own and no other manager does, as a merge patch that removes them.
fn removable(managed: &Value, field: &str, keys: &[String], ours: [&str; 2]) -> Map<String, Value> {
    let entries: Vec<&Value> = managed.as_array().into_iter().flatten().collect();
    let mine = |entry: &Value| is_classic(entry) || ours.iter().any(|manager| entry["manager"] == *manager);
    let holds = |entry: &Value, key: &str| {
        let held = &entry["fieldsV1"]["f:metadata"][field];
        held.get(format!("f:{key}")).is_some()
    };
    let gone = keys.iter().filter(|key| {
        let mut holders = entries.iter().filter(|entry| holds(entry, key)).peekable();
        holders.peek().is_some() && holders.all(|entry| mine(entry))
    });
    gone.map(|key| (key.clone(), Value::Null)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(all: &[(&str, &str)]) -> Words {
        all.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    }

    #[test]
    fn only_differences_change() {
        let kept = KeptMetadata {
            labels: words(&[("a", "1"), ("b", "2")]),
            annotations: Words::new(),
        };
        let check = |owner: &[(&str, &str)], object: Value, applied: bool, lost: &[&str]| {
            let owner = KeptMetadata {
                labels: words(owner),
                annotations: Words::new(),
            };
            let found = kept.change(&owner, &json!({ "labels": object }));
            let change = found.clone().unwrap_or_default();
            assert_eq!(
                (change.apply.is_some(), change.lost_labels),
                (applied, lost.iter().map(|s| (*s).to_owned()).collect())
            );
            assert_eq!(found.is_some(), applied || !lost.is_empty());
        };
        check(&[], json!({ "a": "1", "b": "2", "theirs": "3" }), false, &[]);
        check(&[], json!({ "a": "1", "b": "other" }), true, &[]);
        check(&[], Value::Null, true, &[]);
        check(
            &[("old", "1")],
            json!({ "a": "1", "b": "2", "old": "1" }),
            false,
            &["old"],
        );
        check(&[("old", "1")], json!({ "a": "1", "b": "2", "old": "2" }), false, &[]);
    }

    #[test]
    fn only_early_objects_lose_the_manager_that_made_them() {
        let entry = |manager: &str, operation: &str, fields: Value| json!({ "manager": manager, "operation": operation, "fieldsV1": fields });
        let (labels, spec) = (
            json!({ "f:metadata": { "f:labels": { "f:a": {} } } }),
            json!({ "f:spec": { "f:b": {} } }),
        );
        let made = entry("manager", "Update", spec.clone());
        let mut status = made.clone();
        status["subresource"] = json!("status");
        let check = |managed: &[&Value], kept: Option<&[&Value]>| {
            let managed = json!(managed);
            assert_eq!(kept_managers(&managed, "maker").as_deref(), kept, "{managed}");
        };
        let ours = entry("maker", "Apply", labels.clone());
        let other = entry("kubectl", "Update", spec.clone());
        check(&[&made, &ours, &status, &other], Some(&[&ours, &status, &other]));
        check(&[&ours, &status, &other], None);
        check(&[&made, &other], None);
        // Made by a later release, and changed by a provider of that name.
        let mut all = labels;
        all["f:spec"] = spec["f:spec"].clone();
        check(&[&made, &entry("maker", "Apply", all)], None);
        check(&[&made, &entry("maker", "Apply", spec)], None);
        check(&[&json!({})], None);
        assert!(kept_managers(&Value::Null, "maker").is_none());
    }

    #[test]
    fn only_keys_without_another_manager_are_removed() {
        let entry = |manager: &str, key: &str| json!({ "manager": manager, "fieldsV1": { "f:metadata": { "f:labels": { format!("f:{key}"): {} } } } });
        let managed = json!([
            entry("maker", "team"),
            entry("maker", "shared"),
            entry("kubectl", "shared"),
            entry("kubectl", "theirs"),
        ]);
        let keys = ["team", "shared", "theirs", "unheld"].map(str::to_owned);
        let found = removable(&managed, "f:labels", &keys, ["maker", "changer"]);
        assert_eq!(found.keys().collect::<Vec<_>>(), ["team"]);
        // An object of an earlier release.
        let mut made = entry("manager", "team");
        made["operation"] = json!("Update");
        let found = removable(
            &json!([made, entry("changer", "team")]),
            "f:labels",
            &keys,
            ["maker", "changer"],
        );
        assert_eq!(found.keys().collect::<Vec<_>>(), ["team"]);
        made["operation"] = json!("Apply");
        assert!(removable(&json!([made]), "f:labels", &keys, ["maker", "changer"]).is_empty());
    }
}
