//! The rules of kube-apiserver for each built-in kind that its schema does not contain: defaults, fields that the server sets on
//! create and update, and validation. One module per group of similar kinds; all functions are pure.
//!
//! Some rules are left out, because they need controllers, kubelets or parts of a cluster that are not simulated: the taint on
//! new nodes and the finalizers that protect volumes and claims (no controller here would remove them), service account tokens in
//! pods, LimitRange and ResourceQuota, pod security levels, runtime class overhead.

pub(crate) mod cluster;
pub(crate) mod config;
pub(crate) mod containers;
pub(crate) mod field;
pub(crate) mod jobs;
pub(crate) mod namespaces;
pub(crate) mod networking;
pub(crate) mod pods;
pub(crate) mod selectors;
pub(crate) mod services;
pub(crate) mod storage;
pub(crate) mod volumes;
pub(crate) mod warnings;
pub(crate) mod workloads;

use serde_json::Value;
use windlass_schema::FieldErrors;

/// Errors of a binding of a pod to a node.
pub fn binding_errors(binding: &Value) -> FieldErrors {
    let mut errors = FieldErrors::new();
    pods::check_binding(binding, &mut errors);
    errors
}
