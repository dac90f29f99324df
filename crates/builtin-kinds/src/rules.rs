//! What kube-apiserver does to and asks of each built-in kind, beyond what its schema says: defaults, what the server sets when an object
//! is made or changed, and what it refuses. One module for kinds of a sort; all functions are pure.
//!
//! Left out, because they need somebody who is not there (controllers, kubelets) or a part of the cluster that is not simulated: the
//! taint on new nodes and the finalizers that protect volumes and claims (nobody here would take them away), service account tokens
//! in pods, the use of LimitRange and ResourceQuota, pod security levels, runtime class overhead.

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
use windlass_schema::FieldError;

/// What is wrong with a binding of a pod to a node.
pub fn binding_errors(binding: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    pods::check_binding(binding, &mut errors);
    errors
}
