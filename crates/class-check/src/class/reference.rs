//! The templates that a class refers to.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_topology::blueprint::{Reference, references};
use windlass_topology::model::{ClassSpec, TemplateRef, text};

use crate::finding::{Check, Problem};
use crate::library::{Entry, Library, Lookup};

/// What is wrong with the references of a class.
pub(super) fn problems(library: &Library, class: &Entry, spec: &ClassSpec) -> Vec<Problem> {
    let namespace = text(&class.stored, "/metadata/namespace");
    let references: Vec<Reference<'_>> = references(spec)
        .into_iter()
        // What is incomplete is refused by admission.
        .filter(|reference| !class.is_wrong_at(&reference.field))
        .filter(|reference| !reference.template.name.is_empty())
        .collect();
    let looked_up = || {
        let found = references
            .iter()
            .map(|reference| (reference, library.template(namespace, reference.template)));
        found.collect::<Vec<_>>()
    };
    let mut problems = Vec::new();
    let missing = looked_up()
        .iter()
        .filter(|(_, found)| matches!(found, Lookup::Missing))
        .count();
    if missing > 0 && missing == references.len() {
        let message = "none of the templates of the class is in the files: patches are not tried";
        problems.push(
            Problem::warning(Check::TemplateReference, "spec", message).hint("name the files with its templates, too"),
        );
        return problems;
    }
    let mut unknown = BTreeSet::new();
    for (reference, found) in looked_up() {
        let Reference { field, template } = reference;
        let TemplateRef {
            api_version,
            kind,
            name,
        } = *template;
        match found {
            Lookup::Found(entry) => {
                if entry
                    .stored
                    .pointer("/spec/template")
                    .is_none_or(|part| !part.is_object())
                {
                    let message = format!("{kind} {name} has no spec.template, which a template must have");
                    problems.push(Problem::error(Check::TemplateReference, field, message));
                }
                let form = (api_version.clone(), kind.clone());
                if library.kinds.of(&entry.stored).is_none() && unknown.insert(form) {
                    problems.push(unknown_kind(field, template));
                }
            }
            Lookup::OtherVersion(entry) => {
                let version = text(&entry.stored, "/apiVersion");
                let message = format!(
                    "{kind} {name} is written in version {version}, and not in {api_version}: it cannot be converted \
                     here, so that its patches are not tried"
                );
                problems.push(
                    Problem::warning(Check::TemplateReference, format!("{field}.apiVersion"), message)
                        .hint("write both in the same version"),
                );
            }
            Lookup::OtherNamespace(entry) => {
                let other = text(&entry.stored, "/metadata/namespace");
                let message = format!("{kind} {name} is in namespace {other:?}, and the class in {namespace:?}");
                problems.push(
                    Problem::error(Check::TemplateReference, format!("{field}.name"), message)
                        .hint("a class and its templates must be in the same namespace"),
                );
            }
            Lookup::Missing => {
                let message = format!("{kind} {name} of {api_version} is not in the files");
                let hint = similar(library, template).map_or_else(
                    || "name the file that has it, or correct the reference".to_owned(),
                    |name| format!("is {name:?} meant?"),
                );
                problems.push(Problem::error(Check::TemplateReference, format!("{field}.name"), message).hint(hint));
            }
        }
    }
    problems
}

fn unknown_kind(field: &str, template: &TemplateRef) -> Problem {
    let TemplateRef { api_version, kind, .. } = template;
    let message = format!(
        "kind {kind} of {api_version} is not one of ours: its fields, and what patches write to them, are not checked"
    );
    Problem::note(Check::UnknownKind, format!("{field}.kind"), message)
        .hint("name a file with its CustomResourceDefinition, too")
}

/// A template of the same kind with nearly the same name.
fn similar<'a>(library: &'a Library, template: &TemplateRef) -> Option<&'a str> {
    let of_kind =
        |entry: &&'a Entry| entry.object.group() == template.group() && text(&entry.stored, "/kind") == template.kind;
    let names = library.entries.iter().filter(of_kind).map(|entry| {
        let stored: &'a Value = &entry.stored;
        text(stored, "/metadata/name")
    });
    let near = names.map(|name| (windlass_meta::distance(name, &template.name), name));
    let near = near
        .filter(|(distance, _)| *distance <= (template.name.len() / 3).max(1))
        .min();
    near.map(|(_, name)| name)
}
