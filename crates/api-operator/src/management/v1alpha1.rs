//! Version v1alpha1: four kinds with one specification.

mod kinds;
mod manager;
mod spec;

pub use kinds::*;
pub use manager::*;
pub use spec::*;
