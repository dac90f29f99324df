//! The annotations of updates in place on Machines and on what they refer to.
//!
//! The owner of a Machine marks it, writes what is to be, and adds the hook UpdateMachine to the pending ones. The Machine's controller takes
//! both away when the extension has made the changes.

use std::collections::BTreeMap;

use windlass_api::PendingHooks;
use windlass_api::annotations::UPDATE_IN_PROGRESS;

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
    PendingHooks::of(annotations).contains(HOOK)
}

/// Whether an update is under way: it begins and ends with one of the two marks alone.
pub fn is_under_way(annotations: Option<&Annotations>) -> bool {
    is_marked(annotations) || is_pending(annotations)
}

/// The pending hooks without this one; `None` when none is left.
pub fn without_hook(annotations: Option<&Annotations>) -> Option<String> {
    let mut left = PendingHooks::of(annotations);
    left.remove(HOOK);
    left.value()
}

/// The pending hooks with this one.
pub fn with_hook(annotations: Option<&Annotations>) -> String {
    let mut all = PendingHooks::of(annotations);
    all.insert(HOOK);
    all.value().unwrap_or_default()
}
