//! The variables of a class and the patches that use them, from their texts alone.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_gotemplate::Prepared;
use windlass_topology::model::{ClassSpec, JsonPatch, Patch, text};
use windlass_topology::patches::TAKEN_OVER;
use windlass_topology::variables::BUILTIN;
use windlass_topology::variables::class::path_of;

use crate::finding::{Check, Problem};
use crate::library::Entry;

/// Fields of control planes that the topology sets after the patches.
const OVERWRITTEN: [&str; 3] = [
    "/spec/template/spec/version",
    "/spec/template/spec/machineTemplate/infrastructureRef",
    "/spec/template/spec/machineTemplate/spec/infrastructureRef",
];

/// A Go template in a class: its field, and itself.
pub(super) struct Text<'a> {
    pub(super) field: String,
    pub(super) template: &'a Prepared,
}

/// The Go templates of a patch.
pub(super) fn texts(index: usize, patch: &Patch) -> Vec<Text<'_>> {
    let mut texts = Vec::new();
    if let Some(template) = &patch.enabled_if {
        let field = format!("spec.patches[{index}].enabledIf");
        texts.push(Text { field, template });
    }
    for (field, operation) in operations(index, patch) {
        let template = operation.value_from.as_ref().and_then(|from| from.template.as_ref());
        if let Some(template) = template {
            let field = format!("{field}.valueFrom.template");
            texts.push(Text { field, template });
        }
    }
    texts
}

/// The operations of a patch with their fields.
pub(super) fn operations(index: usize, patch: &Patch) -> impl Iterator<Item = (String, &JsonPatch)> {
    let definitions = patch.definitions.iter().enumerate();
    definitions.flat_map(move |(number, definition)| {
        let operations = definition.json_patches.iter().enumerate();
        operations.map(move |(place, operation)| {
            let field = format!("spec.patches[{index}].definitions[{number}].jsonPatches[{place}]");
            (field, operation)
        })
    })
}

/// The variables that a patch uses, by their names, and whether it may use any.
pub(super) fn used(index: usize, patch: &Patch) -> (BTreeSet<String>, bool) {
    let (mut names, mut is_any) = (BTreeSet::new(), false);
    for text in texts(index, patch) {
        let Some(uses) = text.template.uses() else { continue };
        names.extend(uses.names.iter().cloned());
        is_any |= uses.everything;
    }
    for (_, operation) in operations(index, patch) {
        let path = operation.value_from.as_ref().and_then(|from| from.variable.as_deref());
        names.extend(path.map(|path| first_name(path).to_owned()));
    }
    (names, is_any)
}

/// The name of the variable in a path such as `proxy.url` or `servers[0]`.
fn first_name(path: &str) -> &str {
    path.split(['.', '[']).find(|part| !part.is_empty()).unwrap_or_default()
}

/// Whether extensions define variables of a class, beside those in it.
pub(super) fn is_discovered(class: &Value) -> bool {
    let patches = class.pointer("/spec/patches").and_then(Value::as_array);
    let names = patches
        .into_iter()
        .flatten()
        .map(|patch| text(patch, "/external/discoverVariablesExtension"));
    names.into_iter().any(|name| !name.is_empty())
}

/// Variables that are not used or not defined, and operations without effect.
pub(super) fn problems(class: &Entry, spec: &ClassSpec) -> Vec<Problem> {
    let mut problems = Vec::new();
    let defined: BTreeSet<&str> = spec.variables.iter().map(|variable| variable.name.as_str()).collect();
    let (mut used_names, mut is_any) = (BTreeSet::new(), false);
    for (index, patch) in spec.patches.iter().enumerate() {
        // An extension may use and define variables of which the class does not say anything.
        is_any |= patch.external.is_some();
        let (names, any) = used(index, patch);
        used_names.extend(names);
        is_any |= any;
    }
    let is_discovered = is_discovered(&class.stored);
    for variable in &spec.variables {
        if !is_any && !variable.name.is_empty() && !used_names.contains(&variable.name) {
            let message = format!("variable {:?} is not used by any patch", variable.name);
            problems.push(
                Problem::warning(Check::UnusedVariable, path_of(&variable.name), message)
                    .hint("use it in a patch, or remove it"),
            );
        }
    }
    for (index, patch) in spec.patches.iter().enumerate() {
        for text in texts(index, patch).iter().filter(|_| !is_discovered) {
            problems.extend(undefined(text, &defined));
        }
        for (field, operation) in operations(index, patch) {
            let is_good = !class.is_wrong_at(&format!("{field}.path"));
            problems.extend(without_effect(&field, operation, patch, spec).filter(|_| is_good));
        }
    }
    problems
}

/// Variables in a Go template that are not defined. They render as `<no value>`, and as false in conditions.
fn undefined(text: &Text<'_>, defined: &BTreeSet<&str>) -> Vec<Problem> {
    let names = text.template.uses().into_iter().flat_map(|uses| &uses.names);
    let unknown = names.filter(|name| *name != BUILTIN && !defined.contains(name.as_str()));
    let problem = |name: &String| {
        let message = format!("variable {name:?} is not defined by the class");
        let candidates = defined.iter().copied().chain([BUILTIN]);
        let near = candidates.map(|other| (windlass_meta::distance(other, name), other));
        let near = near.filter(|(distance, _)| *distance <= (name.len() / 3).max(1)).min();
        let hint = near.map_or_else(
            || "define it in spec.variables, or correct the name".to_owned(),
            |(_, near)| format!("is {near:?} meant?"),
        );
        Problem {
            line: line_of(text.template.text(), name),
            ..Problem::error(Check::UndefinedVariable, &text.field, message).hint(hint)
        }
    };
    unknown.map(problem).collect()
}

/// The first line of a Go template with this name of a variable.
fn line_of(text: &str, name: &str) -> Option<usize> {
    let wanted = format!(".{name}");
    let has = |line: &str| {
        line.match_indices(&wanted).any(|(at, _)| {
            let next = line[at + wanted.len()..].chars().next();
            let before = line[..at].chars().next_back();
            let is_name = |c: char| c.is_alphanumeric() || c == '_';
            !next.is_some_and(is_name) && !before.is_some_and(|c| is_name(c) || c == '.')
        })
    };
    text.lines().position(has).map(|index| index + 1)
}

fn is_below(path: &str, above: &str) -> bool {
    path.strip_prefix(above)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Why an operation changes nothing in generated objects, if so.
fn without_effect(
    field: &str,
    operation: &JsonPatch,
    patch: &Patch,
    spec: &ClassSpec,
) -> impl Iterator<Item = Problem> {
    let path = operation.path.as_str();
    let is_above = TAKEN_OVER.iter().any(|part| is_below(part, path));
    let problem = |message: String, hint: &str| {
        Some(Problem::warning(Check::PatchWithoutEffect, format!("{field}.path"), message).hint(hint))
    };
    let found = if !is_above && !TAKEN_OVER.iter().any(|part| is_below(path, part)) {
        problem(
            format!(
                "patch {:?} changes {path}, which generated objects do not take over",
                patch.name
            ),
            "change what is below /spec/template/spec, or labels and annotations below /spec/template/metadata",
        )
    } else if OVERWRITTEN.iter().any(|part| is_below(path, part)) && is_for_control_plane(field, patch, spec) {
        problem(
            format!(
                "patch {:?} changes {path}, which the topology of each Cluster sets itself",
                patch.name
            ),
            "remove the operation",
        )
    } else {
        None
    };
    found.into_iter()
}

/// Whether an operation is for the control plane template.
fn is_for_control_plane(field: &str, patch: &Patch, spec: &ClassSpec) -> bool {
    let number = field
        .split("definitions[")
        .nth(1)
        .and_then(|rest| rest.split(']').next());
    let definition = number
        .and_then(|number| number.parse().ok())
        .and_then(|n: usize| patch.definitions.get(n));
    definition.is_some_and(|definition| {
        let (selector, template) = (&definition.selector, &spec.control_plane.template_ref);
        selector.match_resources.control_plane
            && (&selector.kind, &selector.api_version) == (&template.kind, &template.api_version)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_in_its_line() {
        let text = "{{ if .proxy }}\n{{ .proxyURL }} {{ .x.url }}\n{{ (.url) }}";
        let check = |name: &str, expect: Option<usize>| assert_eq!(line_of(text, name), expect, "{name}");
        check("proxy", Some(1));
        check("proxyURL", Some(2));
        check("url", Some(3));
        check("none", None);
    }
}
