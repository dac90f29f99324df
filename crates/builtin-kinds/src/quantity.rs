//! Amounts of resources, such as `500m` or `2Gi`, and the one form in which Kubernetes writes each.

use std::cmp::Ordering;

/// What Kubernetes says of a text that is no quantity.
pub(crate) const WRONG: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
const NANO: i128 = 1_000_000_000;

/// How an amount is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Decimal,
    Binary,
    Exponent,
}

/// An amount.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Quantity {
    nanos: i128,
    form: Form,
}

impl Quantity {
    /// Reads a text; none when it is no quantity.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (negative, rest) = match text.as_bytes().first()? {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let end = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let (number, suffix) = rest.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return None;
        }
        let (form, numerator, denominator) = scale(suffix)?;
        let mut digits: i128 = 0;
        for digit in whole.bytes().chain(fraction.bytes()) {
            digits = digits.checked_mul(10)?.checked_add(i128::from(digit - b'0'))?;
        }
        let below = 10_i128
            .checked_pow(u32::try_from(fraction.len()).ok()?)?
            .checked_mul(denominator)?;
        let above = digits.checked_mul(numerator)?.checked_mul(NANO)?;
        // What is smaller than the smallest part counts as that.
        let nanos = (above + below - 1) / below;
        let nanos = nanos.min(i128::from(i64::MAX) * NANO);
        Some(Self {
            nanos: if negative { -nanos } else { nanos },
            form,
        })
    }

    /// The form in which Kubernetes writes it.
    pub(crate) fn canonical(self) -> String {
        let binary = self.form == Form::Binary && self.nanos.abs() >= 1024 * NANO;
        if binary {
            let mut number = (self.nanos.abs() + NANO - 1) / NANO * self.nanos.signum();
            let mut suffix = 0;
            while number % 1024 == 0 && suffix + 1 < BINARY.len() {
                number /= 1024;
                suffix += 1;
            }
            return format!("{number}{}", BINARY[suffix]);
        }
        let (mut number, mut suffix) = (self.nanos, 0);
        if number == 0 {
            return "0".to_owned();
        }
        while number % 1000 == 0 && suffix + 1 < DECIMAL.len() {
            number /= 1000;
            suffix += 1;
        }
        if self.form == Form::Exponent && suffix != 3 {
            let exponent = i32::try_from(suffix).unwrap_or(0) * 3 - 9;
            return format!("{number}e{exponent}");
        }
        format!("{number}{}", DECIMAL[suffix])
    }

    /// Less than, equal to or more than nothing.
    pub(crate) fn sign(self) -> Ordering {
        self.nanos.cmp(&0)
    }

    /// Compares amounts, however they are written.
    pub(crate) fn compare(self, other: Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }

    /// Whether it is a number of whole things.
    pub(crate) fn is_whole(self) -> bool {
        self.nanos % NANO == 0
    }
}

/// What a suffix multiplies with, as a fraction.
fn scale(suffix: &str) -> Option<(Form, i128, i128)> {
    if let Some(at) = BINARY.iter().skip(1).position(|s| *s == suffix) {
        return Some((Form::Binary, 1 << (10 * (at + 1)), 1));
    }
    let power = |tens: i32| {
        let factor = 10_i128.checked_pow(tens.unsigned_abs())?;
        Some(if tens < 0 { (1, factor) } else { (factor, 1) })
    };
    if let Some(at) = DECIMAL.iter().position(|s| *s == suffix) {
        let (above, below) = power(i32::try_from(at).ok()? * 3 - 9)?;
        return Some((Form::Decimal, above, below));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    let (above, below) = power(exponent)?;
    Some((Form::Exponent, above, below))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, want: &str) {
        assert_eq!(Quantity::parse(text).unwrap().canonical(), want, "{text}");
    }

    #[test]
    fn every_amount_has_one_form() {
        for (text, want) in [
            ("1000m", "1"),
            ("1500m", "1500m"),
            ("0.5", "500m"),
            ("1024Mi", "1Gi"),
            ("1.5Gi", "1536Mi"),
            ("100000", "100k"),
            ("1234567", "1234567"),
            ("0", "0"),
            ("0Gi", "0"),
            ("512", "512"),
            ("512Ki", "512Ki"),
            ("1e3", "1e3"),
            ("12e6", "12e6"),
            ("-1", "-1"),
            ("+2", "2"),
            ("1n", "1n"),
            ("0.1n", "1n"),
            (".5", "500m"),
            ("5.", "5"),
        ] {
            check(text, want);
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "x", "1x", "1..2", "--1", "1 Gi", "Gi", "."] {
            assert!(Quantity::parse(text).is_none(), "{text}");
        }
    }
}
