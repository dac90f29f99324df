//! The errors that a rule finds, up to a limit.
//!
//! The sender of an object chooses how many errors it has and how long they are. A path has names of the object, and an error has a value of
//! it, so errors can be many times as large as the object. They are made only while there is room.

use serde_json::Value;
use windlass_schema::{FieldError, MOST_ERRORS};

/// The bytes of the errors after which no more are made: some times what an answer shows.
const MOST_BYTES: usize = 1 << 20;

/// The errors that a rule has found. Once they are full, no more are made.
#[derive(Debug, Default)]
pub struct Errors {
    list: Vec<FieldError>,
    bytes: usize,
}

impl Errors {
    /// Adds an error, which is made only if there is room.
    pub fn push(&mut self, make: impl FnOnce() -> FieldError) {
        self.extend(std::iter::once_with(make));
    }

    /// Adds errors while there is room. No others are taken from the iterator.
    pub fn extend(&mut self, errors: impl IntoIterator<Item = FieldError>) {
        let mut errors = errors.into_iter();
        while !self.is_full() {
            let Some(error) = errors.next() else { return };
            self.bytes += bytes(&error);
            self.list.push(error);
        }
    }

    /// Whether there is no room. A loop that looks for errors only can end.
    pub fn is_full(&self) -> bool {
        self.list.len() >= MOST_ERRORS || self.bytes >= MOST_BYTES
    }

    /// The number of errors.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The errors.
    pub fn into_vec(self) -> Vec<FieldError> {
        self.list
    }
}

/// Whether there may be more errors than a list has.
pub(crate) fn is_full(list: &[FieldError]) -> bool {
    list.len() >= MOST_ERRORS || list.iter().map(bytes).sum::<usize>() >= MOST_BYTES
}

/// The bytes of an error, about.
fn bytes(error: &FieldError) -> usize {
    error.path.len() + error.detail.len() + error.value.as_ref().map_or(0, bytes_of)
}

fn bytes_of(value: &Value) -> usize {
    let within = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(bytes_of).sum(),
        Value::Object(map) => map.iter().map(|(key, value)| key.len() + bytes_of(value)).sum(),
        _ => 0,
    };
    within + size_of::<Value>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_error_is_made_once_there_are_many_or_they_are_long() {
        let made = |length: usize| {
            let (mut errors, mut made) = (Errors::default(), 0);
            for _ in 0..2 * MOST_ERRORS {
                errors.push(|| {
                    made += 1;
                    FieldError::invalid("a", "x".repeat(length).into(), "b")
                });
            }
            assert_eq!((errors.len(), errors.is_full()), (made, true));
            assert!(is_full(&errors.into_vec()));
            made
        };
        assert_eq!((made(1), made(MOST_BYTES / 2)), (MOST_ERRORS, 2));
    }
}
