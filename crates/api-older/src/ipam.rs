//! Older versions of `ipam.cluster.x-k8s.io`.

mod references;
pub mod v1alpha1;
pub mod v1beta1;
