//! Functions on lists, and conditional functions.

use std::rc::Rc;

use super::{cast, count, kept, text, texts};
use crate::functions::{Function, f};
use crate::machine::Machine;
use crate::value::{Out, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    f("list", ".*", |m, a| m.heap.new_list(a.to_vec())),
    f("tuple", ".*", |m, a| m.heap.new_list(a.to_vec())),
    f("first", ".", first),
    f("mustFirst", ".", first),
    f("last", ".", last),
    f("mustLast", ".", last),
    f("rest", ".", |m, a| part(m, &a[0], |items| &items[1..])),
    f("mustRest", ".", |m, a| part(m, &a[0], |items| &items[1..])),
    f("initial", ".", |m, a| part(m, &a[0], |items| &items[..items.len() - 1])),
    f("mustInitial", ".", |m, a| {
        part(m, &a[0], |items| &items[..items.len() - 1])
    }),
    f("append", "..", push),
    f("mustAppend", "..", push),
    f("push", "..", push),
    f("mustPush", "..", push),
    f("prepend", "..", prepend),
    f("mustPrepend", "..", prepend),
    f("concat", ".*", |m, a| {
        let mut all = Vec::new();
        for list in a {
            all.extend_from_slice(&items(m, list)?);
        }
        m.heap.new_list(all)
    }),
    f("reverse", ".", reverse),
    f("mustReverse", ".", reverse),
    f("uniq", ".", uniq),
    f("mustUniq", ".", uniq),
    f("without", "..*", without),
    f("mustWithout", "..*", without),
    f("compact", ".", compact),
    f("mustCompact", ".", compact),
    f("has", "..", has),
    f("mustHas", "..", has),
    f("slice", "..*", slice),
    f("mustSlice", "..*", slice),
    f("chunk", "i.", chunk),
    f("mustChunk", "i.", chunk),
    f("sortAlpha", ".", |m, a| {
        let mut all = texts(m, &a[0])?;
        if a[0].is_nothing() {
            return m.heap.new_texts(["<nil>"]);
        }
        all.sort();
        m.heap.new_texts(all)
    }),
    f("join", "s.", |m, a| {
        let all = texts(m, &a[1])?;
        m.heap.new_text(all.join(&*text(&a[0])))
    }),
    f("toStrings", ".", |m, a| {
        let all = texts(m, &a[0])?;
        m.heap.new_texts(all)
    }),
    f("default", "..*", |m, a| {
        let given = a.get(1).filter(|v| v.is_true(&m.heap));
        Ok(given.unwrap_or(&a[0]).clone())
    }),
    f("empty", ".", |m, a| Ok(Value::Bool(!a[0].is_true(&m.heap)))),
    f("coalesce", ".*", |m, a| {
        let first = a.iter().find(|v| v.is_true(&m.heap));
        Ok(first.cloned().unwrap_or(Value::Nil))
    }),
    f("all", ".*", |m, a| {
        Ok(Value::Bool(a.iter().all(|v| v.is_true(&m.heap))))
    }),
    f("any", ".*", |m, a| {
        Ok(Value::Bool(a.iter().any(|v| v.is_true(&m.heap))))
    }),
    f("ternary", "..b", |_, a| {
        let chosen = usize::from(!matches!(a[2], Value::Bool(true)));
        Ok(a[chosen].clone())
    }),
    // From Helm, not from Sprig; templates of ClusterClasses have always had it here.
    f("required", "s.", |m, a| {
        if a[1].is_true(&m.heap) {
            return Ok(a[1].clone());
        }
        Err(text(&a[0]).to_string().into())
    }),
];

fn items(m: &Machine<'_>, value: &Value) -> Out<Rc<[Value]>> {
    match value {
        Value::List(list) => Ok(m.heap.list(*list)),
        nothing if nothing.is_nothing() && m.rules.lenient => Ok(Rc::from([])),
        other => Err(format!("expected a list, not a {}", other.type_name(&m.heap)).into()),
    }
}

fn first(m: &mut Machine<'_>, args: &[Value]) -> Out {
    Ok(items(m, &args[0])?.first().cloned().unwrap_or(Value::Nil))
}

fn last(m: &mut Machine<'_>, args: &[Value]) -> Out {
    Ok(items(m, &args[0])?.last().cloned().unwrap_or(Value::Nil))
}

/// A part of a non-empty list; an empty list gives an empty part.
fn part(m: &mut Machine<'_>, list: &Value, which: impl Fn(&[Value]) -> &[Value]) -> Out {
    let items = items(m, list)?;
    let part = if items.is_empty() {
        Vec::new()
    } else {
        which(&items).to_vec()
    };
    m.heap.new_list(part)
}

fn push(m: &mut Machine<'_>, args: &[Value]) -> Out {
    let mut out = items(m, &args[0])?.to_vec();
    out.push(args[1].clone());
    m.heap.new_list(out)
}

fn prepend(m: &mut Machine<'_>, args: &[Value]) -> Out {
    let mut out = vec![args[1].clone()];
    out.extend_from_slice(&items(m, &args[0])?);
    m.heap.new_list(out)
}

fn reverse(m: &mut Machine<'_>, args: &[Value]) -> Out {
    let mut out = items(m, &args[0])?.to_vec();
    out.reverse();
    m.heap.new_list(out)
}

fn contains(m: &mut Machine<'_>, list: &[Value], item: &Value) -> Out<bool> {
    for have in list {
        if m.heap.same(have, item)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn uniq(m: &mut Machine<'_>, args: &[Value]) -> Out {
    let mut out: Vec<Value> = Vec::new();
    for item in items(m, &args[0])?.iter() {
        if !contains(m, &out, item)? {
            out.push(item.clone());
        }
    }
    m.heap.new_list(out)
}

fn without(m: &mut Machine<'_>, args: &[Value]) -> Out {
    let mut out: Vec<Value> = Vec::new();
    for item in items(m, &args[0])?.iter() {
        if !contains(m, &args[1..], item)? {
            out.push(item.clone());
        }
    }
    m.heap.new_list(out)
}

fn compact(m: &mut Machine<'_>, args: &[Value]) -> Out {
    let items = items(m, &args[0])?;
    let out = items.iter().filter(|v| v.is_true(&m.heap)).cloned().collect();
    m.heap.new_list(out)
}

fn has(m: &mut Machine<'_>, args: &[Value]) -> Out {
    if args[1].is_nothing() {
        return Ok(Value::Bool(false));
    }
    let items = items(m, &args[1])?;
    contains(m, &items, &kept(&args[0])).map(Value::Bool)
}

fn slice(m: &mut Machine<'_>, args: &[Value]) -> Out {
    let items = items(m, &args[0])?;
    if items.is_empty() {
        return Ok(Value::Nil);
    }
    let end = |at: usize, otherwise: usize| match args.get(at) {
        Some(value) => usize::try_from(cast::int(value)).unwrap_or(usize::MAX),
        None => otherwise,
    };
    let (start, end) = (end(1, 0), end(2, items.len()));
    let part = items.get(start..end);
    let part = part.ok_or_else(|| format!("{start} to {end} is no part of a list of {}", items.len()))?;
    m.heap.new_list(part.to_vec())
}

fn chunk(m: &mut Machine<'_>, args: &[Value]) -> Out {
    let size = count(&args[0])?;
    let items = items(m, &args[1])?;
    if size == 0 {
        return Err("a chunk has at least one element".into());
    }
    let mut chunks = Vec::new();
    for chunk in items.chunks(size) {
        chunks.push(m.heap.new_list(chunk.to_vec())?);
    }
    m.heap.new_list(chunks)
}
