//! Compiles the regular expressions of schemas, which are those of Go, within a budget.

mod cost;

use std::fmt;

use regex::Regex;
use regex_syntax::ast::parse::Parser;
use regex_syntax::hir::translate::Translator;
use windlass_gocompat::regexp::{Groups, translate};
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
    let text = translated(pattern)?;
    // An error of the parsers is reported by the engine, which has the same ones.
    if let Ok(parsed) = Parser::new().parse(&text) {
        pay(cost::of_classes(&parsed), left)?;
        if let Ok(parsed) = Translator::new().translate(&text, &parsed) {
            pay(cost::of_states(&parsed), left)?;
        }
    }
    compiled(&text)
}

/// Compiles a pattern that is trusted: only the limits of the engine hold.
pub(crate) fn compile_trusted(pattern: &str) -> Result<Regex, PatternError> {
    compiled(&translated(pattern)?)
}

fn translated(pattern: &str) -> Result<String, PatternError> {
    translate(pattern, Groups::Plain).map_err(|error| PatternError::Invalid(error.to_string()))
}

fn compiled(text: &str) -> Result<Regex, PatternError> {
    Regex::new(text).map_err(|error| match error {
        regex::Error::CompiledTooBig(limit) => PatternError::TooLarge(format!(
            "pattern is too large: it takes more than {limit} bytes; shorten it, or lower its repetitions"
        )),
        error => PatternError::Invalid(problem(&error)),
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

/// The last line of what the engine says: the lines before quote the pattern as it was translated.
fn problem(error: &regex::Error) -> String {
    let text = error.to_string();
    let words = text.lines().last().unwrap_or_default();
    format!("error parsing regexp: {}", words.trim_start_matches("error: "))
}

#[cfg(test)]
mod tests {
    use super::*;

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
