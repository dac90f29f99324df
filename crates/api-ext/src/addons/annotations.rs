//! Annotation keys of the add-on provider.

/// On a HelmReleaseProxy with a generated release name. The value is `true`.
pub const IS_RELEASE_NAME_GENERATED: &str = "helmreleaseproxy.addons.cluster.x-k8s.io/is-release-name-generated";
/// On a HelmReleaseProxy whose release this controller has installed once. The value is `true`.
pub const RELEASE_SUCCESSFULLY_INSTALLED: &str =
    "helmreleaseproxy.addons.cluster.x-k8s.io/release-successfully-installed";
/// On a HelmReleaseProxy whose Cluster existed. The value is the uid of the HelmReleaseProxy, so that a restored one does not count.
pub const CLUSTER_SEEN: &str = "helmreleaseproxy.addons.cluster.x-k8s.io/cluster-seen";

/// On a Secret: the namespaces whose charts may use it as credentials or authority, separated by commas, or `*` for all. Its own namespace
/// need not be listed. Not of Helm's own add-on provider, which lets every namespace use every Secret.
pub const USABLE_FROM: &str = "addons.cluster.x-k8s.io/usable-from-namespaces";
