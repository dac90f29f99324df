//! JSON patch (RFC 6902), with the habits of the implementation that Kubernetes uses: negative indexes count from the end,
//! a `test` for null accepts a missing value, `replace` adds a missing key, a missing `value` is null, and the whole document
//! can be replaced.

use serde_json::Value;

use crate::error::PatchError;

/// Most operations in one patch.
const MAX_OPERATIONS: usize = 10_000;

/// Applies a patch in place. If it fails, the target is left half-patched: work on a copy.
pub fn json_patch(target: &mut Value, patch: &Value) -> Result<(), PatchError> {
    let Value::Array(operations) = patch else {
        return Err(PatchError::BadPatch(
            "a JSON patch must be a list of operations".to_owned(),
        ));
    };
    if operations.len() > MAX_OPERATIONS {
        return Err(PatchError::BadPatch(format!(
            "The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {}",
            operations.len()
        )));
    }
    operations.iter().try_for_each(|operation| step(target, operation))
}

fn step(target: &mut Value, operation: &Value) -> Result<(), PatchError> {
    let text = |name: &str| operation.get(name).and_then(Value::as_str);
    let missing = |name: &str| PatchError::BadPatch(format!("operation missing {name} field: missing value"));
    let path = text("path").ok_or_else(|| missing("path"))?;
    let value = || operation.get("value").cloned().unwrap_or(Value::Null);
    let from = || text("from").ok_or_else(|| missing("from"));
    match text("op").unwrap_or_default() {
        "add" => add(target, path, value(), "add"),
        "remove" => remove(target, path, "remove").map(drop),
        "replace" => replace(target, path, value()),
        "move" => {
            let value = remove(target, from()?, "move")?;
            add(target, path, value, "move")
        }
        "copy" => {
            let value = find(target, from()?, "copy")?.cloned().unwrap_or(Value::Null);
            add(target, path, value, "copy")
        }
        "test" => test(target, path, operation.get("value").unwrap_or(&Value::Null)),
        other => Err(PatchError::BadPatch(format!("Unexpected kind: {other}"))),
    }
}

fn unescape(token: &str) -> String {
    token.replace("~1", "/").replace("~0", "~")
}

fn no_path(op: &str, path: &str) -> PatchError {
    PatchError::Unprocessable(format!(
        "{op} operation does not apply: doc is missing path: {path:?}: missing value"
    ))
}

/// Splits a path into the way to the container and the last token.
fn split(path: &str) -> Option<(Vec<String>, String)> {
    let mut tokens: Vec<String> = path.split('/').skip(1).map(unescape).collect();
    let last = tokens.pop()?;
    Some((tokens, last))
}

fn index(list: &[Value], token: &str) -> Option<usize> {
    let at: i64 = token.parse().ok()?;
    let length = i64::try_from(list.len()).ok()?;
    let at = if at < 0 { at + length } else { at };
    (0..length).contains(&at).then(|| usize::try_from(at).ok()).flatten()
}

fn container<'a>(target: &'a mut Value, path: &str, op: &str) -> Result<(&'a mut Value, String), PatchError> {
    let (tokens, last) = split(path).ok_or_else(|| no_path(op, path))?;
    let mut here = target;
    for token in tokens {
        here = match here {
            Value::Object(map) => map.get_mut(&token),
            Value::Array(list) => index(list, &token).and_then(|at| list.get_mut(at)),
            _ => None,
        }
        .ok_or_else(|| no_path(op, path))?;
    }
    if here.is_object() || here.is_array() {
        Ok((here, last))
    } else {
        Err(no_path(op, path))
    }
}

fn find<'a>(target: &'a Value, path: &str, op: &str) -> Result<Option<&'a Value>, PatchError> {
    if path.is_empty() {
        return Ok(Some(target));
    }
    let (tokens, last) = split(path).ok_or_else(|| no_path(op, path))?;
    let mut here = target;
    let below = |here: &'a Value, token: &str| match here {
        Value::Object(map) => map.get(token),
        Value::Array(list) => index(list, token).and_then(|at| list.get(at)),
        _ => None,
    };
    for token in tokens {
        here = below(here, &token).ok_or_else(|| no_path(op, path))?;
    }
    match below(here, &last) {
        None if here.is_array() => Err(PatchError::Unprocessable(format!(
            "error in {op} for path: '{path}': Unable to access invalid index: {last}: invalid index referenced"
        ))),
        found => Ok(found),
    }
}

fn add(target: &mut Value, path: &str, value: Value, op: &str) -> Result<(), PatchError> {
    if path.is_empty() {
        *target = value;
        return Ok(());
    }
    let (here, last) = container(target, path, op)?;
    match here {
        Value::Object(map) => {
            map.insert(last, value);
        }
        Value::Array(list) => {
            let place = if last == "-" {
                Some(list.len())
            } else {
                insertion(list, &last)
            };
            let Some(place) = place else {
                return Err(PatchError::Unprocessable(format!(
                    "error in {op} for path: '{path}': Unable to access invalid index: {last}: invalid index referenced"
                )));
            };
            list.insert(place, value);
        }
        _ => {}
    }
    Ok(())
}

/// Where `add` inserts: -1 is behind the last item.
fn insertion(list: &[Value], token: &str) -> Option<usize> {
    let at: i64 = token.parse().ok()?;
    let length = i64::try_from(list.len()).ok()?;
    let at = if at < 0 { at + length + 1 } else { at };
    (0..=length).contains(&at).then(|| usize::try_from(at).ok()).flatten()
}

fn remove(target: &mut Value, path: &str, op: &str) -> Result<Value, PatchError> {
    let (here, last) = container(target, path, op)?;
    let found = match here {
        Value::Object(map) => map.remove(&last),
        Value::Array(list) => index(list, &last).map(|at| list.remove(at)),
        _ => None,
    };
    found.ok_or_else(|| {
        PatchError::Unprocessable(format!(
            "error in {op} for path: '{path}': Unable to remove nonexistent key: {last}: missing value"
        ))
    })
}

fn replace(target: &mut Value, path: &str, value: Value) -> Result<(), PatchError> {
    if path.is_empty() {
        *target = value;
        return Ok(());
    }
    let (here, last) = container(target, path, "replace")?;
    let place = match here {
        // A key that is not there is added, as Kubernetes does.
        Value::Object(map) => Some(map.entry(last).or_insert(Value::Null)),
        Value::Array(list) => index(list, &last).and_then(|at| list.get_mut(at)),
        _ => None,
    };
    match place {
        Some(place) => {
            *place = value;
            Ok(())
        }
        None => Err(PatchError::Unprocessable(format!(
            "replace operation does not apply: doc is missing key: {path}: missing value"
        ))),
    }
}

fn test(target: &Value, path: &str, want: &Value) -> Result<(), PatchError> {
    let have = find(target, path, "test")?;
    if have.unwrap_or(&Value::Null) == want {
        Ok(())
    } else {
        Err(PatchError::Unprocessable(format!(
            "testing value {path} failed: test failed"
        )))
    }
}
