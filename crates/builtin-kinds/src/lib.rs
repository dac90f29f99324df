//! The built-in kinds of Kubernetes that the embedded API server serves: schemas, columns and strategies.
//!
//! Everything is pure: objects are JSON values, time is an argument. [`KINDS`] is the table; a [`Strategy`] is a row's behaviour.

mod autoscaler;
mod cells;
mod data;
mod decode;
mod events;
mod fields;
mod kinds;
mod quantity;
mod rules;
mod schema;
mod strategy;

pub use data::{Column, columns, definition};
pub use decode::{decode, settle};
pub use kinds::{KINDS, Kind, Trait};
pub use rules::binding_errors;
pub use schema::{nothing, parsed, references};
pub use strategy::{Cells, Lookup, Special, StoredForm, Strategy, Validate};
