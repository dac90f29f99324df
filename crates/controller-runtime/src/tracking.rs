//! Objects whose `managedFields` are lost: an API server or a tool for backups dropped them. At the next apply, the API server gives
//! all fields of such an object to a field manager of its own. No client uses that manager, so a field that an applier no longer wants
//! would stay for ever.

use serde::Deserialize;

/// The manager to which the API server gives the fields of an object without `managedFields`.
pub(crate) const STAND_IN: &str = "before-first-apply";

#[derive(Deserialize)]
struct Head {
    metadata: HeadMeta,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HeadMeta {
    #[serde(default)]
    managed_fields: Option<Vec<Entry>>,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(default)]
    manager: String,
}

/// Whether the fields of an encoded object have no managers, or the stand-in.
pub(crate) fn is_lost(json: &[u8]) -> bool {
    // Almost all objects need no more than this. A text of an object has no quotation mark without a backslash.
    let is_tracked =
        std::str::from_utf8(json).is_ok_and(|text| text.contains("\"managedFields\":") && !text.contains(STAND_IN));
    if is_tracked {
        return false;
    }
    let Ok(head) = serde_json::from_slice::<Head>(json) else {
        return false;
    };
    let entries = head.metadata.managed_fields.unwrap_or_default();
    entries.is_empty() || entries.iter().any(|entry| entry.manager == STAND_IN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn objects_without_managers_are_lost() {
        let check = |metadata: Value, expect: bool| {
            let text = json!({"metadata": metadata, "spec": {"a": "before-first-apply"}}).to_string();
            assert_eq!(is_lost(text.as_bytes()), expect, "{text}");
        };
        check(json!({"name": "a"}), true);
        check(json!({"managedFields": null}), true);
        check(json!({"managedFields": []}), true);
        check(json!({"managedFields": [{"manager": "m"}]}), false);
        check(
            json!({"managedFields": [{"manager": "m"}, {"manager": STAND_IN}]}),
            true,
        );
        check(
            json!({"annotations": {"a": "{\"managedFields\":[{\"manager\":\"m\"}]}"}}),
            true,
        );
    }

    #[test]
    fn what_is_no_object_is_not_lost() {
        assert!(!is_lost(b"{}"));
        assert!(!is_lost(b"no JSON"));
    }
}
