//! What strict decoding complains about, within a budget: the sender of an object chooses how often a field is wrong and how long its path
//! is, and both together must not decide what the answer costs.

use std::fmt::{self, Display, Write as _};

use windlass_meta::budget::{PATH_BYTES, STRICT_ERRORS, STRICT_ERRORS_FOUND};

/// Complaints in the order in which they were found, none twice, at most 100 of at most 1 KiB each. What comes after is left out.
#[derive(Debug, Default)]
pub struct StrictErrors {
    kept: Vec<String>,
    looked_at: usize,
}

impl StrictErrors {
    /// Adds a complaint. Formats no more of it than is kept.
    pub fn push(&mut self, complaint: &dyn Display) {
        if self.is_full() {
            return;
        }
        self.looked_at += 1;
        let mut cut = Cut(String::new());
        if write!(cut, "{complaint}").is_err() {
            cut.0.push_str("...");
        }
        if !self.kept.contains(&cut.0) {
            self.kept.push(cut.0);
        }
    }

    /// Whether further complaints are left out.
    pub fn is_full(&self) -> bool {
        self.kept.len() >= STRICT_ERRORS || self.looked_at >= STRICT_ERRORS_FOUND
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// The complaints.
    pub fn into_vec(self) -> Vec<String> {
        self.kept
    }
}

/// A text that takes no more than [`PATH_BYTES`] bytes.
struct Cut(String);

impl fmt::Write for Cut {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let left = PATH_BYTES - self.0.len();
        if text.len() <= left {
            self.0.push_str(text);
            return Ok(());
        }
        let end = (0..=left).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        self.0.push_str(&text[..end]);
        Err(fmt::Error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_are_limited_in_number_and_length_and_said_once() {
        let mut errors = StrictErrors::default();
        errors.push(&"a");
        errors.push(&"a");
        errors.push(&"\u{e9}".repeat(PATH_BYTES));
        for at in 0..STRICT_ERRORS {
            errors.push(&at);
        }
        assert!(errors.is_full());
        let all = errors.into_vec();
        assert_eq!(
            (all.len(), all[0].as_str(), all[1].len()),
            (STRICT_ERRORS, "a", PATH_BYTES + 3)
        );
        assert_eq!(all[STRICT_ERRORS - 1], (STRICT_ERRORS - 3).to_string());
        let mut errors = StrictErrors::default();
        errors.push(&"x".repeat(PATH_BYTES));
        assert_eq!(errors.into_vec()[0].len(), PATH_BYTES);
    }

    #[test]
    fn complaints_that_are_the_same_are_looked_at_up_to_a_limit() {
        for (count, kept) in [(STRICT_ERRORS_FOUND - 1, 2), (STRICT_ERRORS_FOUND, 1)] {
            let mut errors = StrictErrors::default();
            for _ in 0..count {
                errors.push(&"a");
            }
            errors.push(&"b");
            assert_eq!(errors.into_vec().len(), kept, "{count}");
        }
    }
}
