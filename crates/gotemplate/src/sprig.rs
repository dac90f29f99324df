//! The Sprig functions that always give the same result, by area.
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

/// The function of a name.
pub(crate) fn find(name: &str) -> Option<&'static Function> {
    TABLES.iter().flat_map(|table| table.iter()).find(|f| f.name == name)
}

/// Every name, for tests that hold the list against Sprig's.
#[cfg(test)]
pub(crate) fn names() -> Vec<&'static str> {
    TABLES.iter().flat_map(|table| table.iter().map(|f| f.name)).collect()
}

/// A parameter that is a text; the evaluator has seen to that.
fn text(value: &Value) -> Rc<str> {
    match value {
        Value::Text(text) => Rc::clone(text),
        _ => Rc::from(""),
    }
}

/// A parameter that is an int.
fn int(value: &Value) -> i64 {
    match value {
        Value::Int(n) => *n,
        _ => 0,
    }
}

/// A parameter that counts something, where a negative number is a mistake.
fn count(value: &Value) -> Out<usize> {
    usize::try_from(int(value)).map_err(|_| format!("{} is negative", int(value)).into())
}

/// Any value as a text, as Sprig takes it.
fn any_text(m: &mut Machine<'_>, value: &Value) -> Out<Rc<str>> {
    match value {
        Value::Text(text) => Ok(Rc::clone(text)),
        other => m.shown(other).map(Rc::from),
    }
}

/// Any value as a list of texts: a list without what is nil, anything else by itself.
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

/// A value as it is kept in a list or map: there is no difference between nothing and null any more.
fn kept(value: &Value) -> Value {
    if value.is_nothing() { Value::Nil } else { value.clone() }
}
