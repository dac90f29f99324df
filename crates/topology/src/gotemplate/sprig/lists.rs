//! Lists and choices.

use gtmpl_ng::{Func, Value};

use super::{Out, arg, count_arg, fail, is_empty, kind, list_arg, text, text_arg};

pub(super) const FUNCTIONS: &[(&str, Func)] = &[
    ("list", |a| Ok(Value::Array(a.to_vec()))),
    ("tuple", |a| Ok(Value::Array(a.to_vec()))),
    ("first", |a| {
        Ok(list_arg(a, 0, "first")?.first().cloned().unwrap_or(Value::Nil))
    }),
    ("last", |a| {
        Ok(list_arg(a, 0, "last")?.last().cloned().unwrap_or(Value::Nil))
    }),
    ("rest", |a| {
        Ok(Value::Array(list_arg(a, 0, "rest")?.into_iter().skip(1).collect()))
    }),
    ("initial", |a| {
        let mut list = list_arg(a, 0, "initial")?;
        list.pop();
        Ok(Value::Array(list))
    }),
    ("append", |a| {
        let mut list = list_arg(a, 0, "append")?;
        list.push(arg(a, 1, "append")?.clone());
        Ok(Value::Array(list))
    }),
    ("push", |a| {
        let mut list = list_arg(a, 0, "push")?;
        list.push(arg(a, 1, "push")?.clone());
        Ok(Value::Array(list))
    }),
    ("prepend", |a| {
        let mut list = list_arg(a, 0, "prepend")?;
        list.insert(0, arg(a, 1, "prepend")?.clone());
        Ok(Value::Array(list))
    }),
    ("concat", |a| {
        let mut all = Vec::new();
        for index in 0..a.len() {
            all.extend(list_arg(a, index, "concat")?);
        }
        Ok(Value::Array(all))
    }),
    ("reverse", |a| {
        let mut list = list_arg(a, 0, "reverse")?;
        list.reverse();
        Ok(Value::Array(list))
    }),
    ("uniq", |a| {
        let mut out: Vec<Value> = Vec::new();
        for item in list_arg(a, 0, "uniq")? {
            if !out.contains(&item) {
                out.push(item);
            }
        }
        Ok(Value::Array(out))
    }),
    ("without", |a| {
        let drop = a.get(1..).unwrap_or_default();
        let list = list_arg(a, 0, "without")?;
        Ok(Value::Array(list.into_iter().filter(|v| !drop.contains(v)).collect()))
    }),
    ("compact", |a| {
        let list = list_arg(a, 0, "compact")?;
        Ok(Value::Array(list.into_iter().filter(|v| !is_empty(v)).collect()))
    }),
    ("has", |a| Ok(list_arg(a, 1, "has")?.contains(arg(a, 0, "has")?).into())),
    ("sortAlpha", |a| {
        let mut texts: Vec<String> = match arg(a, 0, "sortAlpha")? {
            Value::Array(items) => items.iter().map(text).collect(),
            other => vec![text(other)],
        };
        texts.sort();
        Ok(Value::Array(texts.into_iter().map(Value::String).collect()))
    }),
    ("chunk", |a| {
        let size = count_arg(a, 0, "chunk")?.max(1);
        let list = list_arg(a, 1, "chunk")?;
        Ok(Value::Array(
            list.chunks(size).map(|c| Value::Array(c.to_vec())).collect(),
        ))
    }),
    ("default", |a| {
        let fallback = arg(a, 0, "default")?;
        Ok(a.get(1).filter(|v| !is_empty(v)).unwrap_or(fallback).clone())
    }),
    ("empty", |a| Ok(is_empty(arg(a, 0, "empty")?).into())),
    ("coalesce", |a| {
        Ok(a.iter().find(|v| !is_empty(v)).cloned().unwrap_or(Value::Nil))
    }),
    ("all", |a| Ok(a.iter().all(|v| !is_empty(v)).into())),
    ("any", |a| Ok(a.iter().any(|v| !is_empty(v)).into())),
    ("ternary", ternary),
    ("required", |a| {
        let value = arg(a, 1, "required")?;
        if is_empty(value) {
            return Err(fail(text_arg(a, 0, "required")?));
        }
        Ok(value.clone())
    }),
    ("deepEqual", |a| {
        Ok((arg(a, 0, "deepEqual")? == arg(a, 1, "deepEqual")?).into())
    }),
];

fn ternary(args: &[Value]) -> Out {
    match arg(args, 2, "ternary")? {
        Value::Bool(true) => Ok(arg(args, 0, "ternary")?.clone()),
        Value::Bool(false) => Ok(arg(args, 1, "ternary")?.clone()),
        other => Err(fail(format!("ternary: expected a boolean, got {}", kind(other)))),
    }
}
