//! Values of variables as patches see them.

pub mod builtin;
pub mod check;
pub mod class;
mod keywords;
pub mod known;
pub mod sources;

use std::collections::BTreeMap;

use serde_json::Value;

use crate::model::VariableValue;

/// The name under which the controller's own variables stand.
pub const BUILTIN: &str = "builtin";

/// Values by variable name.
pub type Values = BTreeMap<String, Value>;

/// A variable that is not there, or has no such part.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LookupError {
    /// No value of that name.
    #[error("variable {0:?} has no value")]
    NoValue(String),
    /// The value has no such field or item.
    #[error("variable path {path:?}: {part:?} does not exist")]
    NoPart {
        /// The whole path.
        path: String,
        /// The part of it that is missing.
        part: String,
    },
    /// The path cannot be read.
    #[error("variable path {0:?} is malformed")]
    Malformed(String),
}

/// Values by name; a `builtin` given by a user does not count.
pub fn values(list: &[VariableValue]) -> Values {
    list.iter()
        .filter(|v| v.name != BUILTIN)
        .map(|v| (v.name.clone(), v.value.clone()))
        .collect()
}

/// The variables of one template: cluster-wide values, overridden by those of its part of the topology, with both
/// `builtin` objects merged.
pub fn merged(global: &Values, specific: &Values) -> Values {
    let mut out = global.clone();
    for (name, value) in specific {
        match (out.get_mut(name), value) {
            (Some(Value::Object(have)), Value::Object(more)) if name == BUILTIN => {
                have.extend(more.iter().map(|(k, v)| (k.clone(), v.clone())));
            }
            _ => {
                out.insert(name.clone(), value.clone());
            }
        }
    }
    out
}

/// The value of a variable, all of which are an object, at a path such as `proxy.url`, `servers[0].name` or `builtin.cluster.name`.
pub fn lookup<'a>(values: &'a Value, path: &str) -> Result<&'a Value, LookupError> {
    let malformed = || LookupError::Malformed(path.to_owned());
    let end = path.find(['.', '[']).unwrap_or(path.len());
    let (name, mut rest) = path.split_at(end);
    let mut at = values.get(name).ok_or_else(|| LookupError::NoValue(name.to_owned()))?;
    while !rest.is_empty() {
        let (part, next, tail);
        if let Some(after) = rest.strip_prefix('[') {
            let (index, after) = after.split_once(']').ok_or_else(malformed)?;
            let number: usize = index.parse().map_err(|_| malformed())?;
            (part, next, tail) = (index, at.get(number), after);
        } else if let Some(after) = rest.strip_prefix('.') {
            let (field, after) = after.split_at(after.find(['.', '[']).unwrap_or(after.len()));
            (part, next, tail) = (field, at.get(field), after);
        } else {
            return Err(malformed());
        }
        at = next.ok_or_else(|| LookupError::NoPart {
            path: path.to_owned(),
            part: part.to_owned(),
        })?;
        rest = tail;
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sample() -> Values {
        Values::from([
            ("proxy".to_owned(), json!({"url": "http://x", "list": [{"a": 1}]})),
            ("dns".to_owned(), json!(["1.1.1.1", "8.8.8.8"])),
            (BUILTIN.to_owned(), json!({"cluster": {"name": "foo"}})),
        ])
    }

    // TO-140
    #[test]
    fn paths_reach_fields_and_items() {
        let values = sample().into_iter().collect::<Value>();
        assert_eq!(lookup(&values, "proxy.url"), Ok(&json!("http://x")));
        assert_eq!(lookup(&values, "proxy.list[0].a"), Ok(&json!(1)));
        assert_eq!(lookup(&values, "dns[1]"), Ok(&json!("8.8.8.8")));
        assert_eq!(lookup(&values, "builtin.cluster.name"), Ok(&json!("foo")));
        assert_eq!(lookup(&values, "proxy"), Ok(&values["proxy"]));
    }

    // TO-143
    #[test]
    fn missing_values_and_parts_are_errors() {
        let values = sample().into_iter().collect::<Value>();
        assert_eq!(lookup(&values, "nope"), Err(LookupError::NoValue("nope".to_owned())));
        assert!(matches!(lookup(&values, "proxy.nope"), Err(LookupError::NoPart { .. })));
        assert!(matches!(lookup(&values, "dns[9]"), Err(LookupError::NoPart { .. })));
        assert!(matches!(lookup(&values, "dns[x]"), Err(LookupError::Malformed(_))));
    }

    // TO-104, TO-161
    #[test]
    fn overrides_replace_and_builtins_merge() {
        let specific = Values::from([
            ("proxy".to_owned(), json!({"other": 1})),
            (BUILTIN.to_owned(), json!({"machineDeployment": {"class": "c"}})),
        ]);
        let merged = merged(&sample(), &specific);
        assert_eq!(merged["proxy"], json!({"other": 1}));
        assert_eq!(
            merged[BUILTIN],
            json!({"cluster": {"name": "foo"}, "machineDeployment": {"class": "c"}})
        );
    }
}
