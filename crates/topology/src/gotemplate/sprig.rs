//! The deterministic Sprig functions, by area.
//!
//! A piped value arrives as the last argument. Functions that read the clock, the environment, the network or
//! a source of randomness do not exist here, so a template that uses one does not parse.

mod dicts;
mod encoding;
mod lists;
mod math;
mod semver;
mod strings;

use gtmpl_ng::{Func, FuncError, Number, NumberKind, Value};

/// Every function by its name in a template.
pub(super) fn functions() -> Vec<(&'static str, Func)> {
    let mut all = Vec::with_capacity(160);
    all.extend_from_slice(strings::FUNCTIONS);
    all.extend_from_slice(math::FUNCTIONS);
    all.extend_from_slice(lists::FUNCTIONS);
    all.extend_from_slice(dicts::FUNCTIONS);
    all.extend_from_slice(encoding::FUNCTIONS);
    all.extend_from_slice(semver::FUNCTIONS);
    all
}

type Out = Result<Value, FuncError>;

fn fail(message: impl Into<String>) -> FuncError {
    FuncError::Generic(message.into())
}

/// The argument at `index`, or an error that says how many the function needs.
fn arg<'a>(args: &'a [Value], index: usize, function: &str) -> Result<&'a Value, FuncError> {
    args.get(index)
        .ok_or_else(|| FuncError::AtLeastXArgs(function.to_owned(), index + 1))
}

/// Text as the `print` functions write it.
fn text(value: &Value) -> String {
    match value {
        Value::String(s) => s.clone(),
        Value::Nil | Value::NoValue => String::new(),
        other => other.to_string(),
    }
}

fn text_arg(args: &[Value], index: usize, function: &str) -> Result<String, FuncError> {
    arg(args, index, function).map(text)
}

/// Numbers, texts of numbers and booleans, as Sprig's casts read them; anything else is zero.
#[expect(clippy::cast_possible_truncation, reason = "Sprig truncates floats the same way")]
fn int(value: &Value) -> i64 {
    match value {
        Value::Number(n) => match n.kind() {
            NumberKind::Signed(i) => i,
            NumberKind::Unsigned(u) => i64::try_from(u).unwrap_or(i64::MAX),
            NumberKind::Float(f) => f as i64,
        },
        Value::String(s) => s.trim().parse().unwrap_or(0),
        Value::Bool(b) => i64::from(*b),
        _ => 0,
    }
}

#[expect(clippy::cast_precision_loss, reason = "template numbers are doubles")]
fn float(value: &Value) -> f64 {
    match value {
        Value::Number(n) => match n.kind() {
            NumberKind::Signed(i) => i as f64,
            NumberKind::Unsigned(u) => u as f64,
            NumberKind::Float(f) => f,
        },
        Value::String(s) => s.trim().parse().unwrap_or(0.0),
        Value::Bool(b) => f64::from(u8::from(*b)),
        _ => 0.0,
    }
}

fn int_arg(args: &[Value], index: usize, function: &str) -> Result<i64, FuncError> {
    arg(args, index, function).map(int)
}

/// A non-negative count; negative numbers count as zero.
fn count_arg(args: &[Value], index: usize, function: &str) -> Result<usize, FuncError> {
    let n = int_arg(args, index, function)?;
    Ok(usize::try_from(n.max(0)).unwrap_or(usize::MAX))
}

fn list_arg(args: &[Value], index: usize, function: &str) -> Result<Vec<Value>, FuncError> {
    match arg(args, index, function)? {
        Value::Array(items) => Ok(items.clone()),
        Value::Nil | Value::NoValue => Ok(Vec::new()),
        other => Err(fail(format!("{function}: expected a list, got {}", kind(other)))),
    }
}

/// What Go calls an empty value.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::NoValue | Value::Nil => true,
        Value::Bool(b) => !b,
        Value::String(s) => s.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Map(map) | Value::Object(map) => map.is_empty(),
        Value::Number(_) => float(value) == 0.0,
        Value::Function(_) => false,
    }
}

/// The kind word Go's reflection uses.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::NoValue | Value::Nil => "invalid",
        Value::Bool(_) => "bool",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Map(_) => "map",
        Value::Object(_) => "struct",
        // JSON numbers are doubles in a template.
        Value::Number(_) => "float64",
        Value::Function(_) => "func",
    }
}

fn number(n: i64) -> Value {
    Value::Number(Number::from(n))
}

fn decimal(f: f64) -> Value {
    Value::Number(Number::from(f))
}
