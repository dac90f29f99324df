//! Annotation keys of the add-on provider.

/// On a HelmReleaseProxy with a generated release name. The value is `true`.
pub const IS_RELEASE_NAME_GENERATED: &str = "helmreleaseproxy.addons.cluster.x-k8s.io/is-release-name-generated";
/// On a HelmReleaseProxy whose release this controller has installed once. The value is `true`.
pub const RELEASE_SUCCESSFULLY_INSTALLED: &str =
    "helmreleaseproxy.addons.cluster.x-k8s.io/release-successfully-installed";
