//! The change that a write request asks for.

use serde_json::Value;

/// The mutation of a write request.
pub(crate) enum Mutation {
    /// PUT.
    Replace(Value, Vec<String>),
    /// RFC 6902, with the problems that strict decoding reports.
    Json(Value, Vec<String>),
    /// RFC 7386, with such problems.
    Merge(Value, Vec<String>),
    /// Strategic merge patch of Kubernetes, with such problems.
    Strategic(Value, Vec<String>),
    /// Server-side apply, with such problems.
    Apply(Value, Vec<String>),
    /// Binds a pod to this node.
    Bind(String),
    /// One of these mutations on the scale of the object.
    Scale(Box<Self>),
}
