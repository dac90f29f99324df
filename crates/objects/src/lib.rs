//! The parts of Kubernetes objects that do not depend on a kind: metadata, names, owner references, selectors, JSONPath, ages.
//!
//! Everything is pure and reads JSON values. Error texts are those of kube-apiserver.

pub mod age;
pub mod jsonpath;
pub mod metadata;
pub mod names;
pub mod owners;
mod part;
pub mod selector;

pub use part::Part;
