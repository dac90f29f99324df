//! What counts as a change of an object.

use serde_json::{Map, Value};

use super::model::Adoption;
use crate::fields;
use crate::model::{FieldChange, ObjectChange, Verb};
use crate::names::{Id, text};

/// Metadata that the API server sets, and `managedFields`: who owns a field is no change of the object.
const OF_SERVER: [&str; 6] = [
    "creationTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// The ends of paths in a status that explain or date what other fields say.
const TEXTS: [&str; 7] = [
    "lastTransitionTime",
    "lastUpdated",
    "lastUpdateTime",
    "message",
    "observedGeneration",
    "reason",
    "severity",
];

/// Adds how an object differs to the report.
pub(super) fn compare(id: &Id, before: Option<&Value>, after: Option<&Value>, report: &mut Adoption) {
    let change = |verb: Verb, fields: Vec<FieldChange>| ObjectChange {
        verb,
        object: id.clone(),
        reason: None,
        fields,
    };
    match (before, after) {
        (None, None) => {}
        (None, Some(_)) => report.changes.push(change(Verb::Created, Vec::new())),
        (Some(_), None) => report.changes.push(change(Verb::Deleted, Vec::new())),
        (Some(before), Some(after)) => {
            let all = differences(before, after);
            let (texts, fields): (Vec<_>, Vec<_>) = all.into_iter().partition(|field| is_text(&field.path));
            if !fields.is_empty() {
                report.changes.push(change(Verb::Changed, fields));
            }
            if !texts.is_empty() {
                report.texts.push(change(Verb::Changed, texts));
            }
        }
    }
}

fn is_text(path: &str) -> bool {
    let last = path.rsplit('.').next().unwrap_or(path);
    path.starts_with("status.") && TEXTS.contains(&last)
}

fn differences(before: &Value, after: &Value) -> Vec<FieldChange> {
    let mut out = fields::all(&wanted(before), &wanted(after));
    let is_secret = text(before, "/kind") == "Secret" && text(before, "/apiVersion") == "v1";
    if is_secret && before["data"] != after["data"] {
        let hidden = || Some("(hidden)".into());
        out.push(FieldChange {
            path: "data".to_owned(),
            from: hidden(),
            to: hidden(),
        });
    }
    out
}

fn wanted(object: &Value) -> Value {
    let mut out = Map::new();
    for (key, value) in object.as_object().into_iter().flatten() {
        let is_hidden = key == "data" && text(object, "/kind") == "Secret";
        if !is_hidden && !matches!(key.as_str(), "apiVersion" | "kind" | "metadata") {
            out.insert(key.clone(), value.clone());
        }
    }
    let mut metadata = object["metadata"].as_object().cloned().unwrap_or_default();
    if let Some(status) = out.get_mut("status") {
        sort_conditions(status);
    }
    metadata.retain(|key, value| !OF_SERVER.contains(&key.as_str()) && !is_empty(value));
    out.insert("metadata".to_owned(), metadata.into());
    out.into()
}

/// Brings conditions into the order of their types: theirs has no meaning.
fn sort_conditions(value: &mut Value) {
    let Value::Object(fields) = value else { return };
    if let Some(Value::Array(conditions)) = fields.get_mut("conditions") {
        conditions.sort_by(|a, b| a["type"].as_str().cmp(&b["type"].as_str()));
    }
    fields.values_mut().for_each(sort_conditions);
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::Verdict;

    fn report(before: Option<&Value>, after: Option<&Value>) -> Adoption {
        let mut report = Adoption::default();
        let id = Id::of(before.or(after).unwrap());
        compare(&id, before, after, &mut report);
        report
    }

    fn machine(edit: impl FnOnce(&mut Value)) -> Value {
        let mut machine = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
            "metadata": {
                "name": "m", "namespace": "n", "uid": "u", "resourceVersion": "1", "generation": 1, "managedFields": [{"manager": "a"}],
                "finalizers": ["a", "b"], "ownerReferences": [{"kind": "MachineSet", "name": "s", "uid": "1"}],
            },
            "spec": {"version": "v1.36.0"},
            "status": {"conditions": [{"type": "Ready", "status": "True", "message": ""}]},
        });
        edit(&mut machine);
        machine
    }

    fn changed(edit: impl FnOnce(&mut Value)) -> (Verdict, Vec<String>) {
        let report = report(Some(&machine(|_| {})), Some(&machine(edit)));
        let fields = report
            .changes
            .iter()
            .chain(&report.texts)
            .flat_map(|change| &change.fields);
        let paths = fields.map(|field| field.path.clone()).collect();
        (report.verdict(), paths)
    }

    #[test]
    fn what_the_server_sets_and_texts_are_no_reason_against_a_take_over() {
        let (verdict, paths) = changed(|machine| {
            machine["metadata"]["resourceVersion"] = "2".into();
            machine["metadata"]["managedFields"] = json!([]);
            machine["metadata"]["labels"] = json!({});
        });
        assert_eq!((verdict, paths.len()), (Verdict::Same, 0));
        let two = |first: &str, second: &str| {
            machine(|machine| machine["status"]["conditions"] = json!([{"type": first}, {"type": second}]))
        };
        let order = report(Some(&two("A", "B")), Some(&two("B", "A")));
        assert_eq!((order.verdict(), order.texts.len()), (Verdict::Same, 0));
        let (verdict, paths) = changed(|machine| machine["status"]["conditions"][0]["message"] = "soon".into());
        assert_eq!(verdict, Verdict::Same);
        assert_eq!(paths, ["status.conditions[type=Ready].message"]);
    }

    #[test]
    fn everything_else_is() {
        let order = changed(|machine| machine["metadata"]["finalizers"] = json!(["b", "a"]));
        assert_eq!(order, (Verdict::Changes, vec!["metadata.finalizers".to_owned()]));
        let check = |path: &str, edit: fn(&mut Value)| {
            assert_eq!(changed(edit), (Verdict::Changes, vec![path.to_owned()]));
        };
        check("metadata.annotations.x", |machine| {
            machine["metadata"]["annotations"] = json!({"x": "y"});
        });
        check("metadata.ownerReferences[name=s].uid", |machine| {
            machine["metadata"]["ownerReferences"][0]["uid"] = "2".into();
        });
        check("spec.version", |machine| machine["spec"]["version"] = "v1.37.0".into());
        check("status.conditions[type=Ready].status", |machine| {
            machine["status"]["conditions"][0]["status"] = "Unknown".into();
        });
        let machine = machine(|_| {});
        for (before, after, verb) in [
            (None, Some(&machine), Verb::Created),
            (Some(&machine), None, Verb::Deleted),
        ] {
            let report = report(before, after);
            assert_eq!((report.verdict(), report.changes[0].verb), (Verdict::Changes, verb));
        }
    }

    #[test]
    fn contents_of_secrets_are_not_shown() {
        let secret = |value: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"value": value}});
        let report = report(Some(&secret("YQ==")), Some(&secret("Yg==")));
        assert_eq!(report.changes[0].fields[0].path, "data");
        assert!(!format!("{report:?}").contains("Yg=="));
    }
}
