//! Condition types of providers, together with those of the core.

pub use windlass_api::conditions::*;

/// What is declared may be installed: nothing was applied while this is not True.
pub const PREFLIGHT_CHECK_PASSED: &str = "PreflightCheckPassed";
/// The objects of the provider are there as they should be.
pub const PROVIDER_INSTALLED: &str = "ProviderInstalled";
/// The last change of version has ended well.
pub const PROVIDER_UPGRADED: &str = "ProviderUpgraded";
