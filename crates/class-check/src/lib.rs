//! Checks and unit tests of ClusterClasses and their templates, from files alone.
//!
//! [`lint()`] says what is wrong with classes, templates and Clusters in files, with line numbers. [`unit`] runs unit tests of classes. Pure: texts in, findings out. It
//! decides nothing by itself that the product decides: schemas, admission rules, values of variables and generated objects come from the
//! same functions as in a controller.

mod class;
mod finding;
mod kinds;
mod library;
mod lint;
mod object;
mod positions;
mod source;
pub mod unit;

pub use finding::{Check, Finding, Severity};
pub use kinds::Kinds;
pub use lint::{Report, lint, schemas};
pub use positions::Position;
pub use windlass_gocompat::yaml::File;
