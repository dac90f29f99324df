//! Answers in YAML, as kube-apiserver writes it.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;
use windlass_gocompat::yaml::Writer;

/// The fields with the objects of a list, or the rows of a table.
const OBJECTS: [&str; 2] = ["items", "rows"];

/// Encoded JSON as YAML. The objects of a list are decoded one after the other.
///
/// # Errors
///
/// `None` if it would have more than `most` bytes, or is no JSON.
pub(crate) fn write(json: &[u8], most: usize) -> Option<String> {
    let mut out = Writer::new(most);
    match serde_json::from_slice::<BTreeMap<String, &RawValue>>(json) {
        Ok(fields) if !fields.is_empty() => {
            for (key, value) in fields {
                let has_objects = OBJECTS.contains(&key.as_str());
                let items = has_objects.then(|| serde_json::from_str::<Vec<&RawValue>>(value.get()).ok());
                match items.flatten() {
                    Some(items) if !items.is_empty() => {
                        out.list(&key);
                        for item in items {
                            out.item(&decoded(item)?);
                            if out.is_over() {
                                return None;
                            }
                        }
                    }
                    _ => out.field(&key, &decoded(value)?),
                }
            }
        }
        _ => out.value(&serde_json::from_slice(json).ok()?),
    }
    out.finish()
}

fn decoded(json: &RawValue) -> Option<Value> {
    serde_json::from_str(json.get()).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use windlass_gocompat::yaml::document;

    use super::*;

    #[test]
    fn lists_are_written_as_any_other_document() {
        for value in [
            json!({"kind": "List", "items": [{"a": "x\ny"}, {"b": [1, {}]}, {}], "metadata": {"c": null}}),
            json!({"items": [], "rows": [[1]]}),
            json!({"items": {"a": 1}}),
            json!({}),
            json!([1, {"a": "b"}]),
        ] {
            let want = document(&value);
            let json = value.to_string();
            assert_eq!(write(json.as_bytes(), want.len()).as_ref(), Some(&want));
            assert_eq!(write(json.as_bytes(), want.len() - 1), None);
        }
    }
}
