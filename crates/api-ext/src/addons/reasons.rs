//! Reasons of conditions of the add-on provider's kinds, together with those of the core. A constant is named like its text.

pub use windlass_api::reasons::*;

/// The matching Clusters cannot be determined.
pub const CLUSTER_SELECTION_FAILED: &str = "ClusterSelectionFailed";
/// The values of a cluster cannot be computed.
pub const VALUE_PARSING_FAILED: &str = "ValueParsingFailed";
/// A HelmReleaseProxy cannot be created or changed.
pub const HELM_RELEASE_PROXY_CREATION_FAILED: &str = "HelmReleaseProxyCreationFailed";
/// A HelmReleaseProxy cannot be deleted.
pub const HELM_RELEASE_PROXY_DELETION_FAILED: &str = "HelmReleaseProxyDeletionFailed";
/// A release is being uninstalled before it is reinstalled.
pub const HELM_RELEASE_PROXY_REINSTALLING: &str = "HelmReleaseProxyReinstalling";
/// Changes of HelmReleaseProxies are not reconciled yet.
pub const HELM_RELEASE_PROXY_SPECS_UPDATING: &str = "HelmReleaseProxySpecsUpdating";
/// The rollout does not cover all matching Clusters yet.
pub const HELM_RELEASE_PROXIES_ROLLOUT_NOT_COMPLETE: &str = "HelmReleaseProxiesRolloutNotComplete";
/// The rollout covers all matching Clusters.
pub const HELM_RELEASE_PROXIES_ROLLOUT_COMPLETED: &str = "HelmReleaseProxiesRolloutCompleted";

/// The installation of a release is prepared and has not started.
pub const PREPARING_TO_HELM_INSTALL: &str = "PreparingToHelmInstall";
/// An operation on a release is in progress.
pub const HELM_RELEASE_PENDING: &str = "HelmReleasePending";
/// A release cannot be installed or upgraded.
pub const HELM_INSTALL_OR_UPGRADE_FAILED: &str = "HelmInstallOrUpgradeFailed";
/// A release cannot be read.
pub const HELM_RELEASE_GET_FAILED: &str = "HelmReleaseGetFailed";
/// A release cannot be uninstalled.
pub const HELM_RELEASE_DELETION_FAILED: &str = "HelmReleaseDeletionFailed";
/// A release is uninstalled.
pub const HELM_RELEASE_DELETED: &str = "HelmReleaseDeleted";
/// The Cluster cannot be read.
pub const GET_CLUSTER_FAILED: &str = "GetClusterFailed";
/// The kubeconfig of the cluster cannot be read.
pub const GET_KUBECONFIG_FAILED: &str = "GetKubeconfigFailed";
/// The credentials for the repository cannot be read.
pub const GET_CREDENTIALS_FAILED: &str = "GetCredentialsFailed";
/// The CA certificates of the repository cannot be read.
pub const GET_CA_CERTIFICATE_FAILED: &str = "GetCACertificateFailed";
