//! Bodies of requests: the parts of an object that may be sent, and hashes to compare objects.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::Target;
use crate::object::Gvk;

/// Fields of metadata that the server sets.
const SERVER_SET: [&str; 6] = [
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "managedFields",
    "selfLink",
];

/// The body of an apply: no status, no fields that the server sets, no `null`.
pub(super) fn for_apply(mut object: Value) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
        strip_metadata(fields);
    }
    drop_nulls(&mut object);
    object
}

/// The body of a create: as for an apply, and without a uid.
pub(super) fn for_create(object: &mut Value) {
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
        strip_metadata(fields);
        if let Some(meta) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
            meta.remove("uid");
        }
    }
    drop_nulls(object);
}

fn strip_metadata(fields: &mut Map<String, Value>) {
    if let Some(meta) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in SERVER_SET {
            meta.remove(field);
        }
    }
}

/// An apply of `.status` to exactly one object.
pub(super) fn for_status(target: &Target, uid: Option<&str>, mut status: Value) -> Value {
    let mut meta = json!({ "name": target.key.name });
    if !target.key.namespace.is_empty() {
        meta["namespace"] = json!(target.key.namespace);
    }
    if let Some(uid) = uid {
        meta["uid"] = json!(uid);
    }
    drop_nulls(&mut status);
    let mut body = json!({
        "apiVersion": target.gvk.api_version(),
        "kind": target.gvk.kind,
        "metadata": meta,
    });
    body["status"] = status;
    body
}

/// Puts the finalizers of an apply into the order that they have on the server. An API server takes the order of an apply, and a controller
/// that compares finalizers in order would put them back.
pub(super) fn keep_order_of_finalizers(body: &mut Value, live: impl FnOnce() -> Option<Value>) {
    let wanted = body.pointer_mut("/metadata/finalizers").and_then(Value::as_array_mut);
    let Some(wanted) = wanted.filter(|wanted| wanted.len() > 1) else {
        return;
    };
    let live = live().unwrap_or_default();
    let live = live.pointer("/metadata/finalizers").and_then(Value::as_array);
    let place = |finalizer: &Value| live.and_then(|live| live.iter().position(|other| other == finalizer));
    // New ones follow the others, as the API server puts them.
    wanted.sort_by_key(|finalizer| place(finalizer).unwrap_or(usize::MAX));
}

/// Removes `null` values. In an apply, `null` would claim a field in order to empty it, and no controller intends that.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, v| !v.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

/// A hash of a text.
pub(crate) type Hash = [u8; 16];

/// A hash of a value; maps are sorted, so that equal values hash equally.
pub(super) fn hash(value: &impl Serialize) -> Hash {
    let mut hasher = Sha256::new();
    // Writing into a hasher cannot fail, and a Value can always be encoded.
    let _ = serde_json::to_writer(Sink(&mut hasher), value);
    shortened(hasher)
}

/// A hash of an encoded object.
pub(super) fn hash_of_text(json: &[u8]) -> Hash {
    shortened(Sha256::new_with_prefix(json))
}

fn shortened(hasher: Sha256) -> Hash {
    let full = hasher.finalize();
    let mut short = [0; 16];
    short.copy_from_slice(&full[..16]);
    short
}

/// A hash of the desired object without its uid: the uid only selects the object, and the record of an apply has it separately.
pub(super) fn desired_hash(body: &Value) -> Hash {
    let Some(fields) = body.as_object() else {
        return hash(body);
    };
    let mut metadata = body["metadata"].clone();
    if let Some(fields) = metadata.as_object_mut() {
        fields.remove("uid");
    }
    let without = |(name, value)| (name, if name == "metadata" { &metadata } else { value });
    let fields: BTreeMap<&String, &Value> = fields.iter().map(without).collect();
    hash(&fields)
}

/// A hash of the part that an apply can change: the status, or everything but the status and the fields that the server sets.
pub(super) fn live_hash(live: &Value, subresource: Option<&str>) -> Hash {
    if subresource == Some("status") {
        return hash(&live["status"]);
    }
    hash(&for_apply(live.clone()))
}

struct Sink<'a>(&'a mut Sha256);

impl std::io::Write for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Resource names of the built-in kinds that controllers write dynamically.
pub(super) fn built_in_plural(gvk: &Gvk) -> Option<&'static str> {
    Some(match (gvk.group.as_str(), gvk.kind.as_str()) {
        ("", "Secret") => "secrets",
        ("", "ConfigMap") => "configmaps",
        ("", "Node") => "nodes",
        ("", "Pod") => "pods",
        ("", "Service") => "services",
        ("", "ServiceAccount") => "serviceaccounts",
        ("", "Namespace") => "namespaces",
        ("", "Event") => "events",
        ("apps", "Deployment") => "deployments",
        ("apps", "DaemonSet") => "daemonsets",
        ("apps", "StatefulSet") => "statefulsets",
        ("rbac.authorization.k8s.io", "Role") => "roles",
        ("rbac.authorization.k8s.io", "RoleBinding") => "rolebindings",
        ("rbac.authorization.k8s.io", "ClusterRole") => "clusterroles",
        ("rbac.authorization.k8s.io", "ClusterRoleBinding") => "clusterrolebindings",
        ("coordination.k8s.io", "Lease") => "leases",
        ("apiextensions.k8s.io", "CustomResourceDefinition") => "customresourcedefinitions",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_server_sets_is_not_applied() {
        let body = for_apply(json!({
            "metadata": {"name": "a", "uid": "u", "resourceVersion": "1", "creationTimestamp": null, "generation": 2},
            "spec": {"a": null, "b": [{"c": null, "d": 1}]},
            "status": {"x": 1},
        }));
        let expect = json!({"metadata": {"name": "a", "uid": "u"}, "spec": {"b": [{"d": 1}]}});
        assert_eq!(body, expect);
    }

    #[test]
    fn live_hash_of_the_main_part_ignores_status_and_versions() {
        let a = json!({"metadata": {"name": "a", "resourceVersion": "1"}, "spec": {"x": 1}, "status": {"y": 1}});
        let b = json!({"metadata": {"name": "a", "resourceVersion": "2"}, "spec": {"x": 1}, "status": {"y": 2}});
        assert_eq!(live_hash(&a, None), live_hash(&b, None));
        assert_ne!(live_hash(&a, Some("status")), live_hash(&b, Some("status")));
    }
}
