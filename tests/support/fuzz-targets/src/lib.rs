//! The fuzz targets of `fuzz/` as functions: libFuzzer calls them with generated inputs, and a test of this crate with every
//! seed.
//!
//! A target accepts any input, and asserts properties that always hold.

pub mod admission;
pub mod apply;
pub mod bodies;
pub mod cel;
pub mod charts;
pub mod envsubst;
pub mod frames;
pub mod grants;
pub mod kubeconfigs;
pub mod manifests;
pub mod owners;
pub mod patch;
pub mod queries;
pub mod registries;
pub mod releases;
pub mod requests;
pub mod reviews;
mod served;
pub mod settings;
pub mod streams;
pub mod values;
