//! Words that prose and names avoid: the list is `xtask/words.txt`. Places that still have some are counted in
//! `xtask/words-left.tsv`; a count may only go down.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;

use crate::sources::{entries, read};
use crate::tidy::Finding;

/// The list of words.
const LIST: &str = "xtask/words.txt";
/// The counts that are left.
const LEFT: &str = "xtask/words-left.tsv";
/// Files and folders that are checked beside the crates.
const PAGES: &[&str] = &[
    "README.md",
    "CHANGELOG.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "docs",
    "examples",
    "config",
    ".ci",
    "fuzz/README.md",
    "fuzz/targets",
];
/// Endings of files that are checked; the scripts of `.ci` have none.
const ENDINGS: &[&str] = &["rs", "md", "yaml", "tsv", "bash", ""];

/// The words, with one expression that finds them all.
struct Words {
    instead: BTreeMap<String, String>,
    pattern: Regex,
}

impl Words {
    fn new(list: &str) -> Result<Self, String> {
        let lines = list.lines().filter(|line| !line.starts_with('#'));
        let instead: BTreeMap<String, String> = lines
            .filter_map(|line| line.split_once('\t'))
            .map(|(word, instead)| (word.to_owned(), instead.to_owned()))
            .collect();
        let words: Vec<&str> = instead.keys().map(String::as_str).collect();
        let pattern = Regex::new(&format!(r"(?i)\b(?:{})\b", words.join("|"))).map_err(|error| error.to_string())?;
        Ok(Self { instead, pattern })
    }

    /// The words of a text, with their lines.
    fn find(&self, text: &str) -> Vec<(usize, String)> {
        let mut found = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.replace('_', " ");
            found.extend(
                self.pattern
                    .find_iter(&line)
                    .map(|word| (number + 1, word.as_str().to_lowercase())),
            );
        }
        found
    }
}

/// Compares the counts with those that are left; with `update`, writes lower ones.
pub(crate) fn check(root: &Path, update: bool) -> Result<Vec<Finding>, String> {
    let words = Words::new(&read(&root.join(LIST))?)?;
    let left = parse(&fs::read_to_string(root.join(LEFT)).unwrap_or_default());
    let mut findings = Vec::new();
    let mut counts = BTreeMap::new();
    for (group, files) in groups(root)? {
        let allowed = left.get(&group).copied().unwrap_or(0);
        let mut found = Vec::new();
        for file in files {
            let place = file.strip_prefix(root).unwrap_or(&file).display().to_string();
            let hits = words.find(&read(&file)?);
            found.extend(hits.into_iter().map(|(line, word)| (format!("{place}:{line}"), word)));
        }
        let count = found.len();
        counts.insert(group.clone(), count.min(allowed));
        if count > allowed {
            findings.extend(found.into_iter().map(|(place, word)| Finding {
                place,
                what: format!(
                    "{word:?} ({count} such words in {group}, {allowed} allowed): say {}",
                    words.instead.get(&word).map_or("something else", String::as_str)
                ),
            }));
        } else if count < allowed && !update {
            findings.push(Finding {
                place: LEFT.to_owned(),
                what: format!("{group} has {count} words, not {allowed}: run `cargo xtask tidy --update`"),
            });
        }
    }
    let gone = left.keys().filter(|group| !counts.contains_key(*group));
    findings.extend(gone.map(|group| Finding {
        place: LEFT.to_owned(),
        what: format!("{group} does not exist: rename its line, or remove it"),
    }));
    if update {
        write(&root.join(LEFT), &counts)?;
    }
    Ok(findings)
}

/// Counts by group: group and number, separated by a tab.
fn parse(table: &str) -> BTreeMap<String, usize> {
    table
        .lines()
        .filter_map(|line| line.split_once('\t'))
        .filter_map(|(group, count)| Some((group.to_owned(), count.parse().ok()?)))
        .collect()
}

fn write(path: &Path, counts: &BTreeMap<String, usize>) -> Result<(), String> {
    let mut text = String::new();
    for (group, count) in counts.iter().filter(|(_, count)| **count > 0) {
        let _ = writeln!(text, "{group}\t{count}");
    }
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// The files by group: crates, other packages, pages.
fn groups(root: &Path) -> Result<BTreeMap<String, Vec<PathBuf>>, String> {
    let mut groups: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for parent in ["crates", "tests", "tests/support"] {
        let dir = root.join(parent);
        if !dir.is_dir() {
            continue;
        }
        for package in entries(&dir)? {
            if package.join("Cargo.toml").is_file() {
                let name = package.strip_prefix(root).unwrap_or(&package).display().to_string();
                groups.insert(name, files(&package, ENDINGS)?);
            }
        }
    }
    let xtask = files(&root.join("xtask"), ENDINGS)?;
    let is_own = |file: &PathBuf| !file.ends_with(LEFT);
    groups.insert("xtask".to_owned(), xtask.into_iter().filter(is_own).collect());
    for page in PAGES {
        let path = root.join(page);
        let pages = if path.is_dir() {
            files(&path, ENDINGS)?
        } else {
            vec![path]
        };
        groups.insert((*page).to_owned(), pages);
    }
    Ok(groups)
}

fn files(dir: &Path, endings: &[&str]) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    for entry in entries(dir)? {
        if entry.is_dir() {
            if !entry.ends_with("target") {
                found.extend(files(&entry, endings)?);
            }
        } else if endings.contains(&entry.extension().and_then(|ending| ending.to_str()).unwrap_or_default()) {
            found.push(entry);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_in_comments_and_names() {
        let words = Words::new("# comment\nanyone\tthe user\nis seen\tis observed\n").unwrap();
        let text = "//! Header.\n/// Anyone may read.\nfn anyone_is_seen() {}\nfn anyones() {}\n";
        let found: Vec<(usize, String)> = words.find(text);
        let expect = [(2, "anyone"), (3, "anyone"), (3, "is seen")];
        assert_eq!(found, expect.map(|(line, word)| (line, word.to_owned())));
    }

    #[test]
    fn counts_are_read() {
        assert_eq!(
            parse("crates/a\t3\nbroken\n"),
            BTreeMap::from([("crates/a".to_owned(), 3)])
        );
    }
}
