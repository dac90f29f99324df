//! Older versions of the control plane group `controlplane.cluster.x-k8s.io`.

pub mod v1beta1;
