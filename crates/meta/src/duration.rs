//! Durations as Go writes them.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize, de};
use windlass_gocompat::duration;

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

impl FromStr for GoDuration {
    type Err = ParseDurationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        duration::parse(text)
            .map(Self::from_nanos)
            .ok_or_else(|| ParseDurationError { text: text.to_owned() })
    }
}

impl fmt::Display for GoDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&duration::format(self.nanos))
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
