//! Reasons of conditions of the add-on provider's kinds, together with those of the core. A constant is named like its text.

pub use windlass_api::reasons::*;

/// It cannot be said which clusters are meant.
pub const CLUSTER_SELECTION_FAILED: &str = "ClusterSelectionFailed";
/// The values of a cluster cannot be computed.
pub const VALUE_PARSING_FAILED: &str = "ValueParsingFailed";
/// A HelmReleaseProxy cannot be created or changed.
pub const HELM_RELEASE_PROXY_CREATION_FAILED: &str = "HelmReleaseProxyCreationFailed";
/// A HelmReleaseProxy cannot be deleted.
pub const HELM_RELEASE_PROXY_DELETION_FAILED: &str = "HelmReleaseProxyDeletionFailed";
/// A release is uninstalled, to be installed anew.
pub const HELM_RELEASE_PROXY_REINSTALLING: &str = "HelmReleaseProxyReinstalling";
/// What was written to HelmReleaseProxies has not been acted on yet.
pub const HELM_RELEASE_PROXY_SPECS_UPDATING: &str = "HelmReleaseProxySpecsUpdating";
/// Clusters wait for their turn.
pub const HELM_RELEASE_PROXIES_ROLLOUT_NOT_COMPLETE: &str = "HelmReleaseProxiesRolloutNotComplete";
/// No cluster waits for its turn.
pub const HELM_RELEASE_PROXIES_ROLLOUT_COMPLETED: &str = "HelmReleaseProxiesRolloutCompleted";

/// Everything is ready for the installation of a release, which has not begun.
pub const PREPARING_TO_HELM_INSTALL: &str = "PreparingToHelmInstall";
/// An operation on a release has not ended.
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
/// The authorities that the repository is trusted by cannot be read.
pub const GET_CA_CERTIFICATE_FAILED: &str = "GetCACertificateFailed";
