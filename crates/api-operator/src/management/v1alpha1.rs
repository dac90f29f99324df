//! Version v1alpha1: four kinds with the same spec.

mod kinds;
mod manager;
mod spec;

pub use kinds::*;
pub use manager::*;
pub use spec::*;
