//! Decimal arithmetic: `addf 0.1 0.2` is 0.3, because Sprig computes with the printed digits of floats.

use std::cmp::Ordering;

/// A number as digits and a power of ten.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Decimal {
    digits: i128,
    exponent: i32,
}

/// The number of decimals of a quotient.
const QUOTIENT: i32 = 16;

impl Decimal {
    /// The shortest digits that identify a float; `None` for infinity and NaN.
    pub(super) fn of(f: f64) -> Option<Self> {
        if !f.is_finite() {
            return None;
        }
        let text = format!("{f:e}");
        let (mantissa, exponent) = text.split_once('e')?;
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        Some(Self {
            digits: format!("{whole}{fraction}").parse().ok()?,
            exponent: exponent.parse::<i32>().ok()? - i32::try_from(fraction.len()).ok()?,
        })
    }

    /// The nearest float.
    pub(super) fn to_float(self) -> f64 {
        format!("{}e{}", self.digits, self.exponent).parse().unwrap_or_default()
    }

    /// The same number with a smaller power of ten.
    fn scaled(self, exponent: i32) -> Option<i128> {
        let places = u32::try_from(self.exponent - exponent).ok()?;
        self.digits.checked_mul(10i128.checked_pow(places)?)
    }

    pub(super) fn plus(self, other: Self) -> Option<Self> {
        let exponent = self.exponent.min(other.exponent);
        Some(Self {
            digits: self.scaled(exponent)?.checked_add(other.scaled(exponent)?)?,
            exponent,
        })
    }

    pub(super) fn minus(self, other: Self) -> Option<Self> {
        self.plus(Self {
            digits: -other.digits,
            ..other
        })
    }

    pub(super) fn times(self, other: Self) -> Option<Self> {
        Some(Self {
            digits: self.digits.checked_mul(other.digits)?,
            exponent: self.exponent.checked_add(other.exponent)?,
        })
    }

    /// The quotient, rounded half away from zero. The divisor must not be zero.
    pub(super) fn over(self, other: Self) -> Option<Self> {
        let places = QUOTIENT + self.exponent - other.exponent;
        let (mut above, mut below) = (self.digits, other.digits);
        let power = 10i128.checked_pow(places.unsigned_abs())?;
        match places.cmp(&0) {
            Ordering::Less => below = below.checked_mul(power)?,
            _ => above = above.checked_mul(power)?,
        }
        let mut digits = above.checked_div(below)?;
        if (above % below).abs().checked_mul(2)? >= below.abs() {
            digits += if (above < 0) == (below < 0) { 1 } else { -1 };
        }
        Some(Self {
            digits,
            exponent: -QUOTIENT,
        })
    }
}
