//! The compiled patterns of an object, and the budget for them.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use regex::Regex;
use windlass_meta::budget::PATTERNS_COST;

use crate::pattern::{PatternError, compile_trusted, compile_within};

/// The patterns of all schemas and rules of an object. Each is compiled once, and all of them share one budget.
#[derive(Debug)]
pub struct Patterns {
    known: RefCell<HashMap<String, Result<Regex, PatternError>>>,
    /// What is left of the budget; `None` if there is no limit.
    left: Option<Cell<u64>>,
}

impl Default for Patterns {
    fn default() -> Self {
        Self::within(PATTERNS_COST)
    }
}

impl Patterns {
    /// Patterns with another budget than [`PATTERNS_COST`].
    pub fn within(budget: u64) -> Self {
        Self {
            known: RefCell::default(),
            left: Some(Cell::new(budget)),
        }
    }

    /// Patterns without a budget: of built-in kinds, and of objects that are stored and must stay readable.
    pub fn trusted() -> Self {
        Self {
            known: RefCell::default(),
            left: None,
        }
    }

    /// Compiles a pattern, or finds it among those that are compiled.
    pub fn compile(&self, pattern: &str) -> Result<Regex, PatternError> {
        if let Some(known) = self.known.borrow().get(pattern) {
            return known.clone();
        }
        let compiled = match &self.left {
            None => compile_trusted(pattern),
            Some(left) => {
                let mut rest = left.get();
                let compiled = compile_within(pattern, &mut rest);
                left.set(rest);
                compiled
            }
        };
        self.known.borrow_mut().insert(pattern.to_owned(), compiled.clone());
        compiled
    }

    /// The budget that is left; `None` if there is no limit.
    pub fn left(&self) -> Option<u64> {
        self.left.as_ref().map(Cell::get)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(pattern: &str) -> Result<u64, PatternError> {
        let patterns = Patterns::default();
        patterns.compile(pattern)?;
        Ok(PATTERNS_COST - patterns.left().unwrap())
    }

    #[test]
    fn patterns_that_are_usual_cost_little() {
        let usual = [
            r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
            r"^(([0-9a-fA-F]{1,4}:){7,7}[0-9a-fA-F]{1,4}|([0-9a-fA-F]{1,4}:){1,7}:)$",
            r"^[0-9a-zA-Z_.-]{1,253}$",
            r"^.{1,253}$",
            r"(?i)^[a-z]+$",
        ];
        for pattern in usual {
            let cost = cost(pattern).unwrap();
            assert!(cost < 10_000, "{pattern} {cost}");
        }
        assert!(cost(r"^[\p{L}\p{N} ]{1,20}$").is_ok());
    }

    #[test]
    fn a_pattern_that_is_expensive_is_refused_before_it_is_compiled() {
        let long = "a".repeat(300_000);
        let folded = r"(?i)[\x{100}-\x{10ffff}]".repeat(6);
        let classes = format!("(?i)[{}]", r"\pL\PL".repeat(900));
        let nested = "((a{10}){10}){10}".repeat(300);
        for pattern in [r"(\pL{100}){10}N", &nested, &long, &folded, &classes] {
            let error = cost(pattern).unwrap_err();
            assert!(matches!(&error, PatternError::TooLarge(_)), "{pattern} {error}");
        }
    }

    #[test]
    fn patterns_share_a_budget_and_repetitions_of_one_are_free() {
        let patterns = Patterns::default();
        let made = (0..100).filter(|n| patterns.compile(&format!(r"^\pL{{20}}{n}$")).is_ok());
        let made = made.count();
        assert!((3..10).contains(&made), "{made}");
        let left = patterns.left();
        assert!(patterns.compile(r"^\pL{20}0$").is_ok());
        assert!(patterns.compile(r"^\pL{20}99$").is_err());
        assert_eq!(patterns.left(), left);
        assert!(Patterns::trusted().compile(r"^\pL{100}$").is_ok());
    }

    /// The engine would keep their places in memory for each of its states.
    #[test]
    fn groups_capture_nothing() {
        let regex = Patterns::default().compile(r"^(a|(b)\(|[(])+$").unwrap();
        assert_eq!(regex.captures_len(), 1);
        assert!(regex.is_match("ab((a"));
        assert!(!regex.is_match("b"));
    }
}
