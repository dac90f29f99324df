//! Durations as Go's `time` package reads and prints them, in nanoseconds.

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

/// Reads `10s`, `1m30s`, `-1.5h` or `0`, exactly: what is less than a nanosecond is cut off. None for other texts, and for durations
/// of more than 64 bits.
pub fn parse(text: &str) -> Option<i64> {
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

fn fraction(value: u64, unit: u64) -> String {
    let rest = value % unit;
    if rest == 0 {
        return (value / unit).to_string();
    }
    let width = unit.ilog10() as usize;
    let digits = format!("{rest:0width$}");
    format!("{}.{}", value / unit, digits.trim_end_matches('0'))
}

/// Prints `1m30s`, `1.5s`, `2µs` or `0s`.
pub fn format(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let nanos = nanos.unsigned_abs();
    match nanos {
        0 => "0s".to_owned(),
        1..1_000 => format!("{sign}{nanos}ns"),
        1_000..1_000_000 => format!("{sign}{}µs", fraction(nanos, 1_000)),
        1_000_000..1_000_000_000 => format!("{sign}{}ms", fraction(nanos, 1_000_000)),
        _ => {
            let minutes = nanos / 60_000_000_000;
            let seconds = fraction(nanos % 60_000_000_000, 1_000_000_000);
            match minutes {
                0 => format!("{sign}{seconds}s"),
                1..60 => format!("{sign}{minutes}m{seconds}s"),
                _ => format!("{sign}{}h{}m{seconds}s", minutes / 60, minutes % 60),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, canonical: &str) {
        assert_eq!(parse(text).map(format).as_deref(), Some(canonical), "{text}");
    }

    #[test]
    fn texts_read_and_print_as_in_go() {
        check("10s", "10s");
        check("90s", "1m30s");
        check("1h", "1h0m0s");
        check("1.5h", "1h30m0s");
        check("0", "0s");
        check("+0", "0s");
        check("500ms", "500ms");
        check("1500ms", "1.5s");
        check("2us", "2µs");
        check("2μs", "2µs");
        check("-1m30s", "-1m30s");
        check(".5s", "500ms");
        check("5.s", "5s");
        check("1ns", "1ns");
    }

    #[test]
    fn what_go_refuses_is_refused() {
        for text in ["", "10", "s", "1d", "1 s", "-", "1.2.3s", ".s", "0.0", "1m0", "00"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    /// Floating point would lose the last digits of these, and saturate where they do not fit.
    #[test]
    fn nothing_is_lost_and_nothing_saturates() {
        assert_eq!(parse("2562047h47m16.854775807s"), Some(i64::MAX));
        assert_eq!(parse("-2562047h47m16.854775808s"), Some(i64::MIN));
        assert_eq!(parse("2562047h47m16.854775808s"), None);
        assert_eq!(parse("99999999999h"), None);
        assert_eq!(parse("9007199254740993ns"), Some(9_007_199_254_740_993));
        assert_eq!(parse("1.0000000009s"), Some(1_000_000_000));
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(nanos in any::<i64>()) {
            prop_assert_eq!(parse(&format(nanos)), Some(nanos));
        }
    }
}
