//! Annotation keys of the add-on provider.

/// On a HelmReleaseProxy whose release name was made up when none was given; the value is `true`.
pub const IS_RELEASE_NAME_GENERATED: &str = "helmreleaseproxy.addons.cluster.x-k8s.io/is-release-name-generated";
/// On a HelmReleaseProxy whose release was installed once, by us; the value is `true`.
pub const RELEASE_SUCCESSFULLY_INSTALLED: &str =
    "helmreleaseproxy.addons.cluster.x-k8s.io/release-successfully-installed";
