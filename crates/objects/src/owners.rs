//! Validation of owner references and finalizers, and warnings about duplicates. Pure.

use std::collections::{BTreeSet, HashSet};

use serde_json::Value;
use windlass_meta::budget::{CONTROLLER_ERRORS, OWNERS_LISTED};
use windlass_schema::{FieldError, FieldErrors, Kind};

use crate::metadata::{finalizers, meta_mut, meta_value, text};
use crate::names::qualified_name_problems;

/// Finalizers that need no domain.
const KNOWN: [&str; 3] = ["orphan", "foregroundDeletion", "kubernetes"];

fn references(object: &Value) -> &[Value] {
    let list = meta_value(object, "ownerReferences").and_then(Value::as_array);
    list.map_or(&[], Vec::as_slice)
}

/// The fields of an object in the order in which Kubernetes writes them.
fn in_order(object: &Value, keys: &[&str]) -> String {
    let part = |key: &&str| object.get(*key).map(|value| format!("{key:?}:{value}"));
    let parts: Vec<String> = keys.iter().filter_map(part).collect();
    format!("{{{}}}", parts.join(","))
}

fn shown(reference: &Value) -> String {
    let keys = ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"];
    in_order(reference, &keys)
}

/// References as a list, of which only the beginning is shown if there are many.
fn shown_list(all: &[Value]) -> String {
    let mut list: Vec<String> = all.iter().take(OWNERS_LISTED).map(shown).collect();
    if all.len() > OWNERS_LISTED {
        list.push("...".to_owned());
    }
    list.join(",")
}

/// The errors of an object's owner references.
pub fn errors(object: &Value, errors: &mut FieldErrors) {
    let at = "metadata.ownerReferences";
    let all = references(object);
    let mut controller: Option<String> = None;
    let mut list: Option<String> = None;
    let mut further = 0;
    for owner in all {
        let api_version = text(owner, "apiVersion");
        // A value that is not a group and version has neither.
        if api_version.is_empty() || api_version.matches('/').count() > 1 {
            let path = format!("{at}.apiVersion");
            errors.push(FieldError::invalid(
                path,
                api_version.into(),
                "version must not be empty",
            ));
        }
        for key in ["kind", "name", "uid"] {
            if text(owner, key).is_empty() {
                errors.push(FieldError::invalid(
                    format!("{at}.{key}"),
                    "".into(),
                    "must not be empty",
                ));
            }
        }
        if (api_version, text(owner, "kind")) == ("v1", "Event") {
            let words = format!("{}: /v1, Kind=Event is disallowed from being an owner", shown(owner));
            errors.push(FieldError::new(at, Kind::Invalid, None, words));
        }
        if owner.get("controller") == Some(&Value::Bool(true)) {
            let this = format!("{}/{}", text(owner, "kind"), text(owner, "name"));
            if let Some(first) = &controller {
                further += 1;
                if further > CONTROLLER_ERRORS {
                    continue;
                }
                let list = list.get_or_insert_with(|| shown_list(all));
                let words = format!(
                    "[{list}]: Only one reference can have Controller set to true. Found \"true\" in references for {first} and {this}"
                );
                errors.push(FieldError::new(at, Kind::Invalid, None, words));
            } else {
                controller = Some(this);
            }
        }
    }
}

/// The errors of an object's finalizers.
pub fn finalizer_errors(object: &Value, custom: bool, errors: &mut FieldErrors) {
    let at = "metadata.finalizers";
    let all = finalizers(object);
    for finalizer in &all {
        for problem in qualified_name_problems(finalizer) {
            errors.push(FieldError::invalid(at, (*finalizer).into(), problem));
        }
    }
    if all.contains(&"orphan") && all.contains(&"foregroundDeletion") {
        errors.push(FieldError::invalid(
            at,
            meta_value(object, "finalizers").cloned().unwrap_or(Value::Null),
            "finalizer orphan and foregroundDeletion cannot be both set",
        ));
    }
    if custom {
        return;
    }
    for (index, finalizer) in all.iter().enumerate() {
        unqualified(finalizer, &format!("{at}[{index}]"), errors);
    }
}

/// The error for a finalizer without a domain, unless it is one of the known ones.
pub fn unqualified(finalizer: &str, at: &str, errors: &mut FieldErrors) {
    if !finalizer.contains('/') && !KNOWN.contains(&finalizer) {
        errors.push(FieldError::invalid(
            at,
            finalizer.into(),
            "name is neither a standard finalizer name nor is it fully qualified",
        ));
    }
}

/// The new finalizers as a sorted list for messages; `None` without any.
pub fn added(old: &Value, new: &Value) -> Option<String> {
    let had: HashSet<&str> = finalizers(old).into_iter().collect();
    let added: BTreeSet<&str> = finalizers(new).into_iter().filter(|f| !had.contains(f)).collect();
    let quoted: Vec<String> = added.iter().map(|f| format!("{f:?}")).collect();
    (!quoted.is_empty()).then(|| quoted.join(", "))
}

/// Removes duplicate owner references. Returns the warning about them.
pub fn unite(object: &mut Value) -> Option<String> {
    let all = references(object);
    let mut kept: Vec<Value> = Vec::new();
    let mut twice: Vec<&str> = Vec::new();
    // Sets, as the sender chooses how many there are.
    let (mut seen, mut said) = (HashSet::new(), HashSet::new());
    for reference in all {
        let uid = text(reference, "uid");
        if seen.insert(reference) {
            kept.push(reference.clone());
        } else if said.insert(uid) {
            twice.push(uid);
        }
    }
    if twice.is_empty() {
        return None;
    }
    let words = format!(
        ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
        twice.join(", ")
    );
    meta_mut(object).insert("ownerReferences".to_owned(), kept.into());
    Some(words)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(owners: &Value, want: &[&str]) {
        let mut found = FieldErrors::new();
        errors(&json!({"metadata": {"ownerReferences": owners}}), &mut found);
        let texts: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(texts, want);
    }

    #[test]
    fn a_reference_says_all_about_its_owner() {
        check(
            &json!([{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "u"}]),
            &[],
        );
        check(
            &json!([{"apiVersion": "a/b/c", "kind": "Pod", "name": "a"}]),
            &[
                "metadata.ownerReferences.apiVersion: Invalid value: \"a/b/c\": version must not be empty",
                "metadata.ownerReferences.uid: Invalid value: \"\": must not be empty",
            ],
        );
        check(
            &json!([{"apiVersion": "v1", "kind": "Event", "name": "a", "uid": "u"}]),
            &[
                "metadata.ownerReferences: Invalid value: {\"apiVersion\":\"v1\",\"kind\":\"Event\",\"name\":\"a\",\"uid\":\"u\"}: /v1, Kind=Event is disallowed from being an owner",
            ],
        );
    }

    #[test]
    fn what_is_said_twice_counts_once() {
        let one = json!({"uid": "u", "name": "a"});
        let other = json!({"uid": "u", "name": "b"});
        let mut object = json!({"metadata": {"ownerReferences": [one, other, one]}});
        assert!(unite(&mut object).unwrap().ends_with("observed: u"));
        assert_eq!(object["metadata"]["ownerReferences"], json!([one, other]));
        assert_eq!(unite(&mut object), None);
    }

    #[test]
    fn many_controllers_do_not_multiply_what_is_said() {
        let owner = |at: usize| json!({"apiVersion": "v1", "kind": "Pod", "name": format!("p{at}"), "uid": at.to_string(), "controller": true});
        let owners: Vec<Value> = (0..5_000).map(owner).collect();
        let mut found = FieldErrors::new();
        errors(&json!({"metadata": {"ownerReferences": owners}}), &mut found);
        let size: usize = found.iter().map(|error| error.to_string().len()).sum();
        assert_eq!(found.len(), CONTROLLER_ERRORS);
        assert!(size < 100_000, "{size} bytes");
        assert!(found[0].to_string().contains("references for Pod/p0 and Pod/p1"));
    }
}
