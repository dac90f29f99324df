//! Older versions of the core group `cluster.x-k8s.io`.

pub mod v1beta1;
