//! Translates regular expressions from the dialect of Kubernetes (RE2) to that of the engine.

mod cost;

use std::fmt;

use regex::Regex;
use regex_syntax::ast::parse::Parser;
use regex_syntax::hir::translate::Translator;
use windlass_meta::budget::PATTERN_COST;

/// Why a pattern cannot be compiled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PatternError {
    /// It is no regular expression. The words are those of Kubernetes, as near as can be.
    Invalid(String),
    /// It costs more than the budget allows.
    TooLarge(String),
}

impl PatternError {
    /// The detail of a field error.
    pub(crate) fn detail(&self) -> String {
        match self {
            Self::Invalid(why) => format!("must be a valid regular expression, but isn't: {why}"),
            Self::TooLarge(why) => why.clone(),
        }
    }
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Invalid(why) | Self::TooLarge(why)) = self;
        f.write_str(why)
    }
}

/// Compiles a pattern within a budget, from which the cost is taken. A pattern that is refused costs only what it takes to find out.
pub(crate) fn compile_within(pattern: &str, left: &mut u64) -> Result<Regex, PatternError> {
    pay(cost::of_length(pattern), left)?;
    let text = translate(pattern);
    // An error of the parsers is reported by the engine, which has the same ones.
    if let Ok(parsed) = Parser::new().parse(&text) {
        pay(cost::of_classes(&parsed), left)?;
        if let Ok(parsed) = Translator::new().translate(&text, &parsed) {
            pay(cost::of_states(&parsed), left)?;
        }
    }
    compiled(pattern, &text)
}

/// Compiles a pattern that is trusted: only the limits of the engine hold.
pub(crate) fn compile_trusted(pattern: &str) -> Result<Regex, PatternError> {
    compiled(pattern, &translate(pattern))
}

fn compiled(pattern: &str, text: &str) -> Result<Regex, PatternError> {
    Regex::new(text).map_err(|error| match error {
        regex::Error::CompiledTooBig(limit) => PatternError::TooLarge(format!(
            "pattern is too large: it takes more than {limit} bytes; shorten it, or lower its repetitions"
        )),
        error => PatternError::Invalid(problem(pattern, &error)),
    })
}

/// Takes a cost from a budget.
fn pay(cost: u64, left: &mut u64) -> Result<(), PatternError> {
    if cost > PATTERN_COST {
        return Err(PatternError::TooLarge(format!(
            "pattern is too large: it costs {cost} to compile, and at most {PATTERN_COST} is allowed; \
             shorten it, or lower its repetitions"
        )));
    }
    let Some(rest) = left.checked_sub(cost) else {
        return Err(PatternError::TooLarge(format!(
            "pattern is too large: it costs {cost} to compile, and {left} is left of what all patterns together may cost; \
             shorten the patterns, or lower their repetitions"
        )));
    };
    *left = rest;
    Ok(())
}

/// In the engine, classes like `\d` match Unicode, and brackets nest; in RE2 they match ASCII, and do not nest. Groups capture nothing:
/// the engine would keep their places for each of its states.
fn translate(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() + 8);
    let mut rest = pattern;
    // Known once, as a pattern may have many places where such a class could begin.
    let last_end = pattern.rfind(":]");
    while let Some(c) = rest.chars().next() {
        let used = match c {
            '\\' => escape(rest, false, &mut out),
            '[' => {
                let begin = pattern.len() - rest.len();
                class(rest, last_end.and_then(|end| end.checked_sub(begin)), &mut out)
            }
            '(' if !rest.starts_with("(?") => {
                out.push_str("(?:");
                1
            }
            _ => {
                out.push(c);
                c.len_utf8()
            }
        };
        rest = &rest[used..];
    }
    out
}

/// Translates an escape; returns its length.
fn escape(text: &str, in_class: bool, out: &mut String) -> usize {
    let Some(next) = text[1..].chars().next() else {
        out.push('\\');
        return 1;
    };
    let replaced = match (next, in_class) {
        ('d', true) => "0-9",
        ('w', true) => "0-9A-Za-z_",
        ('s', true) => r"\t\n\x0c\r ",
        ('d', false) => "[0-9]",
        ('w', false) => "[0-9A-Za-z_]",
        ('s', false) => r"[\t\n\x0c\r ]",
        ('D', _) => "[^0-9]",
        ('W', _) => "[^0-9A-Za-z_]",
        ('S', _) => r"[^\t\n\x0c\r ]",
        ('b', false) => r"(?-u:\b)",
        ('C', false) => "(?s:.)",
        ('Q', false) => {
            let quoted = &text[2..];
            let (literal, end) = quoted
                .find("\\E")
                .map_or((quoted, text.len()), |at| (&quoted[..at], at + 4));
            out.push_str(&regex::escape(literal));
            return end;
        }
        _ => {
            out.push('\\');
            out.push(next);
            return 1 + next.len_utf8();
        }
    };
    out.push_str(replaced);
    1 + next.len_utf8()
}

/// Translates a bracket class; returns its length. `last_end` is where the last `:]` of the text is.
fn class(text: &str, last_end: Option<usize>, out: &mut String) -> usize {
    out.push('[');
    let mut at = 1;
    if text[at..].starts_with('^') {
        out.push('^');
        at += 1;
    }
    let mut first = true;
    while let Some(c) = text[at..].chars().next() {
        match c {
            ']' if !first => {
                out.push(']');
                return at + 1;
            }
            '[' if text[at..].starts_with("[:") && last_end.is_some_and(|end| end >= at) => {
                let end = at + text[at..].find(":]").unwrap_or(0) + 2;
                out.push_str(&text[at..end]);
                at = end;
            }
            '\\' => at += escape(&text[at..], true, out),
            // Characters with a meaning within brackets only in the engine.
            '[' | ']' | '&' | '~' => {
                out.push('\\');
                out.push(c);
                at += 1;
            }
            _ => {
                out.push(c);
                at += c.len_utf8();
            }
        }
        first = false;
    }
    at
}

fn problem(pattern: &str, error: &regex::Error) -> String {
    let text = error.to_string();
    let words = text
        .lines()
        .last()
        .unwrap_or_default()
        .trim_start_matches("error: ")
        .to_owned();
    let with = |what: &str, part: &str| format!("error parsing regexp: {what}: `{part}`");
    if words.contains("unclosed group") {
        return with("missing closing )", pattern);
    }
    if words.contains("unopened group") {
        return with("unexpected )", pattern);
    }
    if words.contains("unclosed character class") {
        let from = pattern.rfind('[').unwrap_or(0);
        return with("missing closing ]", &pattern[from..]);
    }
    if words.contains("repetition operator missing expression") {
        let at = pattern.find(['*', '+', '?', '{']).unwrap_or(0);
        return with("missing argument to repetition operator", &pattern[at..=at]);
    }
    if words.contains("look-around") {
        let at = pattern.find("(?").unwrap_or(0);
        let end = (at + 3).min(pattern.len());
        return with("invalid or unsupported Perl syntax", &pattern[at..end]);
    }
    format!("error parsing regexp: {words}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, fits: &[&str], not: &[&str]) {
        let regex = compile_trusted(pattern).unwrap();
        for text in fits {
            assert!(regex.is_match(text), "{pattern} {text}");
        }
        for text in not {
            assert!(!regex.is_match(text), "{pattern} {text}");
        }
    }

    #[test]
    fn classes_are_about_ascii() {
        check(r"^\d+$", &["1"], &["١", "x"]);
        check(r"^[\w.-]+$", &["a_B.9-"], &["é", " "]);
        check(r"^\W$", &["é", " "], &["a"]);
        check(r"^[^\s]+$", &["a"], &["a b"]);
    }

    #[test]
    fn brackets_do_not_nest() {
        check(r"^[a[b]+$", &["a[b"], &["]"]);
        check(r"^[]a]+$", &["]a"], &["b"]);
        check(r"^[a&&b]+$", &["a&b"], &["c"]);
        check(r"^[[:alpha:]]+$", &["a"], &["1"]);
        check(r"^\Qa.b\E$", &["a.b"], &["axb"]);
    }

    #[test]
    fn what_cannot_be_a_pattern_is_named() {
        let check = |pattern: &str, want: &str| {
            assert_eq!(
                compile_trusted(pattern).unwrap_err(),
                PatternError::Invalid(want.to_owned())
            );
        };
        check("(a", "error parsing regexp: missing closing ): `(a`");
        check("a)", "error parsing regexp: unexpected ): `a)`");
        check("a[b", "error parsing regexp: missing closing ]: `[b`");
        check(
            "*",
            "error parsing regexp: missing argument to repetition operator: `*`",
        );
        check(
            "(?!a)",
            "error parsing regexp: invalid or unsupported Perl syntax: `(?!`",
        );
    }
}
