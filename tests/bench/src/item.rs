//! The stored objects: custom objects of about 4 KiB, with as many fields as real ones.

use bytes::Bytes;
use serde_json::{Map, Value, json};

/// The path of items.
pub(crate) const ITEMS: &str = "/apis/bench.example.com/v1/namespaces/default/items";

/// The path of an item.
pub(crate) fn path(name: &str) -> String {
    format!("{ITEMS}/{name}")
}

/// The definition of items.
pub(crate) fn definition() -> Bytes {
    let text = json!({"type": "string"});
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "required": ["count"], "properties": {
            "count": {"type": "integer", "minimum": 0},
            "paused": {"type": "boolean", "default": false},
            "entries": {"type": "object", "additionalProperties": text},
            "steps": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object", "required": ["name"], "properties": {
                    "name": text, "image": text, "arguments": {"type": "array", "items": text}}}},
        }},
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    }});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "items.bench.example.com"},
        "spec": {
            "group": "bench.example.com", "scope": "Namespaced",
            "names": {"plural": "items", "singular": "item", "kind": "Item", "listKind": "ItemList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
                "subresources": {"status": {}}}],
        },
    });
    Bytes::from(definition.to_string())
}

/// An item; `version` is the resourceVersion to replace in an update.
pub(crate) fn item(name: &str, count: u64, version: Option<&str>) -> Bytes {
    let entries: Map<String, Value> = (0..16)
        .map(|at| (format!("entry-{at:02}"), json!(format!("{at:02}-").repeat(56))))
        .collect();
    let steps: Vec<Value> = (0..8)
        .map(|at| {
            json!({"name": format!("step-{at}"), "image": format!("registry.example.com/steps/number-{at}:v1.2.3"),
            "arguments": ["--verbose", "--level=4", format!("--step={at}")]})
        })
        .collect();
    let mut metadata =
        json!({"name": name, "labels": {"bench.example.com/name": name, "bench.example.com/part": "load"}});
    if let Some(version) = version {
        metadata["resourceVersion"] = json!(version);
    }
    let item = json!({
        "apiVersion": "bench.example.com/v1", "kind": "Item", "metadata": metadata,
        "spec": {"count": count, "entries": entries, "steps": steps},
    });
    Bytes::from(item.to_string())
}

/// The resourceVersion of a response, found without parsing it.
pub(crate) fn version(answer: &[u8]) -> Option<String> {
    const KEY: &[u8] = b"\"resourceVersion\":\"";
    let at = answer.windows(KEY.len()).position(|part| part == KEY)? + KEY.len();
    let end = answer[at..].iter().position(|byte| *byte == b'"')?;
    String::from_utf8(answer[at..at + end].to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_has_about_four_kibibytes_and_its_version_is_found() {
        let item = item("a", 1, Some("77"));
        assert!((3_900..4_300).contains(&item.len()), "{}", item.len());
        assert_eq!(version(&item).as_deref(), Some("77"));
    }
}
