//! The annotations of updates in place on Machines and on what they refer to.
//!
//! The owner of a Machine marks it, writes what is to be, and adds the hook UpdateMachine to the pending ones. The Machine's controller takes
//! both away when the extension has made the changes.

use std::collections::{BTreeMap, BTreeSet};

use windlass_api::annotations::{PENDING_HOOKS, UPDATE_IN_PROGRESS};

/// The name of the hook in the annotation of pending hooks.
const HOOK: &str = "UpdateMachine";

/// The annotations of an object.
pub type Annotations = BTreeMap<String, String>;

/// Whether the owner has marked the object.
pub fn is_marked(annotations: Option<&Annotations>) -> bool {
    annotations.is_some_and(|all| all.contains_key(UPDATE_IN_PROGRESS))
}

/// Whether the extension is to be called.
pub fn is_pending(annotations: Option<&Annotations>) -> bool {
    pending(annotations).any(|hook| hook == HOOK)
}

/// Whether an update is under way: it begins and ends with one of the two marks alone.
pub fn is_under_way(annotations: Option<&Annotations>) -> bool {
    is_marked(annotations) || is_pending(annotations)
}

/// The pending hooks without this one; `None` when none is left.
pub fn without_hook(annotations: Option<&Annotations>) -> Option<String> {
    let left: Vec<&str> = pending(annotations).filter(|hook| *hook != HOOK).collect();
    (!left.is_empty()).then(|| left.join(","))
}

/// The pending hooks with this one.
pub fn with_hook(annotations: Option<&Annotations>) -> String {
    let all: BTreeSet<&str> = pending(annotations).chain([HOOK]).collect();
    let all: Vec<&str> = all.into_iter().collect();
    all.join(",")
}

fn pending(annotations: Option<&Annotations>) -> impl Iterator<Item = &str> {
    let hooks = annotations.and_then(|all| all.get(PENDING_HOOKS));
    let hooks = hooks.map(String::as_str).unwrap_or_default();
    hooks.split(',').filter(|hook| !hook.is_empty())
}
