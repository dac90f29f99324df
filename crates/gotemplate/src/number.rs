//! Parses numbers of templates, and prints floats as Go does.

use crate::syntax::Number;

/// Parses a number: decimal, `0x`, `0o`, `0b`, a leading zero for octal, `_` between digits, exponents.
pub(crate) fn read(text: &str) -> Result<Number, String> {
    let bad = || format!("bad number syntax: {text:?}");
    if text.ends_with('i') && !is_hexadecimal(text) {
        return Err(format!("{text:?}: complex numbers are not offered"));
    }
    if let Some(whole) = integer(text) {
        return Ok(Number {
            text: text.to_owned(),
            whole: i64::try_from(whole).ok(),
            float: to_float(whole),
            has_point: false,
        });
    }
    let exponent: &[char] = if is_hexadecimal(text) {
        &['.', 'p', 'P']
    } else {
        &['.', 'e', 'E']
    };
    if !text.contains(exponent) {
        return Err(
            if text
                .chars()
                .all(|c| c.is_ascii_digit() || c == '_' || c == '-' || c == '+')
            {
                format!("{text} is no integer of 64 bits")
            } else {
                bad()
            },
        );
    }
    let float = if is_hexadecimal(text) {
        hexadecimal_float(text)
    } else {
        plain(text).and_then(|digits| digits.parse().ok())
    }
    .filter(|f: &f64| f.is_finite())
    .ok_or_else(bad)?;
    Ok(Number {
        text: text.to_owned(),
        whole: as_whole(float),
        float,
        has_point: true,
    })
}

fn is_hexadecimal(text: &str) -> bool {
    let digits = text.trim_start_matches(['+', '-']);
    digits.starts_with("0x") || digits.starts_with("0X")
}

/// A float as a 64-bit integer, if it is a whole number.
#[expect(clippy::cast_possible_truncation, reason = "the range is checked before")]
pub(crate) fn as_whole(float: f64) -> Option<i64> {
    let fits = float.fract() == 0.0 && (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&float);
    fits.then_some(float as i64)
}

#[expect(clippy::cast_precision_loss, reason = "a float stands for the nearest whole number")]
fn to_float(whole: i128) -> f64 {
    whole as f64
}

/// The digits without separators, if these are where Go allows them: between two digits, or after a prefix.
fn plain(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let is_digit = |b: Option<&u8>| b.is_some_and(u8::is_ascii_hexdigit);
    for (at, b) in bytes.iter().enumerate() {
        if *b != b'_' {
            continue;
        }
        let before = at.checked_sub(1).and_then(|i| bytes.get(i));
        let after_prefix = at == 2 && bytes[0] == b'0' && matches!(bytes[1] | 0x20, b'x' | b'o' | b'b');
        if !(is_digit(before) || after_prefix) || !is_digit(bytes.get(at + 1)) {
            return None;
        }
    }
    Some(text.replace('_', ""))
}

/// An integer in Go's syntax with a base prefix; `None` if it is invalid or exceeds 64 bits.
pub(crate) fn integer(text: &str) -> Option<i128> {
    let (sign, digits) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => (1, text),
    };
    let digits = plain(digits)?;
    let lower = digits.to_ascii_lowercase();
    let (base, digits) = if let Some(rest) = lower.strip_prefix("0x") {
        (16, rest)
    } else if let Some(rest) = lower.strip_prefix("0o") {
        (8, rest)
    } else if let Some(rest) = lower.strip_prefix("0b") {
        (2, rest)
    } else if lower.len() > 1 && lower.starts_with('0') {
        (8, &lower[1..])
    } else {
        (10, lower.as_str())
    };
    // A sign is not a digit here, although the standard library would accept one.
    if !digits.chars().all(|c| c.is_digit(base)) {
        return None;
    }
    let value = i128::from(u64::from_str_radix(digits, base).ok()?) * sign;
    (value >= i128::from(i64::MIN)).then_some(value)
}

/// `0x1.8p1`: hexadecimal digits with a point and a power of two.
#[expect(clippy::cast_precision_loss, reason = "a template's digits fit")]
fn hexadecimal_float(text: &str) -> Option<f64> {
    let text = plain(text.trim_start_matches('+'))?.to_ascii_lowercase();
    let (sign, digits) = text.strip_prefix('-').map_or((1.0, text.as_str()), |rest| (-1.0, rest));
    let (mantissa, exponent) = digits.strip_prefix("0x")?.split_once('p')?;
    let exponent: i32 = exponent.parse().ok()?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{whole}{fraction}");
    if all.is_empty() || all.len() > 13 {
        return None;
    }
    let value = u64::from_str_radix(&all, 16).ok()? as f64;
    let shift = exponent.checked_sub(i32::try_from(fraction.len()).ok()? * 4)?;
    (-1000..1000).contains(&shift).then(|| sign * value * 2f64.powi(shift))
}

/// A float in Go's default format: the shortest digits that identify it, with an exponent if it is large or small.
pub(crate) fn print(float: f64) -> String {
    format(float, 'g', None)
}

/// Go's `%e`, `%f` and `%g` (and `%E`, `%G`); without a precision the shortest digits.
pub(crate) fn format(float: f64, verb: char, precision: Option<usize>) -> String {
    if float.is_nan() {
        return "NaN".to_owned();
    }
    if float.is_infinite() {
        return if float > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    // More digits than a double has are zeros, and the standard library refuses very many.
    let precision = precision.map(|p| p.min(1100));
    let sign = if float.is_sign_negative() { "-" } else { "" };
    let size = float.abs();
    let body = match verb {
        'f' | 'F' => precision.map_or_else(|| format!("{size}"), |p| format!("{size:.p$}")),
        'e' | 'E' => {
            let text = precision.map_or_else(|| format!("{size:e}"), |p| format!("{size:.p$e}"));
            let (mantissa, exponent) = split_exponent(&text);
            with_exponent(mantissa, exponent)
        }
        _ => general(size, precision),
    };
    let body = if verb.is_ascii_uppercase() {
        body.to_uppercase()
    } else {
        body
    };
    format!("{sign}{body}")
}

fn general(size: f64, precision: Option<usize>) -> String {
    let text = match precision {
        None => format!("{size:e}"),
        Some(p) => format!("{size:.*e}", p.max(1) - 1),
    };
    let (mantissa, exponent) = split_exponent(&text);
    let digits: String = mantissa.chars().filter(|c| *c != '.').collect();
    let digits = digits.trim_end_matches('0');
    let digits = if digits.is_empty() { "0" } else { digits };
    let count = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    let limit = match precision {
        None => 6,
        Some(p) => {
            let p = i32::try_from(p.max(1)).unwrap_or(i32::MAX);
            if p > count && count > exponent { count } else { p }
        }
    };
    if exponent < -4 || exponent >= limit {
        let (first, rest) = digits.split_at(1);
        let mantissa = if rest.is_empty() {
            first.to_owned()
        } else {
            format!("{first}.{rest}")
        };
        return with_exponent(&mantissa, exponent);
    }
    place_point(digits, exponent)
}

/// Places the point after `exponent + 1` digits, padded with zeros.
fn place_point(digits: &str, exponent: i32) -> String {
    let Ok(before) = usize::try_from(exponent + 1) else {
        let zeros = "0".repeat(usize::try_from(-exponent - 1).unwrap_or_default());
        return format!("0.{zeros}{digits}");
    };
    if before == 0 {
        return format!("0.{digits}");
    }
    if digits.len() <= before {
        return format!("{digits}{}", "0".repeat(before - digits.len()));
    }
    let (whole, fraction) = digits.split_at(before);
    format!("{whole}.{fraction}")
}

fn split_exponent(text: &str) -> (&str, i32) {
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    (mantissa, exponent.parse().unwrap_or_default())
}

fn with_exponent(mantissa: &str, exponent: i32) -> String {
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs())
}
