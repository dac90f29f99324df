//! Deadlines of requests.

use std::future::Future;
use std::time::Duration;

use windlass_meta::budget::REQUEST_TIME;

use crate::error::ApiError;
use crate::http::request::Query;

/// The timeout of the parameter `timeout`.
pub(crate) fn of(query: &Query) -> Result<Duration, ApiError> {
    let Some(text) = query.get("timeout") else {
        return Ok(REQUEST_TIME);
    };
    let bad = || {
        ApiError::bad_request(format!(
            "invalid timeout specified in the request URL - time: invalid duration \"{text}\""
        ))
    };
    let seconds = seconds(text).ok_or_else(bad)?;
    let given =
        Duration::try_from_secs_f64(seconds).unwrap_or(if seconds > 0.0 { REQUEST_TIME } else { Duration::ZERO });
    Ok(if given.is_zero() {
        REQUEST_TIME
    } else {
        given.min(REQUEST_TIME)
    })
}

/// Reads a duration as Go writes it: `1m30s`, `-1.5h`, `0`.
fn seconds(text: &str) -> Option<f64> {
    const UNITS: [(&str, f64); 8] = [
        ("ns", 1e-9),
        ("us", 1e-6),
        ("µs", 1e-6),
        ("μs", 1e-6),
        ("ms", 1e-3),
        ("s", 1.0),
        ("m", 60.0),
        ("h", 3600.0),
    ];
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0.0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total = 0.0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..end].parse().ok()?;
        rest = &rest[end..];
        let end = rest
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(rest.len());
        let (_, factor) = UNITS.iter().find(|(unit, _)| *unit == &rest[..end])?;
        total += number * factor;
        rest = &rest[end..];
    }
    Some(sign * total)
}

/// Ends a response that takes too long with an error.
pub(crate) async fn within<T>(
    limit: Duration,
    answer: impl Future<Output = Result<T, ApiError>>,
) -> Result<T, ApiError> {
    tokio::time::timeout(limit, answer).await.unwrap_or_else(|_| {
        let mut error = ApiError::new(
            504,
            "Timeout",
            "Timeout: request did not complete within the allotted timeout",
        );
        error.details = Some(Box::default());
        Err(error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_writes_them() {
        let check = |text: &str, want: Option<f64>| assert_eq!(seconds(text), want, "{text}");
        check("10s", Some(10.0));
        check("1m30s", Some(90.0));
        check("-1.5h", Some(-5400.0));
        check("0", Some(0.0));
        check("500ms", Some(0.5));
        for bad in ["", "5", "abc", "s", "1x", "-"] {
            check(bad, None);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_has_a_time() {
        let tick = Duration::from_millis(1);
        for (time, code) in [
            (REQUEST_TIME.saturating_sub(tick), None),
            (REQUEST_TIME + tick, Some(504)),
        ] {
            let answer = async {
                tokio::time::sleep(time).await;
                Ok(())
            };
            let answered = within(of(&Query::parse("")).unwrap(), answer).await;
            assert_eq!(answered.err().map(|error| error.code), code);
        }
    }

    #[test]
    fn the_timeout_has_an_upper_limit() {
        let check = |query: &str, want: u64| assert_eq!(of(&Query::parse(query)).unwrap().as_secs(), want, "{query}");
        check("", 60);
        check("timeout=10s", 10);
        check("timeout=2h", 60);
        check("timeout=0", 60);
        check("timeout=-1s", 60);
        assert_eq!(of(&Query::parse("timeout=soon")).unwrap_err().code, 400);
    }
}
