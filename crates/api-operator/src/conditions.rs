//! Condition types of providers, together with those of the core.

pub use windlass_api::conditions::*;

/// All preflight checks have passed. Nothing is applied before this is True.
pub const PREFLIGHT_CHECK_PASSED: &str = "PreflightCheckPassed";
/// The objects of the provider are installed as specified.
pub const PROVIDER_INSTALLED: &str = "ProviderInstalled";
/// The last upgrade has succeeded.
pub const PROVIDER_UPGRADED: &str = "ProviderUpgraded";
