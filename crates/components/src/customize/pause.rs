//! Holding a provider still: its Deployments have no replicas, and an annotation that says how many they had.
//!
//! Everything works on what is about to be applied and what is in the cluster, so that the number outlives upgrades and is
//! written once, however often a provider is reconciled.

use serde_json::{Value, json};
use windlass_api_operator::annotations::ORIGINAL_CONTROLLER_REPLICAS;

use super::{Note, is_deployment, object_name};

/// What a Deployment says about the replicas that it had before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Original {
    /// Nothing: it is not paused.
    None,
    /// That many.
    Replicas(i64),
    /// Something that is not a number of replicas.
    Malformed(String),
}

/// How many replicas a paused Deployment had.
pub fn original(deployment: &Value) -> Original {
    let Some(text) = deployment["metadata"]["annotations"].get(ORIGINAL_CONTROLLER_REPLICAS) else {
        return Original::None;
    };
    let text = text.as_str().unwrap_or_default();
    match text.parse::<i32>() {
        Ok(number) if number >= 0 => Original::Replicas(number.into()),
        _ => Original::Malformed(text.to_owned()),
    }
}

/// The replicas of a Deployment; Kubernetes makes it one where nothing is said.
pub fn replicas(deployment: &Value) -> i64 {
    deployment["spec"]["replicas"].as_i64().unwrap_or(1)
}

/// Takes the replicas of all Deployments away, and notes how many there were: what the Deployment of that name in the
/// cluster says, else how many it has, else how many it was about to get.
///
/// `live` are the provider's Deployments in the cluster, also those of another version that this one replaces.
pub fn pause(objects: &mut [Value], live: &[Value]) -> Vec<Note> {
    let mut notes = Vec::new();
    for object in objects.iter_mut().filter(|object| is_deployment(object)) {
        let had = match (find(live, object), original(object)) {
            (Some(live), _) => match original(live) {
                Original::Replicas(number) => number,
                // At zero, what a malformed annotation meant is lost: what is declared is the best guess.
                Original::Malformed(_) if replicas(live) == 0 => declared(object),
                Original::Malformed(_) | Original::None => replicas(live),
            },
            (None, Original::Replicas(number)) => number,
            (None, Original::None | Original::Malformed(_)) => replicas(object),
        };
        set(object, 0, Some(had));
        let what = format!("scaled it to 0; it gets {had} replicas back");
        notes.push(Note::done("spec.paused", &object_name(object), what));
    }
    notes
}

/// Gives the Deployments back the replicas that those in the cluster had before they were paused. Without an annotation,
/// or with one that is no number, a Deployment has the replicas that are declared.
pub fn resume(objects: &mut [Value], live: &[Value]) -> Vec<Note> {
    let mut notes = Vec::new();
    for object in objects.iter_mut().filter(|object| is_deployment(object)) {
        let had = find(live, object).map_or(Original::None, original);
        let name = object_name(object);
        let declared = declared(object);
        match had {
            Original::Replicas(number) => {
                set(object, number, None);
                notes.push(Note::done(
                    "spec.paused",
                    &name,
                    format!("gave it its {number} replicas back"),
                ));
            }
            Original::Malformed(text) => {
                set(object, declared, None);
                let what =
                    format!("{ORIGINAL_CONTROLLER_REPLICAS} is {text:?}, not a number: gave it {declared} replicas");
                notes.push(Note::done("spec.paused", &name, what));
            }
            Original::None if original(object) == Original::None => {}
            Original::None => set(object, declared, None),
        }
    }
    notes
}

/// Whether any of the Deployments is paused.
pub fn any_paused(deployments: &[Value]) -> bool {
    deployments
        .iter()
        .any(|deployment| original(deployment) != Original::None)
}

fn declared(object: &Value) -> i64 {
    match original(object) {
        Original::Replicas(number) => number,
        Original::None | Original::Malformed(_) => replicas(object),
    }
}

fn find<'v>(live: &'v [Value], object: &Value) -> Option<&'v Value> {
    let key = |object: &Value| {
        (
            object["metadata"]["namespace"].clone(),
            object["metadata"]["name"].clone(),
        )
    };
    live.iter()
        .find(|other| is_deployment(other) && key(other) == key(object))
}

fn set(object: &mut Value, replicas: i64, original: Option<i64>) {
    object["spec"]["replicas"] = json!(replicas);
    let annotations = &mut object["metadata"]["annotations"];
    if let Some(number) = original {
        if !annotations.is_object() {
            *annotations = json!({});
        }
        annotations[ORIGINAL_CONTROLLER_REPLICAS] = json!(number.to_string());
        return;
    }
    let empty = annotations.as_object_mut().is_none_or(|map| {
        map.remove(ORIGINAL_CONTROLLER_REPLICAS);
        map.is_empty()
    });
    if empty && let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("annotations");
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
    fn pausing_takes_replicas_and_remembers_them() {
        // OP-095, OP-096
        let check = |want: Option<i64>, live: Option<Value>, expect: &str| {
            let live: Vec<Value> = live.into_iter().collect();
            let mut objects = vec![deployment(want, None), json!({"kind": "Service"})];
            let notes = pause(&mut objects, &live);
            assert_eq!(objects[0], deployment(Some(0), Some(expect)));
            assert_eq!(objects[1], json!({"kind": "Service"}));
            assert_eq!(notes.len(), 1);
            // What is in the cluster then is not counted again.
            let live = vec![objects[0].clone()];
            let mut again = vec![deployment(want, None)];
            pause(&mut again, &live);
            assert_eq!(again, live);
            pause(&mut again, &[]);
            assert_eq!(again, live);
        };
        check(Some(3), None, "3");
        check(None, None, "1");
        check(Some(1), Some(deployment(Some(3), None)), "3");
        check(Some(1), Some(deployment(Some(0), None)), "0");
        check(Some(1), Some(deployment(Some(0), Some("3"))), "3");
        check(Some(2), Some(deployment(Some(0), Some("x"))), "2");
        check(Some(2), Some(deployment(Some(4), Some("-1"))), "4");
        // OP-097: an upgrade while paused; the new version would have had another number.
        check(Some(2), Some(deployment(Some(0), Some("5"))), "5");
    }

    #[test]
    fn resuming_gives_replicas_back() {
        // OP-097, OP-098
        let check = |want: Option<i64>, live: Option<Value>, expect: Option<i64>| {
            let live: Vec<Value> = live.into_iter().collect();
            let mut objects = vec![deployment(want, None)];
            resume(&mut objects, &live);
            assert_eq!(objects, [deployment(expect, None)]);
            assert!(!any_paused(&objects));
        };
        check(Some(1), Some(deployment(Some(0), Some("3"))), Some(3));
        check(Some(2), Some(deployment(Some(0), Some("0"))), Some(0));
        check(Some(2), Some(deployment(Some(0), Some("many"))), Some(2));
        check(None, Some(deployment(Some(3), None)), None);
        check(Some(2), None, Some(2));
    }

    #[test]
    fn other_annotations_stay() {
        let mut objects = vec![deployment(Some(3), None)];
        objects[0]["metadata"]["annotations"] = json!({"a": "b"});
        let before = objects.clone();
        pause(&mut objects, &[]);
        assert!(any_paused(&objects));
        let live = objects.clone();
        resume(&mut objects, &live);
        assert_eq!(objects, before);
    }
}
