//! The objects of files, and where their fields stand.

use std::sync::Arc;

use serde_json::Value;
use serde_saphyr::Options;
use windlass_gocompat::yaml::{self, File};
use windlass_meta::beginning;
use windlass_topology::model::{name_of, text};

use crate::finding::{Check, Finding, Problem, Severity};
use crate::positions::{Place, Position, Positions};

/// The levels of a document. API servers store no deeper objects.
const LEVELS: usize = windlass_meta::budget::OBJECT_DEPTH;
/// The most bytes of a message.
const MESSAGE_BYTES: usize = 1 << 10;

/// How documents are read.
pub(crate) fn options() -> Options {
    yaml::manifest(LEVELS)
}

/// A document of a file.
#[derive(Debug)]
struct Document {
    file: String,
    value: Value,
    positions: Positions,
}

/// An object of a file.
#[derive(Clone, Debug)]
pub(crate) struct Object {
    /// The object as it is written.
    pub(crate) value: Value,
    document: Arc<Document>,
    /// Its path in the document: `items[3]` in a List.
    at: String,
}

impl Object {
    /// `Kind namespace/name`.
    pub(crate) fn name(&self) -> String {
        name_of(&self.value)
    }

    /// API group.
    pub(crate) fn group(&self) -> &str {
        let version = text(&self.value, "/apiVersion");
        version.split_once('/').map_or("", |(group, _)| group)
    }

    /// The name of its file.
    pub(crate) fn file(&self) -> &str {
        &self.document.file
    }

    /// Where a field stands.
    pub(crate) fn place(&self, field: &str) -> Place {
        let joined = match (self.at.as_str(), field) {
            ("", field) => field.to_owned(),
            (at, "") => at.to_owned(),
            (at, field) if field.starts_with('[') => format!("{at}{field}"),
            (at, field) => format!("{at}.{field}"),
        };
        self.document.positions.find(&self.document.value, &joined)
    }

    /// A problem with its place. If it is in a line of a Go template, that is the place.
    pub(crate) fn finding(&self, problem: Problem) -> Finding {
        let place = self.place(&problem.field);
        let mut position = place.name;
        // A text in a block begins in another line than its name.
        if let Some(line) = problem.line.or_else(|| template_line(&problem.message))
            && place.is_whole
            && place.value.line > place.name.line
        {
            position = Position {
                line: place.value.line + line - 1,
                column: place.value.column,
            };
        }
        Finding {
            severity: problem.severity,
            check: problem.check,
            file: self.document.file.clone(),
            position,
            object: self.name(),
            field: problem.field,
            message: beginning(without_drawing(&problem.message), MESSAGE_BYTES).into_owned(),
            hint: problem.hint,
        }
    }
}

/// A message without the picture of the text that the parser of YAML draws below its own.
fn without_drawing(message: &str) -> &str {
    message.split("\n -->").next().unwrap_or_default()
}

/// How errors of Go templates name their line.
const IN_TEMPLATE: [&str; 3] = [
    "template cannot be parsed: line ",
    "template cannot be rendered: line ",
    "template uses a field that does not exist: line ",
];

/// The line of a Go template that an error of it names: `template cannot be parsed: line 3: ...`.
fn template_line(message: &str) -> Option<usize> {
    let after = IN_TEMPLATE.iter().find_map(|words| message.split_once(words))?.1;
    let (number, _) = after.split_once(':')?;
    number.parse().ok().filter(|line| *line > 0)
}

/// The objects of files in their order, and what cannot be read.
pub(crate) fn read(files: &[File]) -> (Vec<Object>, Vec<Finding>) {
    let (mut objects, mut findings) = (Vec::new(), Vec::new());
    for file in files {
        let text = file.text.trim_start_matches('\u{feff}');
        for document in yaml::documents(text) {
            match parse(&document, &file.name) {
                Ok(document) => split(&Arc::new(document), &mut objects, &mut findings),
                Err((position, problem)) => findings.push(unreadable(&file.name, position, problem)),
            }
        }
    }
    (objects, findings)
}

/// The objects of a document that was read, with their places as far as they can be found.
pub(crate) fn placed(file: &str, document: &yaml::Document<'_>, value: Value) -> Vec<Object> {
    let is_list = text(&value, "/kind").ends_with("List");
    let items = value.get("items").and_then(Value::as_array).filter(|_| is_list);
    let parts = match items {
        Some(items) => (items.iter().enumerate())
            .map(|(index, item)| (item.clone(), format!("items[{index}]")))
            .collect(),
        None => vec![(value.clone(), String::new())],
    };
    let positions = Positions::read(document.text, options(), document.line);
    let document = Arc::new(Document {
        file: file.to_owned(),
        value,
        positions: positions.unwrap_or_else(|| Positions::of_line(document.line)),
    });
    let object = |(value, at)| Object {
        value,
        document: Arc::clone(&document),
        at,
    };
    parts.into_iter().map(object).collect()
}

fn unreadable(file: &str, position: Position, message: String) -> Finding {
    Finding {
        severity: Severity::Error,
        check: Check::Syntax,
        file: file.to_owned(),
        position,
        object: String::new(),
        field: String::new(),
        message,
        hint: String::new(),
    }
}

fn parse(document: &yaml::Document<'_>, file: &str) -> Result<Document, (Position, String)> {
    let broken = |error: &serde_saphyr::Error| {
        let problem = yaml::problem(error);
        let position = Position {
            line: document.line + problem.line - 1,
            column: problem.column,
        };
        (position, format!("is not valid YAML: {}", in_words(&problem.text)))
    };
    let mut value = yaml::read(document.text, options()).map_err(|error| broken(&error))?;
    windlass_schema::whole_numbers(&mut value);
    let first = Position {
        line: document.line,
        column: 1,
    };
    let positions = Positions::read(document.text, options(), document.line)
        .ok_or_else(|| (first, "is not valid YAML: it has keys that are no texts".to_owned()))?;
    Ok(Document {
        file: file.to_owned(),
        value,
        positions,
    })
}

/// The words of the parser about its limits are for programmers.
fn in_words(problem: &str) -> &str {
    if problem.starts_with("budget breached") || problem.contains("limit exceeded") {
        "it is too deep, or its aliases make too much of it"
    } else {
        problem
    }
}

/// The objects of a document: itself, or the items of a list.
fn split(document: &Arc<Document>, objects: &mut Vec<Object>, findings: &mut Vec<Finding>) {
    let mut take = |value: &Value, at: String| {
        let object = Object {
            value: value.clone(),
            document: Arc::clone(document),
            at,
        };
        let missing = missing(value);
        match &missing {
            Some(why) => findings.push(unreadable(object.file(), object.place("").value, why.clone())),
            None => objects.push(object),
        }
    };
    match &document.value {
        Value::Null => {}
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                take(item, format!("[{index}]"));
            }
        }
        list if text(list, "/kind") == "List" && text(list, "/apiVersion") == "v1" => {
            let items = list.get("items").and_then(Value::as_array);
            for (index, item) in items.into_iter().flatten().enumerate() {
                take(item, format!("items[{index}]"));
            }
        }
        value => take(value, String::new()),
    }
}

/// Why a value is no object of an API, if so.
fn missing(value: &Value) -> Option<String> {
    if !value.is_object() {
        return Some("is no object with apiVersion, kind and metadata".to_owned());
    }
    let fields = [
        ("/apiVersion", "apiVersion"),
        ("/kind", "kind"),
        ("/metadata/name", "metadata.name"),
    ];
    let missing: Vec<&str> = fields
        .iter()
        .filter(|(pointer, _)| text(value, pointer).is_empty())
        .map(|(_, name)| *name)
        .collect();
    if missing.is_empty() {
        return None;
    }
    let kind = match text(value, "/kind") {
        "" => "the object",
        kind => kind,
    };
    Some(format!(
        "{kind} has no {}, which must be a text",
        missing.join(" and no ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> File {
        File {
            name: "a.yaml".to_owned(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn objects_are_found_in_documents_and_lists() {
        let text = "apiVersion: v1\nkind: A\nmetadata: {name: a}\n---\napiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: B\n  metadata:\n    name: b\n---\n[{\"apiVersion\": \"v1\", \"kind\": \"C\", \"metadata\": {\"name\": \"c\"}}]\n";
        let (objects, findings) = read(&[file(text)]);
        assert_eq!(findings, []);
        let names: Vec<String> = objects.iter().map(Object::name).collect();
        assert_eq!(names, ["A a", "B b", "C c"]);
        let line = |index: usize, field: &str| objects[index].place(field).name.line;
        assert_eq!(
            (line(0, "kind"), line(1, "metadata.name"), line(2, "metadata")),
            (2, 11, 13)
        );
    }

    #[test]
    fn what_cannot_be_read_is_named_and_the_rest_is_read() {
        let text = "a: [\n---\napiVersion: v1\nkind: A\n---\nkind: B\nkind: C\n---\njust a text\n---\napiVersion: v1\nkind: D\nmetadata: {name: d}\n";
        let (objects, findings) = read(&[file(text)]);
        assert_eq!(objects.len(), 1);
        let found: Vec<(usize, bool)> = findings
            .iter()
            .map(|finding| (finding.position.line, finding.message.starts_with("is not valid YAML")))
            .collect();
        assert_eq!(found.len(), 4, "{findings:?}");
        assert_eq!(&found[1..], [(3, false), (7, true), (9, false)], "{findings:?}");
        assert!(findings[1].message.contains("A has no metadata.name"), "{findings:?}");
    }

    #[test]
    fn deep_documents_are_refused() {
        // As much as the program has.
        let thread = std::thread::Builder::new().stack_size(64 << 20);
        thread.spawn(refuses_deep_documents).unwrap().join().unwrap();
    }

    fn refuses_deep_documents() {
        let deep = |levels: usize| {
            format!(
                "apiVersion: v1\nkind: A\nmetadata: {{name: a}}\nx: {}{}\n",
                "[".repeat(levels),
                "]".repeat(levels)
            )
        };
        assert_eq!(read(&[file(&deep(100))]).1, []);
        assert_eq!(read(&[file(&deep(100_000))]).1.len(), 1);
    }

    #[test]
    fn errors_of_templates_are_in_their_lines() {
        let text = "apiVersion: v1\nkind: A\nmetadata:\n  name: a\nspec:\n  one: \"{{ if }}\"\n  two: |\n    a\n    {{ if }}\n";
        let (objects, _) = read(&[file(text)]);
        let line = |field: &str, message: &str| {
            let problem = Problem::error(Check::Patch, field, message);
            objects[0].finding(problem).position.line
        };
        assert_eq!(line("spec.one", "template cannot be parsed: line 1: x"), 6);
        assert_eq!(line("spec.two", "template cannot be parsed: line 2: x"), 9);
        assert_eq!(
            line(
                "spec.two",
                "template can not be parsed: template cannot be parsed: line 1: x"
            ),
            8
        );
        assert_eq!(line("spec.two", "has nothing of a line 2: x"), 7);
    }
}
