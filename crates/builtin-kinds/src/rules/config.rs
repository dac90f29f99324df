//! ConfigMap and Secret.

use base64::Engine as _;
use serde_json::{Value, json};
use windlass_schema::{FieldError, Kind};

use super::field::{Errors, Field, immutable, or_set, set};
use windlass_objects::metadata::text;

pub(crate) fn default_secret(object: &mut Value) {
    if text(object, "type").is_empty() {
        set(object, "type", "Opaque");
    }
    let Some(Value::Object(plain)) = object.as_object_mut().and_then(|o| o.remove("stringData")) else {
        return;
    };
    if plain.is_empty() {
        return;
    }
    or_set(object, "data", json!({}));
    for (key, value) in plain {
        let bytes = value.as_str().unwrap_or("").as_bytes();
        set(
            &mut object["data"],
            &key,
            base64::engine::general_purpose::STANDARD.encode(bytes),
        );
    }
}

fn data_keys(object: &Value, field: &str, errors: &mut Errors) {
    for (key, entry) in Field::of(object, field).entries() {
        let refuse = |words: &str| FieldError::invalid(entry.path.clone(), key.into(), words);
        let characters = key
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
        if key.len() > 253 {
            errors.push(refuse("must be no more than 253 characters"));
        }
        if key.is_empty() || !characters {
            errors.push(refuse("a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"));
        }
        match key {
            "." => errors.push(refuse("must not be '.'")),
            ".." => errors.push(refuse("must not be '..'")),
            _ if key.starts_with("..") => errors.push(refuse("must not start with '..'")),
            _ => {}
        }
    }
}

pub(crate) fn config_map(object: &Value, old: Option<&Value>, errors: &mut Errors) {
    data_keys(object, "data", errors);
    let (data, binary) = (object.get("data"), object.get("binaryData"));
    for (key, entry) in Field::of(object, "data").entries() {
        if binary.is_some_and(|b| b.get(key).is_some()) {
            errors.push(FieldError::invalid(
                entry.path,
                key.into(),
                "duplicate of key present in binaryData",
            ));
        }
    }
    data_keys(object, "binaryData", errors);
    let size = texts(data).map(str::len).chain(texts(binary).map(decoded_len)).sum();
    size_errors("", size, errors);
    if let Some(old) = old {
        sealed(object, old, &["data", "binaryData"], errors);
    }
}

/// The values of a map that are texts.
fn texts(map: Option<&Value>) -> impl Iterator<Item = &str> {
    map.and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(_, v)| v.as_str().unwrap_or(""))
}

/// The decoded length of a base64 text.
fn decoded_len(text: &str) -> usize {
    let padding = text.bytes().rev().take_while(|b| *b == b'=').count();
    (text.len() / 4 * 3).saturating_sub(padding)
}

fn size_errors(field: &str, size: usize, errors: &mut Errors) {
    const MAX: usize = 1 << 20;
    if size > MAX {
        errors.push(FieldError::new(
            field,
            Kind::TooLong,
            None,
            format!("may not be more than {MAX} bytes"),
        ));
    }
}

pub(crate) fn secret(object: &Value, old: Option<&Value>, errors: &mut Errors) {
    data_keys(object, "data", errors);
    let data = object.get("data");
    size_errors("data", texts(data).map(decoded_len).sum(), errors);
    secret_type(object, data, errors);
    if let Some(old) = old {
        immutable(object, old, "type", errors);
        sealed(object, old, &["data"], errors);
    }
}

/// The required contents of each type of Secret.
fn secret_type(object: &Value, data: Option<&Value>, errors: &mut Errors) {
    let has = |key: &str| data.and_then(|d| d.get(key)).is_some();
    let mut require = |keys: &[&str]| {
        for key in keys.iter().filter(|k| !has(k)) {
            errors.push(FieldError::required(format!("data[{key}]"), ""));
        }
    };
    match text(object, "type") {
        "kubernetes.io/tls" => require(&["tls.crt", "tls.key"]),
        "kubernetes.io/ssh-auth" => require(&["ssh-privatekey"]),
        "kubernetes.io/basic-auth" if !has("username") && !has("password") => require(&["username", "password"]),
        "kubernetes.io/dockerconfigjson" => {
            require(&[".dockerconfigjson"]);
            must_be_json(data, ".dockerconfigjson", errors);
        }
        "kubernetes.io/dockercfg" => {
            require(&[".dockercfg"]);
            must_be_json(data, ".dockercfg", errors);
        }
        "kubernetes.io/service-account-token" => {
            let name = object.pointer("/metadata/annotations/kubernetes.io~1service-account.name");
            if name.and_then(Value::as_str).is_none_or(str::is_empty) {
                errors.push(FieldError::required(
                    "metadata.annotations[kubernetes.io/service-account.name]",
                    "",
                ));
            }
        }
        _ => {}
    }
}

fn must_be_json(data: Option<&Value>, key: &str, errors: &mut Errors) {
    let Some(text) = data.and_then(|d| d.get(key)).and_then(Value::as_str) else {
        return;
    };
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(text)
        .unwrap_or_default();
    if serde_json::from_slice::<serde_json::Map<String, Value>>(&bytes).is_ok() {
        return;
    }
    let first = bytes.iter().find(|b| !b.is_ascii_whitespace());
    let words = match first {
        None => "unexpected end of JSON input".to_owned(),
        Some(b) if !matches!(b, b'{' | b'[' | b'"' | b't' | b'f' | b'n' | b'-' | b'0'..=b'9') => {
            format!("invalid character '{}' looking for beginning of value", char::from(*b))
        }
        Some(_) => "must be a JSON object".to_owned(),
    };
    errors.push(FieldError::invalid(
        format!("data[{key}]"),
        "<secret contents redacted>".into(),
        words,
    ));
}

/// Checks that immutable data does not change, and neither does the field `immutable`.
fn sealed(object: &Value, old: &Value, fields: &[&str], errors: &mut Errors) {
    if old.get("immutable") != Some(&Value::Bool(true)) {
        return;
    }
    let words = "field is immutable when `immutable` is set";
    if object.get("immutable") != Some(&Value::Bool(true)) {
        errors.push(FieldError::forbidden("immutable", words));
    }
    for field in fields {
        if old.get(field) != object.get(field) {
            errors.push(FieldError::forbidden(*field, words));
        }
    }
}
