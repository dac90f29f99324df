//! Parses the page: blocks, tables, links.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// The path of a file in the repository.
pub(crate) fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// Its text.
pub(crate) fn text(path: &str) -> String {
    std::fs::read_to_string(file(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The page.
pub(crate) fn page() -> String {
    text("docs/externally-managed-infrastructure.md")
}

/// All blocks of code in a language.
pub(crate) fn blocks(page: &str, language: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut inside: Option<bool> = None;
    for line in page.lines() {
        match (line.strip_prefix("```"), inside) {
            (Some(opening), None) => {
                inside = Some(opening == language);
                found.extend((opening == language).then(String::new));
            }
            (Some(_), Some(_)) => inside = None,
            (None, Some(true)) => found.last_mut().unwrap().extend([line, "\n"]),
            (None, _) => {}
        }
    }
    assert_eq!(inside, None, "a block does not end");
    found
}

/// The rows of the table whose header begins with this text, cell by cell, without code quotes.
pub(crate) fn table(page: &str, header: &str) -> Vec<Vec<String>> {
    let mut lines = page.lines().skip_while(|line| !line.starts_with(header));
    assert!(lines.next().is_some(), "no table begins with {header}");
    let rows = lines.skip(1).take_while(|line| line.starts_with('|'));
    rows.map(|row| {
        let cells = row.trim_matches('|').split('|');
        cells.map(|cell| cell.replace('`', "").trim().to_owned()).collect()
    })
    .collect()
}

/// The text below a heading, up to the next heading of the same or a higher level.
pub(crate) fn section<'a>(page: &'a str, heading: &str) -> &'a str {
    let rank = heading.chars().take_while(|c| *c == '#').count();
    let begin = page
        .find(&format!("\n{heading}\n"))
        .unwrap_or_else(|| panic!("no heading {heading}"));
    let below = &page[begin + heading.len() + 2..];
    let end = (1..=rank)
        .filter_map(|rank| below.find(&format!("\n{} ", "#".repeat(rank))))
        .min();
    end.map_or(below, |end| &below[..end])
}

/// The targets of links within the repository.
pub(crate) fn links(text: &str) -> Vec<String> {
    let targets = text
        .split("](")
        .skip(1)
        .filter_map(|rest| Some(rest.split_once(')')?.0));
    let local = targets.filter(|target| !target.contains("://") && !target.starts_with('#'));
    local
        .map(|target| target.split('#').next().unwrap_or_default().to_owned())
        .collect()
}

/// The JSON documents of patch commands.
pub(crate) fn patches(commands: &str) -> Vec<Value> {
    let quoted = commands
        .split("-p '")
        .skip(1)
        .map(|rest| rest.split('\'').next().unwrap_or_default());
    quoted
        .map(|json| serde_json::from_str(json).unwrap_or_else(|error| panic!("{json}: {error}")))
        .collect()
}

/// The documents of a YAML file.
pub(crate) fn documents(text: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(text).unwrap_or_else(|error| panic!("{error} in {text}"))
}
