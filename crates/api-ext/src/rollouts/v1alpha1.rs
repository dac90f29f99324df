//! API version `v1alpha1`.

mod cluster_class_revision;
mod cluster_class_rollout;

pub use cluster_class_revision::*;
pub use cluster_class_rollout::*;
