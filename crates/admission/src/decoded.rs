//! Whether the type of a kind can hold an object.
//!
//! A schema allows more than types do: an `IntOrString` has any number there, and only 32 bits here. Controllers cannot read such an object,
//! and decide nothing about its Cluster. Cluster API decodes objects in its webhooks, too.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::Value;
use windlass_api::codec::Stored;
use windlass_meta::beginning;
use windlass_schema::FieldError;

/// Decodes an object of a kind.
pub type Decode = fn(&[u8]) -> serde_json::Result<Arc<dyn Stored>>;

/// The most bytes of a message: it may quote a value.
const MESSAGE_BYTES: usize = 1 << 10;

/// Why the type cannot hold an object, if so.
pub(crate) fn undecodable(decode: Decode, object: &Value) -> Option<FieldError> {
    let json = serde_json::to_vec(object).ok()?;
    let error = decode(&json).err()?;
    let text = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    let text = text.strip_suffix(&position).unwrap_or(&text);
    let path = path_at(&json, error.column());
    Some(FieldError::invalid(path, Value::Null, beginning(text, MESSAGE_BYTES)))
}

/// A level of JSON text.
enum Level {
    Object(String),
    Array(usize),
}

/// The path of the value in which the byte at `position` of JSON text in one line is.
fn path_at(json: &[u8], position: usize) -> String {
    let (mut levels, mut at) = (Vec::new(), 0);
    let end = position.min(json.len());
    let mut is_key = false;
    while at < end {
        match json[at] {
            b'{' => {
                levels.push(Level::Object(String::new()));
                is_key = true;
            }
            b'[' => levels.push(Level::Array(0)),
            b'}' | b']' => {
                levels.pop();
                is_key = false;
            }
            b',' => match levels.last_mut() {
                Some(Level::Array(index)) => *index += 1,
                _ => is_key = true,
            },
            b'"' => {
                let begin = at;
                at += 1;
                while at < json.len() && json[at] != b'"' {
                    at += if json[at] == b'\\' { 2 } else { 1 };
                }
                if let (true, Some(Level::Object(key))) = (is_key, levels.last_mut()) {
                    let text = json.get(begin..=at).unwrap_or_default();
                    *key = serde_json::from_slice(text).unwrap_or_default();
                    is_key = false;
                }
            }
            _ => {}
        }
        at += 1;
    }
    let mut path = String::new();
    for level in &levels {
        match level {
            Level::Object(key) if path.is_empty() => path.push_str(key),
            Level::Object(key) if key.is_empty() => {}
            Level::Object(key) => {
                let _ = write!(path, ".{key}");
            }
            Level::Array(index) => {
                let _ = write!(path, "[{index}]");
            }
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use windlass_api::codec::Codec as _;
    use windlass_api::core::MachineDeployment;

    use super::*;

    #[test]
    fn what_a_type_cannot_hold_is_named() {
        let check = |spec: Value, expect: Option<(&str, &str)>| {
            let object = json!({
                "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineDeployment",
                "metadata": {"name": "a\"}", "annotations": {"{": "[\\"}}, "spec": spec,
            });
            let found = undecodable(MachineDeployment::decode_stored, &object);
            let found = found.map(|error| (error.path, error.detail));
            match (&found, expect) {
                (None, None) => {}
                (Some((path, detail)), Some((at, words))) if path == at && detail.contains(words) => {
                    assert!(!detail.contains("column"), "{detail}");
                }
                _ => panic!("{found:?}"),
            }
        };
        let template = json!({"spec": {
            "clusterName": "c", "bootstrap": {}, "infrastructureRef": {"apiGroup": "g", "kind": "K", "name": "i"},
        }});
        let with = |name: &str, value: Value| {
            let mut spec = json!({"clusterName": "c", "selector": {}, "template": template});
            spec[name] = value;
            spec
        };
        check(with("replicas", json!(1)), None);
        check(
            with(
                "rollout",
                json!({"strategy": {"rollingUpdate": {"maxSurge": 5_000_000_000_i64, "maxUnavailable": 0}}}),
            ),
            Some(("spec.rollout.strategy.rollingUpdate.maxSurge", "5000000000")),
        );
        let mut spec = with("replicas", json!(1));
        spec["template"]["spec"]["readinessGates"] = json!([{"conditionType": "a"}, {"conditionType": 7}]);
        check(
            spec,
            Some((
                "spec.template.spec.readinessGates[1].conditionType",
                "expected a string",
            )),
        );
    }
}
