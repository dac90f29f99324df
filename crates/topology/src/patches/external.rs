//! External patches: what an extension is asked about the templates of a topology, and what its answer changes.
//!
//! Patches are applied one after the other, so a question has what all patches before it have changed. The engine stops at each question. It
//! gives its state along, and goes on from there with the answer.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use windlass_meta::beginning;
use windlass_smd::{json_patch, merge_patch};

use super::Item;
use super::progress::Progress;
use crate::error::Error;
use crate::model::{Patch, VariableStatus};
use crate::variables::{BUILTIN, Values};
use crate::{keys, names};

/// Patches in the form of RFC 6902.
const JSON_PATCH: &str = "JSONPatch";
/// Patches in the form of RFC 7386.
const JSON_MERGE_PATCH: &str = "JSONMergePatch";

/// How much of the reason of a failure is repeated, in bytes.
const LONGEST_REASON: usize = 1 << 10;
/// Where a template has the specification of the objects that are made from it.
const OBJECT_SPEC: &str = "/spec/template/spec";

/// What an extension is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Patches of the templates.
    Generate,
    /// Whether the templates are good, when all patches were applied.
    Validate,
}

/// The object that uses a template, and where.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Holder {
    /// Group and version of the object.
    pub api_version: String,
    /// Kind of the object.
    pub kind: String,
    /// Namespace of the object.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
    /// The field that refers to what is made from the template.
    pub field_path: String,
}

/// One template in a question.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// Names the template in the answer.
    pub uid: String,
    /// The object that uses it.
    pub holder: Holder,
    /// The template.
    pub template: Value,
    /// Values that only this template sees.
    pub variables: Values,
}

/// A question to the extension of a patch.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// The name of the patch.
    pub patch: String,
    /// What is asked.
    pub purpose: Purpose,
    /// The handler that is asked.
    pub handler: String,
    /// Settings of the class.
    pub settings: BTreeMap<String, String>,
    /// Values that all templates see.
    pub variables: Values,
    /// The templates.
    pub items: Vec<Asked>,
    /// Where patches go on with the answer.
    pub(crate) progress: Progress,
}

/// A patch in an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    /// The template, as in the question.
    pub uid: String,
    /// `JSONPatch` or `JSONMergePatch`.
    pub form: String,
    /// The patch.
    pub patch: Vec<u8>,
}

/// A question and its answer, or why there is none. The answer to a check has no patches.
#[derive(Debug, Clone, PartialEq)]
pub struct Answered {
    /// The question.
    pub question: Question,
    /// The patches, in order.
    pub answer: Result<Vec<Given>, String>,
}

/// Why patches are not applied.
#[derive(Debug)]
pub enum Halt {
    /// The class or the Cluster has to change.
    Refused(Error),
    /// An extension has to be asked first.
    Asks(Box<Question>),
    /// An extension has no answer, or none that can be used. It may have one later.
    Unanswered(Error),
}

impl From<Error> for Halt {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

/// Which values a patch sees: those with a definition that comes from it, and for an inline patch those that the class defines.
pub(super) struct Visible<'a> {
    /// The names; none when all are visible.
    names: Option<BTreeSet<&'a str>>,
}

impl<'a> Visible<'a> {
    pub(super) fn from(source: &str, definitions: &'a [VariableStatus]) -> Self {
        let has = |variable: &&VariableStatus| variable.definitions.iter().any(|one| one.from == source);
        let names: BTreeSet<&str> = definitions.iter().filter(has).map(|one| one.name.as_str()).collect();
        Self {
            names: (names.len() != definitions.len()).then_some(names),
        }
    }

    /// The values that are visible.
    pub(super) fn of(&self, mut values: Values) -> Values {
        if let Some(names) = &self.names {
            values.retain(|name, _| name == BUILTIN || names.contains(name.as_str()));
        }
        values
    }
}

/// The extension of one patch, with what it may see.
pub(super) struct Extension<'a> {
    /// The class, as errors name it.
    pub(super) class: &'a str,
    /// The field of the patch.
    pub(super) field: String,
    pub(super) patch: &'a Patch,
    pub(super) definitions: &'a [VariableStatus],
    pub(super) global: &'a Values,
}

impl<'a> Extension<'a> {
    /// The handler that is asked, if any.
    pub(super) fn handler(&self, purpose: Purpose) -> Option<&'a str> {
        let external = self.patch.external.as_ref()?;
        match purpose {
            Purpose::Generate => external.generates(),
            Purpose::Validate => external.validates(),
        }
    }

    /// What the handler is asked about the templates.
    pub(super) fn question(&self, purpose: Purpose, handler: &str, progress: Progress) -> Question {
        let visible = Visible::from(&self.patch.name, self.definitions);
        let asked = progress.items.iter().map(|item| Asked {
            uid: uid(&item.holder),
            holder: item.holder.clone(),
            template: shown(&item.template),
            variables: visible.of(item.variables.clone()),
        });
        Question {
            patch: self.patch.name.clone(),
            purpose,
            handler: handler.to_owned(),
            settings: self
                .patch
                .external
                .as_ref()
                .map(|external| external.settings.clone())
                .unwrap_or_default(),
            variables: visible.of(self.global.clone()),
            items: asked.collect(),
            progress,
        }
    }

    /// Applies the patches of an answer, or takes the result of a check.
    pub(super) fn take(
        &self,
        purpose: Purpose,
        answer: &Result<Vec<Given>, String>,
        items: &mut [Item],
    ) -> Result<(), Halt> {
        let lost = match purpose {
            Purpose::Generate => "was not generated",
            Purpose::Validate => "has found the topology wrong, or could not check it",
        };
        let given = answer.as_ref().map_err(|why| self.halt(purpose, lost, why))?;
        if purpose == Purpose::Validate {
            return Ok(());
        }
        let places: BTreeMap<String, usize> = items.iter().map(|item| uid(&item.holder)).zip(0..).collect();
        for one in given {
            let item = places.get(&one.uid).and_then(|at| items.get_mut(*at));
            let applied = match item {
                Some(item) => apply(one, item),
                None => Err(format!("no template of the request has the uid {:?}", one.uid)),
            };
            applied.map_err(|why| self.halt(purpose, "cannot be applied", &why))?;
        }
        Ok(())
    }

    fn halt(&self, purpose: Purpose, what: &str, why: &str) -> Halt {
        let field = match purpose {
            Purpose::Generate => "generatePatchesExtension",
            Purpose::Validate => "validateTopologyExtension",
        };
        let field = format!("{}.external.{field}", self.field);
        // The text ends in a condition, which has a limit, and an answer has none.
        let why = beginning(why, LONGEST_REASON);
        let message = format!("patch {:?} {what}: {why}", self.patch.name);
        Halt::Unanswered(Error::new(self.class, field, message))
    }
}

/// Names a use of a template: the same in each question, and of no other Cluster.
fn uid(holder: &Holder) -> String {
    names::fingerprint(&json!([
        holder.api_version,
        holder.kind,
        holder.namespace,
        holder.name,
        holder.field_path
    ]))
}

/// A template as extensions see it: without what only API servers and tools need.
fn shown(template: &Value) -> Value {
    let mut template = template.clone();
    let Some(metadata) = template.get_mut("metadata").and_then(Value::as_object_mut) else {
        return template;
    };
    metadata.remove("managedFields");
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
        for of_tools in [keys::LAST_APPLIED, keys::CONVERSION_DATA] {
            annotations.remove(of_tools);
        }
        // An extension in Go would leave an empty map out, and that would be a patch.
        if annotations.is_empty() {
            metadata.remove("annotations");
        }
    }
    template
}

/// Applies one patch. Only the specification, the labels and the annotations of a template may change.
fn apply(given: &Given, item: &mut Item) -> Result<(), String> {
    let about = |why: String| {
        let holder = &item.holder;
        format!(
            "{} {}/{}, {}: {why}",
            holder.kind, holder.namespace, holder.name, holder.field_path
        )
    };
    let mut patched = shown(&item.template);
    match given.form.as_str() {
        JSON_PATCH => {
            let patch: Value = serde_json::from_slice(&given.patch).map_err(|error| about(malformed(&error)))?;
            let operations = patch
                .as_array()
                .ok_or_else(|| about("a JSON patch is a list".to_owned()))?;
            let operations: Vec<Value> = operations.iter().flat_map(to_the_letter).collect();
            json_patch(&mut patched, &Value::Array(operations)).map_err(|error| about(error.to_string()))?;
        }
        JSON_MERGE_PATCH if given.patch.is_empty() => return Ok(()),
        JSON_MERGE_PATCH => {
            let patch: Value = serde_json::from_slice(&given.patch).map_err(|error| about(malformed(&error)))?;
            if !patch.is_object() {
                return Err(about("a JSON merge patch is an object".to_owned()));
            }
            merge_patch(&mut patched, &patch);
        }
        other => {
            return Err(about(format!(
                "patchType {other:?} is not supported; use {JSON_PATCH} or {JSON_MERGE_PATCH}"
            )));
        }
    }
    // Without it, everything that the template asks for would be taken away from the objects.
    let has_spec = |template: &Value| template.pointer(OBJECT_SPEC).is_some_and(Value::is_object);
    if has_spec(&item.template) && !has_spec(&patched) {
        return Err(about(format!(
            "{OBJECT_SPEC} is an object, and would not be one any more"
        )));
    }
    for path in [&["spec"][..], &["metadata", "labels"], &["metadata", "annotations"]] {
        // A part that is taken away as a whole stays, as in v1.14.
        if let Some(value) = patched.pointer(&format!("/{}", path.join("/"))) {
            super::set_or_remove(&mut item.template, path, Some(value.clone()));
        }
    }
    Ok(())
}

/// An operation as RFC 6902 has it: `replace` needs something to replace. [`json_patch`] has the habit of API servers to add what is missing, but
/// does not remove it.
fn to_the_letter(operation: &Value) -> Vec<Value> {
    let path = operation.get("path").and_then(Value::as_str).unwrap_or_default();
    let counts_from_the_end = path
        .split('/')
        .any(|part| part.parse::<i64>().is_ok_and(|number| number < 0));
    if operation["op"] != "replace" || path.is_empty() || counts_from_the_end {
        return vec![operation.clone()];
    }
    let value = operation.get("value").cloned().unwrap_or(Value::Null);
    vec![
        json!({"op": "remove", "path": path}),
        json!({"op": "add", "path": path, "value": value}),
    ]
}

fn malformed(error: &serde_json::Error) -> String {
    format!("the patch is no JSON: {error}")
}
