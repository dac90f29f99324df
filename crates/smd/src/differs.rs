//! Whether an apply would change anything.

use serde_json::Value;

/// How to compare a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListKeys<'a> {
    /// Items correspond by these fields; the other side may have more items.
    Map(&'a [&'a str]),
    /// Every desired scalar must be present; the order does not matter.
    Set,
}

const DEFAULTS: [(&str, ListKeys<'static>); 3] = [
    ("conditions", ListKeys::Map(&["type"])),
    ("ownerReferences", ListKeys::Map(&["uid"])),
    ("finalizers", ListKeys::Set),
];

/// The first path at which applying `want` would change `have`; `None` if it would change nothing.
///
/// Fields that are not in `want` are ignored. `conditions`, `ownerReferences` and `finalizers` merge by item; other lists are
/// compared exactly. A null in `want` means an absent value.
pub fn differs(want: &Value, have: &Value) -> Option<String> {
    differs_with(&[], want, have)
}

/// [`differs`] with more lists that merge by item: by path (`spec.topology.variables`) or by field name alone.
pub fn differs_with(lists: &[(&str, ListKeys<'_>)], want: &Value, have: &Value) -> Option<String> {
    let mut path = Vec::new();
    if walk(lists, want, Some(have), &mut path) {
        return None;
    }
    let mut out = String::new();
    for step in &path {
        match step {
            Step::Field(name) if out.is_empty() => out.push_str(name),
            Step::Field(name) => {
                out.push('.');
                out.push_str(name);
            }
            Step::Item(text) => out.push_str(text),
        }
    }
    Some(out)
}

enum Step<'a> {
    Field(&'a str),
    Item(String),
}

/// Returns true if nothing would change. Otherwise `path` is the path of the difference.
fn walk<'a>(lists: &[(&str, ListKeys<'_>)], want: &'a Value, have: Option<&Value>, path: &mut Vec<Step<'a>>) -> bool {
    let Some(have) = have else {
        return want.is_null();
    };
    match (want, have) {
        (Value::Null, have) => have.is_null(),
        (Value::Object(want), Value::Object(have)) => want.iter().all(|(name, child)| {
            path.push(Step::Field(name));
            let same = walk(lists, child, have.get(name), path);
            if same {
                path.pop();
            }
            same
        }),
        (Value::Array(want), Value::Array(have)) => match rule(lists, path) {
            Some(ListKeys::Map(keys)) if want.iter().all(|item| keys.iter().any(|key| item.get(key).is_some())) => {
                keyed(lists, keys, want, have, path)
            }
            Some(ListKeys::Set) => want.iter().all(|item| have.contains(item)),
            _ => exact_list(want, have, path),
        },
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        _ => want == have,
    }
}

fn rule<'t>(lists: &[(&str, ListKeys<'t>)], path: &[Step<'_>]) -> Option<ListKeys<'t>> {
    let names: Vec<&str> = path
        .iter()
        .filter_map(|step| match step {
            Step::Field(name) => Some(*name),
            Step::Item(_) => None,
        })
        .collect();
    let last = *names.last()?;
    let fits = |pattern: &str| pattern == last || (pattern.contains('.') && pattern == names.join("."));
    lists
        .iter()
        .find(|(pattern, _)| fits(pattern))
        .map(|(_, rule)| *rule)
        .or_else(|| DEFAULTS.iter().find(|(name, _)| *name == last).map(|(_, rule)| *rule))
}

fn keyed<'a>(
    lists: &[(&str, ListKeys<'_>)],
    keys: &[&str],
    want: &'a [Value],
    have: &[Value],
    path: &mut Vec<Step<'a>>,
) -> bool {
    want.iter().all(|item| {
        let there = have
            .iter()
            .find(|there| keys.iter().all(|key| there.get(key) == item.get(key)));
        let text: Vec<String> = keys
            .iter()
            .filter_map(|key| item.get(key).map(|value| format!("{key}={value}")))
            .collect();
        path.push(Step::Item(format!("[{}]", text.join(","))));
        let same = there.is_some() && walk(lists, item, there, path);
        if same {
            path.pop();
        }
        same
    })
}

/// Compares lists that are replaced as a whole, with all fields.
fn exact_list<'a>(want: &'a [Value], have: &[Value], path: &mut Vec<Step<'a>>) -> bool {
    if want.len() != have.len() {
        return false;
    }
    match want.iter().zip(have).position(|(a, b)| !exact(a, b)) {
        None => true,
        Some(index) => {
            path.push(Step::Item(format!("[{index}]")));
            false
        }
    }
}

fn exact(want: &Value, have: &Value) -> bool {
    match (want, have) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| exact(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            let filled = |map: &serde_json::Map<String, Value>| map.values().filter(|v| !v.is_null()).count();
            filled(a) == filled(b)
                && a.iter()
                    .all(|(name, v)| v.is_null() || b.get(name).is_some_and(|w| exact(v, w)))
        }
        _ => want == have,
    }
}
