//! Structural OpenAPI schemas: parsing, pruning, defaulting, validation.
//!
//! A [`Schema`] is parsed once per kind and version (or per ClusterClass variable). Then [`prune`], [`default`](default()) and
//! [`validate`] use it without further allocation for the schema. Error texts are those of Kubernetes.

mod check;
mod defaulting;
mod embedded;
mod error;
mod field_path;
mod format;
mod internal;
mod keyed;
mod node;
mod numbers;
mod parse;
mod path;
mod pattern;
mod patterns;
mod pruning;
mod review;
mod strict;
mod structural;
mod validation;

pub use defaulting::{default, default_keeping_nulls, drop_nulls};
pub use embedded::{each_embedded, each_embedded_mut};
pub use error::{FieldError, FieldErrors, Kind, MOST_ERRORS, SchemaError, is_full};
pub use field_path::Steps;
pub use format::Format;
pub use internal::rule as shown_rule;
pub use keyed::OldItems;
pub use node::{Additional, ListType, MapType, Node, Patch, Schema, Type, WrittenRules};
pub use numbers::whole_numbers;
pub use parse::Dialect;
pub use path::Path;
pub use pattern::PatternError;
pub use patterns::Patterns;
pub use pruning::{prune, unknown_fields};
pub use review::{Place, Reviewing, RuleReview, WithoutRules, review};
pub use strict::StrictErrors;
pub use validation::{Part, check_lists, check_shape, validate, validate_at};

/// A schema in the form of Kubernetes' messages: all fields of its internal type, in their order, with its names.
pub fn shown_schema(schema: &serde_json::Value) -> String {
    schema.as_object().map_or_else(|| "null".to_owned(), internal::schema)
}
