//! Version v1alpha2: seven kinds with the same spec.

mod kinds;
mod manager;
mod spec;

pub use kinds::*;
pub use manager::*;
pub use spec::*;
