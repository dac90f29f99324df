//! Errors of Helm, by their remedy.

/// Why Helm did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct HelmError {
    /// The remedy.
    pub kind: Kind,
    /// Helm's words where it said any; bounded, and without anything secret.
    pub message: String,
}

impl HelmError {
    /// One of a kind.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { kind, message }
    }
}

/// Declares the kinds with their names and whether they may pass.
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
    /// The `helm` program is missing: install it, or name it with --helm.
    NotInstalled = "not-installed", true;
    /// The `helm` here is too old, for all or for an option: install a newer one.
    TooOld = "too-old", true;
    /// Invalid input: an address, a version, a kubeconfig, an option.
    Invalid = "invalid", false;
    /// The repository has no chart of this name.
    ChartNotFound = "chart-not-found", true;
    /// The chart has no version that matches.
    VersionNotFound = "version-not-found", true;
    /// The fetched file is not a chart, or Helm cannot install it (a library, missing dependencies, too large).
    ChartBroken = "chart-broken", false;
    /// The repository does not answer, or not as one.
    RepositoryUnreachable = "repository-unreachable", true;
    /// The repository wants credentials, or others.
    Unauthorized = "unauthorized", true;
    /// The repository's certificate is of no authority that is trusted here.
    CertificateNotTrusted = "certificate-not-trusted", true;
    /// The values are not YAML, or not a mapping.
    ValuesInvalid = "values-invalid", false;
    /// The chart's schema refuses the values.
    ValuesRefused = "values-refused", false;
    /// The chart does not allow the cluster's version of Kubernetes.
    KubeVersionRefused = "kube-version-refused", true;
    /// A release of this name is there already.
    NameInUse = "name-in-use", true;
    /// The release does not exist, or was never deployed.
    ReleaseNotFound = "release-not-found", true;
    /// A resource of the chart exists and belongs to another release or to none.
    ResourceExists = "resource-exists", true;
    /// A kind of the chart is not served by the cluster: its definition has to come first.
    KindUnknown = "kind-unknown", true;
    /// The cluster refuses a resource of the chart.
    ResourceRefused = "resource-refused", true;
    /// Another operation on the release is going on, or was when it was killed.
    Locked = "locked", true;
    /// The namespace is being deleted.
    NamespaceTerminating = "namespace-terminating", true;
    /// The namespace is not there, and was not to be made.
    NamespaceNotFound = "namespace-not-found", true;
    /// The cluster's API server does not answer.
    ClusterUnreachable = "cluster-unreachable", true;
    /// The cluster does not let us: the kubeconfig's identity is unknown there or may not do it.
    ClusterForbidden = "cluster-forbidden", true;
    /// A hook of the chart failed.
    HookFailed = "hook-failed", true;
    /// Something took longer than it may.
    TimedOut = "timed-out", true;
    /// A template of the chart cannot be rendered, or not to YAML.
    TemplateFailed = "template-failed", false;
    /// The call was given up.
    Cancelled = "cancelled", true;
    /// Anything else: Helm's words say what.
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
