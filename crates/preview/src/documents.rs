//! Objects in files: YAML or JSON, one or several documents, lists taken apart.

use serde_json::Value;
use windlass_gocompat::yaml::{self, File};
use windlass_meta::budget::OBJECT_DEPTH;

use crate::error::PreviewError;

/// The objects of files, in order. Objects may be deep: the stack of the caller has to be large.
pub fn objects(files: &[File]) -> Result<Vec<Value>, PreviewError> {
    let mut out = Vec::new();
    for file in files {
        parse(&file.name, &file.text, &mut out)?;
    }
    Ok(out)
}

/// The objects of a text.
fn parse(place: &str, text: &str, out: &mut Vec<Value>) -> Result<(), PreviewError> {
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
        parse("f", list, &mut out).unwrap();
        let kinds: Vec<_> = out.iter().map(|one| one["kind"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["A", "B"]);
        let error = parse("f", "apiVersion: v1\nkind: A\n", &mut out).unwrap_err();
        assert_eq!(
            error.to_string(),
            "f, document 1: metadata.name is missing; every object needs it"
        );
        let broken = parse(
            "f",
            "{apiVersion: v1, kind: A, metadata: {name: a}}\n---\nsecret: [\n",
            &mut out,
        )
        .unwrap_err()
        .to_string();
        assert!(broken.starts_with("f:3:") && !broken.contains("secret"), "{broken}");
        let deep = parse("f", &"[".repeat(200_000), &mut out).unwrap_err().to_string();
        assert!(deep.len() < 200, "{deep}");
        out.clear();
        parse(
            "f",
            "{apiVersion: v1, kind: A, metadata: {name: a}, spec: {mode: 0644, on: yes}}",
            &mut out,
        )
        .unwrap();
        assert_eq!(
            out[0]["spec"],
            serde_json::json!({"mode": 420, "on": true}),
            "as kubectl reads it"
        );
    }
}
