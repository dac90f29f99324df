//! Numbers.

use gtmpl_ng::{Func, Value};

use super::strings::bounded;
use super::{Out, arg, decimal, fail, float, int, int_arg, number};

pub(super) const FUNCTIONS: &[(&str, Func)] = &[
    ("add", |a| Ok(number(a.iter().map(int).fold(0, i64::wrapping_add)))),
    ("add1", |a| Ok(number(int_arg(a, 0, "add1")?.wrapping_add(1)))),
    ("mul", |a| Ok(number(a.iter().map(int).fold(1, i64::wrapping_mul)))),
    ("sub", |a| {
        Ok(number(int_arg(a, 0, "sub")?.wrapping_sub(int_arg(a, 1, "sub")?)))
    }),
    ("div", |a| divided(a, "div", i64::wrapping_div)),
    ("mod", |a| divided(a, "mod", i64::wrapping_rem)),
    ("max", |a| Ok(number(a.iter().map(int).max().unwrap_or_default()))),
    ("biggest", |a| Ok(number(a.iter().map(int).max().unwrap_or_default()))),
    ("min", |a| Ok(number(a.iter().map(int).min().unwrap_or_default()))),
    ("addf", |a| Ok(decimal(a.iter().map(float).sum()))),
    ("mulf", |a| Ok(decimal(a.iter().map(float).product()))),
    ("subf", |a| Ok(folded(a, |x, y| x - y))),
    ("divf", |a| Ok(folded(a, |x, y| x / y))),
    ("maxf", |a| Ok(folded(a, f64::max))),
    ("minf", |a| Ok(folded(a, f64::min))),
    ("ceil", |a| Ok(decimal(float(arg(a, 0, "ceil")?).ceil()))),
    ("floor", |a| Ok(decimal(float(arg(a, 0, "floor")?).floor()))),
    ("round", round),
    ("int", |a| Ok(number(int_arg(a, 0, "int")?))),
    ("int64", |a| Ok(number(int_arg(a, 0, "int64")?))),
    ("float64", |a| Ok(decimal(float(arg(a, 0, "float64")?)))),
    ("atoi", |a| Ok(number(int_arg(a, 0, "atoi")?))),
    ("until", |a| {
        let end = int_arg(a, 0, "until")?;
        steps(0, end, if end < 0 { -1 } else { 1 })
    }),
    ("untilStep", |a| {
        let f = "untilStep";
        steps(int_arg(a, 0, f)?, int_arg(a, 1, f)?, int_arg(a, 2, f)?)
    }),
];

fn divided(args: &[Value], function: &str, f: impl Fn(i64, i64) -> i64) -> Out {
    let by = int_arg(args, 1, function)?;
    if by == 0 {
        return Err(fail(format!("{function}: division by zero")));
    }
    Ok(number(f(int_arg(args, 0, function)?, by)))
}

fn folded(args: &[Value], f: impl Fn(f64, f64) -> f64) -> Value {
    decimal(args.iter().map(float).reduce(f).unwrap_or_default())
}

fn round(args: &[Value]) -> Out {
    let digits = i32::try_from(int_arg(args, 1, "round")?).unwrap_or(0);
    let scale = 10f64.powi(digits);
    Ok(decimal((float(arg(args, 0, "round")?) * scale).round() / scale))
}

fn steps(start: i64, end: i64, step: i64) -> Out {
    if step == 0 {
        return Ok(Value::Array(Vec::new()));
    }
    let count = end.saturating_sub(start).checked_div(step).unwrap_or_default();
    bounded(usize::try_from(count.max(0)).unwrap_or(usize::MAX), "until")?;
    let mut out = Vec::new();
    let mut at = start;
    while (step > 0 && at < end) || (step < 0 && at > end) {
        out.push(number(at));
        at += step;
    }
    Ok(Value::Array(out))
}
