//! References between objects.

use serde_json::Value;
use windlass_api::core::ContractVersionedObjectReference;
use windlass_meta::GroupKind;

use crate::path::str_at;

/// Group and kind of a reference.
pub fn group_kind_of(reference: &ContractVersionedObjectReference) -> GroupKind {
    GroupKind::new(reference.api_group.as_str(), reference.kind.as_str())
}

/// A reference to an object.
pub fn reference_to(object: &Value) -> ContractVersionedObjectReference {
    let text = |path: &[&str]| str_at(object, path).unwrap_or_default().to_owned();
    let api_version = text(&["apiVersion"]);
    ContractVersionedObjectReference {
        api_group: api_version.split_once('/').map_or("", |(group, _)| group).to_owned(),
        kind: text(&["kind"]),
        name: text(&["metadata", "name"]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn references_name_group_kind_and_name() {
        let object = json!({"apiVersion": "g.io/v1", "kind": "K", "metadata": {"name": "n"}});
        let reference = reference_to(&object);
        assert_eq!(
            (
                reference.api_group.as_str(),
                reference.kind.as_str(),
                reference.name.as_str()
            ),
            ("g.io", "K", "n")
        );
        assert_eq!(group_kind_of(&reference), GroupKind::new("g.io", "K"));
    }
}
