//! JSON patch (RFC 6902), with the peculiarities of the implementation in Kubernetes: negative indexes count from the end, a
//! `test` for null accepts a missing value, `replace` adds a missing key, a missing `value` is null, and only `replace` accepts
//! the whole document.

use std::borrow::Cow;

use serde_json::Value;
use windlass_meta::beginning;
use windlass_meta::budget::{OBJECT_DEPTH, PATCH_COPIED_BYTES, PATCH_MOVED_ITEMS, PATCH_OPERATIONS, PATH_BYTES};

use crate::depth::size_within;
use crate::error::PatchError;

/// Why an operation is not applied.
enum Fault {
    /// It does not fit the object.
    Misfit(String),
    /// The object would be too deep.
    TooDeep(String),
}

impl From<String> for Fault {
    fn from(why: String) -> Self {
        Self::Misfit(why)
    }
}

/// What the operations of a patch have cost.
#[derive(Default)]
struct Costs {
    copied: usize,
    moved: usize,
}

/// Applies a patch in place. If it fails, the target is left half-patched: work on a copy.
pub fn json_patch(target: &mut Value, patch: &Value) -> Result<(), PatchError> {
    let Value::Array(operations) = patch else {
        return Err(PatchError::BadPatch(
            "a JSON patch must be a list of operations".to_owned(),
        ));
    };
    if operations.len() > PATCH_OPERATIONS {
        return Err(PatchError::TooLarge(format!(
            "The allowed maximum operations in a JSON patch is {PATCH_OPERATIONS}, got {}",
            operations.len()
        )));
    }
    let mut costs = Costs::default();
    for operation in operations {
        let done = step(target, operation, &mut costs);
        costs.within(done)?;
    }
    Ok(())
}

/// One operation of a patch, with its value at hand.
#[derive(Debug, Clone, PartialEq)]
pub enum Edit {
    /// `add`.
    Add(Value),
    /// `remove`.
    Remove,
    /// `replace`.
    Replace(Value),
}

/// Applies one operation in place, as [`json_patch`] does, without a document that describes it. If it fails, the target may be changed.
pub fn edit(target: &mut Value, path: &str, edit: Edit) -> Result<(), PatchError> {
    let mut costs = Costs::default();
    let done = match edit {
        Edit::Add(value) => add(target, path, value, "add", &mut costs),
        Edit::Remove => remove(target, path, "remove", &mut costs)
            .map(drop)
            .map_err(Fault::from),
        Edit::Replace(value) => replace(target, path, value, &mut costs),
    };
    costs.within(done)
}

impl Costs {
    /// The result of an operation, unless all until then have cost too much.
    fn within(&self, done: Result<(), Fault>) -> Result<(), PatchError> {
        done.map_err(|fault| match fault {
            Fault::Misfit(why) => PatchError::Unprocessable(why),
            Fault::TooDeep(why) => PatchError::TooLarge(why),
        })?;
        if self.moved > PATCH_MOVED_ITEMS {
            return Err(PatchError::TooLarge(format!(
                "The operations of a JSON patch may move at most {PATCH_MOVED_ITEMS} values, those that follow in a list included"
            )));
        }
        Ok(())
    }
}

fn step(target: &mut Value, operation: &Value, costs: &mut Costs) -> Result<(), Fault> {
    let text = |name: &str| operation.get(name).and_then(Value::as_str);
    let kind = text("op").unwrap_or("unknown");
    let path = || text("path").ok_or_else(|| format!("{kind} operation failed to decode path: missing value"));
    let from = || text("from").ok_or_else(|| format!("{kind} operation failed to decode from: missing value"));
    let value = || operation.get("value").cloned().unwrap_or(Value::Null);
    match kind {
        "add" => add(target, path()?, value(), kind, costs),
        "remove" => Ok(remove(target, path()?, kind, costs).map(drop)?),
        "replace" => replace(target, path()?, value(), costs),
        "move" => {
            let from = from()?;
            if find(target, from, kind)?.is_none() {
                let why = format!("error in move for path: '{from}': Unable to remove nonexistent key");
                return Err(why.into());
            }
            let value = remove(target, from, kind, costs)?;
            add(target, path()?, value, kind, costs)
        }
        "copy" => {
            let value = find(target, from()?, kind)?.cloned().unwrap_or(Value::Null);
            costs.copied += size(&value);
            if costs.copied > PATCH_COPIED_BYTES {
                let why = format!(
                    "Unable to complete the copy, the accumulated size increase of copy is {}, exceeding the limit {PATCH_COPIED_BYTES}",
                    costs.copied
                );
                return Err(why.into());
            }
            add(target, path()?, value, kind, costs)
        }
        "test" => Ok(test(target, path()?, operation.get("value"))?),
        other => Err(format!("Unexpected kind: {other}").into()),
    }
}

/// The approximate length of a value as JSON.
fn size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 4,
        Value::Number(_) => 8,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(|item| size(item) + 1).sum::<usize>() + 2,
        Value::Object(map) => map.iter().map(|(name, v)| name.len() + size(v) + 4).sum::<usize>() + 2,
    }
}

fn unescape(token: &str) -> Cow<'_, str> {
    if token.contains('~') {
        token.replace("~1", "/").replace("~0", "~").into()
    } else {
        token.into()
    }
}

fn no_path(op: &str, path: &str) -> String {
    format!("{op} operation does not apply: doc is missing path: {path:?}: missing value")
}

fn no_index(op: &str, path: &str, index: &str) -> String {
    format!("error in {op} for path: '{path}': Unable to access invalid index: {index}: invalid index referenced")
}

/// Splits a path into the path of the container and the last token.
fn split(path: &str) -> Option<(impl Iterator<Item = Cow<'_, str>>, Cow<'_, str>)> {
    let (_, tokens) = path.split_once('/')?;
    let mut tokens = tokens.split('/').map(unescape);
    let last = tokens.next_back()?;
    Some((tokens, last))
}

/// The index of an item; `None` if it is not a number or out of range.
fn index(list: &[Value], token: &str) -> Option<usize> {
    place(list.len(), list.len().checked_sub(1)?, token)
}

/// An index from a token, which may count from the end of `length` items.
fn place(length: usize, last: usize, token: &str) -> Option<usize> {
    let at: i64 = token.parse().ok()?;
    let at = if at < 0 { at + i64::try_from(length).ok()? } else { at };
    usize::try_from(at).ok().filter(|at| *at <= last)
}

fn container<'a, 'p>(target: &'a mut Value, path: &'p str, op: &str) -> Result<(&'a mut Value, Cow<'p, str>), String> {
    let (tokens, last) = split(path).ok_or_else(|| no_path(op, path))?;
    let mut here = target;
    for token in tokens {
        here = match here {
            Value::Object(map) => map.get_mut(token.as_ref()),
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

/// The value at a path; `None` for a missing key.
fn find<'a>(target: &'a Value, path: &str, op: &str) -> Result<Option<&'a Value>, String> {
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
    match (below(here, &last), here) {
        (None, Value::Array(_)) => Err(no_index(op, path, &last)),
        (found, Value::Object(_) | Value::Array(_)) => Ok(found),
        _ => Err(no_path(op, path)),
    }
}

/// Refuses a value that would be too deep at a path. Operations build on each other, so each is checked: no value that is walked is deeper
/// than two objects. All that is walked counts as moved.
fn shallow(value: &Value, path: &str, op: &str, costs: &mut Costs) -> Result<(), Fault> {
    let at = path.bytes().filter(|byte| *byte == b'/').count();
    let size = OBJECT_DEPTH
        .checked_sub(at)
        .and_then(|levels| size_within(value, levels));
    let Some(size) = size else {
        let path = beginning(path, PATH_BYTES);
        return Err(Fault::TooDeep(format!(
            "{op} operation does not apply: the value at {path:?} would be deeper than {OBJECT_DEPTH} levels"
        )));
    };
    costs.moved += size;
    Ok(())
}

fn add(target: &mut Value, path: &str, value: Value, op: &str, costs: &mut Costs) -> Result<(), Fault> {
    shallow(&value, path, op, costs)?;
    let (here, last) = container(target, path, op)?;
    match here {
        Value::Object(map) => {
            map.insert(last.into_owned(), value);
        }
        Value::Array(list) if last == "-" => list.push(value),
        Value::Array(list) => {
            // -1 is after the last item.
            let at = place(list.len() + 1, list.len(), &last).ok_or_else(|| no_index(op, path, &last))?;
            costs.moved += list.len() - at;
            list.insert(at, value);
        }
        _ => {}
    }
    Ok(())
}

fn remove(target: &mut Value, path: &str, op: &str, costs: &mut Costs) -> Result<Value, String> {
    let (here, last) = container(target, path, op)?;
    match here {
        Value::Object(map) => map.remove(last.as_ref()).ok_or_else(|| {
            format!("error in {op} for path: '{path}': Unable to remove nonexistent key: {last}: missing value")
        }),
        Value::Array(list) => match index(list, &last) {
            Some(at) => {
                costs.moved += list.len() - at;
                Ok(list.remove(at))
            }
            None => Err(no_index(op, path, &last)),
        },
        _ => Err(no_path(op, path)),
    }
}

fn replace(target: &mut Value, path: &str, value: Value, costs: &mut Costs) -> Result<(), Fault> {
    shallow(&value, path, "replace", costs)?;
    if path.is_empty() {
        if !value.is_object() && !value.is_array() {
            return Err("replace operation value must be object or array".to_owned().into());
        }
        *target = value;
        return Ok(());
    }
    let (here, last) = container(target, path, "replace")?;
    let place = match here {
        // A missing key is added, as in Kubernetes.
        Value::Object(map) => Some(map.entry(last).or_insert(Value::Null)),
        Value::Array(list) => index(list, &last).and_then(|at| list.get_mut(at)),
        _ => None,
    };
    match place {
        Some(place) => {
            *place = value;
            Ok(())
        }
        None => Err(format!("replace operation does not apply: doc is missing key: {path}: missing value").into()),
    }
}

fn test(target: &Value, path: &str, want: Option<&Value>) -> Result<(), String> {
    let have = if path.is_empty() {
        Some(target)
    } else {
        find(target, path, "test")?
    };
    if have.unwrap_or(&Value::Null) == want.unwrap_or(&Value::Null) {
        Ok(())
    } else {
        Err(format!("testing value {path} failed: test failed"))
    }
}
