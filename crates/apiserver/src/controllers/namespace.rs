//! Deletion of a namespace: first its pods, then its other objects, then the namespace. Its conditions name what blocks the
//! deletion.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use windlass_meta::budget::NAMES_LISTED;

use super::{Internal, delete_all};
use crate::error::ApiError;
use crate::objects::convert::served;
use crate::objects::stored;
use crate::state::Inner;
use crate::verbs::mutation::Mutation;
use windlass_objects::Part;
use windlass_objects::metadata::{is_deleting, seconds, text};

/// The remaining contents of a namespace.
#[derive(Debug, Default)]
struct Left {
    /// The number of objects, by storage name.
    objects: BTreeMap<String, usize>,
    /// The number of objects that wait for each finalizer.
    finalizers: BTreeMap<String, usize>,
    /// Errors of deletions.
    errors: Vec<String>,
}

impl Left {
    fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.errors.is_empty()
    }

    fn count(&mut self, server: &Inner, storage: &str, namespace: &str) {
        let items = stored::all(&server.store, storage, Some(namespace));
        if items.is_empty() {
            return;
        }
        self.objects.insert(storage.to_owned(), items.len());
        for finalizer in items.iter().flat_map(|record| record.header.finalizers.iter()) {
            *self.finalizers.entry(finalizer.to_string()).or_default() += 1;
        }
    }
}

/// A condition: type, status, reason, message.
type Condition = (&'static str, bool, &'static str, String);

/// The desired conditions of a namespace. Pure.
fn conditions(left: &Left) -> [Condition; 5] {
    // Tenants choose how many finalizers there are, and all clients with watches of Namespaces receive the condition.
    let sorted = |mut texts: Vec<String>| {
        texts.sort();
        let more = texts.len().saturating_sub(NAMES_LISTED);
        texts.truncate(NAMES_LISTED);
        if more > 0 {
            texts.push(format!("and {more} more"));
        }
        texts.join(", ")
    };
    let failure = if left.errors.is_empty() {
        let words = "All content successfully deleted, may be waiting on finalization";
        (false, "ContentDeleted", words.to_owned())
    } else {
        let (count, words) = (left.errors.len(), sorted(left.errors.clone()));
        let words = format!("Failed to delete all resource types, {count} remaining: {words}");
        (true, "ContentDeletionFailed", words)
    };
    let remaining = if left.objects.is_empty() {
        (false, "ContentRemoved", "All content successfully removed".to_owned())
    } else {
        let one = |(storage, count): (&String, &usize)| {
            let (resource, group) = storage.split_once('.').unwrap_or((storage, ""));
            format!("{resource}.{group} has {count} resource instances")
        };
        let words = sorted(left.objects.iter().map(one).collect());
        (
            true,
            "SomeResourcesRemain",
            format!("Some resources are remaining: {words}"),
        )
    };
    let held = if left.finalizers.is_empty() {
        let words = "All content-preserving finalizers finished".to_owned();
        (false, "ContentHasNoFinalizers", words)
    } else {
        let one = |(finalizer, count): (&String, &usize)| format!("{finalizer} in {count} resource instances");
        let words = sorted(left.finalizers.iter().map(one).collect());
        let words = format!("Some content in the namespace has finalizers remaining: {words}");
        (true, "SomeFinalizersRemain", words)
    };
    let fine = |kind, reason, words: &str| (kind, false, reason, words.to_owned());
    let with = |kind, (holds, reason, words)| (kind, holds, reason, words);
    [
        fine(
            "NamespaceDeletionDiscoveryFailure",
            "ResourcesDiscovered",
            "All resources successfully discovered",
        ),
        fine(
            "NamespaceDeletionGroupVersionParsingFailure",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        with("NamespaceDeletionContentFailure", failure),
        with("NamespaceContentRemaining", remaining),
        with("NamespaceFinalizersRemaining", held),
    ]
}

/// The conditions with these in place; `None` if they are unchanged. Pure.
fn changed(have: &[Value], want: &[Condition], now: jiff::Timestamp) -> Option<Vec<Value>> {
    let mut out = have.to_vec();
    for (kind, holds, reason, message) in want {
        let status = if *holds { "True" } else { "False" };
        let at = out.iter().position(|c| text(c, "type") == *kind);
        let old = at.map(|at| &out[at]);
        let since = old
            .filter(|old| text(old, "status") == status)
            .and_then(|old| old.get("lastTransitionTime").cloned())
            .unwrap_or_else(|| seconds(now).into());
        let new = json!({
            "type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since,
        });
        match at {
            Some(at) => out[at] = new,
            None => out.push(new),
        }
    }
    (out != have).then_some(out)
}

/// Deletes the contents of a namespace that is being deleted, and then the namespace.
pub(super) async fn empty(server: &Arc<Inner>, name: &str) -> Result<(), ApiError> {
    let internal = Internal::new(server, "namespace-controller");
    let storage = server.storage_name("namespaces");
    let (Some(record), Some(resource)) = (
        server.store.get(&storage, "", name),
        server.registry().find_storage(&storage),
    ) else {
        return Ok(());
    };
    let namespace = served(&resource, &record)?;
    let held = namespace.pointer("/spec/finalizers").and_then(Value::as_array);
    let held = held.cloned().unwrap_or_default();
    if !is_deleting(&namespace) || held.is_empty() {
        return Ok(());
    }
    let (left, told) = delete_content(&internal, name).await;
    let have = namespace.pointer("/status/conditions").and_then(Value::as_array);
    let have = have.map_or(&[][..], Vec::as_slice);
    let call = internal.call(&resource, "");
    if let Some(conditions) = changed(have, &conditions(&told), server.now()) {
        let mutation = Mutation::Merge(json!({"status": {"conditions": conditions}}), Vec::new());
        call.change(name, &mutation, Part::Status).await?;
    }
    if let Some(error) = left.errors.first() {
        return Err(ApiError::internal(error));
    }
    if !left.is_empty() {
        return Ok(());
    }
    let rest: Vec<Value> = held.into_iter().filter(|f| f.as_str() != Some("kubernetes")).collect();
    let mutation = Mutation::Merge(json!({"spec": {"finalizers": rest}}), Vec::new());
    call.change(name, &mutation, Part::Finalize).await.map(|_| ())
}

/// Deletes the contents of a namespace, its pods first. Returns the remaining contents, and what the conditions report of them.
async fn delete_content(internal: &Internal<'_>, name: &str) -> (Left, Left) {
    const PODS: &str = "pods";
    let server = internal.server;
    let mut left = Left::default();
    if let Err(error) = delete_all(internal, PODS, stored::all(&server.store, PODS, Some(name))).await {
        left.errors.push(error.message);
    }
    left.count(server, PODS, name);
    if !left.objects.is_empty() {
        let told = Left {
            errors: left.errors.clone(),
            ..Left::default()
        };
        return (left, told);
    }
    let mut kinds = Vec::new();
    for storage in server.store.resources() {
        let items = stored::all(&server.store, &storage, Some(name));
        if !items.is_empty() {
            kinds.push(async move {
                let done = delete_all(internal, &storage, items).await;
                (storage, done)
            });
        }
    }
    // An object that stays does not block the deletion of other kinds.
    for (storage, done) in futures::future::join_all(kinds).await {
        if let Err(error) = done {
            left.errors.push(error.message);
        }
        left.count(server, &storage, name);
    }
    let told = Left {
        objects: left.objects.clone(),
        finalizers: left.finalizers.clone(),
        errors: left.errors.clone(),
    };
    (left, told)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(objects: &[(&str, usize)], finalizers: &[(&str, usize)], errors: &[&str]) -> Left {
        let owned = |list: &[(&str, usize)]| list.iter().map(|(key, count)| ((*key).to_owned(), *count)).collect();
        Left {
            objects: owned(objects),
            finalizers: owned(finalizers),
            errors: errors.iter().map(|e| (*e).to_owned()).collect(),
        }
    }

    /// Tenants choose the names.
    #[test]
    fn conditions_list_some_names_and_count_the_others() {
        let names: Vec<String> = (0..NAMES_LISTED + 7).map(|at| format!("a.b/{at:05}")).collect();
        let finalizers: Vec<(&str, usize)> = names.iter().map(|name| (name.as_str(), 1)).collect();
        let [.., last] = conditions(&left(&[("configmaps", 1)], &finalizers, &[]));
        assert!(
            last.3.contains("a.b/00049") && !last.3.contains("a.b/00050"),
            "{}",
            last.3
        );
        assert!(last.3.ends_with(", and 7 more"), "{}", last.3);
    }

    #[test]
    fn conditions_say_what_keeps_a_namespace() {
        let found = conditions(&left(
            &[("configmaps", 2), ("leases.coordination.k8s.io", 1)],
            &[("x/y", 2)],
            &["no"],
        ));
        let words: Vec<&str> = found.iter().filter(|c| c.1).map(|c| c.3.as_str()).collect();
        assert_eq!(
            words,
            [
                "Failed to delete all resource types, 1 remaining: no",
                "Some resources are remaining: configmaps. has 2 resource instances, leases.coordination.k8s.io has 1 resource instances",
                "Some content in the namespace has finalizers remaining: x/y in 2 resource instances",
            ]
        );
    }

    #[test]
    fn a_condition_keeps_its_time_while_it_stays_what_it_is() {
        let then = "2026-01-02T03:04:05Z".parse().unwrap();
        let later = "2026-01-02T03:04:06Z".parse().unwrap();
        let first = changed(&[], &conditions(&left(&[("secrets", 2)], &[], &[])), then).unwrap();
        assert_eq!(
            changed(&first, &conditions(&left(&[("secrets", 2)], &[], &[])), later),
            None
        );
        let second = changed(&first, &conditions(&left(&[("secrets", 1)], &[], &[])), later).unwrap();
        assert_eq!(second[3]["lastTransitionTime"], "2026-01-02T03:04:05Z");
        let third = changed(&second, &conditions(&left(&[], &[], &[])), later).unwrap();
        assert_eq!(third[3]["lastTransitionTime"], "2026-01-02T03:04:06Z");
        assert_eq!(third[3]["status"], "False");
    }
}
