//! The deterministic Sprig functions, by area.
//!
//! Names, parameters and results are those of Masterminds/sprig v3. A piped value arrives as the last argument.

mod decimal;
mod dicts;
mod durations;
mod encoding;
mod lists;
mod math;
mod paths;
mod regexes;
mod semver;
mod strings;
mod types;
mod urls;
mod words;

pub(crate) mod cast;

use std::rc::Rc;

use crate::functions::Function;
use crate::machine::Machine;
use crate::value::{Out, Value};

pub(crate) use semver::version_field;

const TABLES: &[&[Function]] = &[
    strings::FUNCTIONS,
    words::FUNCTIONS,
    lists::FUNCTIONS,
    dicts::FUNCTIONS,
    math::FUNCTIONS,
    types::FUNCTIONS,
    durations::FUNCTIONS,
    encoding::FUNCTIONS,
    regexes::FUNCTIONS,
    semver::FUNCTIONS,
    paths::FUNCTIONS,
    urls::FUNCTIONS,
];

/// The function with a name.
pub(crate) fn find(name: &str) -> Option<&'static Function> {
    TABLES.iter().flat_map(|table| table.iter()).find(|f| f.name == name)
}

/// All names, for tests that compare the list with Sprig's.
#[cfg(test)]
pub(crate) fn names() -> Vec<&'static str> {
    TABLES.iter().flat_map(|table| table.iter().map(|f| f.name)).collect()
}

/// A text parameter; the evaluator has checked the type.
fn text(value: &Value) -> Rc<str> {
    match value {
        Value::Text(text) => Rc::clone(text),
        _ => Rc::from(""),
    }
}

/// An int parameter.
fn int(value: &Value) -> i64 {
    match value {
        Value::Int(n) => *n,
        _ => 0,
    }
}

/// A parameter that is a count, so that a negative number is an error.
fn count(value: &Value) -> Out<usize> {
    usize::try_from(int(value)).map_err(|_| format!("{} is negative", int(value)).into())
}

/// Any value as a text, by Sprig's rules.
fn any_text(m: &mut Machine<'_>, value: &Value) -> Out<Rc<str>> {
    match value {
        Value::Text(text) => Ok(Rc::clone(text)),
        other => m.shown(other).map(Rc::from),
    }
}

/// Any value as a list of texts: the non-nil elements of a list, or the value itself.
fn texts(m: &mut Machine<'_>, value: &Value) -> Out<Vec<Rc<str>>> {
    match value {
        Value::List(list) => {
            let items = m.heap.list(*list);
            items
                .iter()
                .filter(|v| !v.is_nothing())
                .map(|v| any_text(m, v))
                .collect()
        }
        other if other.is_nothing() => Ok(Vec::new()),
        other => Ok(vec![any_text(m, other)?]),
    }
}

/// A value in a list or map, where missing and null are the same.
fn kept(value: &Value) -> Value {
    if value.is_nothing() { Value::Nil } else { value.clone() }
}
