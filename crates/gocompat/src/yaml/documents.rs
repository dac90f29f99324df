//! The documents of a text, so that each is parsed by itself and an error names the line of the text.

use serde_saphyr::Error;

/// A document and its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Document<'a> {
    /// Its text, from its first line with content.
    pub text: &'a str,
    /// Its number, from 1.
    pub number: usize,
    /// The line of the whole text in which it begins, from 1.
    pub line: usize,
    /// Whether no document with content follows.
    pub is_last: bool,
}

/// Why a text is not YAML.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The line, from 1. The caller adds the position of the document.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
    /// The problem in words, without the text, which may have secrets.
    pub text: String,
}

/// The documents of a text that have content.
pub fn documents(text: &str) -> Vec<Document<'_>> {
    let mut found: Vec<Document<'_>> = Vec::new();
    let mut start = 0;
    let mut start_line = 1;
    let mut at = 0;
    let mut push = |from: usize, to: usize, line: usize| {
        let text = &text[from..to];
        if let Some(blank) = text.split('\n').position(|line| !is_nothing(line)) {
            let number = found.len() + 1;
            let skipped: usize = text.split_inclusive('\n').take(blank).map(str::len).sum();
            found.push(Document {
                text: &text[skipped..],
                number,
                line: line + blank,
                is_last: false,
            });
        }
    };
    for (line, content) in (1..).zip(text.split_inclusive('\n')) {
        if is_separator(content) {
            push(start, at, start_line);
            start = at + content.len();
            start_line = line + 1;
        }
        at += content.len();
    }
    push(start, text.len(), start_line);
    if let Some(last) = found.last_mut() {
        last.is_last = true;
    }
    found
}

/// `---`, alone or before a comment.
fn is_separator(line: &str) -> bool {
    line.strip_prefix("---").is_some_and(|rest| {
        let rest = rest.trim();
        rest.is_empty() || rest.starts_with('#')
    })
}

/// A line without content: blank, a comment, a directive such as `%YAML 1.2`, the end of a document.
fn is_nothing(line: &str) -> bool {
    let content = line.trim();
    content.is_empty() || content.starts_with('#') || line.starts_with('%') || line.trim_end() == "..."
}

/// The problem that an error of the parser is about. The text itself is left out, because it may contain a secret.
pub fn problem(error: &Error) -> Problem {
    let number = |number: u64| usize::try_from(number).unwrap_or(1).max(1);
    let (line, column) = error
        .location()
        .map_or((1, 1), |at| (number(at.line()), number(at.column())));
    if matches!(error.without_snippet(), Error::NonFiniteFloat { .. }) {
        let text = "a number is too large, or none; quote it if it is meant as a text".to_owned();
        return Problem { line, column, text };
    }
    let words = error.to_string();
    let first = words.lines().next().unwrap_or_default().trim_start_matches("error: ");
    let bare = match first.split_once(": ") {
        Some((place, rest)) if place.starts_with("line ") => rest,
        _ => first,
    };
    // `... at line 1, column 1`, in lines of the document.
    let bare = bare.rfind(" at line ").map_or(bare, |at| &bare[..at]);
    let text = bare.to_owned();
    Problem { line, column, text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::read_plain;

    #[test]
    fn documents_begin_at_their_first_line_with_content() {
        let check = |text: &str, expect: &[(&str, usize)]| {
            let found: Vec<(&str, usize)> = documents(text).into_iter().map(|d| (d.text, d.line)).collect();
            assert_eq!(found, expect, "{text:?}");
            assert!(documents(text).iter().all(|d| d.is_last == (d.number == expect.len())));
        };
        check("", &[]);
        check("# nothing\n---\n...\n", &[]);
        check("a: 1\n---\n\n# b\nb: 2\n", &[("a: 1\n", 1), ("b: 2\n", 5)]);
        check("%YAML 1.2\n--- # first\na: |\n  --- x\n", &[("a: |\n  --- x\n", 3)]);
    }

    #[test]
    fn problems_have_a_place_and_no_text() {
        let error = read_plain("a: 1\nb: [\nsecret: x\n").unwrap_err();
        let problem = problem(&error);
        assert!(problem.line > 1, "{problem:?}");
        assert!(
            !problem.text.contains("secret") && !problem.text.contains('\n'),
            "{problem:?}"
        );
    }
}
