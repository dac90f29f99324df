//! Definitions that are compiled once for all who check values with them: admission, and the controllers.
//!
//! Compilation is a pure function of what is written, and that is the key. So nothing here can be behind a class, whichever cache it was read
//! from: a definition that changes is another key.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use parking_lot::Mutex;

use super::check::Definitions;
use crate::model::VariableStatus;

/// Definitions, or what is wrong with them.
pub type Compiled = Arc<Result<Definitions, String>>;

/// The room for definitions that are kept, by an estimate of their bytes. Those of most classes take less than 1 MiB.
const ROOM: usize = 64 << 20;
/// The most lists of definitions that are kept.
const MOST: usize = 1 << 10;

/// The bytes that a byte of a schema takes when it is compiled, by estimate.
const COMPILED_BYTES: usize = 16;
/// The bytes that a unit of the cost of regular expressions takes.
const PATTERN_BYTES: usize = 50;

static KNOWN: Mutex<Known> = Mutex::new(Known {
    lists: VecDeque::new(),
    taken: 0,
});

/// The definitions of a stored class, ready for use. An error says what is wrong with the class.
pub fn known(defined: &[VariableStatus]) -> Compiled {
    let hash = hash(defined);
    if let Some(found) = KNOWN.lock().find(hash, defined) {
        return found;
    }
    // Others go on meanwhile. Two may compile the same.
    let list = List::of(hash, defined);
    let compiled = Arc::clone(&list.compiled);
    KNOWN.lock().keep(list, ROOM);
    compiled
}

fn hash(defined: &[VariableStatus]) -> u64 {
    let mut hasher = DefaultHasher::new();
    defined.hash(&mut hasher);
    hasher.finish()
}

/// The definitions of a class.
#[derive(Debug)]
struct List {
    hash: u64,
    defined: Vec<VariableStatus>,
    compiled: Compiled,
    /// The bytes that it takes, by estimate.
    takes: usize,
}

impl List {
    fn of(hash: u64, defined: &[VariableStatus]) -> Self {
        let compiled = Definitions::of(defined);
        let patterns = compiled.as_ref().map_or(0, Definitions::patterns);
        let patterns = usize::try_from(patterns).unwrap_or(usize::MAX);
        let schemas = defined.iter().flat_map(|variable| &variable.definitions);
        let written: usize = schemas.map(|one| one.schema.open_api_v3_schema.to_string().len()).sum();
        Self {
            hash,
            defined: defined.to_vec(),
            compiled: Arc::new(compiled),
            takes: (written * COMPILED_BYTES).saturating_add(patterns.saturating_mul(PATTERN_BYTES)),
        }
    }
}

/// Lists of definitions, the one that was asked for last at the end.
#[derive(Debug, Default)]
struct Known {
    lists: VecDeque<List>,
    taken: usize,
}

impl Known {
    fn find(&mut self, hash: u64, defined: &[VariableStatus]) -> Option<Compiled> {
        // The last ones are asked for most.
        let place = self
            .lists
            .iter()
            .rposition(|list| list.hash == hash && list.defined == defined)?;
        let list = self.lists.remove(place)?;
        let found = Arc::clone(&list.compiled);
        self.lists.push_back(list);
        Some(found)
    }

    /// Keeps a list, and those before it that there is room for.
    fn keep(&mut self, list: List, room: usize) {
        self.taken += list.takes;
        self.lists.push_back(list);
        // A list that is larger than the room is kept until another comes.
        while self.lists.len() > MOST || (self.taken > room && self.lists.len() > 1) {
            let Some(gone) = self.lists.pop_front() else { return };
            self.taken -= gone.takes;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn defined(most: usize) -> Vec<VariableStatus> {
        let schema = json!({"type": "string", "maxLength": most, "pattern": format!("^[a-z]{{1,{most}}}$")});
        let all =
            json!([{"name": "region", "definitions": [{"from": "inline", "schema": {"openAPIV3Schema": schema}}]}]);
        serde_json::from_value(all).unwrap()
    }

    #[test]
    fn equal_definitions_are_compiled_once_and_changed_ones_again() {
        let first = known(&defined(3));
        assert!(Arc::ptr_eq(&first, &known(&defined(3))));
        let mut required = defined(3);
        required[0].definitions[0].required = true;
        for other in [defined(4), required, Vec::new()] {
            assert!(!Arc::ptr_eq(&first, &known(&other)), "{other:?}");
        }
        assert!(Arc::ptr_eq(&first, &known(&defined(3))));
        // What is wrong is known, too.
        let mut wrong = defined(3);
        wrong[0].definitions_conflict = true;
        let error = known(&wrong);
        assert!(error.is_err() && Arc::ptr_eq(&error, &known(&wrong)));
    }

    #[test]
    fn what_was_not_asked_for_longest_makes_room() {
        let mut all = Known::default();
        let list = |most: usize| List::of(hash(&defined(most)), &defined(most));
        let takes = list(1).takes;
        assert!(takes > 100, "{takes}");
        let room = 5 * takes / 2;
        let has = |all: &mut Known, most: usize| all.find(hash(&defined(most)), &defined(most)).is_some();
        all.keep(list(1), room);
        all.keep(list(2), room);
        assert!(has(&mut all, 1));
        all.keep(list(3), room);
        assert!(has(&mut all, 1) && has(&mut all, 3) && !has(&mut all, 2));
        assert_eq!(all.taken, all.lists.iter().map(|list| list.takes).sum::<usize>());
        // One that is larger than the room is kept until another comes.
        all.keep(list(9), 1);
        assert!(has(&mut all, 9) && all.lists.len() == 1);
        for most in 0..MOST + 9 {
            let mut small = list(1);
            small.hash = most as u64;
            small.takes = 0;
            all.keep(small, room);
        }
        assert_eq!(all.lists.len(), MOST);
    }

    /// Two lists may have one hash.
    #[test]
    fn a_hash_alone_finds_nothing() {
        let mut all = Known::default();
        all.keep(List::of(7, &defined(1)), ROOM);
        assert!(all.find(7, &defined(2)).is_none() && all.find(7, &defined(1)).is_some());
    }
}
