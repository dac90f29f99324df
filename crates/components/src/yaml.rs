//! YAML as Go's Kubernetes tools read it, and what people get where they expected YAML.

use serde_json::Value;
use serde_saphyr::{DuplicateKeyPolicy, Error};

/// Something other than YAML that servers answer with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotYaml {
    /// A web page: of a login, of a proxy, of an error.
    Html,
    /// XML: object stores tell their errors so.
    Xml,
    /// Bytes that no text has.
    Binary,
}

/// Reads one document: `0644` is octal, `yes` is true, the last of equal keys counts. (That a *key* `y` is `true` to Go is left
/// out: who writes it means the letter.)
pub(crate) fn read(text: &str) -> Result<Value, Error> {
    let options = serde_saphyr::options! {
        legacy_octal_numbers: true,
        strict_booleans: false,
        duplicate_keys: DuplicateKeyPolicy::LastWins,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options)
}

/// What a text is if it is obviously no YAML.
pub(crate) fn sniff(text: &str) -> Option<NotYaml> {
    if text.contains('\0') {
        return Some(NotYaml::Binary);
    }
    let start = text.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    let begins = |with: &str| {
        let head = start.get(..with.len());
        head.is_some_and(|head| head.eq_ignore_ascii_case(with))
    };
    if begins("<!doctype html") || begins("<html") || begins("<head") || begins("<body") || begins("<!--") {
        return Some(NotYaml::Html);
    }
    start.starts_with('<').then_some(NotYaml::Xml)
}

/// What is wrong and in which line of the text, from 1; without the place, which the caller tells,
/// and without what stands there, which may be the value of a variable.
pub(crate) fn problem(error: &Error) -> (usize, String) {
    let line = error
        .location()
        .map_or(1, |location| usize::try_from(location.line()).unwrap_or(1));
    if matches!(error.without_snippet(), Error::NonFiniteFloat { .. }) {
        return (
            line.max(1),
            "a number is too large, or none; quote it if it is meant as a text".to_owned(),
        );
    }
    let words = error.to_string();
    let first = words.lines().next().unwrap_or_default().trim_start_matches("error: ");
    let bare = match first.split_once(": ") {
        Some((place, rest)) if place.starts_with("line ") => rest,
        _ => first,
    };
    // `... at line 1, column 1`, in lines of the document.
    let bare = bare.rfind(" at line ").map_or(bare, |at| &bare[..at]);
    (line.max(1), bare.to_owned())
}
