//! Amounts of resources, such as `500m` or `2Gi`, and the one form in which Kubernetes writes each. Exact to a billionth.

use std::cmp::Ordering;

/// What Kubernetes says of a text that is no quantity.
pub const WRONG: &str = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

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

/// An amount, at most 2^63 - 1 as in Kubernetes.
#[derive(Debug, Clone, Copy)]
pub struct Quantity {
    nanos: i128,
    form: Form,
}

impl Quantity {
    /// Reads a text; none when it is no quantity. What is larger than the largest quantity counts as that.
    pub fn parse(text: &str) -> Option<Self> {
        let (nanos, form) = read(text)?;
        let most = i128::from(i64::MAX) * NANO;
        let nanos = nanos.clamp(-most, most);
        Some(Self { nanos, form })
    }

    /// The form in which Kubernetes writes it.
    pub fn canonical(self) -> String {
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
    pub fn sign(self) -> Ordering {
        self.nanos.cmp(&0)
    }

    /// Compares amounts, however they are written.
    pub fn compare(self, other: Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }

    /// The number of whole things; none when there is a part of one.
    pub fn whole(self) -> Option<i64> {
        let whole = self.is_whole().then_some(self.nanos / NANO)?;
        i64::try_from(whole).ok()
    }

    /// Whether it is a number of whole things.
    pub fn is_whole(self) -> bool {
        self.nanos % NANO == 0
    }
}

/// Reads an amount in billionths without a largest one, rounded away from zero; none when the text is no quantity, or has more than
/// 128 bits on the way. The quantities of CEL count like this.
pub fn unbounded_nanos(text: &str) -> Option<i128> {
    read(text).map(|(nanos, _)| nanos)
}

fn read(text: &str) -> Option<(i128, Form)> {
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
    let (form, factor, power) = scale(suffix)?;
    let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
    let places = 9 - i32::try_from(fraction.len()).ok()?;
    let nanos = times_ten_to_the(digits.checked_mul(factor)?, places.checked_add(power)?)?;
    Some((if negative { -nanos } else { nanos }, form))
}

/// What is smaller than one counts as one.
fn times_ten_to_the(value: i128, power: i32) -> Option<i128> {
    let factor = 10_i128.checked_pow(power.unsigned_abs())?;
    if power >= 0 {
        value.checked_mul(factor)
    } else {
        Some(value / factor + i128::from(value % factor != 0))
    }
}

/// What a suffix multiplies with: a factor, and a power of ten.
fn scale(suffix: &str) -> Option<(Form, i128, i32)> {
    if let Some(at) = BINARY.iter().skip(1).position(|s| *s == suffix) {
        return Some((Form::Binary, 1 << (10 * (at + 1)), 0));
    }
    if let Some(at) = DECIMAL.iter().position(|s| *s == suffix) {
        return Some((Form::Decimal, 1, i32::try_from(at).ok()? * 3 - 9));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    Some((Form::Exponent, 1, exponent))
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
            ("-1.5k", "-1500"),
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
        for text in ["", "x", "1x", "1X", "1..2", "--1", "1 Gi", "Gi", ".", "+", "1e"] {
            assert!(Quantity::parse(text).is_none(), "{text}");
            assert_eq!(unbounded_nanos(text), None, "{text}");
        }
    }

    #[test]
    fn quantities_are_rounded_up_and_never_too_large_to_be_read() {
        let check = |text: &str, want: Option<i128>| assert_eq!(unbounded_nanos(text), want, "{text}");
        check("1.5Ki", Some(1_536_000_000_000));
        check("-0.1n", Some(-1));
        check("1n", Some(1));
        check("1e2147483647", None);
        check("1e-2147483648", None);
        check("99999999999999999999999999999999999999e-46", Some(10));
        check("170141183460469231731687303715884105727e-47", Some(2));
        check("170141183460469231731687303715884105727", None);
    }

    /// The two readings differ in this alone.
    #[test]
    fn a_quantity_has_a_largest_value() {
        check("9223372036854775807", "9223372036854775807");
        check("9223372036854775808", "9223372036854775807");
        check("-10E", "-9223372036854775807");
        assert_eq!(unbounded_nanos("10E"), Some(10_i128.pow(28)));
    }
}
