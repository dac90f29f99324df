//! Validates a configuration against its schema. The messages are those of Kubernetes, including Go's way of printing values.

use std::collections::HashSet;
use std::fmt::Write as _;

use serde_json::{Map, Value};
use windlass_meta::budget::{APPLY_PROBLEMS, PATH_BYTES};
use windlass_schema::{ListType, Node, Type};

use super::{Atom, View};
use crate::field_set::Elem;

/// A part of a configuration that cannot be merged.
#[derive(Debug)]
pub(crate) struct Problem {
    path: String,
    text: String,
}

/// The first problems, sorted by field name.
pub(crate) fn problems(view: View<'_>, value: &Value) -> Vec<Problem> {
    let mut out = Vec::new();
    walk(view, value, &mut out);
    out
}

/// The problems as one text.
pub(crate) fn words(problems: &[Problem]) -> String {
    let line = |problem: &Problem| {
        if problem.path.is_empty() {
            problem.text.clone()
        } else {
            format!("{}: {}", problem.path, problem.text)
        }
    };
    if let [only] = problems {
        return line(only);
    }
    problems.iter().fold("errors:".to_owned(), |mut out, problem| {
        let _ = write!(out, "\n  {}", line(problem));
        out
    })
}

fn found(text: String, out: &mut Vec<Problem>) {
    out.push(Problem {
        path: String::new(),
        text,
    });
}

/// Prepends a step to the paths of all problems found since.
fn within(step: &str, since: usize, out: &mut [Problem]) {
    let end = (0..=PATH_BYTES.min(step.len()))
        .rev()
        .find(|at| step.is_char_boundary(*at));
    let (shown, left_out) = step.split_at(end.unwrap_or(0));
    for problem in out
        .iter_mut()
        .skip(since)
        .filter(|problem| problem.path.len() < PATH_BYTES)
    {
        if !left_out.is_empty() {
            problem.path.insert_str(0, "...");
        }
        problem.path.insert_str(0, shown);
    }
}

fn walk(view: View<'_>, value: &Value, out: &mut Vec<Problem>) {
    if out.len() >= APPLY_PROBLEMS {
        return;
    }
    // For int-or-string fields, Kubernetes leaves other types to validation.
    let Some(shape) = view.known().filter(|shape| shape.kind.is_some()) else {
        return;
    };
    match view.atom(Some(value)) {
        Atom::Scalar => scalar(view, value, out),
        Atom::List => match value {
            Value::Array(items) => list(view, items, out),
            Value::Null => {}
            other => found(format!("expected list, got {}", pointer(other)), out),
        },
        Atom::Map => match value {
            Value::Object(map) => {
                let open = !matches!(shape.additional, windlass_schema::Additional::Unset)
                    || shape.preserve_unknown
                    || shape.properties.is_empty();
                fields(view, map, open, out);
            }
            Value::Null => {}
            other => found(format!("expected map, got {}", pointer(other)), out),
        },
    }
}

fn fields(view: View<'_>, map: &Map<String, Value>, open: bool, out: &mut Vec<Problem>) {
    for (name, child) in map {
        let since = out.len();
        if open || view.is_named(name) {
            walk(view.field(name), child, out);
        } else if out.len() < APPLY_PROBLEMS {
            found("field not declared in schema".to_owned(), out);
        }
        if out.len() > since {
            within(&Elem::field(name).to_string(), since, out);
        }
    }
}

fn list(view: View<'_>, items: &[Value], out: &mut Vec<Problem>) {
    if view.list_type() == ListType::Atomic {
        for (index, item) in items.iter().enumerate() {
            let since = out.len();
            walk(view.item(), item, out);
            within(&format!("[{index}]"), since, out);
        }
        return;
    }
    let mut seen = HashSet::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        let elem = match view.elem(item) {
            Ok(elem) => elem,
            Err(why) => {
                found(format!("element {index}: {why}"), out);
                return;
            }
        };
        let since = out.len();
        walk(view.item(), item, out);
        if out.len() > since {
            within(&elem.to_string(), since, out);
        }
        if let Some(elem) = seen.replace(elem)
            && out.len() < APPLY_PROBLEMS
        {
            found(format!("duplicate entries for key {elem}"), out);
        }
    }
}

fn scalar(view: View<'_>, value: &Value, out: &mut Vec<Problem>) {
    if value.is_null() {
        return;
    }
    let kind = view
        .known()
        .filter(|shape| !shape.int_or_string)
        .and_then(|shape| shape.kind);
    match kind {
        Some(Type::Integer | Type::Number) if !value.is_number() => {
            found(format!("expected numeric (int or float), got {}", go_type(value)), out);
        }
        Some(Type::Boolean) if !value.is_boolean() => found(format!("expected boolean, got {}", pointer(value)), out),
        Some(Type::String) if view.known().is_some_and(Node::is_plain_text) && !value.is_string() => {
            found(
                format!(
                    "expected string, got &value.valueUnstructured{{Value:{}}}",
                    go_syntax(value)
                ),
                out,
            );
        }
        _ if value.is_object() || value.is_array() => {
            found(format!("expected any scalar, got {}", pointer(value)), out);
        }
        _ => {}
    }
}

fn pointer(value: &Value) -> String {
    format!("&{{{}}}", go_text(value))
}

/// The type of a value in Go's `%T` form, as in Kubernetes' messages.
pub fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(n) if n.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// A value in Go's `%v` form, as in Kubernetes' messages.
pub fn go_text(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(go_text).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(map) => {
            let fields: Vec<_> = map.iter().map(|(name, v)| format!("{name}:{}", go_text(v))).collect();
            format!("map[{}]", fields.join(" "))
        }
        other => other.to_string(),
    }
}

/// A value in Go's `%#v` form.
fn go_syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::String(text) => format!("{text:?}"),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(go_syntax).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Object(map) => {
            let fields: Vec<_> = map
                .iter()
                .map(|(name, v)| format!("{name:?}:{}", go_syntax(v)))
                .collect();
            format!("map[string]interface {{}}{{{}}}", fields.join(", "))
        }
        other => other.to_string(),
    }
}
