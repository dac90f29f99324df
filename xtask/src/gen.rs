//! `cargo xtask gen`: writes what is derived from the sources, or checks that it is up to date.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use windlass_suite::{crds, kinds};

/// The folder that holds the CRDs, and nothing else.
const CRD_DIR: &str = "config/crd";

/// What generating found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Report {
    /// Files that are not as they should be (with `check`), or that were changed.
    pub(crate) stale: Vec<String>,
    /// How many files there are.
    pub(crate) files: usize,
}

/// Writes the derived files below `root`; with `check`, only compares.
pub(crate) fn run(root: &Path, check: bool) -> Result<Report, String> {
    let wanted = files()?;
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

fn files() -> Result<BTreeMap<String, String>, String> {
    kinds::KINDS
        .iter()
        .map(|entry| {
            Ok((
                format!("{CRD_DIR}/{}_{}.yaml", entry.group, entry.plural),
                crds::to_yaml(&(entry.crd)())?,
            ))
        })
        .collect()
}

fn leftovers(root: &Path, wanted: &BTreeMap<String, String>) -> Result<Vec<String>, String> {
    let dir = root.join(CRD_DIR);
    if !dir.is_dir() {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(&dir).map_err(|error| format!("{}: cannot be read: {error}", dir.display()))?;
    let names = entries.filter_map(|entry| Some(format!("{CRD_DIR}/{}", entry.ok()?.file_name().to_str()?)));
    Ok(names.filter(|name| !wanted.contains_key(name)).collect())
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
