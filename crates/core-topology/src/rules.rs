//! What admission has to know of topologies. Pure.

use serde_json::Value;
use windlass_controller_runtime::ObjectKey;
use windlass_topology::blueprint::references;
use windlass_topology::model::{ClassSpec, TemplateRef, read};

/// The class of another namespace that a write gives a Cluster; none if the Cluster has it already.
pub fn new_foreign_class(old: &Value, new: &Value) -> Option<ObjectKey> {
    let class = foreign_class(new)?;
    (foreign_class(old).as_ref() != Some(&class)).then_some(class)
}

fn foreign_class(cluster: &Value) -> Option<ObjectKey> {
    let reference = cluster.pointer("/spec/topology/classRef")?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let namespace = text(&reference["namespace"]);
    let is_foreign = !namespace.is_empty() && cluster["metadata"]["namespace"] != namespace.as_str();
    is_foreign.then(|| ObjectKey::new(namespace, text(&reference["name"])))
}

/// The templates that are read for a class, and copied for its Clusters.
pub fn templates(class: &Value) -> Vec<TemplateRef> {
    let spec: ClassSpec = read(class, "/spec").unwrap_or_default();
    let all = references(&spec)
        .into_iter()
        .map(|reference| reference.template.clone());
    all.filter(|template| !template.name.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_a_new_class_of_another_namespace_counts() {
        let cluster =
            |class: Value| json!({"metadata": {"namespace": "ours"}, "spec": {"topology": {"classRef": class}}});
        let check = |old: &Value, new: Value, expect: Option<&str>| {
            let found = new_foreign_class(old, &cluster(new));
            assert_eq!(found.map(|key| key.to_string()).as_deref(), expect);
        };
        let theirs = || json!({"name": "a", "namespace": "theirs"});
        check(&Value::Null, json!({"name": "a"}), None);
        check(&Value::Null, json!({"name": "a", "namespace": ""}), None);
        check(&Value::Null, json!({"name": "a", "namespace": "ours"}), None);
        check(&Value::Null, theirs(), Some("theirs/a"));
        check(&cluster(json!({"name": "a"})), theirs(), Some("theirs/a"));
        check(&cluster(theirs()), theirs(), None);
        check(
            &cluster(theirs()),
            json!({"name": "b", "namespace": "theirs"}),
            Some("theirs/b"),
        );
        check(&json!({"metadata": {"namespace": "ours"}}), theirs(), Some("theirs/a"));
    }
}
