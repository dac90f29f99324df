//! Durations. They come from the template only: no function reads a clock.

use windlass_gocompat::duration;

use crate::functions::{Function, f};
use crate::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    f("duration", ".", |_, a| {
        let seconds = match &a[0] {
            Value::Text(text) => text.parse().unwrap_or(0),
            Value::Int64(n) => *n,
            _ => 0,
        };
        Ok(Value::text(shown(seconds)))
    }),
    f("durationRound", ".", |_, a| {
        let nanoseconds = match &a[0] {
            Value::Text(text) => duration::parse(text).unwrap_or(0),
            Value::Int64(n) => *n,
            _ => 0,
        };
        Ok(Value::text(rounded(nanoseconds)))
    }),
];

const SECOND: u64 = 1_000_000_000;

/// Units from the largest to the smallest, with their nanoseconds.
const UNITS: &[(&str, u64)] = &[
    ("y", 365 * 24 * 3600 * SECOND),
    ("mo", 30 * 24 * 3600 * SECOND),
    ("d", 24 * 3600 * SECOND),
    ("h", 3600 * SECOND),
    ("m", 60 * SECOND),
    ("s", SECOND),
];

/// Seconds in the format of Go's durations: `1h2m3s`.
fn shown(seconds: i64) -> String {
    let sign = if seconds < 0 { "-" } else { "" };
    let total = seconds.unsigned_abs();
    let (hours, minutes, seconds) = (total / 3600, total / 60 % 60, total % 60);
    match total {
        ..60 => format!("{sign}{seconds}s"),
        60..3600 => format!("{sign}{minutes}m{seconds}s"),
        _ => format!("{sign}{hours}h{minutes}m{seconds}s"),
    }
}

/// A whole multiple of the largest unit that fits.
fn rounded(nanoseconds: i64) -> String {
    let size = nanoseconds.unsigned_abs();
    // As in Sprig, a negative duration is shown without its sign.
    UNITS
        .iter()
        .find(|(_, unit)| size > *unit)
        .map_or_else(|| "0s".to_owned(), |(name, unit)| format!("{}{name}", size / unit))
}
