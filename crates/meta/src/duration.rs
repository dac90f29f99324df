//! Durations as Go writes them.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize, de};

/// A duration whose text is Go's: `10s`, `1m30s`, `500ms`, `-1.5h`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GoDuration {
    nanos: i64,
}

/// Why a text is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a duration: expected numbers with units, such as \"10s\", \"1m30s\" or \"500ms\"")]
pub struct ParseDurationError {
    text: String,
}

impl GoDuration {
    /// From nanoseconds.
    pub const fn from_nanos(nanos: i64) -> Self {
        Self { nanos }
    }

    /// From whole seconds, stopping at the largest duration.
    pub const fn from_secs(secs: i64) -> Self {
        Self {
            nanos: secs.saturating_mul(1_000_000_000),
        }
    }

    /// In nanoseconds.
    pub const fn as_nanos(self) -> i64 {
        self.nanos
    }

    /// As a waiting time: negative durations are zero.
    pub fn to_std(self) -> Duration {
        Duration::from_nanos(u64::try_from(self.nanos).unwrap_or(0))
    }
}

impl From<Duration> for GoDuration {
    fn from(duration: Duration) -> Self {
        Self {
            nanos: i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX),
        }
    }
}

fn unit(text: &str) -> Option<i128> {
    Some(match text {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}

fn parse(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Some(0);
    }
    let mut total: i128 = 0;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let (number, tail) = rest.split_at(digits);
        let unit_end = tail
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(tail.len());
        let (unit_text, tail) = tail.split_at(unit_end);
        let scale = unit(unit_text)?;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return None;
        }
        let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        total = total.checked_add(whole.checked_mul(scale)?)?;
        // Digits beyond a nanosecond cannot change the result.
        let fraction = &fraction[..fraction.len().min(18)];
        if !fraction.is_empty() {
            let digits = u32::try_from(fraction.len()).ok()?;
            total += fraction.parse::<i128>().ok()? * scale / 10_i128.pow(digits);
        }
        rest = tail;
    }
    i64::try_from(if negative { -total } else { total }).ok()
}

impl FromStr for GoDuration {
    type Err = ParseDurationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text)
            .map(Self::from_nanos)
            .ok_or_else(|| ParseDurationError { text: text.to_owned() })
    }
}

fn fraction(value: u64, unit: u64) -> String {
    let rest = value % unit;
    if rest == 0 {
        return (value / unit).to_string();
    }
    let width = unit.ilog10() as usize;
    let digits = format!("{rest:0width$}");
    format!("{}.{}", value / unit, digits.trim_end_matches('0'))
}

impl fmt::Display for GoDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.nanos.unsigned_abs();
        if nanos == 0 {
            return f.write_str("0s");
        }
        if self.nanos < 0 {
            f.write_str("-")?;
        }
        match nanos {
            0..1_000 => write!(f, "{nanos}ns"),
            1_000..1_000_000 => write!(f, "{}µs", fraction(nanos, 1_000)),
            1_000_000..1_000_000_000 => write!(f, "{}ms", fraction(nanos, 1_000_000)),
            _ => {
                let minutes = nanos / 60_000_000_000;
                if minutes >= 60 {
                    write!(f, "{}h", minutes / 60)?;
                }
                if minutes > 0 {
                    write!(f, "{}m", minutes % 60)?;
                }
                write!(f, "{}s", fraction(nanos % 60_000_000_000, 1_000_000_000))
            }
        }
    }
}

impl Serialize for GoDuration {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for GoDuration {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, canonical: &str) {
        assert_eq!(text.parse::<GoDuration>().unwrap().to_string(), canonical, "{text}");
    }

    #[test]
    fn texts_read_and_print_as_in_go() {
        check("10s", "10s");
        check("90s", "1m30s");
        check("1h", "1h0m0s");
        check("1.5h", "1h30m0s");
        check("0", "0s");
        check("500ms", "500ms");
        check("1500ms", "1.5s");
        check("2us", "2µs");
        check("-1m30s", "-1m30s");
        check(".5s", "500ms");
        check("1ns", "1ns");
    }

    #[test]
    fn what_go_refuses_is_refused() {
        for text in ["", "10", "s", "1d", "1 s", "-", "1.2.3s", "99999999999h"] {
            assert!(text.parse::<GoDuration>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(nanos in any::<i64>()) {
            let duration = GoDuration::from_nanos(nanos);
            prop_assert_eq!(duration.to_string().parse::<GoDuration>().unwrap(), duration);
        }
    }
}
