//! Older versions of `addons.cluster.x-k8s.io`.

pub mod v1beta1;
