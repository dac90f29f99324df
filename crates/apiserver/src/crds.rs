//! CustomResourceDefinitions: validation, status, and the resources that they define. Pure.

mod approval;
mod check;
pub(crate) mod definition;
mod formats;
mod layout;
mod normal;
pub(crate) mod registry;
mod resources;
pub(crate) mod status;

use serde_json::{Value, json};

use crate::objects::conversion::versions;
use windlass_objects::metadata::{strings, text};

pub(crate) use self::check::{errors, status_errors};
pub(crate) use self::formats::warnings;
pub(crate) use self::resources::{definition, fingerprint, labels};
pub(crate) use self::status::{Deletion, initial, note_storage_version, set_terminating};

/// The storage name of definitions.
pub(crate) const STORAGE: &str = "customresourcedefinitions.apiextensions.k8s.io";
/// The finalizer that keeps a definition until its objects are deleted.
pub(crate) const FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

fn names(crd: &Value) -> &Value {
    crd.pointer("/spec/names").unwrap_or(&Value::Null)
}

fn flag(value: &Value, key: &str) -> bool {
    value.get(key) == Some(&Value::Bool(true))
}

/// The storage version.
pub(crate) fn storage_version(crd: &Value) -> &str {
    versions(crd)
        .iter()
        .find(|v| flag(v, "storage"))
        .map_or("", |v| text(v, "name"))
}

/// Adds the storage version to the stored versions if they are empty.
fn default_stored(crd: &mut Value) {
    let storage = storage_version(crd).to_owned();
    if let Some(status) = crd.get_mut("status").and_then(Value::as_object_mut)
        && strings(status.get("storedVersions")).is_empty()
        && !storage.is_empty()
    {
        status.insert("storedVersions".into(), json!([storage]));
    }
}

/// `plural.group`, the required name.
fn full_name(crd: &Value) -> String {
    let group = crd.pointer("/spec/group").and_then(Value::as_str).unwrap_or("");
    format!("{}.{group}", text(names(crd), "plural"))
}

/// Whether the definition is established.
pub(crate) fn is_established(crd: &Value) -> bool {
    condition(crd, "Established").is_some_and(|c| text(c, "status") == "True")
}

fn condition<'a>(crd: &'a Value, kind: &str) -> Option<&'a Value> {
    crd.pointer("/status/conditions")?
        .as_array()?
        .iter()
        .find(|c| text(c, "type") == kind)
}

/// Fills in the default names.
pub(crate) fn default(crd: &mut Value) {
    default_stored(crd);
    let Some(names) = crd.pointer_mut("/spec/names").and_then(Value::as_object_mut) else {
        return;
    };
    let kind = names.get("kind").and_then(Value::as_str).unwrap_or("").to_owned();
    let is_empty = |name: Option<&Value>| name.and_then(Value::as_str).unwrap_or("").is_empty();
    if is_empty(names.get("singular")) {
        names.insert("singular".into(), kind.to_lowercase().into());
    }
    if is_empty(names.get("listKind")) && !kind.is_empty() {
        names.insert("listKind".into(), format!("{kind}List").into());
    }
    if let Some(spec) = crd.get_mut("spec").and_then(Value::as_object_mut) {
        if spec.get("preserveUnknownFields") == Some(&Value::Bool(false)) {
            spec.remove("preserveUnknownFields");
        }
        normal::versions(spec);
        let conversion = spec.entry("conversion").or_insert(Value::Null);
        if conversion.is_null() {
            *conversion = json!({"strategy": "None"});
        }
        if let Some(service) = conversion
            .pointer_mut("/webhook/clientConfig/service")
            .and_then(Value::as_object_mut)
        {
            service.entry("port").or_insert_with(|| 443.into());
        }
    }
}

/// Compares versions as Kubernetes prefers them: v2 > v1 > v1beta2 > v1beta1 > v1alpha1 > anything else.
pub(crate) fn compare_versions(a: &str, b: &str) -> std::cmp::Ordering {
    rank(a).cmp(&rank(b)).then_with(|| b.cmp(a))
}

fn rank(version: &str) -> (u8, u64, u64) {
    let parsed = || {
        let rest = version.strip_prefix('v')?;
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let major: u64 = rest[..digits].parse().ok()?;
        let rest = &rest[digits..];
        if rest.is_empty() {
            return Some((3, major, 0));
        }
        for (word, stage) in [("beta", 2), ("alpha", 1)] {
            if let Some(minor) = rest.strip_prefix(word) {
                return Some((stage, major, minor.parse().ok()?));
            }
        }
        None
    };
    parsed().unwrap_or((0, 0, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_preferred_as_kubernetes_does() {
        let mut versions = vec!["foo", "v1alpha1", "v2", "v1beta2", "v1", "v10", "v1beta1"];
        versions.sort_by(|a, b| compare_versions(b, a));
        assert_eq!(versions, ["v10", "v2", "v1", "v1beta2", "v1beta1", "v1alpha1", "foo"]);
    }
}
