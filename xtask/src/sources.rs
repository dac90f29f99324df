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
                let body = without_tests(&text);
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

/// A source with empty lines in place of what only tests have: items with `#[cfg(test)]`, as rustfmt lays them out.
pub(crate) fn without_tests(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.trim_start() != "#[cfg(test)]" {
            kept.push_str(line);
            kept.push('\n');
            continue;
        }
        kept.push('\n');
        let indent = &line[..line.len() - line.trim_start().len()];
        let is_end = |line: &str| {
            line.strip_prefix(indent).is_some_and(|rest| {
                let is_closed = rest == "}" || rest.starts_with("};");
                is_closed || !rest.starts_with([' ', '#']) && rest.ends_with([';', '}', ','])
            })
        };
        for line in lines.by_ref() {
            kept.push('\n');
            if is_end(line) {
                break;
            }
        }
    }
    kept
}

/// The files of modules that a source declares for tests only, as paths below the folder of the workspace.
pub(crate) fn test_files(place: &str, text: &str) -> Vec<String> {
    let (dir, file) = place.rsplit_once('/').unwrap_or(("", place));
    let inner = match file.strip_suffix(".rs") {
        Some("lib" | "main" | "mod") | None => dir.to_owned(),
        Some(stem) => format!("{dir}/{stem}"),
    };
    let mut found = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line != "#[cfg(test)]" {
            continue;
        }
        let mut at = None;
        for line in lines.by_ref() {
            if let Some(path) = line
                .strip_prefix("#[path = \"")
                .and_then(|rest| rest.strip_suffix("\"]"))
            {
                at = Some(format!("{dir}/{path}"));
            } else if !line.starts_with('#') {
                let name = line.strip_suffix(';').and_then(|line| line.rsplit_once("mod "));
                found.extend(name.map(|(_, name)| at.unwrap_or_else(|| format!("{inner}/{name}.rs"))));
                break;
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_test_modules_are_found() {
        let text = "#[cfg(test)]\n#[path = \"plan/tests.rs\"]\nmod tests;\n\n#[cfg(test)]\npub(crate) mod testing;\n#[cfg(test)]\nuse a;\nmod b;\n";
        let found = ["crates/a/src/plan/tests.rs", "crates/a/src/plan/testing.rs"];
        assert_eq!(test_files("crates/a/src/plan.rs", text), found);
        assert_eq!(
            test_files("crates/a/src/lib.rs", "#[cfg(test)]\nmod x;"),
            ["crates/a/src/x.rs"]
        );
    }

    #[test]
    fn only_what_tests_have_is_left_out() {
        let text = "use a;\n#[cfg(test)]\n#[path = \"x.rs\"]\nmod x;\nfn b() {\n    c();\n}\n\n#[cfg(test)]\nmod tests {\n    use super::*;\n\n    fn d() {\n    }\n}\n\nfn e() {}\n";
        let kept = without_tests(text);
        assert_eq!(kept.lines().count(), text.lines().count());
        let left: Vec<&str> = kept.lines().filter(|line| !line.is_empty()).collect();
        assert_eq!(left, ["use a;", "fn b() {", "    c();", "}", "fn e() {}"]);
        let field = "struct S {\n    #[cfg(test)]\n    a: u8,\n    b: u8,\n}\n";
        assert_eq!(without_tests(field), "struct S {\n\n\n    b: u8,\n}\n");
    }
}
