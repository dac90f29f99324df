//! Structural OpenAPI schemas: parsing, pruning, defaulting, validation, CEL rules.
//!
//! A [`Schema`] is parsed once per kind and version (or per ClusterClass variable) and then used, without further allocation
//! for the schema side, to [`prune`], [`default`](default()) and [`validate`] values. Error texts are those that Kubernetes gives.

mod check;
mod defaulting;
mod error;
mod format;
mod keyed;
mod node;
mod parse;
mod path;
mod pruning;
mod rules;
mod structural;
mod validation;

pub use defaulting::{default, default_keeping_nulls, drop_nulls};
pub use error::{FieldError, Kind, SchemaError};
pub use node::{Additional, ListType, MapType, Node, Patch, Schema, Type};
pub use parse::Dialect;
pub use path::Path;
pub use pruning::{prune, unknown_fields};
pub use rules::{Condition, Facts, Permission, Permissions, Permitted};
pub use validation::{validate, validate_at};
