//! Older versions of the bootstrap group `bootstrap.cluster.x-k8s.io`.

pub mod v1beta1;
