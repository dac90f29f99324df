//! Reasons of conditions of providers, together with those of the core. A constant has the name of its value, without a
//! repeated suffix `Reason`.

pub use windlass_api::reasons::*;

/// More than one object declares the same provider.
pub const MORE_THAN_ONE_EXISTS: &str = "MoreThanOneExists";
/// `spec.version` is not a version.
pub const INCORRECT_VERSION_FORMAT: &str = "IncorrectVersionFormat";
/// The core provider has another name than `cluster-api`.
pub const INCORRECT_CORE_PROVIDER_NAME: &str = "IncorrectCoreProviderNameReason";
/// No version is set, and none can be discovered.
pub const EMPTY_VERSION: &str = "EmptyVersionReason";
/// `spec.fetchConfig` has no source.
pub const FETCH_CONFIG_VALIDATION_ERROR: &str = "FetchConfigValidationError";
/// Another field has an invalid value.
pub const SPEC_VALIDATION_ERROR: &str = "SpecValidationError";
/// The name is not a known provider, and `spec.fetchConfig` is not set.
pub const UNKNOWN_PROVIDER: &str = "UnknownProvider";
/// The contract version of the provider is not compatible.
pub const CAPI_VERSION_INCOMPATIBILITY: &str = "CAPIVersionIncompatibility";
/// The provider's files cannot be fetched.
pub const COMPONENTS_FETCH_ERROR: &str = "ComponentsFetchError";
/// The settings of the spec cannot be applied to the provider's objects.
pub const COMPONENTS_CUSTOMIZATION_ERROR: &str = "ComponentsCustomizationError";
/// A patch of the spec cannot be applied.
pub const COMPONENTS_PATCH_ERROR: &str = "ComponentsPatchError";
/// The configured image overrides cannot be applied.
pub const COMPONENTS_IMAGE_OVERRIDE_ERROR: &str = "ComponentsImageOverrideError";
/// The upgrade has failed.
pub const COMPONENTS_UPGRADE_ERROR: &str = "ComponentsUpgradeError";
/// Objects of the old version cannot be removed.
pub const OLD_COMPONENTS_DELETION_ERROR: &str = "OldComponentsDeletionError";
/// The core provider is not ready yet.
pub const WAITING_FOR_CORE_PROVIDER_READY: &str = "WaitingForCoreProviderReady";
/// GitHub refuses the token.
pub const INVALID_GITHUB_TOKEN_ERROR: &str = "InvalidGithubTokenError";
/// No Deployment of the provider has an Available condition yet.
pub const NO_DEPLOYMENT_AVAILABLE_CONDITION: &str = "NoDeploymentAvailableConditionReason";
/// The Deployments of the provider are available.
pub const DEPLOYMENT_AVAILABLE: &str = "DeploymentAvailable";
/// The version is older than the installed one.
pub const UNSUPPORTED_PROVIDER_DOWNGRADE: &str = "UnsupportedProviderDowngradeReason";
