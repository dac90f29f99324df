//! Requests and responses as JSON.

use serde_json::{Map, Value};

/// A request or response. Encoded and decoded where its type is.
pub trait Message: Clone + Default + Send + Sync + 'static {
    /// The kind in the JSON text.
    const KIND: &'static str;

    /// The message as JSON, with `apiVersion` and `kind`.
    fn encode(&self) -> serde_json::Result<Vec<u8>>;

    /// A message from JSON. Unknown fields are skipped, and a null field of the message is the same as one that is not there.
    fn decode(json: &[u8]) -> Result<Self, Undecodable>;
}

/// Why a text is not the message that was expected.
#[derive(Debug)]
pub struct Undecodable {
    expected: &'static str,
    why: String,
}

impl std::fmt::Display for Undecodable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "this is no {}: {}", self.expected, self.why)
    }
}

impl std::error::Error for Undecodable {}

/// The JSON text of a message with these fields.
pub(crate) fn encode(kind: &'static str, fields: Value) -> serde_json::Result<Vec<u8>> {
    let mut whole = Map::new();
    whole.insert("apiVersion".to_owned(), Value::from(crate::API_VERSION));
    whole.insert("kind".to_owned(), Value::from(kind));
    if let Value::Object(fields) = fields {
        whole.extend(fields);
    }
    serde_json::to_vec(&Value::Object(whole))
}

/// The fields of a message. Its version and kind do not matter, as in Cluster API: the address says what it is.
pub(crate) fn fields(kind: &'static str, json: &[u8]) -> Result<Value, Undecodable> {
    let refused = |why: String| Undecodable { expected: kind, why };
    let value: Value = serde_json::from_slice(json).map_err(|error| refused(error.to_string()))?;
    let Value::Object(mut fields) = value else {
        return Err(refused("it is not an object".to_owned()));
    };
    fields.retain(|_, value| !value.is_null());
    Ok(Value::Object(fields))
}

/// The error of a field that has the wrong type.
pub(crate) fn wrong(kind: &'static str, error: &serde_json::Error) -> Undecodable {
    Undecodable {
        expected: kind,
        why: error.to_string(),
    }
}
