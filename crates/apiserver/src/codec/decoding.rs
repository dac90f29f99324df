//! Decodes the body of a request to an object: JSON, YAML or protobuf, with duplicate and unknown fields.

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::codec::go_wording::json_type;
use crate::error::ApiError;
use crate::objects::resource::Resource;
use windlass_objects::metadata::text;
use windlass_schema::StrictErrors;

mod patches;
mod syntax;

pub(crate) use self::patches::{check_patch_type, patch};

/// The accepted media types of objects.
pub(crate) const OBJECT_TYPES: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";

/// The encoding of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Json,
    Yaml,
    Protobuf,
}

/// The media type of a request without its parameters.
pub(crate) fn media_type(headers: &http::HeaderMap) -> &str {
    headers
        .get(http::header::CONTENT_TYPE)
        .and_then(|v| v.to_str().ok())
        .map_or("", |v| v.split(';').next().unwrap_or("").trim())
}

/// The encoding of the object in a request.
pub(crate) fn form(headers: &http::HeaderMap) -> Result<Form, ApiError> {
    match media_type(headers) {
        "" | "application/json" | "*/*" => Ok(Form::Json),
        "application/yaml" => Ok(Form::Yaml),
        "application/vnd.kubernetes.protobuf" => Ok(Form::Protobuf),
        _ => Err(ApiError::unsupported_media_type(OBJECT_TYPES)),
    }
}

/// Decodes the object of a resource. Also returns problems of its text.
pub(crate) fn decode_object(bytes: &[u8], form: Form, resource: &Resource) -> Result<(Value, Vec<String>), ApiError> {
    let unrecognized = |why: &str| {
        ApiError::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): {why} ({})",
            resource.kind,
            summary(bytes)
        ))
    };
    let (value, problems) = read(bytes, form).map_err(|why| unrecognized(&why))?;
    let version = text(&value, "apiVersion");
    if version.matches('/').count() > 1 {
        return Err(unrecognized(&format!("unexpected GroupVersion string: {version}")));
    }
    if resource.is_custom() && text(&value, "kind").is_empty() {
        let raw = String::from_utf8_lossy(bytes);
        return Err(unrecognized(&format!("Object 'Kind' is missing in '{raw}'")));
    }
    Ok((value, problems))
}

/// Decodes the options of a deletion.
pub(crate) fn decode_options(bytes: &[u8], form: Form) -> Result<Value, ApiError> {
    read(bytes, form).map(|(value, _)| value).map_err(ApiError::bad_request)
}

/// Decodes any object. Also returns problems of its text.
fn read(bytes: &[u8], form: Form) -> Result<(Value, Vec<String>), String> {
    let (value, problems) = match form {
        Form::Json => {
            if let Some(why) = syntax::mistake(bytes) {
                return Err(format!("couldn't get version/kind; json parse error: {why}"));
            }
            let (value, twice) = json(bytes).map_err(|e| in_body(&e))?;
            (
                value,
                twice.into_iter().map(|p| format!("duplicate field \"{p}\"")).collect(),
            )
        }
        Form::Protobuf => (crate::codec::protobuf::decode(bytes)?, Vec::new()),
        Form::Yaml => {
            let text = std::str::from_utf8(bytes).map_err(|_| "yaml: invalid leading UTF-8 octet".to_owned())?;
            yaml(text).map_err(|why| format!("yaml: {why}"))?
        }
    };
    match value {
        // An empty document is an object without fields.
        Value::Null => Ok((Value::Object(Map::new()), problems)),
        Value::Object(_) => Ok((value, problems)),
        other => Err(format!(
            "couldn't get version/kind; json parse error: json: cannot unmarshal {} into Go value of type struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}",
            json_type(&other)
        )),
    }
}

/// The beginning of a body, for error messages.
fn summary(bytes: &[u8]) -> String {
    const MOST: usize = 30;
    if bytes.is_empty() {
        return "<empty>".to_owned();
    }
    let start = &bytes[..bytes.len().min(MOST)];
    let more = if bytes.len() > MOST { " ..." } else { "" };
    if bytes.iter().find(|b| !b.is_ascii_whitespace()) == Some(&b'{') {
        return format!("{}{more}", String::from_utf8_lossy(start));
    }
    let hex = start.iter().fold(String::new(), |mut out, byte| {
        use std::fmt::Write as _;
        let _ = write!(out, "{byte:02x}");
        out
    });
    format!("{hex}{more}")
}

/// Decodes a body; also returns the paths of fields that occur twice.
pub(crate) fn decode(bytes: &[u8], form: Form) -> Result<(Value, Vec<String>), ApiError> {
    match form {
        Form::Json => json(bytes).map_err(|e| ApiError::bad_request(in_body(&e))),
        Form::Protobuf => crate::codec::protobuf::decode(bytes)
            .map(|value| (value, Vec::new()))
            .map_err(|e| ApiError::bad_request(format!("the protobuf of the request cannot be read: {e}"))),
        Form::Yaml => {
            let text = std::str::from_utf8(bytes)
                .map_err(|_| ApiError::bad_request("the YAML of the request is not UTF-8"))?;
            yaml(text).map_err(|e| ApiError::bad_request(format!("error converting YAML to JSON: yaml: {e}")))
        }
    }
}

fn in_body(error: &serde_json::Error) -> String {
    format!("couldn't get object from the request body: {error}")
}

/// Decodes JSON; also returns the paths of fields that occur twice.
fn json(bytes: &[u8]) -> Result<(Value, Vec<String>), serde_json::Error> {
    let mut duplicates = StrictErrors::default();
    let mut de = serde_json::Deserializer::from_slice(bytes);
    let seed = Seed {
        place: Place::Top,
        duplicates: &mut duplicates,
    };
    let value = seed.deserialize(&mut de)?;
    de.end()?;
    Ok((value, duplicates.into_vec()))
}

/// YAML as Go's Kubernetes tools read it: `0644` is octal, `yes` is true, an empty text is null, the last of equal keys wins.
fn yaml(text: &str) -> Result<(Value, Vec<String>), String> {
    if text.trim().is_empty() {
        return Ok((Value::Null, Vec::new()));
    }
    let strict = serde_saphyr::options! {
        legacy_octal_numbers: true,
        strict_booleans: false,
    };
    let error = match windlass_gocompat::yaml::read(text, strict) {
        Ok(value) => return Ok((value, Vec::new())),
        Err(error) => error.to_string(),
    };
    let Some((_, key)) = error.lines().next().unwrap_or("").split_once("duplicate mapping key: ") else {
        let first = error.lines().next().unwrap_or("").trim_start_matches("error: ");
        return Err(as_go(first));
    };
    let key = key.split(',').next().unwrap_or(key).to_owned();
    let line = error
        .split("line ")
        .nth(1)
        .and_then(|rest| rest.split(' ').next())
        .unwrap_or("1")
        .to_owned();
    let lenient = serde_saphyr::options! {
        legacy_octal_numbers: true,
        strict_booleans: false,
        duplicate_keys: serde_saphyr::DuplicateKeyPolicy::LastWins,
    };
    let value = windlass_gocompat::yaml::read(text, lenient).map_err(|e| e.to_string())?;
    Ok((value, vec![format!("line {line}: key {key:?} already set in map")]))
}

/// `line 3 column 7: words` in Go's form: no column, and no line if it is the first.
fn as_go(error: &str) -> String {
    let Some((place, words)) = error.strip_prefix("line ").and_then(|rest| rest.split_once(": ")) else {
        return error.to_owned();
    };
    match place.split(' ').next() {
        Some("1") | None => words.to_owned(),
        Some(line) => format!("line {line}: {words}"),
    }
}

/// The path of a value in the body. It is formatted only for duplicate fields.
#[derive(Clone, Copy)]
enum Place<'a> {
    Top,
    Field(&'a Self, &'a str),
    Item(&'a Self, usize),
}

impl std::fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Top => Ok(()),
            Self::Field(Self::Top, key) => f.write_str(key),
            Self::Field(parent, key) => write!(f, "{parent}.{key}"),
            Self::Item(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

struct Seed<'a> {
    place: Place<'a>,
    duplicates: &'a mut StrictErrors,
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, v: bool) -> Result<Value, E> {
        Ok(Value::Bool(v))
    }

    fn visit_i64<E>(self, v: i64) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_u64<E>(self, v: u64) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_f64<E: serde::de::Error>(self, v: f64) -> Result<Value, E> {
        Number::from_f64(v)
            .map(Value::Number)
            .ok_or_else(|| E::custom("a number is out of range"))
    }

    fn visit_str<E>(self, v: &str) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_string<E>(self, v: String) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut out = Vec::new();
        loop {
            let seed = Seed {
                place: Place::Item(&self.place, out.len()),
                duplicates: &mut *self.duplicates,
            };
            match seq.next_element_seed(seed)? {
                Some(value) => out.push(value),
                None => return Ok(Value::Array(out)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut out = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            let place = Place::Field(&self.place, &key);
            if out.len() > 1_000_000 {
                return Err(A::Error::custom("too many fields"));
            }
            let value = map.next_value_seed(Seed {
                place,
                duplicates: &mut *self.duplicates,
            })?;
            if out.contains_key(&key) {
                self.duplicates.push(&place);
            }
            out.insert(key, value);
        }
        Ok(Value::Object(out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duplicates_are_found() {
        let (value, duplicates) = decode(br#"{"a":{"b":1,"b":2},"c":[{"d":1,"d":1}]}"#, Form::Json).unwrap();
        assert_eq!(value["a"]["b"], 2);
        assert_eq!(duplicates, ["a.b", "c[0].d"]);
    }

    #[test]
    fn broken_bodies_are_bad_requests() {
        for body in ["{", "{}{}", ""] {
            assert_eq!(decode(body.as_bytes(), Form::Json).unwrap_err().code, 400);
        }
    }
}
