//! Which rows of the requirement lists are named by which tests.
//!
//! A comment above a test names the rows that it proves. A test proves a row when it goes through a controller, a webhook or a command:
//! those are the tests in `tests` folders and in `.ci`. Tests of pure functions in `src` are counted apart. `xtask/rows.tsv` holds the
//! counts per list; a count may only go up.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;

use crate::sources::{entries, read};
use crate::tidy::Finding;

/// The committed counts.
const COUNTS: &str = "xtask/rows.tsv";

/// A test that names rows.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Test {
    /// `FILE::FUNCTION`, or `FILE:LINE` in a script.
    name: String,
    /// Whether it goes through a running part of the product, and not through a pure function alone.
    is_whole: bool,
    rows: BTreeSet<String>,
}

/// The counts of one list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    /// All rows.
    rows: usize,
    /// Rows that a whole test names.
    whole: usize,
    /// Rows that only tests of pure functions name.
    pure: usize,
}

/// The report.
pub(crate) struct Outcome {
    /// The counts of each list, and what is wrong.
    pub(crate) text: String,
    /// Whether nothing is wrong.
    pub(crate) good: bool,
}

/// Reports each list's counts, and with `verbose` each row with its tests. With `update`, writes the counts.
pub(crate) fn run(root: &Path, dir: &Path, verbose: bool, update: bool) -> Result<Outcome, String> {
    let mut text = String::new();
    let pattern = Pattern::new()?;
    let tests = tests(root, &pattern)?;
    let mut by_row: BTreeMap<&str, Vec<&Test>> = BTreeMap::new();
    for test in &tests {
        for row in &test.rows {
            by_row.entry(row).or_default().push(test);
        }
    }
    let mut findings = Vec::new();
    let mut known = BTreeSet::new();
    let mut counts = BTreeMap::new();
    let mut lists: Vec<PathBuf> = entries(dir)?;
    lists.retain(|file| file.extension().is_some_and(|end| end == "md"));
    lists.sort();
    for file in lists {
        let list = file
            .file_stem()
            .and_then(|stem| stem.to_str())
            .unwrap_or_default()
            .to_owned();
        let rows = pattern.listed(&read(&file)?);
        let mut count = Count {
            rows: rows.len(),
            ..Count::default()
        };
        for row in &rows {
            let named = by_row.get(row.as_str()).map(Vec::as_slice).unwrap_or_default();
            if named.iter().any(|test| test.is_whole) {
                count.whole += 1;
            } else if !named.is_empty() {
                count.pure += 1;
            }
            if verbose {
                let names: Vec<&str> = named.iter().map(|test| test.name.as_str()).collect();
                let _ = writeln!(text, "{row}\t{}", names.join(" "));
            }
        }
        let _ = writeln!(
            text,
            "{list}: {} rows, {} proven through the product, {} by pure functions alone, {} by no test",
            count.rows,
            count.whole,
            count.pure,
            count.rows - count.whole - count.pure
        );
        known.extend(rows);
        counts.insert(list, count);
    }
    for (row, tests) in by_row.iter().filter(|(row, _)| !known.contains(**row)) {
        findings.extend(tests.iter().map(|test| Finding {
            place: test.name.clone(),
            what: format!("names the row {row}, which no list has"),
        }));
    }
    let path = root.join(COUNTS);
    findings.extend(compare(
        &parse(&fs::read_to_string(&path).unwrap_or_default()),
        &counts,
        update,
    ));
    if update {
        fs::write(&path, written(&counts)).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    for finding in &findings {
        let _ = writeln!(text, "{}: {}", finding.place, finding.what);
    }
    Ok(Outcome {
        text,
        good: findings.is_empty(),
    })
}

/// What went down; with `update`, nothing is wrong.
fn compare(committed: &BTreeMap<String, Count>, counts: &BTreeMap<String, Count>, update: bool) -> Vec<Finding> {
    if update {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (list, before) in committed {
        let now = counts.get(list).copied().unwrap_or_default();
        if now.whole < before.whole || now.whole + now.pure < before.whole + before.pure {
            findings.push(Finding {
                place: format!("{COUNTS}: {list}"),
                what: format!(
                    "{} rows were proven through the product and {} by pure functions, now {} and {}: prove them again, or write the \
                     lower counts with --update and say why in the commit",
                    before.whole, before.pure, now.whole, now.pure
                ),
            });
        }
    }
    findings
}

fn parse(table: &str) -> BTreeMap<String, Count> {
    let lines = table.lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| {
            let mut fields = line.split('\t');
            let list = fields.next()?.to_owned();
            let mut number = || fields.next()?.parse().ok();
            let (rows, whole, pure) = (number()?, number()?, number()?);
            Some((list, Count { rows, whole, pure }))
        })
        .collect()
}

fn written(counts: &BTreeMap<String, Count>) -> String {
    let mut text =
        "# list\trows\tproven through the product\tby pure functions alone; see xtask/src/rows.rs\n".to_owned();
    for (list, count) in counts {
        let _ = writeln!(text, "{list}\t{}\t{}\t{}", count.rows, count.whole, count.pure);
    }
    text
}

/// The expressions that find rows.
struct Pattern {
    /// One row, or a range of them: `OP-025..OP-030`.
    named: Regex,
    /// The first cell of a table.
    listed: Regex,
}

impl Pattern {
    fn new() -> Result<Self, String> {
        let regex = |text: &str| Regex::new(text).map_err(|error| error.to_string());
        Ok(Self {
            named: regex(r"\b(OP|EX|AD|CL|TO)-(\d{3})(?:(?:\.\.=?| to | … )(?:OP|EX|AD|CL|TO)-(\d{3}))?")?,
            listed: regex(r"(?m)^\| ((?:OP|EX|AD|CL|TO)-\d{3}) \|")?,
        })
    }

    /// The rows that a list has.
    fn listed(&self, text: &str) -> BTreeSet<String> {
        self.listed
            .captures_iter(text)
            .map(|found| found[1].to_owned())
            .collect()
    }

    /// The rows that a comment names.
    fn named(&self, text: &str) -> BTreeSet<String> {
        let mut rows = BTreeSet::new();
        for found in self.named.captures_iter(text) {
            let number = |at: usize| found.get(at).and_then(|digits| digits.as_str().parse::<u16>().ok());
            let Some(first) = number(2) else { continue };
            for row in first..=number(3).unwrap_or(first) {
                rows.insert(format!("{}-{row:03}", &found[1]));
            }
        }
        rows
    }
}

/// All tests that name rows.
fn tests(root: &Path, pattern: &Pattern) -> Result<Vec<Test>, String> {
    let mut found = Vec::new();
    for folder in ["crates", "tests", "xtask"] {
        for file in rust_files(&root.join(folder))? {
            let place = file.strip_prefix(root).unwrap_or(&file).display().to_string();
            found.extend(in_rust(&place, &read(&file)?, pattern));
        }
    }
    for file in entries(&root.join(".ci"))?.into_iter().filter(|file| file.is_file()) {
        let place = file.strip_prefix(root).unwrap_or(&file).display().to_string();
        found.extend(in_script(&place, &read(&file)?, pattern));
    }
    Ok(found)
}

fn rust_files(dir: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    let mut open = vec![dir.to_owned()];
    while let Some(next) = open.pop() {
        for entry in entries(&next)? {
            if entry.is_dir() {
                open.push(entry);
            } else if entry.extension().is_some_and(|end| end == "rs") {
                found.push(entry);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Each comment of a script that names rows stands for the commands below it.
fn in_script(place: &str, text: &str, pattern: &Pattern) -> Vec<Test> {
    let comments = text
        .lines()
        .enumerate()
        .filter(|(_, line)| line.trim_start().starts_with('#'));
    comments
        .map(|(number, line)| Test {
            name: format!("{place}:{}", number + 1),
            is_whole: true,
            rows: pattern.named(line),
        })
        .filter(|test| !test.rows.is_empty())
        .collect()
}

/// The test functions of a file with the rows that the comments right above them name.
fn in_rust(place: &str, text: &str, pattern: &Pattern) -> Vec<Test> {
    // Unit tests in files of their own lie below `src`.
    let is_whole = !place.contains("/src/");
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    let (mut rows, mut is_test) = (BTreeSet::new(), false);
    for line in &lines {
        let code = line.trim_start();
        if code.starts_with("//") {
            rows.extend(pattern.named(code));
        } else if code.starts_with("#[") || code.ends_with(")]") {
            is_test |= code.contains("test");
        } else if let Some(name) = function(code) {
            // A macro makes two tests of a function: it follows the comment in place of the attribute.
            let is_test = std::mem::take(&mut is_test) || with_both(&lines, name);
            let rows = std::mem::take(&mut rows);
            if is_test && !rows.is_empty() {
                found.push(Test {
                    name: format!("{place}::{name}"),
                    is_whole,
                    rows,
                });
            }
        } else if !code.is_empty() {
            (rows, is_test) = (BTreeSet::new(), false);
        }
    }
    found
}

/// Whether a macro of the file makes tests of the function.
fn with_both(lines: &[&str], name: &str) -> bool {
    lines
        .iter()
        .any(|line| line.contains("with_both!") && line.contains(name))
        || lines
            .windows(2)
            .any(|pair| pair[0].contains("with_both!") && pair[1].contains(name))
}

/// The name of the function that a line declares.
fn function(code: &str) -> Option<&str> {
    let rest = code
        .strip_prefix("pub(crate) ")
        .or_else(|| code.strip_prefix("pub "))
        .unwrap_or(code);
    let rest = rest.strip_prefix("async ").unwrap_or(rest).strip_prefix("fn ")?;
    rest.split(['(', '<']).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(place: &str, text: &str) -> Vec<Test> {
        in_rust(place, text, &Pattern::new().unwrap())
    }

    fn rows(test: &Test) -> Vec<&str> {
        test.rows.iter().map(String::as_str).collect()
    }

    #[test]
    fn the_rows_above_a_test_are_its_own() {
        let text = "// OP-001, OP-003..OP-005: why.\n#[tokio::test]\nasync fn one() {\n}\n\n#[test]\nfn two() {\n}\n";
        let tests = found("crates/operator/tests/it/life.rs", text);
        assert_eq!(tests.len(), 1);
        assert_eq!(tests[0].name, "crates/operator/tests/it/life.rs::one");
        assert_eq!(rows(&tests[0]), ["OP-001", "OP-003", "OP-004", "OP-005"]);
        assert!(tests[0].is_whole);
    }

    #[test]
    fn a_comment_that_stands_elsewhere_proves_nothing() {
        assert_eq!(
            found("crates/a/src/a.rs", "//! OP-001\n\n// OP-002\nfn helper() {\n}\n"),
            []
        );
        assert_eq!(
            found("crates/a/src/a.rs", "// OP-002\nuse x;\n#[test]\nfn one() {\n}\n"),
            []
        );
    }

    #[test]
    fn a_function_that_a_macro_runs_on_both_servers_is_a_test() {
        let text = "with_both!(one, two);\n// TO-001\nasync fn one(server: Server) {\n}\n";
        assert_eq!(found("crates/a/tests/it/a.rs", text).len(), 1);
    }

    #[test]
    fn a_count_may_only_go_up() {
        let count = |whole, pure| BTreeMap::from([("topology".to_owned(), Count { rows: 9, whole, pure })]);
        assert_eq!(parse(&written(&count(3, 2))), count(3, 2));
        assert!(compare(&count(3, 2), &count(4, 1), false).is_empty());
        assert_eq!(compare(&count(3, 2), &count(3, 1), false).len(), 1);
        assert_eq!(compare(&count(3, 2), &count(2, 3), false).len(), 1);
        assert!(compare(&count(3, 2), &count(0, 0), true).is_empty());
    }

    #[test]
    fn a_list_is_read() {
        let text = "| CL-001 | MUST | x |\n| 3 | y | CL-002 |\n| CL-003 | GAP | CL-001 |\n";
        let rows = Pattern::new().unwrap().listed(text);
        assert_eq!(rows.into_iter().collect::<Vec<_>>(), ["CL-001", "CL-003"]);
    }
}
