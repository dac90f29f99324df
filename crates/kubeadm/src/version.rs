//! Which configuration format the kubeadm of a Kubernetes version reads.

use semver::Version;

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
    /// The format for a Kubernetes version such as `v1.35.0`. Pre-releases read what their release reads.
    pub fn for_kubernetes(kubernetes: &str) -> Result<Self, KubeadmError> {
        let version = parse(kubernetes).ok_or_else(|| KubeadmError::Version {
            field: "spec.version",
            version: kubernetes.to_owned(),
        })?;
        match (version.major, version.minor) {
            (0, _) | (1, ..=21) => Err(KubeadmError::TooOld(kubernetes.to_owned())),
            (1, 22..=30) => Ok(Self::V1Beta3),
            _ => Ok(Self::V1Beta4),
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

/// Reads a Kubernetes version with or without the leading `v`.
pub(crate) fn parse(text: &str) -> Option<Version> {
    Version::parse(text.strip_prefix('v').unwrap_or(text)).ok()
}

/// `vX.Y.Z`, without pre-release and build parts.
pub(crate) fn normalised(text: &str) -> Option<String> {
    parse(text).map(|version| format!("v{}.{}.{}", version.major, version.minor, version.patch))
}
