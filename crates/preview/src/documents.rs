//! Objects in files: YAML or JSON, one or several documents, lists taken apart.

use serde_json::Value;
use windlass_class_check::{Finding, Kinds, schemas};
use windlass_gocompat::yaml::{self, File};
use windlass_manager::registry::kinds;
use windlass_meta::budget::OBJECT_DEPTH;

use crate::error::PreviewError;

/// The most problems of objects that are named.
const SHOWN: usize = 20;

/// The objects of files, in order. Objects may be deep: the stack of the caller has to be large.
pub fn objects(files: &[File]) -> Result<Vec<Value>, PreviewError> {
    let mut out = Vec::new();
    for file in files {
        parse(&file.name, &file.text, &mut out, |_, _| ())?;
    }
    Ok(out)
}

/// The objects of files that stand for a management cluster. Each has to be what a server would store: as the schema of its kind says, without
/// unknown fields. Definitions in the files count before ours. The stack is as in [`objects`].
pub fn cluster_objects(files: &[File]) -> Result<Vec<Value>, PreviewError> {
    let objects = objects(files)?;
    let mut definitions = kinds::all_crds();
    let is_definition = |object: &&Value| object["kind"] == "CustomResourceDefinition";
    definitions.extend(objects.iter().filter(is_definition).cloned());
    let kinds = Kinds::new(&definitions, Vec::new());
    let mut findings: Vec<Finding> = Vec::new();
    for file in files {
        parse(&file.name, &file.text, &mut Vec::new(), |document, value| {
            findings.extend(schemas(&file.name, document, value, &kinds));
        })?;
    }
    if findings.is_empty() {
        return Ok(objects);
    }
    let number = findings.len();
    findings.truncate(SHOWN);
    let shown = findings.into_iter().map(|one| (one.to_string(), one.hint)).collect();
    Err(PreviewError::Invalid { number, shown })
}

/// The objects of a text.
fn parse(
    place: &str,
    text: &str,
    out: &mut Vec<Value>,
    mut read: impl FnMut(&yaml::Document<'_>, &Value),
) -> Result<(), PreviewError> {
    let text = text.trim_start_matches('\u{feff}');
    for document in yaml::documents(text) {
        let wrong = |why: String| PreviewError::Document {
            place: format!("{place}, document {}", document.number),
            why,
        };
        let parsed = value(document.text).map_err(|problem| PreviewError::Document {
            place: format!("{place}:{}:{}", document.line + problem.line - 1, problem.column),
            why: problem.text,
        })?;
        read(&document, &parsed);
        take(parsed, out).map_err(wrong)?;
    }
    Ok(())
}

/// A document. JSON, as `kubectl get -o json` gives it of a whole fleet, is read without the parser of YAML.
fn value(text: &str) -> Result<Value, yaml::Problem> {
    if text.starts_with('{')
        && let Ok(value) = serde_json::from_str(text)
    {
        return Ok(value);
    }
    let mut options = yaml::manifest(OBJECT_DEPTH);
    if let Some(budget) = &mut options.budget {
        // A dump of a fleet is one document.
        (budget.max_events, budget.max_nodes, budget.max_total_scalar_bytes) = (usize::MAX, usize::MAX, usize::MAX);
    }
    let mut value = yaml::read(text, options).map_err(|error| yaml::problem(&error))?;
    windlass_schema::whole_numbers(&mut value);
    Ok(value)
}

/// The object of a document, or those of its list.
fn take(document: Value, out: &mut Vec<Value>) -> Result<(), String> {
    if document.is_null() {
        return Ok(());
    }
    let is_list = document["kind"].as_str().is_some_and(|kind| kind.ends_with("List"));
    let items = document["items"].as_array().filter(|_| is_list).cloned();
    for object in items.unwrap_or_else(|| vec![document]) {
        for (field, value) in [
            ("apiVersion", &object["apiVersion"]),
            ("kind", &object["kind"]),
            ("metadata.name", &object["metadata"]["name"]),
        ] {
            if value.as_str().is_none_or(str::is_empty) {
                return Err(format!("{field} is missing; every object needs it"));
            }
        }
        for field in ["/spec", "/status", "/metadata/labels", "/metadata/annotations"] {
            if object
                .pointer(field)
                .is_some_and(|value| !value.is_object() && !value.is_null())
            {
                let name = field.trim_start_matches('/').replace('/', ".");
                return Err(format!("{name} must be an object"));
            }
        }
        out.push(object);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_taken_apart_and_checked() {
        let mut out = Vec::new();
        let list = "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: A, metadata: {name: a}}\n---\n---\n\
                    {apiVersion: v1, kind: B, metadata: {name: b}}\n";
        parse("f", list, &mut out, |_, _| ()).unwrap();
        let kinds: Vec<_> = out.iter().map(|one| one["kind"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["A", "B"]);
        let error = parse("f", "apiVersion: v1\nkind: A\n", &mut out, |_, _| ()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "f, document 1: metadata.name is missing; every object needs it"
        );
        let broken = parse(
            "f",
            "{apiVersion: v1, kind: A, metadata: {name: a}}\n---\nsecret: [\n",
            &mut out,
            |_, _| (),
        )
        .unwrap_err()
        .to_string();
        assert!(broken.starts_with("f:3:") && !broken.contains("secret"), "{broken}");
        let deep = parse("f", &"[".repeat(200_000), &mut out, |_, _| ())
            .unwrap_err()
            .to_string();
        assert!(deep.len() < 200, "{deep}");
        out.clear();
        parse(
            "f",
            "{apiVersion: v1, kind: A, metadata: {name: a}, spec: {mode: 0644, on: yes}}",
            &mut out,
            |_, _| (),
        )
        .unwrap();
        assert_eq!(
            out[0]["spec"],
            serde_json::json!({"mode": 420, "on": true}),
            "as kubectl reads it"
        );
    }
}
