//! What the objects in the cache of a watch weigh, for servers whose objects may not take all the memory.

use std::collections::HashMap;

use crate::object::ObjectKey;
use crate::transport::Bounds;

/// What an object weighs beside its bytes, so that many small ones count, too.
const OBJECT: usize = 1 << 10;

/// The weights of objects by key.
#[derive(Debug, Default)]
pub(super) struct Weights {
    all: HashMap<ObjectKey, usize>,
    sum: usize,
}

impl Weights {
    /// Records an object of a server with bounds. The error says that its server sends too many.
    pub(super) fn set(&mut self, key: ObjectKey, size: usize, bounds: Option<&Bounds>) -> Result<(), String> {
        let Some(bounds) = bounds else {
            return Ok(());
        };
        let weight = size + OBJECT;
        self.sum += weight;
        self.sum -= self.all.insert(key, weight).unwrap_or(0);
        let most = bounds.limits().cached;
        if self.sum <= most {
            return Ok(());
        }
        let why = format!(
            "the API server has objects of more than {} MiB in one watch",
            most >> 20
        );
        Err(bounds.exceeded(why).to_string())
    }

    /// Records that an object is gone.
    pub(super) fn remove(&mut self, key: &ObjectKey) {
        self.sum -= self.all.remove(key).unwrap_or(0);
    }
}

#[cfg(test)]
mod tests {
    use windlass_http_client::Reach;

    use super::*;
    use crate::transport::{Held, Limits};

    #[test]
    fn objects_count_once_and_until_they_are_gone() {
        let limits = Limits {
            cached: 10 * OBJECT,
            ..Limits::default()
        };
        let bounds = Bounds::new(limits, Reach::anywhere(), Held::default());
        let mut weights = Weights::default();
        let mut set = |name: &str, size: usize| weights.set(ObjectKey::new("", name), size, Some(&bounds));
        for _ in 0..20 {
            set("a", 4 * OBJECT).unwrap();
        }
        set("b", 4 * OBJECT).unwrap();
        assert_eq!(bounds.refusal(), None);
        set("c", 0).unwrap_err();
        assert!(bounds.refusal().is_some());
        weights.remove(&ObjectKey::new("", "a"));
        weights.remove(&ObjectKey::new("", "a"));
        assert_eq!(weights.sum, 6 * OBJECT);
        assert_eq!(
            weights.set(ObjectKey::new("", "d"), 100 * OBJECT, None),
            Ok(()),
            "the server is trusted"
        );
    }
}
