//! What a real server publishes about the built-in kinds: their schemas and the columns of their tables.
//!
//! One compressed file, written by `cargo xtask gen --server`: a line for each entry, its name and its JSON. It is unpacked on first
//! use, once per process, and parsed entry by entry, when one is asked for.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::sync::LazyLock;

use serde_json::Value;

use crate::objects::resource::{Column, api_version};

const PACKED: &[u8] = include_bytes!("kinds.z");
/// How the names of entries begin that are no definitions.
const COLUMNS: &str = "columns/";

static TEXT: LazyLock<String> = LazyLock::new(|| {
    let mut text = String::new();
    if let Err(error) = flate2::read::ZlibDecoder::new(PACKED).read_to_string(&mut text) {
        tracing::error!(%error, "the schemas of the built-in kinds cannot be unpacked");
    }
    text
});

static ENTRIES: LazyLock<BTreeMap<&'static str, &'static str>> =
    LazyLock::new(|| TEXT.lines().filter_map(|line| line.split_once(' ')).collect());

/// A definition, by its full name.
pub(crate) fn definition(name: &str) -> Option<Value> {
    serde_json::from_str(ENTRIES.get(name)?).ok()
}

/// The columns of a kind's table; what is in them is said by `cells`.
pub(crate) fn columns(group: &str, version: &str, plural: &str) -> Vec<Column> {
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
            description: String::new(),
            priority,
            path: None,
        })
        .collect()
}

/// The names of all definitions.
#[cfg(test)]
pub(crate) fn definitions() -> impl Iterator<Item = &'static str> {
    ENTRIES.keys().copied().filter(|name| !name.starts_with(COLUMNS))
}
