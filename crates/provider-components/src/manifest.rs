//! The objects of a file with several YAML documents.
//!
//! Documents are parsed one by one, so that only one of them is in memory in several forms, and an error names the document and
//! the line of the file. Errors are distinguished by their remedy.

use std::collections::BTreeMap;

use serde_json::Value;
use windlass_gocompat::yaml::{Document, Problem, documents, problem};

use crate::object::{self, Identity};
use crate::yaml::{self, NotYaml};

/// Why a file is not a list of objects. Lines and documents are counted from 1; lines are those of the text after the replacement
/// of variables.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    /// No objects at all.
    #[error("there is no object in it: it is empty or has comments only")]
    Empty,
    /// A web page or an error of an object store.
    #[error("it is {what}, not YAML: the address answers with a page for people, a login or an error")]
    Html {
        /// Its type: `a web page`, `XML`.
        what: &'static str,
    },
    /// Not text.
    #[error("it is not text: it may be compressed or an archive, which is not unpacked")]
    Binary,
    /// A line is indented with a tab.
    #[error("document {document}, line {line}: the line is indented with a tab, which YAML forbids; use blanks")]
    Tab {
        /// Which document.
        document: usize,
        /// Which line.
        line: usize,
    },
    /// The text ends unexpectedly.
    #[error("document {document}, line {line}: the text ends in the middle of an object; it is not whole")]
    Truncated {
        /// Which document.
        document: usize,
        /// Its last line.
        line: usize,
    },
    /// Not YAML.
    #[error("document {document}, line {line}: {problem}")]
    Syntax {
        /// Which document.
        document: usize,
        /// Which line.
        line: usize,
        /// The problem.
        problem: String,
    },
    /// A document that is not an object.
    #[error("document {document}, line {line}: it is {found}, not an object with apiVersion, kind and metadata")]
    NotAnObject {
        /// Which document.
        document: usize,
        /// Its first line.
        line: usize,
        /// Its type.
        found: &'static str,
    },
    /// An object has no name or kind.
    #[error("document {document}, line {line}: {object} has no {field}, which must be a text")]
    Missing {
        /// Which document.
        document: usize,
        /// Its first line.
        line: usize,
        /// The known parts of its identity.
        object: String,
        /// The missing field.
        field: &'static str,
    },
    /// Two objects are the same.
    #[error("line {second}: {object} is there twice, first in line {first}")]
    Twice {
        /// Which object.
        object: Identity,
        /// The first line of the first document.
        first: usize,
        /// The first line of the second document.
        second: usize,
    },
}

/// Parses all objects of a text, in order. A `List` is replaced by its items.
pub fn parse(text: &str) -> Result<Vec<Value>, ManifestError> {
    let mut objects = Vec::new();
    let mut lines: BTreeMap<Identity, usize> = BTreeMap::new();
    each(text, &mut |document, object| {
        let identity = identify(document, &object)?;
        if let Some(first) = lines.get(&identity) {
            return Err(ManifestError::Twice {
                object: identity,
                first: *first,
                second: document.line,
            });
        }
        lines.insert(identity, document.line);
        objects.push(object);
        Ok(())
    })?;
    if objects.is_empty() {
        return Err(ManifestError::Empty);
    }
    Ok(objects)
}

/// [`parse`] for a text that a user has put together: it may have no object, the same one twice, and lists of objects as JSON.
pub fn parse_any(text: &str) -> Result<Vec<Value>, ManifestError> {
    let mut objects = Vec::new();
    each(text, &mut |document, value| {
        let listed = match value {
            Value::Array(items) => items,
            value => vec![value],
        };
        for object in listed {
            identify(document, &object)?;
            objects.push(object);
        }
        Ok(())
    })?;
    Ok(objects)
}

/// Calls `take` with each object of a text and its document.
fn each(
    text: &str,
    take: &mut dyn FnMut(&Document<'_>, Value) -> Result<(), ManifestError>,
) -> Result<(), ManifestError> {
    match yaml::sniff(text) {
        Some(NotYaml::Html) => return Err(ManifestError::Html { what: "a web page" }),
        Some(NotYaml::Xml) => return Err(ManifestError::Html { what: "XML" }),
        Some(NotYaml::Binary) => return Err(ManifestError::Binary),
        None => {}
    }
    for document in documents(text.trim_start_matches('\u{feff}')) {
        for object in objects(&document)? {
            take(&document, object)?;
        }
    }
    Ok(())
}

fn objects(document: &Document<'_>) -> Result<Vec<Value>, ManifestError> {
    let mut value = yaml::read(document.text).map_err(|error| classify(document, &problem(&error)))?;
    let is_list = object::kind(&value) == "List" && object::group(&value).is_empty();
    if let Some(items) = value.get_mut("items").filter(|_| is_list).and_then(Value::as_array_mut) {
        return Ok(std::mem::take(items));
    }
    Ok(match value {
        Value::Null => Vec::new(),
        value => vec![value],
    })
}

/// Classifies a YAML error.
fn classify(document: &Document<'_>, problem: &Problem) -> ManifestError {
    let (line, problem) = (&problem.line, &problem.text);
    let number = document.number;
    let lines: Vec<&str> = document.text.lines().collect();
    // The parser may report a tab on the following line.
    let near = line.saturating_sub(2)..(line + 1).min(lines.len());
    let tab = near.clone().find(|index| {
        let indentation = lines[*index].len() - lines[*index].trim_start().len();
        lines[*index][..indentation].contains('\t') && !lines[*index].trim().is_empty()
    });
    if let Some(tab) = tab {
        return ManifestError::Tab {
            document: number,
            line: document.line + tab,
        };
    }
    let end = lines.iter().rposition(|line| !line.trim().is_empty()).unwrap_or(0) + 1;
    let at_end = *line >= end || problem.contains("eof") || problem.contains("EOF") || problem.contains("end of");
    let unfinished = document.is_last && (at_end || problem.contains("quote") || problem.contains("unclosed"));
    if unfinished {
        return ManifestError::Truncated {
            document: number,
            line: document.line + end - 1,
        };
    }
    ManifestError::Syntax {
        document: number,
        line: document.line + line - 1,
        problem: problem.clone(),
    }
}

/// The identity of an object; all parts of it are required.
fn identify(document: &Document<'_>, value: &Value) -> Result<Identity, ManifestError> {
    if !value.is_object() {
        return Err(ManifestError::NotAnObject {
            document: document.number,
            line: document.line,
            found: sort_of(value),
        });
    }
    let missing = [
        ("apiVersion", &["apiVersion"][..]),
        ("kind", &["kind"]),
        ("metadata.name", &["metadata", "name"]),
    ]
    .into_iter()
    .find(|(_, path)| object::text(value, path).is_empty());
    let namespace = &value["metadata"]["namespace"];
    let odd = !(namespace.is_null() || namespace.is_string());
    let missing = missing.or(odd.then_some(("metadata.namespace", &[][..])));
    let Some((field, _)) = missing else {
        return Ok(Identity::of(value));
    };
    if document.is_last && !document.text.ends_with('\n') {
        return Err(ManifestError::Truncated {
            document: document.number,
            line: document.line + document.text.trim_end().matches('\n').count(),
        });
    }
    let object = match (object::kind(value), object::name(value)) {
        ("", "") => "an object".to_owned(),
        ("", name) => format!("the object {name:?}"),
        (kind, "") => format!("a {kind}"),
        (kind, name) => format!("{kind} {name}"),
    };
    Err(ManifestError::Missing {
        document: document.number,
        line: document.line,
        object,
        field,
    })
}

fn sort_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests;
