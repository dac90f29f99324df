//! What the fuzz targets in `fuzz/` do with an input, as functions: libFuzzer calls them with what it makes up, and a test of this crate
//! with every seed.
//!
//! A target takes any input, however wrong, and asserts what must hold for it.

pub mod apply;
pub mod bodies;
pub mod cel;
pub mod envsubst;
pub mod manifests;
pub mod patch;
pub mod queries;
pub mod settings;
pub mod values;
