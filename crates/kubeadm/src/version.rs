//! The configuration format of kubeadm by Kubernetes version.

use windlass_meta::KubernetesVersion;

use crate::KubeadmError;

/// A version of kubeadm's configuration API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KubeadmVersion {
    /// Kubernetes 1.22 to 1.30.
    V1Beta3,
    /// Kubernetes 1.31 and later.
    V1Beta4,
}

impl KubeadmVersion {
    /// The format for a Kubernetes version such as `v1.35.0`. Pre-releases have the format of their release.
    pub fn for_kubernetes(kubernetes: &str) -> Result<Self, KubeadmError> {
        let version = KubernetesVersion::parse_tolerant(kubernetes).map_err(|_| KubeadmError::Version {
            field: "spec.version",
            version: kubernetes.to_owned(),
        })?;
        if !version.at_least_minor(1, 22) {
            Err(KubeadmError::TooOld(kubernetes.to_owned()))
        } else if version.at_least_minor(1, 31) {
            Ok(Self::V1Beta4)
        } else {
            Ok(Self::V1Beta3)
        }
    }

    /// The `apiVersion` of its documents.
    pub const fn api_version(self) -> &'static str {
        match self {
            Self::V1Beta3 => "kubeadm.k8s.io/v1beta3",
            Self::V1Beta4 => "kubeadm.k8s.io/v1beta4",
        }
    }
}

/// A version with its `v` and all three numbers: `1.35` is `v1.35.0`. Pre-release and build parts stay.
pub(crate) fn normalised(text: &str) -> Result<String, KubeadmError> {
    let version = KubernetesVersion::parse_tolerant(text).map_err(|_| KubeadmError::Version {
        field: "spec.version of the control plane",
        version: text.to_owned(),
    })?;
    Ok(version.to_string())
}
