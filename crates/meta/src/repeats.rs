//! Lines of the log that are written again and again: at most one a minute for each cause and object.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The shortest time between two lines about one cause and object.
pub const INTERVAL: Duration = Duration::from_mins(1);
/// The most causes and objects that are known at a time. Further ones are not logged until an earlier one is a minute old.
const KNOWN: usize = 1000;
/// The most bytes of a cause.
const BYTES: usize = 256;

/// What was logged, by object and cause.
#[derive(Debug, Default)]
pub struct Repeats(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    known: BTreeMap<(String, String), Known>,
    /// The lines that were left out because too many causes were known.
    others: u64,
}

#[derive(Debug)]
struct Known {
    said: Instant,
    left_out: u64,
}

impl Repeats {
    /// Nothing was logged yet.
    pub const fn new() -> Self {
        Self(Mutex::new(State {
            known: BTreeMap::new(),
            others: 0,
        }))
    }

    /// Whether a line about an object is to be written: the number of lines that were left out before it, if it is.
    pub fn line(&self, object: &str, text: &str, now: Instant) -> Option<u64> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let State { known, others } = &mut *state;
        let is_due = |entry: &Known| now.saturating_duration_since(entry.said) >= INTERVAL;
        let key = (object.to_owned(), cause(text));
        if let Some(entry) = known.get_mut(&key) {
            if !is_due(entry) {
                entry.left_out += 1;
                return None;
            }
            entry.said = now;
            return Some(std::mem::take(&mut entry.left_out) + std::mem::take(others));
        }
        if known.len() >= KNOWN {
            *others += known
                .extract_if(.., |_, entry| is_due(entry))
                .map(|(_, entry)| entry.left_out)
                .sum::<u64>();
        }
        if known.len() >= KNOWN {
            *others += 1;
            return None;
        }
        let left_out = 0;
        known.insert(key, Known { said: now, left_out });
        Some(std::mem::take(others))
    }
}

/// The cause that a text names: the text without what differs from one time to the next, such as numbers, addresses and identifiers. Words
/// with a digit count as such.
pub fn cause(text: &str) -> String {
    let mut out = String::new();
    let is_part = |letter: char| letter.is_alphanumeric();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if out.len() >= BYTES {
            break;
        }
        let end = rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
        if end == 0 {
            out.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let (word, after) = rest.split_at(end);
        if word.contains(|letter: char| letter.is_ascii_digit()) {
            out.push('#');
        } else {
            out.push_str(word);
        }
        rest = after;
    }
    let end = out.floor_char_boundary(BYTES);
    out.truncate(end);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_logged_once_a_minute_for_each_object() {
        let (repeats, start) = (Repeats::default(), Instant::now());
        let line = |object: &str, text: &str, seconds| repeats.line(object, text, start + Duration::from_secs(seconds));
        assert_eq!(line("a", "no answer", 0), Some(0));
        assert_eq!(line("b", "no answer", 0), Some(0));
        assert_eq!(line("a", "refused", 0), Some(0));
        for second in 1..60 {
            assert_eq!(line("a", "no answer", second), None);
        }
        assert_eq!(line("a", "no answer", 60), Some(59));
        assert_eq!(line("a", "no answer", 61), None);
        assert_eq!(line("a", "no answer", 7200), Some(1));
    }

    #[test]
    fn what_differs_each_time_is_no_cause_of_its_own() {
        let (repeats, now) = (Repeats::default(), Instant::now());
        let said: Vec<u64> = (0..5000)
            .filter_map(|n| {
                repeats.line(
                    "a",
                    &format!("request {n:04x}-{n} to 10.0.0.{n}: the event at byte {n} is broken"),
                    now,
                )
            })
            .collect();
        assert!(said.len() <= 2, "{said:?}");
        assert_eq!(
            cause("10.0.0.1:6443: EOF in machine-7x2k"),
            "#.#.#.#:#: EOF in machine-#"
        );
        assert_eq!(cause(&"ä".repeat(1000)).len(), BYTES);
    }

    #[test]
    fn many_causes_take_neither_the_log_nor_the_memory() {
        let (repeats, start) = (Repeats::default(), Instant::now());
        let letters = |n: u32| {
            n.to_string()
                .bytes()
                .map(|digit| char::from(digit + 49))
                .collect::<String>()
        };
        let count = |now| {
            (0..5000)
                .filter_map(|n| repeats.line(&letters(n), "broken", now))
                .collect::<Vec<_>>()
        };
        let first = count(start);
        assert_eq!((first.len(), first.iter().sum::<u64>()), (KNOWN, 0));
        let second = count(start + INTERVAL);
        assert!(second.len() <= 2 * KNOWN, "{}", second.len());
        assert_eq!(second.iter().sum::<u64>(), 4000, "what was left out is counted");
        assert!(repeats.0.lock().unwrap().known.len() <= KNOWN);
    }
}
