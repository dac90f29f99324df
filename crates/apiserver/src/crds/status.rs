//! The status of a definition: accepted names and conditions. Pure.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{approval, condition, is_established, names, storage_version};
use windlass_objects::metadata::{meta, strings, text};

/// A desired condition.
pub(super) struct Condition {
    pub(super) kind: &'static str,
    pub(super) status: bool,
    pub(super) reason: &'static str,
    pub(super) message: String,
}

/// Sets the status of a new definition.
pub(crate) fn initial(crd: &mut Value) {
    let stored: Vec<&str> = Some(storage_version(crd))
        .filter(|v| !v.is_empty())
        .into_iter()
        .collect();
    let status = json!({
        "conditions": null,
        "acceptedNames": {"plural": "", "kind": ""},
        "storedVersions": stored,
    });
    if let Some(map) = crd.as_object_mut() {
        map.insert("status".into(), status);
    }
}

/// Adds the storage version to the stored versions.
pub(crate) fn note_storage_version(crd: &mut Value) {
    let storage = storage_version(crd).to_owned();
    let Some(status) = crd.get_mut("status").and_then(Value::as_object_mut) else {
        return;
    };
    let stored = status.entry("storedVersions").or_insert_with(|| json!([]));
    if let Some(list) = stored.as_array_mut()
        && !storage.is_empty()
        && !list.iter().any(|v| v == storage.as_str())
    {
        list.push(storage.into());
    }
}

/// The desired status of a definition, given the others; `None` if it is unchanged.
pub(crate) fn next(crd: &Value, others: &[Value], now: &str) -> Option<Value> {
    let mut status = crd
        .get("status")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    let mut conditions = status
        .get("conditions")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let accepted = status.get("acceptedNames").cloned().unwrap_or(Value::Null);
    if !same_names(names(crd), &accepted) || condition(crd, "NamesAccepted").is_none() {
        let (accepted, verdict) = accept(crd, others);
        let is_accepted = verdict.status;
        set(&mut conditions, &verdict, now);
        if !is_established(crd) {
            let (reason, message) = if is_accepted {
                ("InitialNamesAccepted", "the initial names have been accepted")
            } else {
                ("NotAccepted", "not all names are accepted")
            };
            let established = Condition {
                kind: "Established",
                status: is_accepted,
                reason,
                message: message.to_owned(),
            };
            set(&mut conditions, &established, now);
        }
        status.insert("acceptedNames".into(), accepted);
    }
    if let Some(approval) = approval::condition(crd) {
        set(&mut conditions, &approval, now);
    }
    status.insert("conditions".into(), conditions.into());
    let status = Value::Object(status);
    (crd.get("status") != Some(&status)).then_some(status)
}

/// Whether a definition has names that are not accepted.
pub(crate) fn wants_names(crd: &Value) -> bool {
    let accepted = crd.pointer("/status/acceptedNames").unwrap_or(&Value::Null);
    !same_names(names(crd), accepted)
}

fn same_names(wanted: &Value, accepted: &Value) -> bool {
    ["plural", "singular", "kind", "listKind"]
        .iter()
        .all(|key| text(wanted, key) == text(accepted, key))
        && ["shortNames", "categories"]
            .iter()
            .all(|key| strings(wanted.get(*key)) == strings(accepted.get(*key)))
}

/// The names that a definition may have, and the condition about them.
fn accept(crd: &Value, others: &[Value]) -> (Value, Condition) {
    let group = crd.pointer("/spec/group");
    let (mut resources, mut kinds) = (BTreeSet::new(), BTreeSet::new());
    for other in others {
        if other.pointer("/spec/group") != group || meta(other, "name") == meta(crd, "name") {
            continue;
        }
        let accepted = other.pointer("/status/acceptedNames").unwrap_or(&Value::Null);
        resources.extend(["plural", "singular"].map(|key| text(accepted, key)));
        resources.extend(strings(accepted.get("shortNames")));
        kinds.extend(["kind", "listKind"].map(|key| text(accepted, key)));
    }
    let wanted = names(crd);
    let had = crd.pointer("/status/acceptedNames").cloned().unwrap_or(Value::Null);
    let mut out: Map<String, Value> = had.as_object().cloned().unwrap_or_default();
    let mut verdict = Condition {
        kind: "NamesAccepted",
        status: true,
        reason: "NoConflicts",
        message: "no conflicts found".to_owned(),
    };
    let in_use = |name: &str| format!("{} is already in use", Value::from(name));
    let mut refuse = |reason: &'static str, message: String| {
        verdict.status = false;
        verdict.reason = reason;
        verdict.message = message;
    };
    let mut single = |key: &str, reason: &'static str, taken: &BTreeSet<&str>, out: &mut Map<String, Value>| {
        let name = text(wanted, key);
        if name != text(&had, key) && taken.contains(name) {
            refuse(reason, in_use(name));
        } else {
            out.insert(key.to_owned(), name.into());
        }
    };
    single("plural", "PluralConflict", &resources, &mut out);
    single("singular", "SingularConflict", &resources, &mut out);
    let own = strings(had.get("shortNames"));
    let short = strings(wanted.get("shortNames"));
    let taken: Vec<String> = short
        .iter()
        .filter(|name| !own.contains(name) && resources.contains(*name))
        .map(|name| in_use(name))
        .collect();
    let short_names_conflict = match taken.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        many => Some(format!("[{}]", many.join(", "))),
    };
    if short_names_conflict.is_none() {
        set_list(&mut out, "shortNames", wanted);
    }
    single("kind", "KindConflict", &kinds, &mut out);
    single("listKind", "ListKindConflict", &kinds, &mut out);
    if let Some(message) = short_names_conflict
        && !matches!(verdict.reason, "KindConflict" | "ListKindConflict")
    {
        verdict.status = false;
        verdict.reason = "ShortNamesConflict";
        verdict.message = message;
    }
    set_list(&mut out, "categories", wanted);
    (Value::Object(out), verdict)
}

fn set_list(out: &mut Map<String, Value>, key: &str, wanted: &Value) {
    match wanted.get(key) {
        Some(list) if !strings(Some(list)).is_empty() => {
            out.insert(key.to_owned(), list.clone());
        }
        _ => {
            out.remove(key);
        }
    }
}

fn set(conditions: &mut Vec<Value>, wanted: &Condition, now: &str) {
    let status = if wanted.status { "True" } else { "False" };
    let found = conditions.iter().position(|c| text(c, "type") == wanted.kind);
    let since = found
        .filter(|i| text(&conditions[*i], "status") == status)
        .map_or(now, |i| text(&conditions[i], "lastTransitionTime"))
        .to_owned();
    let condition = json!({
        "type": wanted.kind, "status": status, "reason": wanted.reason, "message": wanted.message,
        "lastTransitionTime": since,
    });
    match found {
        Some(i) => conditions[i] = condition,
        None => conditions.push(condition),
    }
}

/// The progress of a definition's deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deletion {
    /// Requested.
    Pending,
    /// Its objects are being deleted.
    InProgress,
    /// All objects are deleted.
    Completed,
    /// It was never established, so there were no objects.
    NeverEstablished,
}

/// Sets the condition for the progress of the deletion.
pub(crate) fn set_terminating(crd: &mut Value, stage: Deletion, now: &str) {
    let (status, reason, message) = match stage {
        Deletion::Pending => (
            true,
            "InstanceDeletionPending",
            "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
        ),
        Deletion::InProgress => (
            true,
            "InstanceDeletionInProgress",
            "CustomResource deletion is in progress",
        ),
        Deletion::Completed => (false, "InstanceDeletionCompleted", "removed all instances"),
        Deletion::NeverEstablished => (false, "NeverEstablished", "resource was never established"),
    };
    let wanted = Condition {
        kind: "Terminating",
        status,
        reason,
        message: message.to_owned(),
    };
    let Some(status) = crd.get_mut("status").and_then(Value::as_object_mut) else {
        return;
    };
    let conditions = status.entry("conditions").or_insert_with(|| json!([]));
    if conditions.is_null() {
        *conditions = json!([]);
    }
    if let Some(list) = conditions.as_array_mut() {
        set(list, &wanted, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crd(plural: &str, kind: &str, short: &[&str]) -> Value {
        json!({
            "metadata": {"name": format!("{plural}.g.io")},
            "spec": {"group": "g.io", "names": {
                "plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List"),
                "shortNames": short,
            }},
        })
    }

    fn with_status(mut crd: Value, status: Option<Value>) -> Value {
        crd["status"] = status.expect("a status");
        crd
    }

    fn reason<'a>(status: &'a Value, kind: &str) -> &'a str {
        let list = status["conditions"].as_array().unwrap();
        text(list.iter().find(|c| text(c, "type") == kind).unwrap(), "reason")
    }

    #[test]
    fn free_names_are_accepted_at_once() {
        let status = next(&crd("as", "A", &["x"]), &[], "now").unwrap();
        assert_eq!(reason(&status, "NamesAccepted"), "NoConflicts");
        assert_eq!(reason(&status, "Established"), "InitialNamesAccepted");
        let settled = with_status(crd("as", "A", &["x"]), Some(status));
        assert_eq!(next(&settled, &[], "later"), None);
    }

    #[test]
    fn names_of_others_are_refused() {
        let first = crd("as", "A", &["x"]);
        let status = next(&first, &[], "now");
        let first = with_status(first, status);
        for (other, want) in [
            (crd("bs", "A", &[]), "ListKindConflict"),
            (crd("bs", "B", &["x"]), "ShortNamesConflict"),
            (crd("a", "B", &[]), "PluralConflict"),
        ] {
            let status = next(&other, std::slice::from_ref(&first), "now").unwrap();
            assert_eq!(reason(&status, "NamesAccepted"), want);
            assert_eq!(reason(&status, "Established"), "NotAccepted");
        }
    }
}
