//! The built-in functions of text/template.

use std::cmp::Ordering;
use std::fmt::Write as _;

use windlass_gocompat::quote::is_printable;

use crate::functions::{Function, f};
use crate::machine::Machine;
use crate::number;
use crate::sprig::cast;
use crate::value::{Out, Value};

pub(crate) const FUNCTIONS: &[Function] = &[
    // Evaluation stops at the argument that decides; this call has none.
    f("and", "..*", |_, a| Ok(a[a.len() - 1].clone())),
    f("or", "..*", |_, a| Ok(a[a.len() - 1].clone())),
    f("not", ".", |m, a| Ok(Value::Bool(!a[0].is_true(&m.heap)))),
    f("eq", "..*", |m, a| eq(m, a).map(Value::Bool)),
    f("ne", "..", |m, a| eq(m, a).map(|same| Value::Bool(!same))),
    f("lt", "..", |m, a| {
        compare(m, a).map(|o| Value::Bool(o == Some(Ordering::Less)))
    }),
    f("le", "..", |m, a| {
        compare(m, a).map(|o| Value::Bool(matches!(o, Some(Ordering::Less | Ordering::Equal))))
    }),
    // Go negates the opposite comparison, which shows with NaN.
    f("gt", "..", |m, a| {
        compare(m, a).map(|o| Value::Bool(!matches!(o, Some(Ordering::Less | Ordering::Equal))))
    }),
    f("ge", "..", |m, a| {
        compare(m, a).map(|o| Value::Bool(o != Some(Ordering::Less)))
    }),
    f("len", ".", |m, a| {
        let length = match &a[0] {
            Value::Text(text) => text.len(),
            Value::List(list) => m.heap.list(*list).len(),
            Value::Map(map) => m.heap.map(*map).entries.len(),
            other => return Err(format!("a value of type {} has no length", other.type_name(&m.heap)).into()),
        };
        Ok(Value::Int(i64::try_from(length).unwrap_or(i64::MAX)))
    }),
    f("index", "..*", index),
    f("slice", "..*", slice),
    f("call", "..*", |m, a| {
        Err(format!("a value of type {} is no function", a[0].type_name(&m.heap)).into())
    }),
    f("print", ".*", |m, a| {
        let text = m.sprint(a)?;
        m.heap.new_text(text)
    }),
    f("println", ".*", |m, a| {
        let text = m.sprintln(a)?;
        m.heap.new_text(text)
    }),
    f("printf", "s.*", |m, a| {
        let text = m.sprintf(&words(&a[0]), &a[1..])?;
        m.heap.new_text(text)
    }),
    f("html", ".*", |m, a| escape(m, a, html)),
    f("js", ".*", |m, a| escape(m, a, js)),
    f("urlquery", ".*", |m, a| escape(m, a, query_escape)),
];

fn words(value: &Value) -> String {
    match value {
        Value::Text(text) => text.to_string(),
        _ => String::new(),
    }
}

fn eq(m: &mut Machine<'_>, args: &[Value]) -> Out<bool> {
    let Some((first, others)) = args.split_first() else {
        return Ok(false);
    };
    if others.is_empty() {
        return Err("there is nothing to compare with".into());
    }
    for other in others {
        if equal(m, first, other)? {
            return Ok(true);
        }
    }
    Ok(false)
}

#[expect(clippy::float_cmp, reason = "equality is what is asked")]
fn equal(m: &mut Machine<'_>, a: &Value, b: &Value) -> Out<bool> {
    use Value::{Bool, Float, Int, Int64, List, Map, Text};
    Ok(match (a, b) {
        (Bool(a), Bool(b)) => a == b,
        (Int(a) | Int64(a), Int(b) | Int64(b)) => a == b,
        (Float(a), Float(b)) => a == b,
        (Text(a), Text(b)) => a == b,
        (a, b) if a.is_nothing() || b.is_nothing() => a.is_nothing() && b.is_nothing(),
        (a, b) if m.rules.lenient => match (cast::number(a), cast::number(b)) {
            (Some(a), Some(b)) => a == b,
            _ => m.heap.same(a, b)?,
        },
        (List(_) | Map(_), _) | (_, List(_) | Map(_)) => {
            return Err("lists and maps cannot be compared; deepEqual can".into());
        }
        (a, b) => {
            let (a, b) = (a.type_name(&m.heap), b.type_name(&m.heap));
            return Err(format!("incompatible types for comparison: {a} and {b}").into());
        }
    })
}

fn compare(m: &mut Machine<'_>, args: &[Value]) -> Out<Option<Ordering>> {
    use Value::{Float, Int, Int64, Text};
    Ok(match (&args[0], &args[1]) {
        (Int(a) | Int64(a), Int(b) | Int64(b)) => Some(a.cmp(b)),
        (Float(a), Float(b)) => a.partial_cmp(b),
        (Text(a), Text(b)) => Some(a.cmp(b)),
        (a, b) if m.rules.lenient => match (cast::number(a), cast::number(b), a, b) {
            (Some(a), Some(b), ..) => a.partial_cmp(&b),
            (_, _, Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
            _ => return Err("only numbers, and texts, have an order".into()),
        },
        (a, b) => {
            let (a, b) = (a.type_name(&m.heap), b.type_name(&m.heap));
            return Err(format!("incompatible types for comparison: {a} and {b}").into());
        }
    })
}

/// An index in a list or text of `length`; equal to `length` only if `end` allows it.
fn place(m: &Machine<'_>, value: &Value, length: usize, end: bool) -> Out<usize> {
    let n = match value {
        Value::Int(n) | Value::Int64(n) => *n,
        Value::Float(f) if m.rules.lenient => number::as_whole(*f).unwrap_or(-1),
        other => return Err(format!("an index must be a whole number, not a {}", other.type_name(&m.heap)).into()),
    };
    usize::try_from(n)
        .ok()
        .filter(|n| *n < length + usize::from(end))
        .ok_or_else(|| format!("index {n} is out of range: the length is {length}").into())
}

fn index(m: &mut Machine<'_>, args: &[Value]) -> Out {
    let mut at = args[0].clone();
    if at.is_nothing() {
        return Err("there is nothing to index".into());
    }
    for key in &args[1..] {
        at = match &at {
            Value::List(list) => {
                let items = m.heap.list(*list);
                items[place(m, key, items.len(), false)?].clone()
            }
            Value::Text(text) => Value::Int(i64::from(text.as_bytes()[place(m, key, text.len(), false)?])),
            Value::Map(map) => match key {
                Value::Text(key) => match m.member(*map, key)? {
                    Value::Missing(_) if m.heap.map(*map).only_texts => Value::text(""),
                    found => found,
                },
                other => return Err(format!("a key must be a text, not a {}", other.type_name(&m.heap)).into()),
            },
            other => {
                return Err(format!("a value of type {} has no elements", other.type_name(&m.heap)).into());
            }
        };
    }
    Ok(at)
}

fn slice(m: &mut Machine<'_>, args: &[Value]) -> Out {
    let (item, places) = (&args[0], &args[1..]);
    let length = match item {
        Value::Text(text) => text.len(),
        Value::List(list) => m.heap.list(*list).len(),
        other => return Err(format!("a value of type {} has no parts", other.type_name(&m.heap)).into()),
    };
    if places.len() > 3 || (places.len() == 3 && matches!(item, Value::Text(_))) {
        return Err(format!("{} is too many indexes", places.len()).into());
    }
    let mut ends = [0, length, length];
    for (end, value) in ends.iter_mut().zip(places) {
        *end = place(m, value, length, true)?;
    }
    let [start, end, limit] = ends;
    if start > end || end > limit {
        return Err(format!("invalid slice index: {start} > {end}").into());
    }
    match item {
        Value::List(list) => {
            let part = m.heap.list(*list)[start..end].to_vec();
            m.heap.new_list(part)
        }
        Value::Text(text) => match text.get(start..end) {
            Some(part) => m.heap.new_text(part),
            None => Err("the index is in the middle of a character".into()),
        },
        _ => Ok(Value::Nil),
    }
}

fn escape(m: &mut Machine<'_>, args: &[Value], how: impl Fn(&str) -> String) -> Out {
    let shown = match args {
        [Value::Text(text)] => text.to_string(),
        // These three print an absent value as a template does, not as `print` does.
        args => {
            let args: Vec<Value> = args
                .iter()
                .map(|v| {
                    if matches!(v, Value::Nil) {
                        Value::text("<no value>")
                    } else {
                        v.clone()
                    }
                })
                .map(|v| match v {
                    Value::Missing(_) if m.rules.missing == crate::Missing::Print => Value::text("<no value>"),
                    other => other,
                })
                .collect();
            m.sprint(&args)?
        }
    };
    m.heap.new_text(how(&shown))
}

fn html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\0' => out.push('\u{FFFD}'),
            '"' => out.push_str("&#34;"),
            '\'' => out.push_str("&#39;"),
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            _ => out.push(c),
        }
    }
    out
}

fn js(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\'' => out.push_str("\\'"),
            '"' => out.push_str("\\\""),
            '<' | '>' | '&' | '=' => {
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            '\x7f' => out.push(c),
            _ if is_printable(c) => out.push(c),
            _ => {
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
        }
    }
    out
}

/// Escapes a text for the query of a URL.
pub(crate) fn query_escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b' ' => out.push('+'),
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(char::from(byte)),
            _ => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}
