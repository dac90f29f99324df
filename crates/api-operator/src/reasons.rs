//! Reasons of conditions of providers, together with those of the core. A constant is named like its text, but for a few
//! texts that say `Reason` again.

pub use windlass_api::reasons::*;

/// The same provider is declared more than once.
pub const MORE_THAN_ONE_EXISTS: &str = "MoreThanOneExists";
/// `spec.version` is not a version.
pub const INCORRECT_VERSION_FORMAT: &str = "IncorrectVersionFormat";
/// The core provider has another name than `cluster-api`.
pub const INCORRECT_CORE_PROVIDER_NAME: &str = "IncorrectCoreProviderNameReason";
/// No version is given, and none can be found.
pub const EMPTY_VERSION: &str = "EmptyVersionReason";
/// `spec.fetchConfig` does not say where from.
pub const FETCH_CONFIG_VALIDATION_ERROR: &str = "FetchConfigValidationError";
/// Another field has a value that means nothing.
pub const SPEC_VALIDATION_ERROR: &str = "SpecValidationError";
/// The name is not one that is known, and it is not said where to fetch from.
pub const UNKNOWN_PROVIDER: &str = "UnknownProvider";
/// The contract of the provider's version is not one that fits here.
pub const CAPI_VERSION_INCOMPATIBILITY: &str = "CAPIVersionIncompatibility";
/// The provider's files cannot be fetched.
pub const COMPONENTS_FETCH_ERROR: &str = "ComponentsFetchError";
/// The provider's objects cannot be changed as the declaration says.
pub const COMPONENTS_CUSTOMIZATION_ERROR: &str = "ComponentsCustomizationError";
/// A patch of the declaration cannot be applied.
pub const COMPONENTS_PATCH_ERROR: &str = "ComponentsPatchError";
/// Images cannot be replaced as configured.
pub const COMPONENTS_IMAGE_OVERRIDE_ERROR: &str = "ComponentsImageOverrideError";
/// The upgrade has failed.
pub const COMPONENTS_UPGRADE_ERROR: &str = "ComponentsUpgradeError";
/// What the old version had cannot be removed.
pub const OLD_COMPONENTS_DELETION_ERROR: &str = "OldComponentsDeletionError";
/// Waits for the core provider.
pub const WAITING_FOR_CORE_PROVIDER_READY: &str = "WaitingForCoreProviderReady";
/// GitHub refuses the token.
pub const INVALID_GITHUB_TOKEN_ERROR: &str = "InvalidGithubTokenError";
/// No Deployment of the provider says yet whether it is available.
pub const NO_DEPLOYMENT_AVAILABLE_CONDITION: &str = "NoDeploymentAvailableConditionReason";
/// The Deployments of the provider are available.
pub const DEPLOYMENT_AVAILABLE: &str = "DeploymentAvailable";
/// The version is older than what is installed.
pub const UNSUPPORTED_PROVIDER_DOWNGRADE: &str = "UnsupportedProviderDowngradeReason";
