//! The schemas and table columns of the built-in kinds, from kube-apiserver.
//!
//! `kinds.json` is written by `cargo xtask gen --server KUBECONFIG`: one JSON object with one line for each entry, sorted by name.
//! The lines are split once per process; an entry is parsed when it is asked for.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::Value;
use windlass_objects::names::api_version;

const TEXT: &str = include_str!("kinds.json");
/// Prefix of the entries that are columns; the others are definitions.
const COLUMNS: &str = "columns/";

static ENTRIES: LazyLock<BTreeMap<&'static str, &'static str>> =
    LazyLock::new(|| TEXT.lines().filter_map(entry).collect());

/// Name and JSON of a line: `"name": {...},`.
fn entry(line: &str) -> Option<(&str, &str)> {
    let (name, json) = line.strip_prefix('"')?.split_once("\": ")?;
    Some((name, json.strip_suffix(',').unwrap_or(json)))
}

/// A definition, by its full name.
pub fn definition(name: &str) -> Option<Value> {
    serde_json::from_str(ENTRIES.get(name)?).ok()
}

/// A column of a kind's table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Title.
    pub name: String,
    /// Type of the cells.
    pub kind: String,
    /// Format of the cells.
    pub format: String,
    /// Columns above 0 are shown in wide tables only.
    pub priority: i64,
}

/// The columns of a kind's table; its strategy makes the cells.
pub fn columns(group: &str, version: &str, plural: &str) -> Vec<Column> {
    let name = format!("{COLUMNS}{}/{plural}", api_version(group, version));
    let found: Vec<(String, String, String, i64)> = ENTRIES
        .get(name.as_str())
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default();
    found
        .into_iter()
        .map(|(name, kind, format, priority)| Column {
            name,
            kind,
            format,
            priority,
        })
        .collect()
}

/// The names of all definitions.
#[cfg(test)]
pub(crate) fn definitions() -> impl Iterator<Item = &'static str> {
    ENTRIES.keys().copied().filter(|name| !name.starts_with(COLUMNS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_are_one_json_object() {
        let whole: BTreeMap<String, Value> = serde_json::from_str(TEXT).unwrap();
        assert_eq!(whole.len(), ENTRIES.len());
        for (name, value) in whole {
            let line: Value = serde_json::from_str(ENTRIES[name.as_str()]).unwrap();
            assert_eq!(line, value, "{name}");
        }
    }
}
