//! Decodes the body of a request to a patch.

use serde_json::{Map, Value};
use windlass_schema::StrictErrors;

use super::{Form, decode, syntax};
use crate::codec::go_wording::json_type;
use crate::error::ApiError;
use crate::verbs::mutation::Mutation;

/// The media types of patches.
const TYPES: &str = "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml";
const BUILT_IN_TYPES: &str = "application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json, application/apply-patch+yaml";

/// Refuses media types that are no patch of a custom object.
pub(crate) fn check_patch_type(media: &str) -> Result<(), ApiError> {
    if TYPES.split(", ").any(|known| known == media) {
        return Ok(());
    }
    Err(ApiError::unsupported_media_type(TYPES))
}

/// The patch in a body.
pub(crate) fn patch(media: &str, custom: bool, body: &[u8]) -> Result<Mutation, ApiError> {
    match media {
        "application/json-patch+json" => {
            let (patch, twice) = json(body, "error decoding patch: ", "[]handlers.jsonPatchOp")?;
            let mut problems: Vec<String> = unknown_in_operations(&patch)?;
            problems.extend(
                twice
                    .iter()
                    .map(|path| format!("json patch duplicate field \"{path}\"")),
            );
            Ok(Mutation::Json(patch, problems))
        }
        "application/merge-patch+json" => {
            let (patch, twice) = json(body, "error decoding patch: ", "map[string]interface {}")?;
            if patch.is_null() {
                return Err(ApiError::bad_request("Invalid JSON Patch"));
            }
            Ok(Mutation::Merge(patch, duplicates(&twice)))
        }
        "application/strategic-merge-patch+json" if !custom => {
            let (patch, twice) = json(body, "", "map[string]interface {}")?;
            Ok(Mutation::Strategic(or_empty(patch), duplicates(&twice)))
        }
        "application/apply-patch+yaml" | "application/apply-patch+json" => {
            // Every JSON document is YAML; a document that starts like an object is JSON.
            let looks_json = body.iter().find(|b| !b.is_ascii_whitespace()) == Some(&b'{');
            let form = if looks_json { Form::Json } else { Form::Yaml };
            let (config, twice) = if looks_json {
                super::json(body).map_err(|error| error.to_string())
            } else {
                decode(body, form).map_err(|error| error.message)
            }
            .map_err(|why| ApiError::bad_request(format!("error decoding YAML: {why}")))?;
            let config = or_empty(config);
            if !config.is_object() {
                return Err(ApiError::bad_request(format!(
                    "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
                    json_type(&config)
                )));
            }
            // For YAML, errors name the second place of a key; for JSON, the key.
            let shown = |path: &String| match form {
                Form::Yaml => path.clone(),
                _ => format!("key {:?} already set in map", path.rsplit('.').next().unwrap_or(path)),
            };
            Ok(Mutation::Apply(config, twice.iter().map(shown).collect()))
        }
        "application/strategic-merge-patch+json" => Err(ApiError::unsupported_media_type(TYPES)),
        _ if custom => Err(ApiError::unsupported_media_type(TYPES)),
        _ => {
            tracing::debug!(
                media,
                accepted = BUILT_IN_TYPES,
                "a patch has a media type that is not supported"
            );
            let mut error = ApiError::new(415, "UnsupportedMediaType", "415: Unsupported Media Type");
            error.details = Some(Box::default());
            Err(error)
        }
    }
}

fn duplicates(paths: &[String]) -> Vec<String> {
    paths.iter().map(|path| format!("duplicate field \"{path}\"")).collect()
}

/// Null is an object without fields.
fn or_empty(value: Value) -> Value {
    if value.is_null() {
        Value::Object(Map::new())
    } else {
        value
    }
}

fn json(body: &[u8], prefix: &str, go_type: &str) -> Result<(Value, Vec<String>), ApiError> {
    if let Some(mistake) = syntax::mistake(body) {
        return Err(ApiError::bad_request(format!("{prefix}{mistake}")));
    }
    let (patch, twice) = decode(body, Form::Json)?;
    let fits = match &patch {
        Value::Null => true,
        Value::Array(_) => go_type.starts_with('['),
        Value::Object(_) => go_type.starts_with("map"),
        _ => false,
    };
    if !fits {
        return Err(ApiError::bad_request(format!(
            "{prefix}json: cannot unmarshal {} into Go value of type {go_type}",
            json_type(&patch)
        )));
    }
    let patch = if patch.is_null() && go_type.starts_with('[') {
        Value::Array(Vec::new())
    } else {
        patch
    };
    Ok((patch, twice))
}

/// Unknown fields of operations. Refuses operations that are no objects.
fn unknown_in_operations(patch: &Value) -> Result<Vec<String>, ApiError> {
    let mut out = StrictErrors::default();
    let bad = |why: String| {
        Err(ApiError::bad_request(format!(
            "error decoding patch: json: cannot unmarshal {why}"
        )))
    };
    for (index, operation) in patch.as_array().into_iter().flatten().enumerate() {
        let fields = match operation {
            Value::Null => continue,
            Value::Object(fields) => fields,
            other => {
                return bad(format!(
                    "{} into Go value of type handlers.jsonPatchOp",
                    json_type(other)
                ));
            }
        };
        for (name, value) in fields {
            match name.as_str() {
                "op" | "path" | "from" if !(value.is_string() || value.is_null()) => {
                    return bad(format!(
                        "{} into Go struct field jsonPatchOp.{name} of type string",
                        json_type(value)
                    ));
                }
                "op" | "path" | "from" | "value" => {}
                other => out.push(&format_args!("json patch unknown field \"[{index}].{other}\"")),
            }
        }
    }
    Ok(out.into_vec())
}
