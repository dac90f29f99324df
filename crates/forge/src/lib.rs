//! Look-alikes of providers and of the servers that they are fetched from, for tests and benchmarks.
//!
//! - [`provider`]: component files and metadata with the shapes of real providers, small, at any version and contract, whole or
//!   with a [`Flaw`];

pub mod provider;

pub use provider::{Flaw, LookAlike};
