//! Externally managed infrastructure: the annotation, and the function that reads it.

use kube_core::Resource;

use crate::annotations::MANAGED_BY;

/// Whether an InfraCluster is managed by something else than its provider's controller: whether it carries the annotation
/// [`cluster.x-k8s.io/managed-by`](MANAGED_BY).
///
/// Presence alone decides. The value is free text that names the managing system; it is never looked at, so `""` and
/// `"false"` mean "externally managed" as well. A label with the same key means nothing.
///
/// The rule is for InfraClusters, the kinds that a Cluster's `spec.infrastructureRef` names: asking it of a Machine, a
/// Cluster or a control plane has no meaning. A provider's controller that supports it
///
/// - leaves such an object alone: no finalizer, no metadata, no spec, no status, no condition, no event, also when it is
///   being deleted;
/// - asks before it does anything else in a reconcile, and where events of a Cluster are mapped to its InfraCluster;
/// - writes with optimistic locking (`resourceVersion`), so that a reconcile under way cannot write after the annotation came;
/// - refuses in admission to take the annotation away: the switch goes one way.
///
/// ```
/// use kube_core::DynamicObject;
/// use windlass_api::is_externally_managed;
///
/// let object = |annotations: serde_json::Value| -> DynamicObject {
///     serde_json::from_value(serde_json::json!({
///         "apiVersion": "infrastructure.example.com/v1",
///         "kind": "ExampleCluster",
///         "metadata": { "name": "a", "annotations": annotations },
///     }))
///     .unwrap()
/// };
/// assert!(is_externally_managed(&object(serde_json::json!({ "cluster.x-k8s.io/managed-by": "terraform" }))));
/// assert!(is_externally_managed(&object(serde_json::json!({ "cluster.x-k8s.io/managed-by": "false" }))));
/// assert!(!is_externally_managed(&object(serde_json::json!({}))));
/// assert!(!is_externally_managed(&object(serde_json::json!(null))));
/// ```
pub fn is_externally_managed<K: Resource>(object: &K) -> bool {
    let annotations = object.meta().annotations.as_ref();
    annotations.is_some_and(|annotations| annotations.contains_key(MANAGED_BY))
}

/// The predicate for a provider's InfraCluster events: `true` lets the event pass, `false` drops it. On a change ask it about
/// the new object, so that adding the annotation silences the object at once; ask it about deleted objects too.
///
/// The proposal calls it `predicates.ResourceExternallyManaged`, Cluster API ships it as `ResourceIsNotExternallyManaged`; the
/// name here says what `true` means. Only for events of InfraClusters: no other kind is ever externally managed.
///
/// ```
/// use windlass_api::{is_externally_managed, resource_is_not_externally_managed};
/// # let object: kube_core::DynamicObject = serde_json::from_value(serde_json::json!({
/// #     "apiVersion": "infrastructure.example.com/v1", "kind": "ExampleCluster", "metadata": { "name": "a" },
/// # })).unwrap();
/// assert!(resource_is_not_externally_managed(&object));
/// assert_eq!(resource_is_not_externally_managed(&object), !is_externally_managed(&object));
/// ```
pub fn resource_is_not_externally_managed<K: Resource>(object: &K) -> bool {
    !is_externally_managed(object)
}

#[cfg(test)]
mod tests {
    use kube_core::DynamicObject;
    use serde_json::{Value, json};

    use super::*;

    fn check(metadata: &Value, expect: bool) {
        let mut metadata = metadata.clone();
        metadata["name"] = json!("a");
        let object = json!({"apiVersion": "x.example.com/v1", "kind": "XCluster", "metadata": metadata});
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        assert_eq!(is_externally_managed(&object), expect, "{metadata}");
        assert_eq!(resource_is_not_externally_managed(&object), !expect, "{metadata}");
    }

    // EX-014, EX-016, EX-017, EX-020, EX-036
    #[test]
    fn presence_of_the_annotation_decides_whatever_its_value() {
        assert_eq!(MANAGED_BY, "cluster.x-k8s.io/managed-by");
        let long = "x".repeat(1024);
        for value in ["", "false", "managed", "terraform", "my system/1.0", "日本語", &long] {
            check(&json!({"annotations": {"cluster.x-k8s.io/managed-by": value}}), true);
        }
        check(&json!({}), false);
        check(&json!({"annotations": {}}), false);
        check(
            &json!({"annotations": {"cluster.x-k8s.io/managed": "x", "managed-by": "x"}}),
            false,
        );
        check(
            &json!({"annotations": {"cluster.x-k8s.io/replicas-managed-by": "x"}}),
            false,
        );
    }

    // EX-015
    #[test]
    fn a_label_of_the_same_name_means_nothing() {
        check(&json!({"labels": {"cluster.x-k8s.io/managed-by": "terraform"}}), false);
    }
}
