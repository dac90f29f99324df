//! The hooks of the Runtime SDK that are still to be called for an object.

use std::collections::{BTreeMap, BTreeSet};

use crate::annotations::PENDING_HOOKS;

/// The names in the annotation [`PENDING_HOOKS`], those of other programs included. Each is there once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PendingHooks(BTreeSet<String>);

impl PendingHooks {
    /// Reads the value of the annotation: names with commas between them.
    pub fn read(value: &str) -> Self {
        let names = value.split(',').filter(|name| !name.is_empty());
        Self(names.map(str::to_owned).collect())
    }

    /// The pending hooks in the annotations of an object.
    pub fn of(annotations: Option<&BTreeMap<String, String>>) -> Self {
        let value = annotations.and_then(|all| all.get(PENDING_HOOKS));
        value.map(|value| Self::read(value)).unwrap_or_default()
    }

    /// Whether a hook is still to be called.
    pub fn contains(&self, hook: &str) -> bool {
        self.0.contains(hook)
    }

    /// Adds a hook.
    pub fn insert(&mut self, hook: &str) {
        self.0.insert(hook.to_owned());
    }

    /// Removes a hook.
    pub fn remove(&mut self, hook: &str) {
        self.0.remove(hook);
    }

    /// The value of the annotation, in the order of the names, as Cluster API writes it; `None` when no hook is left.
    pub fn value(&self) -> Option<String> {
        let names: Vec<&str> = self.0.iter().map(String::as_str).collect();
        (!names.is_empty()).then(|| names.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kept_once_and_in_order() {
        let mut hooks = PendingHooks::read("b,,a,b");
        assert_eq!(hooks.value().as_deref(), Some("a,b"));
        assert!(hooks.contains("a") && !hooks.contains(""));
        hooks.insert("UpdateMachine");
        hooks.insert("a");
        assert_eq!(hooks.value().as_deref(), Some("UpdateMachine,a,b"));
        for name in ["a", "b", "UpdateMachine", "none"] {
            hooks.remove(name);
        }
        assert_eq!((hooks.value(), hooks), (None, PendingHooks::read("")));
        let annotations = BTreeMap::from([(PENDING_HOOKS.to_owned(), "x".to_owned())]);
        assert!(PendingHooks::of(Some(&annotations)).contains("x"));
        assert_eq!(PendingHooks::of(None), PendingHooks::default());
    }
}
