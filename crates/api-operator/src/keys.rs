//! Keys in ConfigMaps, and names that mean something.

/// What a provider's release says about itself.
pub const METADATA: &str = "metadata";
/// The objects of a provider.
pub const COMPONENTS: &str = "components";
/// Further objects, in the ConfigMap that `spec.additionalManifests` names.
pub const MANIFESTS: &str = "manifests";
/// The name of the core provider.
pub const CORE: &str = "cluster-api";
/// The container that the settings of the manager are for.
pub const MANAGER_CONTAINER: &str = "manager";
/// The variable with the token for GitHub.
pub const GITHUB_TOKEN: &str = "github-token";
