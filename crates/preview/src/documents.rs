//! Objects in files: YAML or JSON, one or several documents, lists taken apart.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::error::PreviewError;

/// The objects of files and folders, in order. `-` is standard input.
pub(crate) fn read(paths: &[PathBuf]) -> Result<Vec<Value>, PreviewError> {
    let mut out = Vec::new();
    for path in paths {
        if path.as_os_str() == "-" {
            let mut text = String::new();
            let read = std::io::stdin().read_to_string(&mut text);
            read.map_err(|source| failed(path, source))?;
            parse("standard input", &text, &mut out)?;
            continue;
        }
        for file in files(path)? {
            let text = std::fs::read_to_string(&file).map_err(|source| failed(&file, source))?;
            parse(&file.display().to_string(), &text, &mut out)?;
        }
    }
    Ok(out)
}

fn failed(path: &Path, source: std::io::Error) -> PreviewError {
    PreviewError::File {
        path: path.to_owned(),
        source,
    }
}

/// A file, or the files of a folder and its subfolders, by name.
fn files(path: &Path) -> Result<Vec<PathBuf>, PreviewError> {
    let about = std::fs::metadata(path).map_err(|source| failed(path, source))?;
    if !about.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(path).map_err(|source| failed(path, source))? {
        entries.push(entry.map_err(|source| failed(path, source))?.path());
    }
    entries.sort();
    let mut out = Vec::new();
    for entry in entries {
        let is_manifest = entry
            .extension()
            .is_some_and(|end| ["yaml", "yml", "json"].iter().any(|known| end == *known));
        // Links to folders may lead anywhere, and in circles.
        let is_link = std::fs::symlink_metadata(&entry).is_ok_and(|about| about.is_symlink());
        if entry.is_dir() && is_link {
            continue;
        }
        if entry.is_dir() {
            out.extend(files(&entry)?);
        } else if is_manifest {
            out.push(entry);
        }
    }
    Ok(out)
}

/// The objects of a text.
pub(crate) fn parse(place: &str, text: &str, out: &mut Vec<Value>) -> Result<(), PreviewError> {
    let wrong = |number: usize, why: String| PreviewError::Document {
        place: format!("{place}, document {number}"),
        why,
    };
    let parsed = values(text).map_err(|why| PreviewError::Document {
        place: place.to_owned(),
        why: why.lines().next().unwrap_or_default().to_owned(),
    })?;
    for (number, document) in (1..).zip(parsed) {
        if document.is_null() {
            continue;
        }
        let kind = document["kind"].as_str().unwrap_or_default();
        let items = document["items"].as_array().filter(|_| kind.ends_with("List")).cloned();
        for object in items.unwrap_or_else(|| vec![document.clone()]) {
            for (field, value) in [
                ("apiVersion", &object["apiVersion"]),
                ("kind", &object["kind"]),
                ("metadata.name", &object["metadata"]["name"]),
            ] {
                if value.as_str().is_none_or(str::is_empty) {
                    return Err(wrong(number, format!("{field} is missing; every object needs it")));
                }
            }
            for field in ["/spec", "/status", "/metadata/labels", "/metadata/annotations"] {
                if object
                    .pointer(field)
                    .is_some_and(|value| !value.is_object() && !value.is_null())
                {
                    let name = field.trim_start_matches('/').replace('/', ".");
                    return Err(wrong(number, format!("{name} must be an object")));
                }
            }
            out.push(object);
        }
    }
    Ok(())
}

/// The documents of a text. Files are the user's own and may be as large as a dump of a fleet: nothing limits them.
fn values(text: &str) -> Result<Vec<Value>, String> {
    if text.trim_start().starts_with('{')
        && let Ok(value) = serde_json::from_str(text)
    {
        return Ok(vec![value]);
    }
    let mut options = serde_saphyr::Options::default();
    options.budget = None;
    serde_saphyr::from_multiple_with_options(text, options).map_err(|error| error.to_string())
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
        assert!(parse("f", "a: [", &mut out).unwrap_err().to_string().starts_with("f: "));
    }
}
