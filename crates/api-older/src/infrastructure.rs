//! Older versions of the development provider's kinds, in `infrastructure.cluster.x-k8s.io`.

pub mod v1beta1;
