//! Older versions of `runtime.cluster.x-k8s.io`.

pub mod v1alpha1;
