//! Pauses a provider: its workloads have no replicas, and an annotation has their original number.
//!
//! The number is read once ([`had`]), kept by the caller, and set on every object that is applied meanwhile ([`hold`]), also of
//! another version. So neither a second reconcile nor an upgrade loses it.

use serde_json::{Map, Value, json};
use windlass_api_operator::annotations::ORIGINAL_CONTROLLER_REPLICAS;

use crate::object;

/// The replicas before the pause, as recorded on an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Original {
    /// It is not paused.
    None,
    /// This number.
    Replicas(i64),
    /// A value that is not a number.
    Malformed(String),
}

/// The replicas of an object before the pause.
pub fn original(live: &Value) -> Original {
    let Some(text) = live["metadata"]["annotations"].get(ORIGINAL_CONTROLLER_REPLICAS) else {
        return Original::None;
    };
    let text = text.as_str().unwrap_or_default();
    match text.parse::<i32>() {
        Ok(number) if number >= 0 => Original::Replicas(number.into()),
        _ => Original::Malformed(text.to_owned()),
    }
}

/// The replicas of an object; Kubernetes defaults it to one.
pub fn replicas(object: &Value) -> i64 {
    object["spec"]["replicas"].as_i64().unwrap_or(1)
}

/// The replicas of an object in the cluster, or those before it was paused. `None` if it is paused without a record:
/// then the declared replicas are the best guess.
pub fn had(live: &Value) -> Option<i64> {
    match original(live) {
        Original::Replicas(number) => Some(number),
        Original::None => Some(replicas(live)),
        Original::Malformed(_) => Some(replicas(live)).filter(|number| *number > 0),
    }
}

/// Sets the replicas to zero, and records the number before.
pub fn hold(object: &mut Value, had: i64) {
    set_replicas(object, 0);
    if let Some(annotations) = object::map_at(object, &["metadata", "annotations"]) {
        annotations.insert(ORIGINAL_CONTROLLER_REPLICAS.to_owned(), json!(had.to_string()));
    }
}

/// Restores the replicas.
pub fn give_back(object: &mut Value, had: i64) {
    set_replicas(object, had);
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
        return;
    };
    let annotations = metadata.get_mut("annotations").and_then(Value::as_object_mut);
    let is_left_empty = annotations.is_some_and(|annotations| {
        annotations.remove(ORIGINAL_CONTROLLER_REPLICAS).is_some() && annotations.is_empty()
    });
    if is_left_empty {
        metadata.remove("annotations");
    }
}

fn set_replicas(object: &mut Value, number: i64) {
    let spec: Option<&mut Map<String, Value>> = object::map_at(object, &["spec"]);
    if let Some(spec) = spec {
        spec.insert("replicas".to_owned(), json!(number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deployment(replicas: Option<i64>, annotation: Option<&str>) -> Value {
        let mut out = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"namespace": "ns", "name": "a"},
            "spec": {},
        });
        if let Some(replicas) = replicas {
            out["spec"]["replicas"] = json!(replicas);
        }
        if let Some(text) = annotation {
            out["metadata"]["annotations"] = json!({ORIGINAL_CONTROLLER_REPLICAS: text});
        }
        out
    }

    #[test]
    fn replicas_are_counted_once() {
        // OP-095, OP-096
        let check = |live: Value, expect: Option<i64>| {
            assert_eq!(had(&live), expect);
            let mut held = live;
            hold(&mut held, expect.unwrap_or(2));
            assert_eq!(replicas(&held), 0);
            assert_eq!(had(&held), expect.or(Some(2)), "a second look");
        };
        check(deployment(Some(3), None), Some(3));
        check(deployment(None, None), Some(1));
        check(deployment(Some(0), None), Some(0));
        check(deployment(Some(0), Some("3")), Some(3));
        check(deployment(Some(5), Some("3")), Some(3));
        check(deployment(Some(0), Some("many")), None);
        check(deployment(Some(4), Some("-1")), Some(4));
    }

    #[test]
    fn another_version_is_held_and_gets_what_the_first_had() {
        // OP-097, OP-098
        let live = deployment(Some(0), Some("3"));
        let mut next = deployment(Some(1), None);
        hold(&mut next, had(&live).unwrap());
        assert_eq!(next, live);
        give_back(&mut next, had(&live).unwrap());
        assert_eq!(next, deployment(Some(3), None));
    }

    #[test]
    fn other_annotations_stay() {
        let mut object = deployment(Some(3), None);
        object["metadata"]["annotations"] = json!({"a": "b"});
        let before = object.clone();
        hold(&mut object, 3);
        assert_eq!(original(&object), Original::Replicas(3));
        give_back(&mut object, 3);
        assert_eq!(object, before);
        // An empty value existed before.
        object["metadata"]["annotations"] = json!({});
        let before = object.clone();
        give_back(&mut object, 3);
        assert_eq!(object, before);
    }
}
