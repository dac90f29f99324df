//! Decodes objects of built-in kinds into their types. Values that do not match the type are errors; numbers and times as text
//! get a canonical form.

use base64::Engine as _;
use serde_json::Value;
use windlass_schema::{Additional, Node, Schema, Type};

use super::quantity::{self, Quantity};

/// Converts an object to the form of its types. The errors have the wording of Go's decoder.
pub fn decode(schema: &Schema, kind: &str, object: &mut Value) -> Result<(), String> {
    Decoder { path: Vec::new() }.value(schema.root(), kind, object)
}

/// Text fields that are omitted if empty, by type. Published schemas do not distinguish them from optional pointers.
const EMPTY: &[(&str, &str)] = &[
    ("Container", "image"),
    ("Container", "workingDir"),
    ("EnvVar", "value"),
    ("PodSpec", "hostname"),
    ("PodSpec", "nodeName"),
    ("PodSpec", "priorityClassName"),
    ("PodSpec", "serviceAccount"),
    ("PodSpec", "serviceAccountName"),
    ("PodSpec", "subdomain"),
    ("ServicePort", "name"),
    ("Subject", "namespace"),
    ("Toleration", "effect"),
    ("Toleration", "key"),
    ("Toleration", "operator"),
    ("Toleration", "value"),
    ("VolumeMount", "subPath"),
];

struct Decoder {
    /// Names of fields only, without indexes and keys.
    path: Vec<String>,
}

impl Decoder {
    fn value(&mut self, node: &Node, owner: &str, value: &mut Value) -> Result<(), String> {
        if value.is_null() {
            return Ok(());
        }
        match node.type_name.as_deref() {
            Some("runtime.RawExtension") => return Ok(()),
            Some("resource.Quantity") => return quantity(value),
            Some("intstr.IntOrString") => return self.int_or_string(owner, value),
            Some("v1.Time") => return self.time(owner, value, false),
            Some("v1.MicroTime") => return self.time(owner, value, true),
            _ => {}
        }
        match (node.kind, &mut *value) {
            (Some(Type::Object), Value::Object(map)) => {
                let owner = node
                    .type_name
                    .as_deref()
                    .and_then(|n| n.rsplit('.').next())
                    .unwrap_or(owner);
                for (key, child) in map.iter_mut() {
                    if let Some(below) = node.properties.get(key) {
                        self.path.push(key.clone());
                        self.value(below, owner, child)?;
                        self.path.pop();
                    } else if let Additional::Values(below) = &node.additional {
                        self.value(below, owner, child)?;
                    }
                }
                map.retain(|key, child| {
                    // An empty list of managers resets them.
                    if key == "managedFields" {
                        return true;
                    }
                    if child.as_str() == Some("") {
                        return !EMPTY.contains(&(owner, key));
                    }
                    node.properties
                        .get(key)
                        .is_none_or(|below| below.nullable || !is_hollow(below, child))
                });
                Ok(())
            }
            (Some(Type::Array), Value::Array(items)) => {
                let Some(below) = &node.items else {
                    return Ok(());
                };
                items.iter_mut().try_for_each(|item| self.value(below, owner, item))
            }
            (Some(Type::String), Value::String(text)) if node.format.as_deref() == Some("byte") => bytes(text),
            (Some(Type::Integer), Value::Number(number)) => {
                let small = node.format.as_deref() == Some("int32");
                let fits = number.as_i64().is_some_and(|n| !small || i32::try_from(n).is_ok());
                // Go does not accept `1.0` and `1e3` for integers.
                if fits && !number.is_f64() {
                    Ok(())
                } else {
                    Err(self.wrong(node, owner, value))
                }
            }
            (None, _)
            | (Some(Type::String), Value::String(_))
            | (Some(Type::Boolean), Value::Bool(_))
            | (Some(Type::Number), Value::Number(_)) => Ok(()),
            _ => Err(self.wrong(node, owner, value)),
        }
    }

    fn wrong(&self, node: &Node, owner: &str, value: &Value) -> String {
        self.mismatch(owner, value, &go_type(node))
    }

    fn mismatch(&self, owner: &str, value: &Value, want: &str) -> String {
        let have = match value {
            Value::Null => "null".to_owned(),
            Value::Bool(_) => "bool".to_owned(),
            // For a number of the wrong type, the error shows the value; for other types it does not.
            Value::Number(n) if want.starts_with("int") => format!("number {n}"),
            Value::Number(_) => "number".to_owned(),
            Value::String(_) => "string".to_owned(),
            Value::Array(_) => "array".to_owned(),
            Value::Object(_) => "object".to_owned(),
        };
        if self.path.is_empty() {
            return format!("json: cannot unmarshal {have} into Go value of type {want}");
        }
        let path = self.path.join(".");
        format!("json: cannot unmarshal {have} into Go struct field {owner}.{path} of type {want}")
    }

    fn int_or_string(&self, owner: &str, value: &Value) -> Result<(), String> {
        match value {
            Value::String(_) => Ok(()),
            Value::Number(n) if n.as_i64().is_some_and(|n| i32::try_from(n).is_ok()) => Ok(()),
            Value::Number(_) => Err(self.mismatch(owner, value, "int32")),
            _ => Err(self.mismatch(owner, value, "string")),
        }
    }

    fn time(&self, owner: &str, value: &mut Value, micro: bool) -> Result<(), String> {
        let Some(text) = value.as_str() else {
            return Err(self.mismatch(owner, value, "string"));
        };
        let layout = if micro {
            "2006-01-02T15:04:05.000000Z07:00"
        } else {
            "2006-01-02T15:04:05Z07:00"
        };
        let wrong =
            |rest: &str, part: &str| format!("parsing time {text:?} as {layout:?}: cannot parse {rest:?} as {part:?}");
        let time: jiff::Timestamp = text.parse().map_err(|_| wrong(text, "2006"))?;
        if micro {
            let rest = text.get("2006-01-02T15:04:05".len()..).unwrap_or_default();
            let digits = rest
                .strip_prefix('.')
                .map_or(0, |r| r.bytes().take_while(u8::is_ascii_digit).count());
            if digits != 6 {
                return Err(wrong(rest, ".000000"));
            }
        }
        *value = if micro {
            time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string().into()
        } else {
            windlass_objects::metadata::seconds(time).into()
        };
        Ok(())
    }
}

/// Converts an object to the form in which it is read from the store: some empty lists become null.
pub fn settle(node: &Node, value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (key, child) in map {
                let Some(below) = node.field(key) else { continue };
                if below.nullable && is_hollow(below, child) {
                    *child = Value::Null;
                } else {
                    settle(below, child);
                }
            }
        }
        Value::Array(items) => {
            if let Some(below) = &node.items {
                for item in items {
                    settle(below, item);
                }
            }
        }
        _ => {}
    }
}

/// An empty list or map that is omitted in the store.
fn is_hollow(node: &Node, value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty() && node.kind == Some(Type::Array),
        Value::Object(map) => map.is_empty() && matches!(node.additional, Additional::Values(_)),
        _ => false,
    }
}

fn quantity(value: &mut Value) -> Result<(), String> {
    let text = match &*value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        _ => return Err(quantity::WRONG.to_owned()),
    };
    let canonical = Quantity::parse(&text).ok_or(quantity::WRONG)?.canonical();
    if value.as_str() != Some(&canonical) {
        *value = canonical.into();
    }
    Ok(())
}

fn bytes(text: &mut String) -> Result<(), String> {
    let engine = &base64::engine::general_purpose::STANDARD;
    match engine.decode(text.as_bytes()) {
        Ok(_) => Ok(()),
        Err(_) if text.contains(['\n', '\r']) => {
            text.retain(|c| !matches!(c, '\n' | '\r'));
            bytes(text)
        }
        Err(error) => {
            let at = match error {
                base64::DecodeError::InvalidByte(at, _) => at,
                base64::DecodeError::InvalidLastSymbol { offset, .. } => offset,
                _ => text.len(),
            };
            Err(format!("illegal base64 data at input byte {at}"))
        }
    }
}

/// The name of a field's type in Go.
fn go_type(node: &Node) -> String {
    if let Some(name) = &node.type_name {
        return name.to_string();
    }
    match node.kind {
        Some(Type::Object) => match &node.additional {
            Additional::Values(below) => format!("map[string]{}", go_type(below)),
            _ => "map[string]interface {}".to_owned(),
        },
        Some(Type::Array) => format!("[]{}", node.items.as_ref().map(|n| go_type(n)).unwrap_or_default()),
        Some(Type::String) if node.format.as_deref() == Some("byte") => "[]uint8".to_owned(),
        Some(Type::String) | None => "string".to_owned(),
        Some(Type::Integer) => node.format.as_deref().unwrap_or("int64").to_owned(),
        Some(Type::Number) => "float64".to_owned(),
        Some(Type::Boolean) => "bool".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(object: Value) -> Result<Value, String> {
        let schema = super::super::schema::parsed("io.k8s.api.core.v1.Pod").unwrap();
        let mut object = object;
        decode(&schema, "Pod", &mut object).map(|()| object)
    }

    #[test]
    fn what_does_not_fit_is_named_as_go_does() {
        let check = |object: Value, want: &str| assert_eq!(pod(object).unwrap_err(), want);
        check(
            json!({"spec": {"containers": {}}}),
            "json: cannot unmarshal object into Go struct field PodSpec.spec.containers of type []v1.Container",
        );
        check(
            json!({"spec": {"containers": [{"name": 3}]}}),
            "json: cannot unmarshal number into Go struct field Container.spec.containers.name of type string",
        );
        check(
            json!({"spec": {"terminationGracePeriodSeconds": "3"}}),
            "json: cannot unmarshal string into Go struct field PodSpec.spec.terminationGracePeriodSeconds of type int64",
        );
        check(
            json!({"metadata": {"labels": {"a": 3}}}),
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string",
        );
        check(
            json!({"spec": {"containers": [{"resources": {"limits": {"cpu": "xx"}}}]}}),
            quantity::WRONG,
        );
    }

    #[test]
    fn empty_lists_and_maps_are_nothing_and_empty_structs_are_something() {
        let got = pod(json!({"spec": {"tolerations": [], "nodeSelector": {}, "volumes": [{"emptyDir": {}}]}}));
        assert_eq!(got.unwrap(), json!({"spec": {"volumes": [{"emptyDir": {}}]}}));
    }

    #[test]
    fn empty_texts_are_nothing_unless_they_may_be_left_out() {
        let got =
            pod(json!({"spec": {"nodeName": "", "containers": [{"name": "", "env": [{"name": "A", "value": ""}]}]}}));
        assert_eq!(
            got.unwrap(),
            json!({"spec": {"containers": [{"name": "", "env": [{"name": "A"}]}]}})
        );
        let claim =
            json!({"spec": {"volumes": [{"ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": ""}}}}]}});
        assert_eq!(pod(claim.clone()).unwrap(), claim);
    }

    #[test]
    fn every_empty_text_is_a_field() {
        for (name, field) in EMPTY {
            let definition = super::super::data::definition(&format!("io.k8s.api.core.v1.{name}"))
                .or_else(|| super::super::data::definition(&format!("io.k8s.api.rbac.v1.{name}")));
            assert!(definition.unwrap()["properties"].get(field).is_some(), "{name} {field}");
        }
    }

    #[test]
    fn amounts_and_times_get_one_form() {
        let got = pod(json!({
            "metadata": {"creationTimestamp": "2024-01-01T01:00:00.5+01:00"},
            "spec": {"containers": [{"resources": {"limits": {"cpu": 1, "memory": "1024Mi"}}}]},
        }));
        assert_eq!(
            got.unwrap(),
            json!({
                "metadata": {"creationTimestamp": "2024-01-01T00:00:00Z"},
                "spec": {"containers": [{"resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}]},
            })
        );
    }
}
