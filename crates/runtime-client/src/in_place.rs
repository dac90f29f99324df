//! Changes without a replacement, as an extension promises them: pure.
//!
//! The extension answers with patches of the objects as they are. What it cannot change, it leaves out. The update is possible when nothing is
//! left between the patched objects and those that are wanted.

use k8s_openapi::ByteString;
use serde_json::Value;
use windlass_runtime_hooks::in_place::Patch;
use windlass_smd::{json_patch, merge_patch};

use crate::answers::beginning;

/// How many differences of an object are named.
const NAMED: usize = 5;
/// The fields of a Machine that are compared. References differ always, and the rest goes in place without an extension.
const OF_MACHINES: [&str; 2] = ["version", "failureDomain"];

/// Why Machines are replaced where no extension serves the hook.
pub const NO_EXTENSION: &str = "no extension updates Machines in place";

/// Whether Machines can be updated in place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InPlace {
    /// An extension can make every change.
    Possible,
    /// No extension can, for this reason: Machines are replaced.
    Impossible(String),
    /// This cannot be told.
    Unknown(String),
}

impl InPlace {
    /// What an extension leaves unchanged decides.
    pub(crate) fn unless(left: &[String]) -> Self {
        if left.is_empty() {
            return Self::Possible;
        }
        let left = left.join(", ");
        Self::Impossible(format!("the extension does not change {}", beginning(&left)))
    }
}

/// What an extension leaves unchanged of an object, each as `spec.size of Kind`.
pub fn left(have: &Value, patch: Option<&Patch>, want: &Value, part: &str) -> Result<Vec<String>, String> {
    let kind = have["kind"].as_str().unwrap_or_default();
    let paths = differences(&patched(have, patch, part)?, want, part).into_iter();
    Ok(paths.map(|path| format!("{path} of {kind}")).collect())
}

/// What an extension leaves unchanged of a Machine, or of the Machine in a template.
pub fn left_of_machine(have: &Value, patch: Option<&Patch>, want: &Value, part: &str) -> Result<Vec<String>, String> {
    let kind = have["kind"].as_str().unwrap_or_default();
    let changed = patched(have, patch, part)?;
    let path = part.trim_start_matches('/').replace('/', ".");
    // An empty text is the same as none.
    let text = |object: &Value, field: &str| {
        let value = object.pointer(part).and_then(|spec| spec[field].as_str());
        value.unwrap_or_default().to_owned()
    };
    let differ = OF_MACHINES
        .into_iter()
        .filter(|field| text(&changed, field) != text(want, field));
    Ok(differ.map(|field| format!("{path}.{field} of {kind}")).collect())
}

/// An object as it is after a patch. Only what the patch changes at `part`, a JSON pointer, counts.
fn patched(object: &Value, patch: Option<&Patch>, part: &str) -> Result<Value, String> {
    let Some(patch) = patch.filter(|patch| **patch != Patch::default()) else {
        return Ok(object.clone());
    };
    let failed = |why: &dyn std::fmt::Display| format!("failed to apply patch: {why}");
    let ByteString(bytes) = &patch.patch;
    let mut changed = object.clone();
    match patch.patch_type.as_str() {
        "JSONPatch" => {
            let patch = parsed(bytes)?;
            json_patch(&mut changed, &patch).map_err(|error| failed(&error))?;
        }
        "JSONMergePatch" if bytes.is_empty() => {}
        "JSONMergePatch" => merge_patch(&mut changed, &parsed(bytes)?),
        "" => return Err(failed(&"patchType is not set")),
        other => return Err(failed(&format_args!("unknown patchType {other:?}"))),
    }
    let mut whole = object.clone();
    if let Some(new) = changed.pointer_mut(part) {
        set(&mut whole, part, new.take());
    }
    Ok(whole)
}

fn parsed(bytes: &[u8]) -> Result<Value, String> {
    serde_json::from_slice(bytes).map_err(|error| format!("failed to apply patch: it is no JSON: {error}"))
}

/// Sets the value at a JSON pointer of plain keys. Objects on the way are made.
fn set(object: &mut Value, pointer: &str, value: Value) {
    let mut place = object;
    for key in pointer.split('/').filter(|key| !key.is_empty()) {
        if !place.is_object() {
            return;
        }
        place = &mut place[key];
        if place.is_null() {
            *place = Value::Object(serde_json::Map::new());
        }
    }
    *place = value;
}

/// The paths below a JSON pointer at which two objects differ, as `spec.template.spec.size`; a few of them. Empty when they are the same.
fn differences(have: &Value, want: &Value, part: &str) -> Vec<String> {
    let mut found = Vec::new();
    let path = part.trim_start_matches('/').replace('/', ".");
    let nothing = Value::Null;
    let side = |object| Value::pointer(object, part).unwrap_or(&nothing);
    compare(side(have), side(want), &path, &mut found);
    found
}

fn compare(have: &Value, want: &Value, path: &str, found: &mut Vec<String>) {
    if found.len() >= NAMED || have == want {
        return;
    }
    if let (Value::Object(have), Value::Object(want)) = (have, want) {
        let more = want.keys().filter(|key| !have.contains_key(*key));
        for key in have.keys().chain(more) {
            let (have, want) = (have.get(key), want.get(key));
            let nothing = &Value::Null;
            compare(
                have.unwrap_or(nothing),
                want.unwrap_or(nothing),
                &format!("{path}.{key}"),
                found,
            );
        }
        return;
    }
    found.push(path.to_owned());
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn patch(kind: &str, text: &str) -> Patch {
        Patch {
            patch_type: kind.to_owned(),
            patch: ByteString(text.as_bytes().to_vec()),
        }
    }

    #[test]
    fn only_the_part_in_question_changes() {
        let object =
            json!({ "metadata": { "name": "a" }, "spec": { "template": { "spec": { "size": 1 } }, "other": 1 } });
        let merge = r#"{"metadata": {"name": "b"}, "spec": {"other": 2, "template": {"spec": {"size": 2}}}}"#;
        let changed = patched(&object, Some(&patch("JSONMergePatch", merge)), "/spec/template/spec").unwrap();
        assert_eq!(
            changed,
            json!({ "metadata": { "name": "a" }, "spec": { "template": { "spec": { "size": 2 } }, "other": 1 } })
        );
        let six = r#"[{"op": "add", "path": "/spec/template/spec/zone", "value": "x"}]"#;
        let changed = patched(&object, Some(&patch("JSONPatch", six)), "/spec/template/spec").unwrap();
        assert_eq!(changed["spec"]["template"]["spec"], json!({ "size": 1, "zone": "x" }));
    }

    #[test]
    fn no_patch_changes_nothing_and_a_bad_one_is_an_error() {
        let object = json!({ "spec": { "size": 1 } });
        let with = |patch: &Patch| patched(&object, Some(patch), "/spec");
        assert_eq!(patched(&object, None, "/spec").unwrap(), object);
        assert_eq!(with(&Patch::default()).unwrap(), object);
        assert_eq!(with(&patch("JSONMergePatch", "")).unwrap(), object);
        for (kind, text, why) in [
            ("", "{}", "patchType is not set"),
            ("Strategic", "{}", "unknown patchType \"Strategic\""),
            ("JSONMergePatch", "{", "it is no JSON"),
            ("JSONPatch", "", "it is no JSON"),
            ("JSONPatch", r#"[{"op": "remove", "path": "/nowhere"}]"#, "nowhere"),
        ] {
            let error = with(&patch(kind, text)).unwrap_err();
            assert!(error.starts_with("failed to apply patch: "), "{error}");
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn an_object_without_the_part_gets_it() {
        let merge = patch("JSONMergePatch", r#"{"spec": {"template": {"spec": {"size": 2}}}}"#);
        let changed = patched(&json!({ "spec": {} }), Some(&merge), "/spec/template/spec").unwrap();
        assert_eq!(changed, json!({ "spec": { "template": { "spec": { "size": 2 } } } }));
    }

    #[test]
    fn differences_are_named_by_their_path() {
        let a = json!({ "spec": { "a": 1, "b": { "c": [1], "d": true } } });
        let b = json!({ "spec": { "b": { "c": [2], "d": true }, "e": 1 }, "status": {} });
        assert_eq!(differences(&a, &b, "/spec"), ["spec.a", "spec.b.c", "spec.e"]);
        assert!(differences(&a, &a, "/spec").is_empty());
        assert!(differences(&json!({}), &json!({ "spec": null }), "/spec").is_empty());
        let many: serde_json::Map<String, Value> = (0..9).map(|n| (format!("k{n}"), json!(n))).collect();
        assert_eq!(
            differences(&json!({ "s": {} }), &json!({ "s": many }), "/s").len(),
            NAMED
        );
    }

    #[test]
    fn of_a_machine_only_what_needs_an_extension_is_compared() {
        let machine = |version: &str, drain: i32| json!({ "kind": "Machine", "spec": { "version": version, "deletion": { "nodeDrainTimeoutSeconds": drain } } });
        let left =
            |patch: Option<&Patch>| left_of_machine(&machine("v1", 1), patch, &machine("v2", 2), "/spec").unwrap();
        assert_eq!(left(None), ["spec.version of Machine"]);
        assert!(left(Some(&patch("JSONMergePatch", r#"{"spec": {"version": "v2"}}"#))).is_empty());
        assert_eq!(InPlace::unless(&[]), InPlace::Possible);
        let InPlace::Impossible(why) = InPlace::unless(&vec!["x".repeat(100); 100]) else {
            panic!()
        };
        assert!(why.len() < 1100, "it ends in a condition");
    }
}
