//! Errors of Helm, classified by their remedy.

/// Why a Helm operation failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct HelmError {
    /// The remedy.
    pub kind: Kind,
    /// Helm's message, if it has one; limited in length, and without secrets.
    pub message: String,
}

impl HelmError {
    /// An error of a kind.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { kind, message }
    }
}

/// Declares the kinds with their names and whether a retry may succeed.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal, $passes:literal;)*) => {
        /// The remedy of an error.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Kind {
            $($(#[$doc])* $kind,)*
        }

        impl Kind {
            /// Every kind.
            pub const ALL: &'static [Self] = &[$(Self::$kind),*];

            /// A name for metrics and logs.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)*
                }
            }

            /// Whether the same call may succeed later without a change of its input.
            pub fn may_pass(self) -> bool {
                match self {
                    $(Self::$kind => $passes,)*
                }
            }
        }
    };
}

kinds! {
    /// The `helm` program is missing: install it, or set --helm.
    NotInstalled = "not-installed", true;
    /// The `helm` program is too old, in general or for an option: install a newer one.
    TooOld = "too-old", true;
    /// Invalid input: an address, a version, a kubeconfig, an option.
    Invalid = "invalid", false;
    /// The repository has no chart of this name.
    ChartNotFound = "chart-not-found", true;
    /// The chart has no version that matches.
    VersionNotFound = "version-not-found", true;
    /// The fetched file is not a chart, or Helm cannot install it (a library, missing dependencies, too large).
    ChartBroken = "chart-broken", false;
    /// The repository does not respond, or not as a repository.
    RepositoryUnreachable = "repository-unreachable", true;
    /// The repository requires credentials, or other ones.
    Unauthorized = "unauthorized", true;
    /// The issuer of the repository's certificate is not trusted.
    CertificateNotTrusted = "certificate-not-trusted", true;
    /// The values are not YAML, or not a mapping.
    ValuesInvalid = "values-invalid", false;
    /// The chart's schema refuses the values.
    ValuesRefused = "values-refused", false;
    /// The chart does not allow the cluster's version of Kubernetes.
    KubeVersionRefused = "kube-version-refused", true;
    /// A release of this name exists already.
    NameInUse = "name-in-use", true;
    /// The release does not exist, or was never deployed.
    ReleaseNotFound = "release-not-found", true;
    /// A resource of the chart exists and belongs to another release or to none.
    ResourceExists = "resource-exists", true;
    /// The cluster does not serve a kind of the chart: its definition must be installed first.
    KindUnknown = "kind-unknown", true;
    /// The cluster refuses a resource of the chart.
    ResourceRefused = "resource-refused", true;
    /// Another operation on the release is running, or was killed.
    Locked = "locked", true;
    /// The namespace is being deleted.
    NamespaceTerminating = "namespace-terminating", true;
    /// The namespace does not exist, and was not to be created.
    NamespaceNotFound = "namespace-not-found", true;
    /// The cluster's API server does not respond.
    ClusterUnreachable = "cluster-unreachable", true;
    /// The cluster refuses access: the kubeconfig's user is unknown there or lacks a permission.
    ClusterForbidden = "cluster-forbidden", true;
    /// A hook of the chart failed.
    HookFailed = "hook-failed", true;
    /// A time limit was exceeded.
    TimedOut = "timed-out", true;
    /// A template of the chart cannot be rendered, or not to YAML.
    TemplateFailed = "template-failed", false;
    /// The call was cancelled.
    Cancelled = "cancelled", true;
    /// Any other error; Helm's message describes it.
    Other = "other", true;
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_kind_has_a_name_of_its_own() {
        let names: BTreeSet<_> = Kind::ALL.iter().map(|kind| kind.name()).collect();
        assert_eq!(names.len(), Kind::ALL.len());
    }

    #[test]
    fn an_error_is_its_message() {
        let error = HelmError::new(Kind::Locked, "another operation is in progress");
        assert_eq!(error.to_string(), "another operation is in progress");
    }
}
