//! Admission of updates of an InfraCluster: external management can change in one direction only.

use kube_core::Resource;
use serde_json::json;
use windlass_api::annotations::MANAGED_BY;
use windlass_api::{is_externally_managed, resource_is_not_externally_managed};

/// Why an update is refused: for a response 422, reason `Invalid`, with one cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The path of the invalid field.
    pub field: &'static str,
    /// The problem, its reason, and the remedy.
    pub message: String,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

impl std::error::Error for Refusal {}

/// Checks an update of an InfraCluster of any provider; for its validating webhook, for operation `UPDATE` and all versions.
///
/// Removing the annotation [`cluster.x-k8s.io/managed-by`](MANAGED_BY) is refused, also during deletion: the provider would begin
/// to manage, or to destroy, infrastructure that it did not create. Adding it and changing its value are allowed. An allowed
/// update may have warnings: when the annotation is added to an object with finalizers, their controllers will not remove them
/// any more. The external system must remove them now.
///
/// `resource` is the name of the objects in `kubectl`, such as `exampleclusters.infrastructure.example.com`.
///
/// ```
/// use kube_core::DynamicObject;
/// use windlass_contract::infra_cluster::check_update;
///
/// let object = |metadata: serde_json::Value| -> DynamicObject {
///     let object = serde_json::json!({ "apiVersion": "infrastructure.example.com/v1", "kind": "ExampleCluster", "metadata": metadata });
///     serde_json::from_value(object).unwrap()
/// };
/// let managed = object(serde_json::json!({ "name": "a", "namespace": "b", "finalizers": ["example.com/network"] }));
/// let external = object(serde_json::json!({
///     "name": "a", "namespace": "b", "finalizers": ["example.com/network"],
///     "annotations": { "cluster.x-k8s.io/managed-by": "terraform" },
/// }));
///
/// let refusal = check_update("exampleclusters.infrastructure.example.com", &external, &managed).unwrap_err();
/// assert_eq!(refusal.field, "metadata.annotations");
/// assert!(refusal.message.starts_with("removal of externally managed annotation is not allowed"));
///
/// let warnings = check_update("exampleclusters.infrastructure.example.com", &managed, &external).unwrap();
/// assert!(warnings[0].contains("example.com/network"));
/// assert!(warnings[1].contains("kubectl patch exampleclusters.infrastructure.example.com a -n b "));
/// ```
pub fn check_update<K: Resource>(resource: &str, old: &K, new: &K) -> Result<Vec<String>, Refusal> {
    if is_externally_managed(old) && resource_is_not_externally_managed(new) {
        return Err(Refusal {
            field: "metadata.annotations",
            message: format!(
                "removal of externally managed annotation is not allowed: without {MANAGED_BY} the provider's controller \
                 would take over infrastructure that it did not make, and destroy it with the object. Another value is \
                 allowed. To give the infrastructure to the provider, delete the object and create it again without the \
                 annotation"
            ),
        });
    }
    if resource_is_not_externally_managed(old) && is_externally_managed(new) {
        return Ok(left_behind(resource, new));
    }
    Ok(Vec::new())
}

/// Warnings about finalizers whose controllers ignore the object from now on.
fn left_behind<K: Resource>(resource: &str, object: &K) -> Vec<String> {
    let meta = object.meta();
    let finalizers = meta.finalizers.as_deref().unwrap_or_default();
    // Kubernetes removes its own finalizers, which have no domain.
    let of_controllers = || finalizers.iter().enumerate().filter(|(_, name)| name.contains('.'));
    let names: Vec<&str> = of_controllers().map(|(_, name)| name.as_str()).collect();
    if names.is_empty() {
        return Vec::new();
    }
    let named = meta.name.as_deref().unwrap_or_default();
    let namespace = meta.namespace.as_deref().unwrap_or_default();
    let mut warnings = vec![format!(
        "{resource} {named}: the provider's controller does not touch it any more and will not remove {}; the system that \
         manages it now must remove it, or the object is never deleted",
        names.join(", ")
    )];
    // From the last to the first, so that a removal does not change the indexes of the others.
    let commands: Vec<String> = of_controllers()
        .map(|(index, name)| {
            let path = format!("/metadata/finalizers/{index}");
            let patch = json!([
                {"op": "test", "path": path, "value": name},
                {"op": "remove", "path": path},
            ]);
            format!("kubectl patch {resource} {named} -n {namespace} --type json -p '{patch}'")
        })
        .collect();
    warnings.extend(commands.into_iter().rev());
    warnings
}

#[cfg(test)]
mod tests {
    use kube_core::DynamicObject;
    use serde_json::Value;

    use super::*;

    const RESOURCE: &str = "exampleclusters.infrastructure.example.com";

    fn judge(old: &Value, new: &Value) -> Result<Vec<String>, Refusal> {
        let object = |metadata: &Value| -> DynamicObject {
            let mut metadata = metadata.clone();
            metadata["name"] = json!("a");
            metadata["namespace"] = json!("b");
            serde_json::from_value(json!({"apiVersion": "x.example.com/v1", "kind": "XCluster", "metadata": metadata}))
                .unwrap()
        };
        check_update(RESOURCE, &object(old), &object(new))
    }

    fn by(value: &str) -> Value {
        json!({"annotations": {"cluster.x-k8s.io/managed-by": value, "other": "x"}})
    }

    // EX-079, EX-080
    #[test]
    fn removal_is_refused_whatever_is_left_of_the_annotations() {
        let check = |old: &Value, new: &Value| {
            let refusal = judge(old, new).unwrap_err();
            assert_eq!(refusal.field, "metadata.annotations", "{old} -> {new}");
            let start = "removal of externally managed annotation is not allowed: ";
            assert!(refusal.message.starts_with(start), "{refusal}");
            assert!(
                refusal.message.contains("delete the object and create it again"),
                "{refusal}"
            );
            assert!(
                refusal.to_string().starts_with("metadata.annotations: removal"),
                "{refusal}"
            );
        };
        for value in ["terraform", "", "false", "日本語"] {
            check(&by(value), &json!({"annotations": {"other": "x"}}));
            check(&by(value), &json!({"annotations": {}}));
            check(&by(value), &json!({"annotations": null}));
            check(&by(value), &json!({}));
        }
        // EX-015: a label is no substitute.
        check(&by("x"), &json!({"labels": {"cluster.x-k8s.io/managed-by": "x"}}));
        check(&by("x"), &json!({"annotations": {"cluster.x-k8s.io/managedby": "x"}}));
        let deleting = json!({"deletionTimestamp": "2026-01-02T03:04:05Z", "finalizers": ["example.com/x"]});
        check(&by("x"), &deleting);
    }

    // EX-016, EX-017, EX-081, EX-082
    #[test]
    fn everything_else_is_allowed_without_a_word() {
        let check = |old: &Value, new: &Value| assert_eq!(judge(old, new), Ok(vec![]), "{old} -> {new}");
        check(&by("terraform"), &by("crossplane"));
        check(&by("terraform"), &by(""));
        check(&by(""), &by("false"));
        check(&by("a"), &by("a"));
        check(&json!({}), &by("terraform"));
        check(&json!({"annotations": {}}), &by(""));
        check(&json!({}), &json!({"annotations": null}));
        check(&json!({"annotations": {"a": "b"}}), &json!({}));
        // EX-015
        check(&json!({"labels": {"cluster.x-k8s.io/managed-by": "x"}}), &json!({}));
        let with = |mut metadata: Value, finalizers: Value| {
            metadata["finalizers"] = finalizers;
            metadata
        };
        check(
            &with(by("a"), json!(["example.com/x"])),
            &with(by("b"), json!(["example.com/x"])),
        );
        // Removed by the same write, or not a controller's.
        check(&with(json!({}), json!(["example.com/x"])), &by("a"));
        check(&json!({}), &with(by("a"), json!(["foregroundDeletion", "orphan"])));
    }

    // EX-085
    #[test]
    fn orphaned_finalizers_are_named_with_the_command_that_removes_them() {
        // Finalizers of Cluster API providers are often a domain only.
        let old = json!({"finalizers": ["example.com/one", "foregroundDeletion", "two.example.com"]});
        let mut new = by("terraform");
        new["finalizers"] = old["finalizers"].clone();
        let warnings = judge(&old, &new).unwrap();
        assert!(
            warnings[0].contains("will not remove example.com/one, two.example.com; "),
            "{warnings:?}"
        );
        assert!(
            warnings[0].contains("the system that manages it now must remove it"),
            "{warnings:?}"
        );
        let command = |name: &str, index: usize| {
            format!(
                "kubectl patch {RESOURCE} a -n b --type json -p \
                 '[{{\"op\":\"test\",\"path\":\"/metadata/finalizers/{index}\",\"value\":\"{name}\"}},\
                 {{\"op\":\"remove\",\"path\":\"/metadata/finalizers/{index}\"}}]'"
            )
        };
        assert_eq!(
            warnings[1..],
            [command("two.example.com", 2), command("example.com/one", 0)]
        );
        // API servers shorten longer ones.
        assert!(
            warnings.iter().all(|warning| warning.chars().count() <= 256),
            "{warnings:?}"
        );
    }
}
