//! Functions on numbers.

use super::cast::{float, int as whole};
use super::decimal::Decimal;
use super::int;
use crate::functions::{Function, f};
use crate::machine::Machine;
use crate::value::{Out, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    f("add", ".*", |_, a| {
        Ok(int64(a.iter().map(whole).fold(0, i64::wrapping_add)))
    }),
    f("add1", ".", |_, a| Ok(int64(whole(&a[0]).wrapping_add(1)))),
    f("sub", "..", |_, a| Ok(int64(whole(&a[0]).wrapping_sub(whole(&a[1]))))),
    f("mul", "..*", |_, a| {
        Ok(int64(a.iter().map(whole).fold(1, i64::wrapping_mul)))
    }),
    f("div", "..", |_, a| divided(a, i64::wrapping_div)),
    f("mod", "..", |_, a| divided(a, i64::wrapping_rem)),
    f("max", "..*", |_, a| {
        Ok(int64(a.iter().map(whole).max().unwrap_or_default()))
    }),
    f("biggest", "..*", |_, a| {
        Ok(int64(a.iter().map(whole).max().unwrap_or_default()))
    }),
    f("min", "..*", |_, a| {
        Ok(int64(a.iter().map(whole).min().unwrap_or_default()))
    }),
    f("add1f", ".", |_, a| {
        Ok(reckoned(&[a[0].clone(), Value::Int(1)], Decimal::plus, |x, y| x + y))
    }),
    f("addf", ".*", |_, a| {
        let mut all = vec![Value::Int(0)];
        all.extend_from_slice(a);
        Ok(reckoned(&all, Decimal::plus, |x, y| x + y))
    }),
    f("subf", "..*", |_, a| Ok(reckoned(a, Decimal::minus, |x, y| x - y))),
    f("mulf", "..*", |_, a| Ok(reckoned(a, Decimal::times, |x, y| x * y))),
    f("divf", "..*", |_, a| {
        if a.iter().skip(1).any(|v| float(v) == 0.0) {
            return Err("division by zero".into());
        }
        Ok(reckoned(a, Decimal::over, |x, y| x / y))
    }),
    f("maxf", "..*", |_, a| Ok(folded(a, f64::max))),
    f("minf", "..*", |_, a| Ok(folded(a, f64::min))),
    f("ceil", ".", |_, a| Ok(Value::Float(float(&a[0]).ceil()))),
    f("floor", ".", |_, a| Ok(Value::Float(float(&a[0]).floor()))),
    f("round", ".if*", |_, a| Ok(round(a))),
    f("int", ".", |_, a| Ok(Value::Int(whole(&a[0])))),
    f("int64", ".", |_, a| Ok(int64(whole(&a[0])))),
    f("float64", ".", |_, a| Ok(Value::Float(float(&a[0])))),
    f("atoi", "s", |_, a| {
        let text = super::text(&a[0]);
        Ok(Value::Int(text.parse().unwrap_or(0)))
    }),
    f("toDecimal", ".", |m, a| {
        let text = m.shown(&a[0])?;
        Ok(int64(i64::from_str_radix(&text, 8).unwrap_or(0)))
    }),
    f("until", "i", |m, a| {
        let end = int(&a[0]);
        let numbers = steps(0, end, if end < 0 { -1 } else { 1 })?;
        m.heap.new_list(numbers.into_iter().map(Value::Int).collect())
    }),
    f("untilStep", "iii", |m, a| {
        let numbers = steps(int(&a[0]), int(&a[1]), int(&a[2]))?;
        m.heap.new_list(numbers.into_iter().map(Value::Int).collect())
    }),
    f("seq", "i*", seq),
];

fn int64(n: i64) -> Value {
    Value::Int64(n)
}

fn divided(args: &[Value], how: impl Fn(i64, i64) -> i64) -> Out {
    match whole(&args[1]) {
        0 => Err("division by zero".into()),
        by => Ok(int64(how(whole(&args[0]), by))),
    }
}

fn folded(args: &[Value], how: impl Fn(f64, f64) -> f64) -> Value {
    Value::Float(args.iter().map(float).reduce(how).unwrap_or_default())
}

/// Computes exactly if the digits fit, else with floats.
fn reckoned(
    args: &[Value],
    exact: impl Fn(Decimal, Decimal) -> Option<Decimal>,
    rough: impl Fn(f64, f64) -> f64 + Copy,
) -> Value {
    let numbers: Option<Vec<Decimal>> = args.iter().map(|v| Decimal::of(float(v))).collect();
    let result = numbers.and_then(|numbers| {
        let (first, rest) = numbers.split_first()?;
        rest.iter().try_fold(*first, |have, next| exact(have, *next))
    });
    result.map_or_else(|| folded(args, rough), |decimal| Value::Float(decimal.to_float()))
}

/// Rounds to a number of digits; upwards from the given fraction on (one half).
fn round(args: &[Value]) -> Value {
    let digits = i32::try_from(int(&args[1]).clamp(-400, 400)).unwrap_or_default();
    let from = args.get(2).map_or(0.5, float);
    let scale = 10f64.powi(digits);
    let scaled = float(&args[0]) * scale;
    let rounded = if scaled.fract() >= from {
        scaled.ceil()
    } else {
        scaled.floor()
    };
    Value::Float(rounded / scale)
}

/// Numbers from `start` up or down to `end`, exclusive.
fn steps(start: i64, end: i64, step: i64) -> Out<Vec<i64>> {
    const MOST: u64 = 100_000;
    let (down, up) = (end < start && step < 0, end >= start && step > 0);
    if !down && !up {
        return Ok(Vec::new());
    }
    let count = start.abs_diff(end).div_ceil(step.unsigned_abs());
    if count > MOST {
        return Err(format!("{count} numbers are more than the {MOST} that are allowed").into());
    }
    let mut at = start;
    let mut out = Vec::new();
    for _ in 0..count {
        out.push(at);
        at = at.wrapping_add(step);
    }
    Ok(out)
}

/// A sequence of numbers, inclusive, as a text.
fn seq(m: &mut Machine<'_>, args: &[Value]) -> Out {
    let given: Vec<i64> = args.iter().map(int).collect();
    let (start, end, step) = match given.as_slice() {
        [end] => (1, *end, if *end < 1 { -1 } else { 1 }),
        [start, end] => (*start, *end, if end < start { -1 } else { 1 }),
        [start, step, end] if end < start && *step > 0 => (*start, *start, 0),
        [start, step, end] => (*start, *end, *step),
        _ => (0, 0, 0),
    };
    let past = if end < start {
        end.saturating_sub(1)
    } else {
        end.saturating_add(1)
    };
    let past = if step == 0 { start } else { past };
    let numbers = steps(start, past, step)?;
    let words: Vec<String> = numbers.iter().map(i64::to_string).collect();
    m.heap.new_text(words.join(" "))
}
