//! The change that a write request asks for.

use serde_json::Value;

/// What a request does to an object.
pub(crate) enum Mutation {
    /// PUT.
    Replace(Value, Vec<String>),
    /// RFC 6902, with what a strict decoder would complain about.
    Json(Value, Vec<String>),
    /// RFC 7386, likewise.
    Merge(Value, Vec<String>),
    /// Kubernetes' own, likewise.
    Strategic(Value, Vec<String>),
    /// Server-side apply, likewise.
    Apply(Value, Vec<String>),
    /// A pod gets this node.
    Bind(String),
    /// Any of these to the scale of the object.
    Scale(Box<Self>),
}
