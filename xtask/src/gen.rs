//! `cargo xtask gen`: writes the files that are derived from the code (CRDs, reference), or checks that they are up to date.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use windlass_manager::registry::{crds, kinds};

use crate::reference;

/// The folder that holds the CRDs, and nothing else.
const CRD_DIR: &str = "config/crd";

/// The result of a run.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Report {
    /// Stale files (with `check`), or changed files.
    pub(crate) stale: Vec<String>,
    /// Number of derived files.
    pub(crate) files: usize,
}

/// Writes the derived files below `root`; with `check`, only compares.
pub(crate) fn run(root: &Path, check: bool) -> Result<Report, String> {
    let wanted = files(root)?;
    let mut report = Report {
        files: wanted.len(),
        ..Report::default()
    };
    for (path, content) in &wanted {
        let file = root.join(path);
        if fs::read_to_string(&file).is_ok_and(|found| found == *content) {
            continue;
        }
        report.stale.push(path.clone());
        if !check {
            write(&file, content)?;
        }
    }
    for path in leftovers(root, &wanted)? {
        if !check {
            fs::remove_file(root.join(&path)).map_err(|error| format!("{path}: cannot be removed: {error}"))?;
        }
        report.stale.push(path);
    }
    Ok(report)
}

fn write(file: &Path, content: &str) -> Result<(), String> {
    let parent = file.parent().unwrap_or(file);
    fs::create_dir_all(parent)
        .and_then(|()| fs::write(file, content))
        .map_err(|error| format!("{}: cannot be written: {error}", file.display()))
}

fn files(root: &Path) -> Result<BTreeMap<String, String>, String> {
    let mut files = reference::pages(root)?;
    for entry in kinds::KINDS {
        let path = format!("{CRD_DIR}/{}_{}.yaml", entry.group, entry.plural);
        files.insert(path, crds::to_yaml(&(entry.crd)())?);
    }
    Ok(files)
}

/// Obsolete files in the folders of derived files.
fn leftovers(root: &Path, wanted: &BTreeMap<String, String>) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    for folder in [CRD_DIR, reference::DIR] {
        let dir = root.join(folder);
        if !dir.is_dir() {
            continue;
        }
        let entries = fs::read_dir(&dir).map_err(|error| format!("{}: cannot be read: {error}", dir.display()))?;
        let names = entries.filter_map(|entry| Some(format!("{folder}/{}", entry.ok()?.file_name().to_str()?)));
        found.extend(names.filter(|name| !wanted.contains_key(name)));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_files_are_up_to_date() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let report = run(&root, true).unwrap();
        assert_eq!(
            report.stale,
            Vec::<String>::new(),
            "run `cargo xtask gen` and commit what it changes"
        );
    }
}
