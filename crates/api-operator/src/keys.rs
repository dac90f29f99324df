//! Keys in ConfigMaps and Secrets, and well-known names.

/// Metadata of a provider's release.
pub const METADATA: &str = "metadata";
/// The objects of a provider.
pub const COMPONENTS: &str = "components";
/// Additional objects, in the ConfigMap of `spec.additionalManifests`.
pub const MANIFESTS: &str = "manifests";
/// The name of the core provider.
pub const CORE: &str = "cluster-api";
/// The container to which the manager settings apply.
pub const MANAGER_CONTAINER: &str = "manager";
/// The variable with the GitHub token.
pub const GITHUB_TOKEN: &str = "github-token";
