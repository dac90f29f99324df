//! Paused objects: the condition Paused, and adding it to a controller's status.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta, Time};
use serde_json::{Map, Value};
use windlass_conditions as conditions;

/// The annotation that pauses one object, with any value.
const ANNOTATION: &str = "cluster.x-k8s.io/paused";
/// The condition's type.
pub(crate) const PAUSED: &str = "Paused";

/// Whether the annotation pauses an object.
pub(crate) fn is_annotated(meta: &ObjectMeta) -> bool {
    meta.annotations
        .as_ref()
        .is_some_and(|all| all.contains_key(ANNOTATION))
}

/// Why an object is paused; `None` if it is not.
pub(crate) fn why(kind: &str, meta: &ObjectMeta, cluster_paused: bool) -> Option<String> {
    let mut reasons = Vec::new();
    if cluster_paused {
        reasons.push("Cluster spec.paused is set to true".to_owned());
    }
    if is_annotated(meta) {
        reasons.push(format!("{kind} has the {ANNOTATION} annotation"));
    }
    (!reasons.is_empty()).then(|| reasons.join(", "))
}

/// The desired condition. It keeps the transition time of the present condition if the status is the same.
pub(crate) fn condition(
    present: &[Condition],
    why: Option<&str>,
    generation: Option<i64>,
    now: Timestamp,
) -> Condition {
    let (status, reason) = match why {
        Some(_) => ("True", "Paused"),
        None => ("False", "NotPaused"),
    };
    let since = conditions::get(present, PAUSED)
        .filter(|c| c.status == status)
        .map_or_else(
            || Time(conditions::whole_seconds(now)),
            |c| c.last_transition_time.clone(),
        );
    Condition {
        type_: PAUSED.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: why.unwrap_or_default().to_owned(),
        last_transition_time: since,
        observed_generation: generation,
    }
}

/// A condition of another type that says that nothing is done about a paused object.
pub(crate) fn stopped(
    present: &[Condition],
    type_: &str,
    why: &str,
    generation: Option<i64>,
    now: Timestamp,
) -> Condition {
    let since = conditions::get(present, type_)
        .filter(|c| c.status == "False")
        .map_or_else(
            || Time(conditions::whole_seconds(now)),
            |c| c.last_transition_time.clone(),
        );
    Condition {
        type_: type_.to_owned(),
        status: "False".to_owned(),
        reason: PAUSED.to_owned(),
        message: why.to_owned(),
        last_transition_time: since,
        observed_generation: generation,
    }
}

/// Inserts the condition into the conditions of a status, in sorted order.
pub(crate) fn add_to(status: &mut Value, condition: &Condition) {
    if !status.is_object() {
        *status = Value::Object(Map::new());
    }
    let list = &mut status["conditions"];
    if !list.is_array() {
        *list = Value::Array(Vec::new());
    }
    let Some(items) = list.as_array_mut() else {
        return;
    };
    items.retain(|item| item["type"] != PAUSED);
    let place = items
        .iter()
        .position(|item| {
            let type_ = item["type"].as_str().unwrap_or_default();
            conditions::compare_types(type_, PAUSED).is_gt()
        })
        .unwrap_or(items.len());
    items.insert(place, serde_json::to_value(condition).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn meta(annotated: bool) -> ObjectMeta {
        ObjectMeta {
            annotations: annotated.then(|| [(ANNOTATION.to_owned(), String::new())].into()),
            ..ObjectMeta::default()
        }
    }

    #[test]
    fn says_why_it_is_paused() {
        let check = |annotated, cluster, expect: Option<&str>| {
            assert_eq!(why("Machine", &meta(annotated), cluster).as_deref(), expect);
        };
        check(false, false, None);
        check(false, true, Some("Cluster spec.paused is set to true"));
        check(true, false, Some("Machine has the cluster.x-k8s.io/paused annotation"));
        check(
            true,
            true,
            Some("Cluster spec.paused is set to true, Machine has the cluster.x-k8s.io/paused annotation"),
        );
    }

    #[test]
    fn transition_time_moves_only_with_the_status() {
        let t1: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let t2: Timestamp = "2026-01-02T00:00:00Z".parse().unwrap();
        let first = condition(&[], None, Some(1), t1);
        assert_eq!((first.status.as_str(), first.reason.as_str()), ("False", "NotPaused"));
        let same = condition(std::slice::from_ref(&first), None, Some(2), t2);
        assert_eq!(same.last_transition_time.0, t1);
        assert_eq!(same.observed_generation, Some(2));
        let paused = condition(&[first], Some("x"), Some(2), t2);
        assert_eq!(paused.last_transition_time.0, t2);
        assert_eq!((paused.status.as_str(), paused.reason.as_str()), ("True", "Paused"));
    }

    #[test]
    fn the_condition_goes_between_the_others_and_deleting() {
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        let mut status = json!({"conditions": [{"type": "Available"}, {"type": "Paused"}, {"type": "Deleting"}]});
        add_to(&mut status, &condition(&[], None, None, now));
        let types: Vec<_> = status["conditions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|c| c["type"].as_str().unwrap())
            .collect();
        assert_eq!(types, ["Available", "Paused", "Deleting"]);
        assert_eq!(status["conditions"][1]["status"], "False");
        let mut empty = Value::Null;
        add_to(&mut empty, &condition(&[], None, None, now));
        assert_eq!(empty["conditions"][0]["reason"], "NotPaused");
    }
}
