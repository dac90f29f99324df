//! Dictionaries. `set`, `unset` and the merges change their first argument, as in Go: all holders of the dictionary see the change.

use super::{any_text, kept, text};
use crate::functions::{Function, f};
use crate::machine::Machine;
use crate::value::{DEEPEST, Entries, Map, Out, Value, too_deep};

pub(super) const FUNCTIONS: &[Function] = &[
    f("dict", ".*", |m, a| {
        let mut entries = Entries::new();
        for pair in a.chunks(2) {
            let value = pair.get(1).map_or_else(|| Value::text(""), kept);
            entries.insert(any_text(m, &pair[0])?, value);
        }
        m.heap.new_map(entries)
    }),
    f("get", "ms", |m, a| {
        let Some(map) = map(&a[0]) else {
            return Ok(Value::text(""));
        };
        // An unknown name must be an error; an unset one need not.
        let found = m.member(map, &text(&a[1]))?;
        Ok(if matches!(found, Value::Missing(_)) {
            Value::text("")
        } else {
            found
        })
    }),
    f("set", "ms.", |m, a| {
        let Some(map) = map(&a[0]) else {
            return Err("there is no dictionary to change".into());
        };
        m.heap.spend(128)?;
        m.heap.map_mut(map).entries.insert(text(&a[1]), kept(&a[2]));
        Ok(a[0].clone())
    }),
    f("unset", "ms", |m, a| {
        let Some(map) = map(&a[0]) else {
            return m.heap.new_map(Entries::new());
        };
        m.heap.map_mut(map).entries.remove(&text(&a[1]));
        Ok(a[0].clone())
    }),
    f("hasKey", "ms", |m, a| {
        let has = map(&a[0]).is_some_and(|map| m.heap.map(map).entries.contains_key(&text(&a[1])));
        Ok(Value::Bool(has))
    }),
    // Go returns keys and values in random order; sorted is one of these orders.
    f("keys", "m*", |m, a| {
        let mut keys = Vec::new();
        for map in a.iter().filter_map(map) {
            keys.extend(m.heap.map(map).entries.keys().cloned());
        }
        m.heap.new_texts(keys)
    }),
    f("values", "m", |m, a| {
        let values = map(&a[0]).map(|map| m.heap.map(map).entries.values().cloned().collect());
        m.heap.new_list(values.unwrap_or_default())
    }),
    f("pluck", "sm*", |m, a| {
        let mut out = Vec::new();
        for map in a[1..].iter().filter_map(map) {
            let found = m.member(map, &text(&a[0]))?;
            if !matches!(found, Value::Missing(_)) {
                out.push(found);
            }
        }
        m.heap.new_list(out)
    }),
    f("pick", "ms*", |m, a| chosen(m, a, true)),
    f("omit", "ms*", |m, a| chosen(m, a, false)),
    f("dig", "....*", dig),
    f("merge", "mm*", |m, a| merge(m, a, false)),
    f("mustMerge", "mm*", |m, a| merge(m, a, false)),
    f("mergeOverwrite", "mm*", |m, a| merge(m, a, true)),
    f("mustMergeOverwrite", "mm*", |m, a| merge(m, a, true)),
    f("deepCopy", ".", deep_copy),
    f("mustDeepCopy", ".", deep_copy),
];

fn deep_copy(m: &mut Machine<'_>, args: &[Value]) -> Out {
    if args[0].is_nothing() {
        return Err("there is nothing to copy".into());
    }
    m.heap.copy(&args[0], DEEPEST)
}

/// A value as a dictionary; `None` for other types.
fn map(value: &Value) -> Option<Map> {
    match value {
        Value::Map(map) => Some(*map),
        _ => None,
    }
}

fn chosen(m: &mut Machine<'_>, args: &[Value], keep: bool) -> Out {
    let names: Vec<_> = args[1..].iter().map(text).collect();
    let entries = map(&args[0])
        .map(|map| m.heap.map(map).entries.clone())
        .unwrap_or_default();
    let kept = entries.into_iter().filter(|(key, _)| names.contains(key) == keep);
    m.heap.new_map(kept.collect())
}

/// `dig "a" "b" default dictionary`
fn dig(m: &mut Machine<'_>, args: &[Value]) -> Out {
    let (path, rest) = args.split_at(args.len() - 2);
    if let Some(key) = path.iter().find(|key| !matches!(key, Value::Text(_))) {
        return Err(format!("a key must be a text, not a {}", key.type_name(&m.heap)).into());
    }
    let mut at = rest[1].clone();
    for key in path.iter().map(text) {
        let Value::Map(map) = at else {
            if m.rules.lenient {
                return Ok(rest[0].clone());
            }
            return Err(format!("key {key:?} is of no dictionary but of a {}", at.type_name(&m.heap)).into());
        };
        match m.heap.map(map).entries.get(&key) {
            Some(value) => at = value.clone(),
            None => return Ok(rest[0].clone()),
        }
    }
    Ok(at)
}

fn merge(m: &mut Machine<'_>, args: &[Value], overwrite: bool) -> Out {
    let into = match map(&args[0]) {
        Some(map) => map,
        None => map(&m.heap.new_map(Entries::new())?).ok_or("there is no dictionary to change")?,
    };
    for from in args[1..].iter().filter_map(map) {
        merge_into(m, into, from, overwrite, DEEPEST)?;
    }
    Ok(Value::Map(into))
}

/// Adds the entries of a dictionary to another one. For keys in both, the first one wins, or the other one with `overwrite`.
fn merge_into(m: &mut Machine<'_>, into: Map, from: Map, overwrite: bool, deepest: usize) -> Out<()> {
    let deeper = deepest.checked_sub(1).ok_or_else(too_deep)?;
    let entries = m.heap.map(from).entries.clone();
    m.heap.spend(64 + entries.len() * 96)?;
    for (key, value) in entries {
        let have = m.heap.map(into).entries.get(&key).cloned();
        match (have, &value) {
            (Some(Value::Map(a)), Value::Map(b)) => merge_into(m, a, *b, overwrite, deeper)?,
            (_, Value::Nil) if !overwrite => {}
            (Some(have), _) if have.is_true(&m.heap) && !overwrite => {}
            _ => {
                m.heap.map_mut(into).entries.insert(key, value);
            }
        }
    }
    Ok(())
}
