//! Applies `spec.patches` and `spec.manifestPatches` of a declaration to the objects of a provider.
//!
//! - `spec.patches`: a list of operations (RFC 6902), or a strategic merge patch, which is a JSON merge patch for kinds that are
//!   not built in. `$patch: delete` at the top removes the object.
//! - `spec.manifestPatches`: JSON merge patches that contain the identity of their objects.
//!
//! The identity of an object (API version, kind, namespace, name) and the labels by which it is found cannot be patched.

#[cfg(test)]
mod tests;

use serde_json::Value;
use windlass_api_operator::{PatchTarget, Patches, TargetedPatch, labels};
use windlass_contract::Selector;

use crate::customize::{Note, object_name};
use crate::yaml;

/// API groups whose kinds have lists that merge by key.
const BUILT_IN: [&str; 17] = [
    "",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "apps",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
];

/// Labels by which the operator and clusterctl find the objects of a provider.
const KEPT_LABELS: [&str; 2] = [labels::CLUSTERCTL, labels::PROVIDER];

/// Why a patch cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// A patch is invalid for any object.
    #[error("{list}[{index}]: {why}")]
    Malformed {
        /// `spec.patches` or `spec.manifestPatches`.
        list: &'static str,
        /// Its index in the list.
        index: usize,
        /// The problem.
        why: String,
    },
    /// A patch does not match the structure of an object.
    #[error("{list}[{index}] cannot be applied to {object}: {why}")]
    Refused {
        /// `spec.patches` or `spec.manifestPatches`.
        list: &'static str,
        /// Its index in the list.
        index: usize,
        /// Kind, namespace and name.
        object: String,
        /// The problem.
        why: String,
    },
}

/// The operation on an object.
enum Change {
    Operations(Value),
    Merge(Value),
    Delete,
}

/// One entry of a list.
struct Entry {
    list: &'static str,
    index: usize,
    change: Change,
    target: Target,
    /// Whether lists of built-in kinds merge by key.
    strategic: bool,
}

/// The target of a patch; empty fields match everything.
#[derive(Default)]
struct Target {
    api_version: String,
    group: String,
    version: String,
    kind: String,
    namespace: String,
    name: String,
    labels: Option<Selector>,
}

/// Applies a declaration's patches in order. After an error, some objects may have been patched: discard them.
///
/// A patch that matches no object is reported in a note.
pub fn apply(objects: &mut Vec<Value>, patches: &Patches) -> Result<Vec<Note>, PatchError> {
    // All patches are parsed before the first one is applied.
    let entries: Vec<Entry> = match patches {
        Patches::None => return Ok(Vec::new()),
        Patches::Targeted(list) => list.iter().enumerate().map(Entry::targeted).collect::<Result<_, _>>()?,
        Patches::Merge(list) => list.iter().enumerate().map(Entry::manifest).collect::<Result<_, _>>()?,
    };
    let mut notes = Vec::new();
    for entry in &entries {
        entry.apply(objects, &mut notes)?;
    }
    Ok(notes)
}

impl Entry {
    fn targeted((index, patch): (usize, &TargetedPatch)) -> Result<Self, PatchError> {
        let list = "spec.patches";
        let malformed = |why: String| PatchError::Malformed { list, index, why };
        let document = document(&patch.patch).map_err(|why| malformed(format!("patch {why}")))?;
        let target = match &patch.target {
            Some(target) => Target::declared(target).map_err(malformed)?,
            // A patch that is a whole object contains its target.
            None if document.get("kind").is_some() => Target::itself(&document),
            None => Target::default(),
        };
        let change = Change::read(document).map_err(|why| malformed(format!("patch {why}")))?;
        Ok(Self {
            list,
            index,
            change,
            target,
            strategic: true,
        })
    }

    fn manifest((index, text): (usize, &String)) -> Result<Self, PatchError> {
        let list = "spec.manifestPatches";
        let malformed = |why: String| PatchError::Malformed { list, index, why };
        let document = document(text).map_err(malformed)?;
        let target = Target::itself(&document);
        if document.is_array() {
            let why = "is a list of operations; entries of spec.patches may be that, these are merge patches";
            return Err(malformed(why.to_owned()));
        }
        if target.kind.is_empty() {
            return Err(malformed(
                "does not say a kind: it is applied to objects of its own kind".to_owned(),
            ));
        }
        let change = Change::read(document).map_err(malformed)?;
        Ok(Self {
            list,
            index,
            change,
            target,
            strategic: false,
        })
    }

    fn apply(&self, objects: &mut Vec<Value>, notes: &mut Vec<Note>) -> Result<(), PatchError> {
        let field = format!("{}[{}]", self.list, self.index);
        let mut matched = false;
        let mut at = 0;
        while at < objects.len() {
            if !self.target.matches(&objects[at]) {
                at += 1;
                continue;
            }
            matched = true;
            let name = object_name(&objects[at]);
            if matches!(self.change, Change::Delete) {
                notes.push(Note::done(&field, &name, "left it out"));
                objects.remove(at);
                continue;
            }
            let patched = self.patched(&objects[at]).map_err(|why| PatchError::Refused {
                list: self.list,
                index: self.index,
                object: name.clone(),
                why,
            })?;
            if patched != objects[at] {
                notes.push(Note::done(&field, &name, "patched it"));
                objects[at] = patched;
            }
            at += 1;
        }
        if !matched {
            notes.push(Note::ignored(
                &field,
                "",
                "it is for none of the provider's objects; they are in the provider's namespace by now",
            ));
        }
        Ok(())
    }

    fn patched(&self, object: &Value) -> Result<Value, String> {
        let mut out = object.clone();
        match &self.change {
            Change::Operations(list) => windlass_smd::json_patch(&mut out, list).map_err(|error| error.to_string())?,
            Change::Merge(patch) if self.strategic && is_built_in(object) => {
                windlass_smd::strategic_merge_patch(None, &mut out, patch).map_err(|error| error.to_string())?;
            }
            Change::Merge(patch) => windlass_smd::merge_patch(&mut out, patch),
            Change::Delete => {}
        }
        if let Some(path) = IDENTITY.iter().find(|path| out.pointer(path) != object.pointer(path)) {
            let field = path.trim_start_matches('/').replace('/', ".");
            return Err(format!("it would change {field}, by which the object is known"));
        }
        keep_labels(object, &mut out)?;
        Ok(out)
    }
}

/// The identity of an object.
const IDENTITY: [&str; 4] = ["/apiVersion", "/kind", "/metadata/namespace", "/metadata/name"];

fn keep_labels(before: &Value, after: &mut Value) -> Result<(), String> {
    for key in KEPT_LABELS {
        let Some(value) = before["metadata"]["labels"].get(key) else {
            continue;
        };
        if after["metadata"]["labels"].get(key) == Some(value) {
            continue;
        }
        let labels = after
            .pointer_mut("/metadata")
            .and_then(Value::as_object_mut)
            .map(|metadata| {
                metadata
                    .entry("labels")
                    .or_insert_with(|| Value::Object(serde_json::Map::new()))
            })
            .ok_or("metadata is not an object afterwards")?;
        if labels.is_null() {
            *labels = Value::Object(serde_json::Map::new());
        }
        let labels = labels
            .as_object_mut()
            .ok_or("metadata.labels is not an object afterwards")?;
        labels.insert(key.to_owned(), value.clone());
    }
    Ok(())
}

fn is_built_in(object: &Value) -> bool {
    BUILT_IN.contains(&group_version(text(object, "apiVersion")).0)
}

fn group_version(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or("")
}

/// The only document of a patch.
fn document(patch: &str) -> Result<Value, String> {
    let has_content = |line: &&str| !line.trim().is_empty() && !line.starts_with('#');
    let separators = || patch.lines().enumerate().filter(|(_, line)| line.trim_end() == "---");
    let inner = |nth: usize| {
        patch
            .lines()
            .take(nth)
            .any(|line| has_content(&line) && line.trim_end() != "---")
    };
    if separators().any(|(nth, _)| inner(nth)) {
        return Err("has more than one document: write one entry for each".to_owned());
    }
    match yaml::read(patch) {
        Ok(Value::Null) => Err("is empty".to_owned()),
        Ok(document) => Ok(document),
        Err(_) if !patch.lines().any(|line| has_content(&line)) => Err("is empty".to_owned()),
        Err(error) => {
            let problem = windlass_gocompat::yaml::problem(&error);
            Err(format!("is not YAML, in its line {}: {}", problem.line, problem.text))
        }
    }
}

impl Change {
    fn read(document: Value) -> Result<Self, String> {
        match document {
            Value::Array(list) => {
                let named = |one: &Value| one.get("op").is_some_and(Value::is_string);
                match list.iter().position(|one| !named(one)) {
                    Some(at) => Err(format!(
                        "is a list, so a list of operations (RFC 6902), but entry {at} has no op"
                    )),
                    None => Ok(Self::Operations(Value::Array(list))),
                }
            }
            Value::Object(mut map) => {
                if map.get("$patch").and_then(Value::as_str) == Some("delete") {
                    return Ok(Self::Delete);
                }
                // A patch may be written as a whole object; its name only informs readers.
                map.remove("apiVersion");
                map.remove("kind");
                if let Some(metadata) = map.get_mut("metadata").and_then(Value::as_object_mut) {
                    metadata.remove("name");
                    metadata.remove("namespace");
                }
                Ok(Self::Merge(Value::Object(map)))
            }
            _ => Err("is neither an object nor a list of operations".to_owned()),
        }
    }
}

impl Target {
    fn declared(target: &PatchTarget) -> Result<Self, String> {
        let given = |value: &Option<String>| value.clone().unwrap_or_default();
        let labels = match target.label_selector.as_deref() {
            None | Some("") => None,
            Some(text) => Some(Selector::parse_text(text).map_err(|why| format!("target.labelSelector: {why}"))?),
        };
        Ok(Self {
            api_version: String::new(),
            group: given(&target.group),
            version: given(&target.version),
            kind: given(&target.kind),
            namespace: given(&target.namespace),
            name: given(&target.name),
            labels,
        })
    }

    /// The target fields in a patch itself.
    fn itself(document: &Value) -> Self {
        let metadata = &document["metadata"];
        Self {
            api_version: text(document, "apiVersion").to_owned(),
            kind: text(document, "kind").to_owned(),
            namespace: text(metadata, "namespace").to_owned(),
            name: text(metadata, "name").to_owned(),
            ..Self::default()
        }
    }

    fn matches(&self, object: &Value) -> bool {
        let api_version = text(object, "apiVersion");
        let (group, version) = group_version(api_version);
        let metadata = &object["metadata"];
        let fits = |want: &str, have: &str| want.is_empty() || want == have;
        fits(&self.api_version, api_version)
            && fits(&self.group, group)
            && fits(&self.version, version)
            && fits(&self.kind, text(object, "kind"))
            && fits(&self.namespace, text(metadata, "namespace"))
            && fits(&self.name, text(metadata, "name"))
            && self
                .labels
                .as_ref()
                .is_none_or(|labels| labels.matches_by(|key| metadata["labels"].get(key).and_then(Value::as_str)))
    }
}
