//! The parameters of apply and update.

use jiff::Timestamp;
use serde_json::Value;
use windlass_schema::Schema;

use crate::scope::{Scope, Versions};

/// A write: its object, writer and scope.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The schema of the kind, if there is one.
    pub schema: Option<&'a Schema>,
    /// The schemas of the kind's other versions.
    pub versions: Versions<'a>,
    /// The current object, with its managedFields; `None` if it does not exist.
    pub live: Option<&'a Value>,
    /// The writer.
    pub manager: &'a str,
    /// The API version of the request.
    pub api_version: &'a str,
    /// The subresource of the request; empty for the main resource.
    pub subresource: &'a str,
    /// The parts that the request can change.
    pub scope: Scope,
    /// The time of the request.
    pub now: Timestamp,
}
