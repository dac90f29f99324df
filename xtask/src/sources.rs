//! The sources of the workspace, read as text.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The text of a file, or an error that names it.
pub(crate) fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// The Rust files of all crates by path below `root`, without tests: neither test files nor the test modules at their ends.
pub(crate) fn product(root: &Path) -> Result<BTreeMap<String, String>, String> {
    let mut found = BTreeMap::new();
    let mut open: Vec<PathBuf> = entries(&root.join("crates"))?
        .into_iter()
        .map(|dir| dir.join("src"))
        .filter(|dir| dir.is_dir())
        .collect();
    while let Some(dir) = open.pop() {
        for entry in entries(&dir)? {
            let name = entry.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if entry.is_dir() {
                if !["tests", "testdata", "testing"].contains(&name) {
                    open.push(entry);
                }
            } else if entry.extension().is_some_and(|ending| ending == "rs")
                && !["tests.rs", "testing.rs"].contains(&name)
            {
                let text = read(&entry)?;
                let body = text.split("\n#[cfg(test)]\nmod ").next().unwrap_or(&text).to_owned();
                let place = entry.strip_prefix(root).unwrap_or(&entry).display().to_string();
                found.insert(place, body);
            }
        }
    }
    Ok(found)
}

/// The entries of a folder, sorted.
pub(crate) fn entries(dir: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found = fs::read_dir(dir)
        .and_then(|all| all.map(|entry| entry.map(|e| e.path())).collect::<Result<Vec<_>, _>>())
        .map_err(|error| format!("{}: {error}", dir.display()))?;
    found.sort();
    Ok(found)
}
