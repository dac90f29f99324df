//! Converts JSON to CEL values, with the types of the schema.

use std::collections::HashMap;
use std::sync::Arc;

use base64::Engine;
use cel::Value as Cel;
use cel::common::types::{CelList, CelMap, CelMapKey, CelNull};
use cel::common::value::Val;
use cel::objects::{Key, Map, OptionalValue};
use serde_json::Value;

use windlass_schema::{Additional, Format, ListType, Node, Type};

use crate::keyed::Keyed;

/// Reserved names that are no identifiers in CEL.
const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// A value in the form that the rules of `node` see.
pub(crate) fn to_cel(node: &Node, value: &Value, resource: bool) -> Box<dyn Val> {
    match value {
        Value::Null => boxed(Cel::Null),
        Value::Bool(b) => boxed(Cel::Bool(*b)),
        Value::Number(number) => boxed(match node.kind {
            Some(Type::Number) => Cel::Float(number.as_f64().unwrap_or_default()),
            _ => plain_number(number),
        }),
        Value::String(text) => boxed(string(node, text)),
        Value::Array(items) => {
            let item = |item: &Value| match &node.items {
                Some(below) => to_cel(below, item, below.embedded_resource),
                None => boxed(plain(item)),
            };
            let items: Vec<_> = items.iter().map(item).collect();
            match node.list_type {
                ListType::Atomic => Box::new(CelList::from(items)),
                ListType::Set => Box::new(Keyed::new(items, Arc::default())),
                ListType::Map => {
                    let keys = node.list_map_keys.iter().filter_map(|key| escape(key));
                    Box::new(Keyed::new(items, keys.collect()))
                }
            }
        }
        Value::Object(map) => {
            let mut out: HashMap<CelMapKey<'static>, Box<dyn Val>> = HashMap::with_capacity(map.len());
            for (name, child) in map {
                if resource && node.properties.get(name).is_none_or(|_| name == "metadata") && is_resource_field(name) {
                    out.insert(name.clone().into(), boxed(resource_field(name, child)));
                } else if let Some(below) = node.properties.get(name) {
                    if child.is_null() && !below.nullable {
                        continue;
                    }
                    // Rules do not see a field whose name cannot be escaped.
                    if let Some(name) = escape(name) {
                        out.insert(name.into(), to_cel(below, child, below.embedded_resource));
                    }
                } else if let Additional::Values(below) = &node.additional {
                    out.insert(name.clone().into(), to_cel(below, child, below.embedded_resource));
                } else if node.properties.is_empty() {
                    out.insert(name.clone().into(), boxed(plain(child)));
                }
            }
            Box::new(CelMap::from(out))
        }
    }
}

/// The same value for the engine. All values of this module have such a form.
fn boxed(value: Cel) -> Box<dyn Val> {
    Box::<dyn Val>::try_from(value).unwrap_or_else(|_| Box::new(CelNull))
}

/// An optional.
pub(crate) fn optional(value: Option<Cel>) -> Cel {
    Cel::Opaque(Arc::new(value.map_or_else(OptionalValue::none, OptionalValue::of)))
}

fn is_resource_field(name: &str) -> bool {
    matches!(name, "apiVersion" | "kind" | "metadata")
}

/// Of metadata, rules see only the names.
fn resource_field(name: &str, value: &Value) -> Cel {
    let Value::Object(map) = value else {
        return plain(value);
    };
    if name != "metadata" {
        return plain(value);
    }
    let seen = map
        .iter()
        .filter(|(k, _)| matches!(k.as_str(), "name" | "generateName"))
        .map(|(k, v)| (key(k), plain(v)));
    Cel::Map(Map {
        map: Arc::new(seen.collect()),
    })
}

fn key(name: &str) -> Key {
    Key::String(Arc::new(name.to_owned()))
}

fn plain_number(number: &serde_json::Number) -> Cel {
    match (number.as_i64(), number.as_u64()) {
        (Some(n), _) => Cel::Int(n),
        (None, Some(n)) => Cel::UInt(n),
        _ => Cel::Float(number.as_f64().unwrap_or_default()),
    }
}

/// A value without a schema.
pub(super) fn plain(value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(b) => Cel::Bool(*b),
        Value::Number(number) => plain_number(number),
        Value::String(text) => Cel::String(Arc::new(text.clone())),
        Value::Array(items) => Cel::List(Arc::new(items.iter().map(plain).collect())),
        Value::Object(map) => Cel::Map(Map {
            map: Arc::new(map.iter().map(|(k, v)| (key(k), plain(v))).collect()),
        }),
    }
}

fn string(node: &Node, text: &str) -> Cel {
    let plain = || Cel::String(Arc::new(text.to_owned()));
    if node.int_or_string {
        return plain();
    }
    match node.string_format() {
        Some(Format::DateTime) => chrono::DateTime::parse_from_rfc3339(text).map_or_else(|_| plain(), Cel::Timestamp),
        Some(Format::Date) => {
            chrono::DateTime::parse_from_rfc3339(&format!("{text}T00:00:00Z")).map_or_else(|_| plain(), Cel::Timestamp)
        }
        Some(Format::Duration) => duration(text).map_or_else(plain, Cel::Duration),
        Some(Format::Byte) => base64::engine::general_purpose::STANDARD
            .decode(text)
            .map_or_else(|_| plain(), |b| Cel::Bytes(Arc::new(b))),
        _ => plain(),
    }
}

/// Parses `1h2m3.5s`.
pub(super) fn duration(text: &str) -> Option<chrono::Duration> {
    windlass_gocompat::duration::parse(text).map(chrono::Duration::nanoseconds)
}

/// The name of a field in CEL, if it can be escaped.
pub(crate) fn escape(name: &str) -> Option<String> {
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if RESERVED.contains(&name) {
        return Some(format!("__{name}__"));
    }
    let mut out = String::with_capacity(name.len() + 8);
    let mut rest = name;
    while let Some(c) = rest.chars().next() {
        let (text, used) = match c {
            '_' if rest.starts_with("__") => ("__underscores__", 2),
            '.' => ("__dot__", 1),
            '-' => ("__dash__", 1),
            '/' => ("__slash__", 1),
            c if c.is_ascii_alphanumeric() || c == '_' => (&rest[..1], 1),
            _ => return None,
        };
        out.push_str(text);
        rest = &rest[used..];
    }
    Some(out)
}
