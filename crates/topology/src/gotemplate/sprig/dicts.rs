//! Maps. A template cannot change a map in place here; `set` and `unset` give a changed copy.

use std::collections::HashMap;

use gtmpl_ng::{Func, FuncError, Value};

use super::{Out, arg, fail, kind, text, text_arg};

pub(super) const FUNCTIONS: &[(&str, Func)] = &[
    ("dict", |a| {
        let pairs = a
            .chunks(2)
            .map(|p| (text(&p[0]), p.get(1).cloned().unwrap_or_else(empty)));
        Ok(Value::Map(pairs.collect()))
    }),
    ("get", |a| {
        let map = map_arg(a, 0, "get")?;
        Ok(map.get(&text_arg(a, 1, "get")?).cloned().unwrap_or_else(empty))
    }),
    ("set", |a| {
        let mut map = map_arg(a, 0, "set")?.clone();
        map.insert(text_arg(a, 1, "set")?, arg(a, 2, "set")?.clone());
        Ok(Value::Map(map))
    }),
    ("unset", |a| {
        let mut map = map_arg(a, 0, "unset")?.clone();
        map.remove(&text_arg(a, 1, "unset")?);
        Ok(Value::Map(map))
    }),
    ("hasKey", |a| {
        let map = map_arg(a, 0, "hasKey")?;
        Ok(map.contains_key(&text_arg(a, 1, "hasKey")?).into())
    }),
    ("keys", |a| {
        let mut keys: Vec<String> = Vec::new();
        for index in 0..a.len() {
            keys.extend(map_arg(a, index, "keys")?.keys().cloned());
        }
        keys.sort();
        Ok(Value::Array(keys.into_iter().map(Value::String).collect()))
    }),
    ("values", |a| {
        let map = map_arg(a, 0, "values")?;
        let mut keys: Vec<&String> = map.keys().collect();
        keys.sort();
        Ok(Value::Array(keys.into_iter().map(|k| map[k].clone()).collect()))
    }),
    ("pick", |a| chosen(a, "pick", true)),
    ("omit", |a| chosen(a, "omit", false)),
    ("pluck", |a| {
        let key = text_arg(a, 0, "pluck")?;
        let mut out = Vec::new();
        for index in 1..a.len() {
            out.extend(map_arg(a, index, "pluck")?.get(&key).cloned());
        }
        Ok(Value::Array(out))
    }),
    ("dig", dig),
    ("merge", |a| merged(a, false)),
    ("mergeOverwrite", |a| merged(a, true)),
    ("deepCopy", |a| Ok(arg(a, 0, "deepCopy")?.clone())),
];

/// What Sprig gives for a key that is not there.
fn empty() -> Value {
    Value::String(String::new())
}

fn map_arg<'a>(args: &'a [Value], index: usize, function: &str) -> Result<&'a HashMap<String, Value>, FuncError> {
    match arg(args, index, function)? {
        Value::Map(map) | Value::Object(map) => Ok(map),
        other => Err(fail(format!("{function}: expected a map, got {}", kind(other)))),
    }
}

fn chosen(args: &[Value], function: &str, keep: bool) -> Out {
    let names: Vec<String> = args.iter().skip(1).map(text).collect();
    let map = map_arg(args, 0, function)?;
    let kept = map.iter().filter(|(k, _)| names.contains(k) == keep);
    Ok(Value::Map(kept.map(|(k, v)| (k.clone(), v.clone())).collect()))
}

fn dig(args: &[Value]) -> Out {
    if args.len() < 3 {
        return Err(FuncError::AtLeastXArgs("dig".to_owned(), 3));
    }
    let (path, rest) = args.split_at(args.len() - 2);
    let mut at = &rest[1];
    for key in path {
        let next = match at {
            Value::Map(map) | Value::Object(map) => map.get(&text(key)),
            _ => None,
        };
        match next {
            Some(value) => at = value,
            None => return Ok(rest[0].clone()),
        }
    }
    Ok(at.clone())
}

fn merged(args: &[Value], later_wins: bool) -> Out {
    let mut out = arg(args, 0, "merge")?.clone();
    for index in 1..args.len() {
        map_arg(args, index, "merge")?;
        out = merge_two(out, &args[index], later_wins);
    }
    Ok(out)
}

fn merge_two(base: Value, other: &Value, other_wins: bool) -> Value {
    match (base, other) {
        (Value::Map(mut base), Value::Map(other)) => {
            for (key, value) in other {
                let merged = match base.remove(key) {
                    Some(have) => merge_two(have, value, other_wins),
                    None => value.clone(),
                };
                base.insert(key.clone(), merged);
            }
            Value::Map(base)
        }
        (base, other) => {
            if other_wins {
                other.clone()
            } else {
                base
            }
        }
    }
}
