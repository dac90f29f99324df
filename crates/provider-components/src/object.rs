//! Fields of objects of any kind: names, kinds, pods.

use std::fmt;

use serde_json::{Map, Value};
use windlass_meta::{GroupKind, ObjectKey};

/// The identity of an object, without its version.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity {
    /// The kind.
    pub kind: GroupKind,
    /// The namespace, empty for cluster scope, and the name.
    pub key: ObjectKey,
}

impl Identity {
    /// The identity of an object. Missing parts are empty.
    pub fn of(object: &Value) -> Self {
        Self {
            kind: GroupKind::new(group(object), kind(object)),
            key: ObjectKey::new(namespace(object), name(object)),
        }
    }
}

impl fmt::Display for Identity {
    /// `Deployment capa-system/capa-controller-manager`, the form of messages.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.kind, self.key)
    }
}

/// The text at a path, empty if absent.
pub fn text<'v>(object: &'v Value, path: &[&str]) -> &'v str {
    path.iter()
        .try_fold(object, |value, part| value.get(part))
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// The field `kind`.
pub fn kind(object: &Value) -> &str {
    text(object, &["kind"])
}

/// The group in `apiVersion`, empty for the core group.
pub fn group(object: &Value) -> &str {
    text(object, &["apiVersion"])
        .split_once('/')
        .map_or("", |(group, _)| group)
}

/// The field `metadata.name`.
pub fn name(object: &Value) -> &str {
    text(object, &["metadata", "name"])
}

/// The field `metadata.namespace`, empty if absent.
pub fn namespace(object: &Value) -> &str {
    text(object, &["metadata", "namespace"])
}

/// Whether an object is of a kind.
pub fn is(object: &Value, group: &str, kind: &str) -> bool {
    self::kind(object) == kind && self::group(object) == group
}

/// A map within an object, created if missing; `None` if another type is in its place.
pub fn map_at<'v>(object: &'v mut Value, path: &[&str]) -> Option<&'v mut Map<String, Value>> {
    path.iter()
        .try_fold(object, |value, part| {
            let map = value.as_object_mut()?;
            let field = map.entry(*part).or_insert_with(|| Value::Object(Map::new()));
            if field.is_null() {
                *field = Value::Object(Map::new());
            }
            Some(field)
        })?
        .as_object_mut()
}

/// The path of a workload's Pod template.
fn pod_path(object: &Value) -> Option<&'static [&'static str]> {
    match (group(object), kind(object)) {
        ("apps", "Deployment" | "DaemonSet" | "StatefulSet" | "ReplicaSet") | ("batch", "Job") => {
            Some(&["spec", "template", "spec"])
        }
        ("batch", "CronJob") => Some(&["spec", "jobTemplate", "spec", "template", "spec"]),
        ("", "Pod") => Some(&["spec"]),
        _ => None,
    }
}

/// The Pod template of a workload; `None` for other objects.
pub fn pod(object: &Value) -> Option<&Value> {
    pod_path(object)?.iter().try_fold(object, |value, part| value.get(part))
}

/// [`pod`], mutable.
pub fn pod_mut(object: &mut Value) -> Option<&mut Value> {
    let path = pod_path(object)?;
    path.iter().try_fold(object, |value, part| value.get_mut(part))
}

const CONTAINERS: [&str; 2] = ["containers", "initContainers"];

/// The containers of a workload's Pods, including init containers.
pub fn containers(object: &Value) -> impl Iterator<Item = &Value> {
    let pod = pod(object);
    CONTAINERS
        .into_iter()
        .filter_map(move |list| pod?.get(list)?.as_array())
        .flatten()
}

/// [`containers`], mutable.
pub fn containers_mut(object: &mut Value) -> impl Iterator<Item = &mut Value> {
    pod_mut(object)
        .and_then(Value::as_object_mut)
        .into_iter()
        .flat_map(|pod| pod.iter_mut())
        .filter(|(list, _)| CONTAINERS.contains(&list.as_str()))
        .filter_map(|(_, list)| list.as_array_mut())
        .flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_is_named_as_people_do() {
        let object =
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "m", "namespace": "n"}});
        assert_eq!(Identity::of(&object).to_string(), "Deployment n/m");
        assert!(is(&object, "apps", "Deployment") && !is(&object, "", "Deployment"));
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}});
        assert_eq!(Identity::of(&object).to_string(), "Namespace n");
        assert_eq!(Identity::of(&json!(["x"])), Identity::default());
    }

    #[test]
    fn containers_of_all_workloads_are_found() {
        let pod = json!({"containers": [{"name": "a"}, {"name": "b"}], "initContainers": [{"name": "c"}]});
        let check = |mut object: Value, expect: &[&str]| {
            let found: Vec<_> = containers(&object).map(|c| text(c, &["name"]).to_owned()).collect();
            assert_eq!(found, expect, "{object}");
            let changed = containers_mut(&mut object).map(|c| c["name"] = json!("z")).count();
            assert_eq!(changed, expect.len());
            assert!(containers(&object).all(|c| c["name"] == "z"));
        };
        let template = json!({"template": {"spec": pod}});
        for (version, kind) in [("apps/v1", "Deployment"), ("apps/v1", "DaemonSet"), ("batch/v1", "Job")] {
            check(
                json!({"apiVersion": version, "kind": kind, "spec": template}),
                &["a", "b", "c"],
            );
        }
        let nested = json!({"jobTemplate": {"spec": template}});
        check(
            json!({"apiVersion": "batch/v1", "kind": "CronJob", "spec": nested}),
            &["a", "b", "c"],
        );
        check(
            json!({"apiVersion": "v1", "kind": "Pod", "spec": pod}),
            &["a", "b", "c"],
        );
        check(json!({"apiVersion": "v1", "kind": "ConfigMap", "spec": template}), &[]);
        check(
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": "broken"}),
            &[],
        );
    }

    #[test]
    fn maps_are_made_on_the_way() {
        let mut object = json!({"metadata": {"labels": null, "name": "x"}});
        map_at(&mut object, &["metadata", "labels"])
            .unwrap()
            .insert("a".to_owned(), json!("b"));
        assert_eq!(object, json!({"metadata": {"labels": {"a": "b"}, "name": "x"}}));
        assert!(map_at(&mut object, &["metadata", "name", "x"]).is_none());
    }
}
