//! Writes with a precondition: the resourceVersion that was read.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::send::Verb;
use super::{Target, Writer};

impl Writer {
    /// Makes the server refuse the write (409 Conflict) if a locked object has changed since it was read.
    pub(super) fn lock_body(&self, verb: Verb, target: &Target, body: &mut Value) {
        if let Some(version) = self.journal.locked(&target.gvk, &target.key) {
            lock(verb, &version, body);
        }
    }

    /// A patch with the same precondition. Only the patch of a locked object is copied.
    pub(super) fn locked_patch<'a>(&self, verb: Verb, target: &Target, patch: &'a Value) -> Cow<'a, Value> {
        let mut patch = Cow::Borrowed(patch);
        if let Some(version) = self.journal.locked(&target.gvk, &target.key) {
            lock(verb, &version, patch.to_mut());
        }
        patch
    }

    /// Whether writes to the object carry the resourceVersion that was read.
    pub(super) fn is_locked(&self, target: &Target) -> bool {
        self.journal.locked(&target.gvk, &target.key).is_some()
    }
}

fn lock(verb: Verb, version: &str, body: &mut Value) {
    match verb {
        // A JSON patch names the version by itself.
        Verb::Read | Verb::Create | Verb::JsonPatch => {}
        Verb::Apply | Verb::ApplyStatus | Verb::MergePatch => body["metadata"]["resourceVersion"] = json!(version),
        Verb::Delete => body["preconditions"]["resourceVersion"] = json!(version),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(verb: Verb, mut body: Value, expect: &Value) {
        lock(verb, "7", &mut body);
        assert_eq!(&body, expect, "{verb:?}");
    }

    #[test]
    fn every_write_names_the_version_that_was_seen() {
        let named = json!({"metadata": {"name": "a", "resourceVersion": "7"}});
        check(Verb::Apply, json!({"metadata": {"name": "a"}}), &named);
        check(Verb::ApplyStatus, json!({"metadata": {"name": "a"}}), &named);
        check(Verb::MergePatch, json!({"metadata": {"name": "a"}}), &named);
        let bare = json!({"spec": {}, "metadata": {"resourceVersion": "7"}});
        check(Verb::MergePatch, json!({"spec": {}}), &bare);
        let precondition = json!({"preconditions": {"uid": "u", "resourceVersion": "7"}});
        check(Verb::Delete, json!({"preconditions": {"uid": "u"}}), &precondition);
    }
}
