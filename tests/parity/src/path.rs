//! Paths into answers: names and indexes joined by dots, `*` for every element, `\.` for a dot within a name.

use serde_json::Value;

fn steps(path: &str) -> Vec<String> {
    let mut out = vec![String::new()];
    let mut chars = path.chars();
    while let Some(c) = chars.next() {
        match (c, out.last_mut()) {
            ('.', _) => out.push(String::new()),
            ('\\', Some(last)) => last.extend(chars.next()),
            (c, Some(last)) => last.push(c),
            (_, None) => {}
        }
    }
    out
}

/// The value at a path.
pub(crate) fn get<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    steps(path).iter().try_fold(value, |at, step| match at {
        Value::Object(map) => map.get(step),
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        _ => None,
    })
}

/// The values at a path. With `*`, a list of all matches.
pub(crate) fn select(value: &Value, path: &str) -> Option<Value> {
    fn walk(value: &Value, steps: &[String]) -> Option<Value> {
        let Some((step, rest)) = steps.split_first() else {
            return Some(value.clone());
        };
        match value {
            Value::Array(items) if step == "*" => Some(Value::Array(
                items
                    .iter()
                    .map(|item| walk(item, rest).unwrap_or(Value::Null))
                    .collect(),
            )),
            Value::Object(map) if step == "*" => Some(Value::Object(
                map.iter()
                    .map(|(k, v)| (k.clone(), walk(v, rest).unwrap_or(Value::Null)))
                    .collect(),
            )),
            Value::Array(items) => walk(items.get(step.parse::<usize>().ok()?)?, rest),
            Value::Object(map) => walk(map.get(step)?, rest),
            _ => None,
        }
    }
    walk(value, &steps(path))
}

/// Removes the value at a path. An element of a list becomes null, so that later elements keep their indexes.
pub(crate) fn remove(value: &mut Value, path: &str) {
    fn walk(value: &mut Value, steps: &[String]) {
        let Some((step, rest)) = steps.split_first() else {
            return;
        };
        match value {
            Value::Array(items) if step == "*" => items.iter_mut().for_each(|item| walk(item, rest)),
            Value::Object(map) if step == "*" => map.values_mut().for_each(|item| walk(item, rest)),
            Value::Array(items) => {
                if let Some(item) = step.parse::<usize>().ok().and_then(|at| items.get_mut(at)) {
                    if rest.is_empty() {
                        *item = Value::Null;
                    } else {
                        walk(item, rest);
                    }
                }
            }
            Value::Object(map) if rest.is_empty() => {
                map.remove(step);
            }
            Value::Object(map) => map.get_mut(step).map_or((), |item| walk(item, rest)),
            _ => {}
        }
    }
    walk(value, &steps(path));
}

/// Whether a path matches a pattern: `*` stands for one step, `**` for any number.
pub(crate) fn matches(pattern: &str, path: &str) -> bool {
    fn walk(pattern: &[String], path: &[String]) -> bool {
        match (pattern.split_first(), path.split_first()) {
            (None, None) => true,
            (Some((p, rest)), _) if p == "**" => (0..=path.len()).any(|skip| walk(rest, &path[skip..])),
            (Some((p, rest)), Some((step, path))) => (p == "*" || p == step) && walk(rest, path),
            _ => false,
        }
    }
    walk(&steps(pattern), &steps(path))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_path_leads_through_objects_and_lists() {
        let value = json!({"a": [{"b.c": 1}, {"b.c": 2}]});
        assert_eq!(get(&value, r"a.1.b\.c"), Some(&json!(2)));
        assert_eq!(select(&value, r"a.*.b\.c"), Some(json!([1, 2])));
        assert_eq!(select(&value, "a.5"), None);
        let mut cut = value.clone();
        remove(&mut cut, r"a.*.b\.c");
        assert_eq!(cut, json!({"a": [{}, {}]}));
        remove(&mut cut, "a.0");
        assert_eq!(cut, json!({"a": [null, {}]}));
    }

    #[test]
    fn a_pattern_may_leave_steps_open() {
        assert!(matches("1.body.**", "1.body.metadata.name"));
        assert!(matches("*.body.message", "3.body.message"));
        assert!(!matches("*.body", "3.body.message"));
    }
}
