//! Decodes Kubernetes' protobuf form of the built-in kinds: some clients (kubectl among them) send only this form for them.
//!
//! `protobuf_fields.txt` has the number, name and form of the fields of each type; `tools/protobuf-fields` writes it from the
//! struct tags of `k8s.io/api`. Answers are always JSON, which those clients accept.

use std::collections::HashMap;
use std::sync::LazyLock;

use base64::Engine as _;
use serde_json::{Map, Value};

const TABLE: &str = include_str!("protobuf_fields.txt");
const MAGIC: &[u8] = b"k8s\0";
/// The largest depth of nested messages.
const MAX_DEPTH: usize = 64;

/// Whether a field repeats, and how its zero value is decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    One,
    /// Omitted when zero, as in the JSON form.
    OmitZero,
    /// Its fields belong to the enclosing message.
    Embedded,
    List,
    Map,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Text,
    Bytes,
    Integer,
    Boolean,
    Double,
    Time,
    MicroTime,
    Quantity,
    IntOrString,
    Json,
    /// A message with only a list of texts.
    Texts,
    Message(&'static str),
}

#[derive(Debug, Clone, Copy)]
struct Field {
    name: &'static str,
    shape: Shape,
    kind: Kind,
}

type Fields = HashMap<u64, Field>;

static TYPES: LazyLock<HashMap<&'static str, Fields>> = LazyLock::new(|| {
    let mut out: HashMap<&'static str, Fields> = HashMap::new();
    let mut current = "";
    for line in TABLE.lines() {
        if let Some(name) = line.strip_prefix('=') {
            current = name;
            out.insert(name, Fields::new());
            continue;
        }
        if let Some((number, field)) = field(line) {
            out.entry(current).or_default().insert(number, field);
        }
    }
    out
});

fn field(line: &'static str) -> Option<(u64, Field)> {
    let mut words = line.split(' ');
    let number = words.next()?.parse().ok()?;
    let name = words.next()?;
    let form = words.next()?;
    let (shape, form) = match form.as_bytes().first()? {
        b'*' => (Shape::List, &form[1..]),
        b'%' => (Shape::Map, &form[1..]),
        b'-' => (Shape::OmitZero, &form[1..]),
        b'^' => (Shape::Embedded, &form[1..]),
        _ => (Shape::One, form),
    };
    let kind = match form.as_bytes().first()? {
        b's' => Kind::Text,
        b'b' => Kind::Bytes,
        b'i' => Kind::Integer,
        b'B' => Kind::Boolean,
        b'd' => Kind::Double,
        b'T' => Kind::Time,
        b'U' => Kind::MicroTime,
        b'Q' => Kind::Quantity,
        b'I' => Kind::IntOrString,
        b'J' => Kind::Json,
        b'L' => Kind::Texts,
        _ => Kind::Message(&form[1..]),
    };
    Some((number, Field { name, shape, kind }))
}

/// A value in the wire format.
enum Wire<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

struct Reader<'a>(&'a [u8]);

type Result<T> = std::result::Result<T, String>;

impl<'a> Reader<'a> {
    fn varint(&mut self) -> Result<u64> {
        let mut out = 0_u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first().ok_or("a number is cut off")?;
            self.0 = rest;
            out |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(out);
            }
        }
        Err("a number is too long".to_owned())
    }

    fn take(&mut self, n: usize) -> Result<&'a [u8]> {
        if n > self.0.len() {
            return Err("a field is cut off".to_owned());
        }
        let (out, rest) = self.0.split_at(n);
        self.0 = rest;
        Ok(out)
    }

    fn next(&mut self) -> Result<Option<(u64, Wire<'a>)>> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let fixed = |bytes: &[u8]| bytes.iter().rev().fold(0_u64, |n, b| n << 8 | u64::from(*b));
        let wire = match tag & 7 {
            0 => Wire::Number(self.varint()?),
            1 => Wire::Number(fixed(self.take(8)?)),
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|e| e.to_string())?;
                Wire::Bytes(self.take(length)?)
            }
            5 => Wire::Number(fixed(self.take(4)?)),
            other => return Err(format!("wire type {other} is unknown")),
        };
        Ok(Some((tag >> 3, wire)))
    }
}

impl<'a> Wire<'a> {
    fn bytes(&self) -> Result<&'a [u8]> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            Self::Number(_) => Err("a number stands where bytes belong".to_owned()),
        }
    }

    fn number(&self) -> Result<u64> {
        match self {
            Self::Number(n) => Ok(*n),
            Self::Bytes(_) => Err("bytes stand where a number belongs".to_owned()),
        }
    }

    fn text(&self) -> Result<String> {
        String::from_utf8(self.bytes()?.to_vec()).map_err(|_| "a text is not UTF-8".to_owned())
    }
}

/// Two's complement, as negative numbers are written.
fn signed(n: u64) -> i64 {
    i64::from_ne_bytes(n.to_ne_bytes())
}

fn value(kind: Kind, wire: &Wire<'_>, depth: usize) -> Result<Value> {
    Ok(match kind {
        Kind::Text => wire.text()?.into(),
        Kind::Bytes => base64::engine::general_purpose::STANDARD.encode(wire.bytes()?).into(),
        Kind::Integer => signed(wire.number()?).into(),
        Kind::Boolean => (wire.number()? != 0).into(),
        Kind::Double => f64::from_bits(wire.number()?).into(),
        Kind::Time | Kind::MicroTime => time(wire.bytes()?, matches!(kind, Kind::MicroTime))?,
        Kind::Quantity => parts(wire.bytes()?)?
            .remove(&1)
            .map_or(Ok(String::new()), |w| w.text())?
            .into(),
        Kind::IntOrString => {
            let parts = parts(wire.bytes()?)?;
            let is_text = parts.get(&1).map_or(Ok(0), Wire::number)? == 1;
            if is_text {
                parts.get(&3).map_or(Ok(String::new()), Wire::text)?.into()
            } else {
                signed(parts.get(&2).map_or(Ok(0), Wire::number)?).into()
            }
        }
        Kind::Json => match parts(wire.bytes()?)?.get(&1) {
            Some(raw) => serde_json::from_slice(raw.bytes()?).map_err(|e| e.to_string())?,
            None => Value::Null,
        },
        Kind::Texts => {
            let mut reader = Reader(wire.bytes()?);
            let mut out = Vec::new();
            while let Some((_, wire)) = reader.next()? {
                out.push(Value::from(wire.text()?));
            }
            out.into()
        }
        Kind::Message(name) => message(name, wire.bytes()?, depth + 1)?,
    })
}

fn parts(bytes: &[u8]) -> Result<HashMap<u64, Wire<'_>>> {
    let mut reader = Reader(bytes);
    let mut out = HashMap::new();
    while let Some((number, wire)) = reader.next()? {
        out.insert(number, wire);
    }
    Ok(out)
}

fn time(bytes: &[u8], micro: bool) -> Result<Value> {
    let parts = parts(bytes)?;
    let seconds = signed(parts.get(&1).map_or(Ok(0), Wire::number)?);
    let nanos = i32::try_from(signed(parts.get(&2).map_or(Ok(0), Wire::number)?)).unwrap_or(0);
    // Go's zero time, and an empty message, mean "not set".
    if parts.is_empty() || seconds == -62_135_596_800 {
        return Ok(Value::Null);
    }
    let time = jiff::Timestamp::new(seconds, nanos).map_err(|e| e.to_string())?;
    Ok(if micro {
        time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string().into()
    } else {
        windlass_objects::metadata::seconds(time).into()
    })
}

fn message(name: &str, bytes: &[u8], depth: usize) -> Result<Value> {
    if depth > MAX_DEPTH {
        return Err("messages are nested too deeply".to_owned());
    }
    let fields = TYPES.get(name).ok_or_else(|| format!("the type {name} is unknown"))?;
    let mut out = Map::new();
    let mut reader = Reader(bytes);
    while let Some((number, wire)) = reader.next()? {
        let Some(field) = fields.get(&number) else {
            continue;
        };
        match field.shape {
            Shape::Map => {
                let mut entry = parts(wire.bytes()?)?;
                let key = entry.remove(&1).map_or(Ok(String::new()), |w| w.text())?;
                let item = match entry.remove(&2) {
                    Some(wire) => value(field.kind, &wire, depth)?,
                    None => zero(field.kind),
                };
                let map = out.entry(field.name).or_insert_with(|| Value::Object(Map::new()));
                if let Some(map) = map.as_object_mut() {
                    map.insert(key, item);
                }
            }
            Shape::List => {
                let list = out.entry(field.name).or_insert_with(|| Value::Array(Vec::new()));
                let Some(list) = list.as_array_mut() else {
                    continue;
                };
                match (&wire, field.kind) {
                    (Wire::Bytes(packed), Kind::Integer | Kind::Boolean) => {
                        let mut reader = Reader(packed);
                        while !reader.0.is_empty() {
                            list.push(value(field.kind, &Wire::Number(reader.varint()?), depth)?);
                        }
                    }
                    _ => list.push(value(field.kind, &wire, depth)?),
                }
            }
            Shape::Embedded => {
                if let Value::Object(inner) = value(field.kind, &wire, depth)? {
                    out.extend(inner);
                }
            }
            Shape::One | Shape::OmitZero => {
                let value = value(field.kind, &wire, depth)?;
                let left_out = value.is_null() || (field.shape == Shape::OmitZero && is_zero(&value));
                if !left_out {
                    out.insert(field.name.to_owned(), value);
                }
            }
        }
    }
    Ok(Value::Object(out))
}

fn zero(kind: Kind) -> Value {
    match kind {
        Kind::Integer => 0.into(),
        Kind::Boolean => false.into(),
        Kind::Text | Kind::Bytes | Kind::Quantity => "".into(),
        _ => Value::Null,
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(b) => !b,
        Value::Number(n) => n.as_f64() == Some(0.0),
        Value::String(s) => s.is_empty(),
        Value::Array(a) => a.is_empty(),
        Value::Object(o) => o.is_empty(),
    }
}

/// The name of a type in the table.
fn type_name(version: &str, kind: &str) -> String {
    if kind == "DeleteOptions" {
        return "meta.v1.DeleteOptions".to_owned();
    }
    let (group, version) = version.split_once('/').unwrap_or(("core", version));
    let package = group.split('.').next().unwrap_or(group);
    format!("{package}.{version}.{kind}")
}

/// Decodes an object.
pub(crate) fn decode(bytes: &[u8]) -> Result<Value> {
    let body = bytes
        .strip_prefix(MAGIC)
        .ok_or("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")?;
    let envelope = parts(body)?;
    let types = envelope.get(&1).map_or(Ok(&[][..]), Wire::bytes)?;
    let types = parts(types)?;
    let version = types.get(&1).map_or(Ok(String::new()), Wire::text)?;
    let kind = types.get(&2).map_or(Ok(String::new()), Wire::text)?;
    let raw = envelope.get(&2).map_or(Ok(&[][..]), Wire::bytes)?;
    let mut out = message(&type_name(&version, &kind), raw, 0)?;
    if let Some(map) = out.as_object_mut() {
        map.insert("apiVersion".into(), version.into());
        map.insert("kind".into(), kind.into());
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn bytes(number: u8, payload: &[u8]) -> Vec<u8> {
        let mut out = vec![number << 3 | 2, u8::try_from(payload.len()).unwrap()];
        out.extend_from_slice(payload);
        out
    }

    fn envelope(version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
        let types = [bytes(1, version.as_bytes()), bytes(2, kind.as_bytes())].concat();
        [MAGIC.to_vec(), bytes(1, &types), bytes(2, raw)].concat()
    }

    #[test]
    fn objects_are_read() {
        let label = [bytes(1, b"a"), bytes(2, b"b")].concat();
        let metadata = [bytes(1, b"x"), bytes(2, b""), bytes(8, b""), bytes(11, &label)].concat();
        let data = [bytes(1, b"k"), bytes(2, b"v")].concat();
        let raw = [bytes(1, &metadata), bytes(2, &data)].concat();
        assert_eq!(
            decode(&envelope("v1", "ConfigMap", &raw)).unwrap(),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "labels": {"a": "b"}}, "data": {"k": "v"}})
        );
    }

    #[test]
    fn numbers_keep_what_a_pointer_says() {
        // replicas is a pointer in Go: its zero counts. minReadySeconds is not.
        let spec = [vec![1 << 3, 0], vec![5 << 3, 0]].concat();
        let got = decode(&envelope("apps/v1", "Deployment", &bytes(2, &spec))).unwrap();
        assert_eq!(got["spec"], json!({"replicas": 0}));
    }

    #[test]
    fn broken_messages_are_refused() {
        for bad in [
            &b"{}"[..],
            b"k8s\0\x0a\x7f",
            b"k8s\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        ] {
            assert!(decode(bad).is_err());
        }
        assert!(decode(&envelope("v9", "Nothing", b"")).is_err());
    }

    #[test]
    fn every_built_in_kind_is_in_the_table() {
        let missing: Vec<&str> = crate::builtin::resources()
            .iter()
            .filter(|r| decode(&envelope(r.api_version(), &r.kind, b"")).is_err())
            .map(|r| r.api_version())
            .collect();
        // Definitions and API services come as JSON or YAML.
        assert_eq!(missing, ["apiregistration.k8s.io/v1", "apiextensions.k8s.io/v1"]);
    }

    #[test]
    fn every_message_in_the_table_is_described_there() {
        for (name, fields) in TYPES.iter() {
            for field in fields.values() {
                if let Kind::Message(inner) = field.kind {
                    assert!(TYPES.contains_key(inner), "{inner} in {name}");
                }
            }
        }
    }
}
