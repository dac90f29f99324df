//! Patches: which templates they apply to, and what they change.
//!
//! Patches work on local copies of the templates. Only what a generated object may take over comes back: labels
//! and annotations of the template and of `spec.template`, and `spec.template.spec`.

mod cost;
pub mod external;
mod progress;
mod yaml;

use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};
use windlass_api::values::VARIABLE_FROM_INLINE;
use windlass_gotemplate::Budget;
use windlass_smd::{Edit, edit};

use self::cost::Costs;
use self::external::{Answered, Extension, Halt, Holder, Purpose, Visible};
use self::progress::{Progress, Work};
use crate::error::Error;
use crate::model::{ClassNames, JsonPatch, Patch, PatchDefinition, ValueFrom, VariableStatus, at, text};
use crate::variables::{Values, lookup, merged};

/// Where in the topology a template is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// The infrastructure cluster.
    InfrastructureCluster,
    /// The control plane or its machine template.
    ControlPlane,
    /// Bootstrap or machine template of a MachineDeployment of this class.
    MachineDeployment {
        /// The class of the MachineDeployment.
        class: String,
    },
    /// Bootstrap or infrastructure template of a MachinePool of this class.
    MachinePool {
        /// The class of the MachinePool.
        class: String,
    },
}

/// One template, once per use.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// Where it is used.
    pub place: Place,
    /// The object that uses it.
    pub holder: Holder,
    /// Group and version in the class's reference, which selectors are compared with.
    pub api_version: String,
    /// The template; patched in place.
    pub template: Value,
    /// Values that only this use sees.
    pub variables: Values,
}

/// What patches are applied with.
#[derive(Debug, Clone, Copy)]
pub struct Setting<'a> {
    /// The class, as errors name it.
    pub class: &'a str,
    /// Its patches.
    pub patches: &'a [Patch],
    /// Its variables. They say which values a patch sees.
    pub definitions: &'a [VariableStatus],
    /// Values for the whole Cluster.
    pub global: &'a Values,
    /// What an extension has answered last, about the same class.
    pub answer: Option<&'a Answered>,
}

impl<'a> Setting<'a> {
    fn extension(&self, index: usize, patch: &'a Patch) -> Extension<'a> {
        Extension {
            class: self.class,
            field: format!("spec.patches[{index}]"),
            patch,
            definitions: self.definitions,
            global: self.global,
        }
    }

    /// The patches in the order in which they are applied, and then in which the result is checked.
    fn steps(&self) -> impl Iterator<Item = (Purpose, usize, &'a Patch)> {
        [Purpose::Generate, Purpose::Validate].into_iter().flat_map(|purpose| {
            let patches = self.patches.iter().enumerate();
            patches.map(move |(index, patch)| (purpose, index, patch))
        })
    }
}

/// A field of the patches of a class. Its path is put together for errors only.
#[derive(Debug, Clone, Copy)]
struct Field<'a> {
    class: &'a str,
    /// The number of the patch.
    patch: usize,
    /// The number of the definition, and that of the operation in it.
    operation: Option<(usize, usize)>,
    /// The path below; empty for the patch or the operation itself.
    below: &'static str,
}

impl Field<'_> {
    fn below(self, below: &'static str) -> Self {
        Self { below, ..self }
    }

    fn error(self, message: impl Into<String>) -> Error {
        Error::new(self.class, self.to_string(), message)
    }
}

impl fmt::Display for Field<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "spec.patches[{}]", self.patch)?;
        if let Some((definition, number)) = self.operation {
            write!(f, ".definitions[{definition}].jsonPatches[{number}]")?;
        }
        if self.below.is_empty() {
            return Ok(());
        }
        write!(f, ".{}", self.below)
    }
}

/// Applies all patches to all templates, in order, and has the result checked. The first failure stops everything. `budget` is what all of
/// them may cost together. Where an extension has answered, patches go on behind its question, if they began with the same.
pub fn apply(setting: &Setting<'_>, items: &mut [Item], budget: Budget) -> Result<(), Halt> {
    let known = setting
        .answer
        .filter(|known| known.question.progress.began_with(setting.global, items));
    let (first, left, mut works) = match known.map(|known| &known.question.progress) {
        Some(Progress {
            items: then,
            works,
            left,
            step,
            ..
        }) => {
            for (item, then) in items.iter_mut().zip(then) {
                item.template.clone_from(&then.template);
            }
            (*step, left.clone(), works.clone())
        }
        None => (0, budget, begun(setting.patches, items)),
    };
    let mut answer = known.map(|known| &known.answer);
    let mut costs = Costs::new(left);
    let visible = Visible::from(VARIABLE_FROM_INLINE, setting.definitions);
    for (step, (purpose, index, patch)) in setting.steps().enumerate().skip(first) {
        if patch.external.is_some() {
            let extension = setting.extension(index, patch);
            let Some(handler) = extension.handler(purpose) else {
                continue;
            };
            let Some(answer) = answer.take() else {
                let progress = Progress {
                    global: setting.global.clone(),
                    items: items.to_vec(),
                    works,
                    left: costs.left(),
                    step,
                };
                return Err(Halt::Asks(Box::new(extension.question(purpose, handler, progress))));
            };
            extension.take(purpose, answer, items)?;
        } else if purpose == Purpose::Generate {
            let field = Field {
                class: setting.class,
                patch: index,
                operation: None,
                below: "",
            };
            costs.begin(&patch.name);
            for (item, work) in items.iter_mut().zip(&mut works) {
                let values = (setting.global, &visible);
                apply_one(field, patch, values, (item, work), &mut costs)?;
            }
        }
    }
    for (item, work) in items.iter_mut().zip(works) {
        if let Some(original) = work.original {
            item.template = taken_over(original, &mut item.template);
        }
    }
    Ok(())
}

/// The works before the first patch. With extensions, all templates are kept as they are: an answer is about patches that began with the same.
fn begun(patches: &[Patch], items: &[Item]) -> Vec<Work> {
    let asks = patches.iter().any(|patch| patch.external.is_some());
    let work = |item: &Item| Work {
        inputs: None,
        original: asks.then(|| item.template.clone()),
    };
    items.iter().map(work).collect()
}

fn apply_one(
    field: Field<'_>,
    patch: &Patch,
    (global, visible): (&Values, &Visible<'_>),
    (item, work): (&mut Item, &mut Work),
    costs: &mut Costs<'_>,
) -> Result<(), Error> {
    let names = |definition: &PatchDefinition| {
        let places = &definition.selector.match_resources;
        let names = [&places.machine_deployment_class, &places.machine_pool_class];
        1 + names
            .into_iter()
            .flatten()
            .map(|names| names.names.len())
            .sum::<usize>()
    };
    costs.select(field, patch.definitions.iter().map(names).sum())?;
    if !patch.definitions.iter().any(|definition| matches(definition, item)) {
        return Ok(());
    }
    let values = global.values().chain(item.variables.values());
    if work.inputs.is_none() {
        costs.copy(field, values.clone().chain(values))?;
    }
    let seen = || Value::Object(visible.of(merged(global, &item.variables)).into_iter().collect());
    let inputs = &**work.inputs.get_or_insert_with(|| Arc::new(seen()));
    if let Some(condition) = &patch.enabled_if
        && costs.render(field.below("enabledIf"), condition, inputs)? != true
    {
        return Ok(());
    }
    let paths = |definition: &PatchDefinition| definition.json_patches.iter().all(|one| is_taken_over(&one.path));
    if !patch.definitions.iter().all(paths) {
        work.original.get_or_insert_with(|| item.template.clone());
    }
    for (index, definition) in patch.definitions.iter().enumerate() {
        // Patches change no kind: what matched does so to the end.
        if !matches(definition, item) {
            continue;
        }
        for (number, operation) in definition.json_patches.iter().enumerate() {
            let field = Field {
                operation: Some((index, number)),
                ..field
            };
            let path = &operation.path;
            let resolved = resolved(field, operation, inputs, costs)?;
            if let Some(list) = path.strip_suffix("/0") {
                costs.prepend(field, at(&item.template, list))?;
            }
            let changed =
                addresses(&item.template, &operation.op, path) && edit(&mut item.template, path, resolved).is_ok();
            if !changed {
                return Err(field.error(format!(
                    "patch {:?} cannot change {path} of {}: operation '/0' failed at path '{path}': path is invalid",
                    patch.name,
                    named(&item.template),
                )));
            }
        }
    }
    Ok(())
}

fn named(template: &Value) -> String {
    format!("{} {}", text(template, "/kind"), text(template, "/metadata/name"))
}

/// Whether a definition selects this use of a template.
fn matches(definition: &PatchDefinition, item: &Item) -> bool {
    let selector = &definition.selector;
    if item.api_version != selector.api_version || text(&item.template, "/kind") != selector.kind {
        return false;
    }
    let places = &selector.match_resources;
    match &item.place {
        Place::InfrastructureCluster => places.infrastructure_cluster,
        Place::ControlPlane => places.control_plane,
        Place::MachineDeployment { class } => names_match(places.machine_deployment_class.as_ref(), class),
        Place::MachinePool { class } => names_match(places.machine_pool_class.as_ref(), class),
    }
}

fn names_match(names: Option<&ClassNames>, class: &str) -> bool {
    names.is_some_and(|n| n.names.iter().any(|pattern| name_matches(pattern, class)))
}

/// A name, or one with a `*` at its start or end.
pub fn name_matches(pattern: &str, class: &str) -> bool {
    if pattern == "*" {
        return true;
    }
    if let Some(end) = pattern.strip_prefix('*') {
        return class.ends_with(end);
    }
    if let Some(start) = pattern.strip_suffix('*') {
        return class.starts_with(start);
    }
    pattern == class
}

/// The operation with its value.
fn resolved(field: Field<'_>, patch: &JsonPatch, inputs: &Value, costs: &mut Costs<'_>) -> Result<Edit, Error> {
    check_path(field, patch)?;
    let edit = match patch.op.as_str() {
        "add" => Edit::Add(value_of(field, patch, inputs, costs)?),
        "replace" => Edit::Replace(value_of(field, patch, inputs, costs)?),
        "remove" => Edit::Remove,
        other => {
            let message = format!("{other:?} is not supported; use add, replace or remove");
            return Err(field.below("op").error(message));
        }
    };
    match &edit {
        Edit::Add(value) | Edit::Replace(value) => costs.copy(field, [value])?,
        Edit::Remove => costs.copy(field, [])?,
    }
    Ok(edit)
}

/// Whether the path leads to something that the operation can change, by RFC 6902 to the letter.
///
/// [`edit`] has the habits of Kubernetes API servers: `replace` adds a missing key, and negative indexes count
/// from the end. A patch of a ClusterClass with either is a mistake, which its author should hear of.
fn addresses(template: &Value, op: &str, path: &str) -> bool {
    if op != "add" {
        return at(template, path).is_some();
    }
    let Some((container, last)) = path.rsplit_once('/') else {
        return false;
    };
    match at(template, container) {
        Some(Value::Object(_)) => true,
        // A number without leading zeros or a sign.
        Some(Value::Array(items)) => {
            last == "-"
                || last
                    .parse::<usize>()
                    .is_ok_and(|n| n <= items.len() && n.to_string() == last)
        }
        _ => false,
    }
}

fn check_path(field: Field<'_>, patch: &JsonPatch) -> Result<(), Error> {
    let refuse = |message: String| Err(field.below("path").error(message));
    let path = patch.path.as_str();
    if !path.starts_with("/spec/") && !path.starts_with("/metadata/") {
        return refuse(format!("{path:?} must start with \"/spec/\""));
    }
    // Elements of a list have no lasting number: only its ends can be meant.
    let numbered = path.split('/').any(|segment| match segment.parse::<u64>() {
        Ok(0) => patch.op != "add",
        Ok(_) => true,
        Err(_) => segment == "-" && patch.op != "add",
    });
    if numbered {
        return refuse(format!(
            "{path:?} names a list element; only add may do that, with 0 (prepend) or - (append)"
        ));
    }
    match malformed_token(path) {
        Some(offset) => refuse(format!(
            "{path:?} is no JSON pointer: json pointer failed to parse; \
             the first token in the partial-pointer starting at offset {offset} is malformed"
        )),
        None => Ok(()),
    }
}

/// Where the first token begins, with its slash, in which a `~` is not followed by 0 or 1.
pub fn malformed_token(path: &str) -> Option<usize> {
    let mut offset = 0;
    for token in path.split('/').skip(1) {
        if token.split('~').skip(1).any(|rest| !rest.starts_with(['0', '1'])) {
            return Some(offset);
        }
        offset += token.len() + 1;
    }
    None
}

fn value_of(field: Field<'_>, patch: &JsonPatch, inputs: &Value, costs: &mut Costs<'_>) -> Result<Value, Error> {
    match (&patch.value, &patch.value_from) {
        (Some(value), None) => Ok(value.clone()),
        (
            None,
            Some(ValueFrom {
                variable: Some(path),
                template: None,
            }),
        ) => lookup(inputs, path)
            .cloned()
            .map_err(|e| field.below("valueFrom.variable").error(e.to_string())),
        (
            None,
            Some(ValueFrom {
                variable: None,
                template: Some(template),
            }),
        ) => costs.render(field.below("valueFrom.template"), template, inputs),
        (Some(_), Some(_)) => Err(field.error("sets both value and valueFrom; set one of them")),
        (None, None) => Err(field.error("sets neither value nor valueFrom; set one of them")),
        (None, Some(_)) => Err(field
            .below("valueFrom")
            .error("must set exactly one of variable and template")),
    }
}

/// What patches may change of a template. Generated objects take over nothing else.
pub const TAKEN_OVER: [&str; 5] = [
    "/spec/template/spec",
    "/spec/template/metadata/labels",
    "/spec/template/metadata/annotations",
    "/metadata/labels",
    "/metadata/annotations",
];

/// Whether a path leads into what generated objects take over.
fn is_taken_over(path: &str) -> bool {
    let is_below = |part: &&str| path.strip_prefix(*part).is_some_and(|rest| rest.starts_with('/'));
    TAKEN_OVER.iter().any(is_below)
}

/// The original template with the parts of the patched one that patches may change.
fn taken_over(mut original: Value, patched: &mut Value) -> Value {
    for part in TAKEN_OVER {
        let path: Vec<&str> = part.split('/').skip(1).collect();
        set_or_remove(&mut original, &path, patched.pointer_mut(part).map(Value::take));
    }
    original
}

/// Sets a field, making the objects above it, or removes it.
pub(crate) fn set_or_remove(object: &mut Value, path: &[&str], value: Option<Value>) {
    let Some((last, above)) = path.split_last() else {
        return;
    };
    let mut at = object;
    for part in above {
        let Some(map) = at.as_object_mut() else {
            return;
        };
        if value.is_none() && !map.contains_key(*part) {
            return;
        }
        at = map.entry(*part).or_insert_with(|| Value::Object(Map::new()));
    }
    let Some(map) = at.as_object_mut() else {
        return;
    };
    match value {
        Some(value) => {
            map.insert((*last).to_owned(), value);
        }
        None => {
            map.remove(*last);
        }
    }
}

#[cfg(test)]
mod tests;
