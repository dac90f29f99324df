//! Converts any value to a number by the rules of Sprig's arithmetic: a value that is not a number is zero.

use crate::number;
use crate::value::Value;

/// Any value as an integer; floats are truncated.
#[expect(clippy::cast_possible_truncation, reason = "Go truncates as well")]
pub(crate) fn int(value: &Value) -> i64 {
    match value {
        Value::Int(n) | Value::Int64(n) => *n,
        Value::Float(f) => *f as i64,
        Value::Bool(b) => i64::from(*b),
        Value::Text(text) => {
            // `1.00` is an integer.
            let whole = text
                .split_once('.')
                .filter(|(_, zeros)| zeros.bytes().all(|b| b == b'0'))
                .map_or(&**text, |(whole, _)| whole);
            number::integer(whole).and_then(|n| i64::try_from(n).ok()).unwrap_or(0)
        }
        _ => 0,
    }
}

/// Any value as a float.
#[expect(clippy::cast_precision_loss, reason = "a float stands for the nearest whole number")]
pub(crate) fn float(value: &Value) -> f64 {
    match value {
        Value::Int(n) | Value::Int64(n) => *n as f64,
        Value::Float(f) => *f,
        Value::Bool(b) => f64::from(u8::from(*b)),
        Value::Text(text) => text.parse().unwrap_or(0.0),
        _ => 0.0,
    }
}

/// A number of any type as a float; `None` for other values.
pub(crate) fn number(value: &Value) -> Option<f64> {
    matches!(value, Value::Int(_) | Value::Int64(_) | Value::Float(_)).then(|| float(value))
}
