//! Classifies helm's error messages by their remedy. Pure.
//!
//! Helm has one exit code for all errors, so only its messages distinguish them. They are compared in lower case and in the order
//! of the tables. More specific rows come first, because a line may contain the messages of several layers (a hook that failed
//! because it timed out, a cluster that is unreachable because of a certificate).

use crate::Kind;

#[cfg(test)]
#[path = "blame/tests.rs"]
mod tests;

/// The remote side of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// A repository.
    Repository,
    /// A local file.
    LocalFile,
    /// A cluster.
    Cluster,
}

/// Texts that together indicate a kind.
type Row = (&'static [&'static str], Kind);

/// Invalid charts, in any operation.
const CHART: &[Row] = &[
    (&["missing in charts/ directory"], Kind::ChartBroken),
    (&["library charts are not installable"], Kind::ChartBroken),
    (&["chart.yaml file is missing"], Kind::ChartBroken),
    (&["not appear to be a gzipped archive"], Kind::ChartBroken),
    (&["not appear to be a valid chart"], Kind::ChartBroken),
    (&["gzip: invalid"], Kind::ChartBroken),
    (&["validation: chart.metadata"], Kind::ChartBroken),
    (&["chart metadata"], Kind::ChartBroken),
    (&["cannot load chart.yaml"], Kind::ChartBroken),
];

const REPOSITORY: &[Row] = &[
    (&["no chart name found"], Kind::ChartNotFound),
    (&["no chart version found"], Kind::VersionNotFound),
    (&["could not locate a version matching"], Kind::VersionNotFound),
    (&["unable to locate any tags"], Kind::VersionNotFound),
    (&["improper constraint"], Kind::Invalid),
    (&["invalid_reference"], Kind::Invalid),
    (&["invalid reference"], Kind::Invalid),
    (&["x509:"], Kind::CertificateNotTrusted),
    (&["failed to verify certificate"], Kind::CertificateNotTrusted),
    (&["401 unauthorized"], Kind::Unauthorized),
    (&["403 forbidden"], Kind::Unauthorized),
    (&["status code 401"], Kind::Unauthorized),
    (&["status code 403"], Kind::Unauthorized),
    (&[": unauthorized"], Kind::Unauthorized),
    (&["denied:"], Kind::Unauthorized),
    (&["credential not found"], Kind::Unauthorized),
    // A response about the repository as a whole, before the one about a version.
    (&["tags/list", "status code 404"], Kind::ChartNotFound),
    (&["name unknown"], Kind::ChartNotFound),
    (&["name_unknown"], Kind::ChartNotFound),
    (&["index.yaml"], Kind::RepositoryUnreachable),
    (&["dial tcp"], Kind::RepositoryUnreachable),
    // The response about a tag.
    (&["manifest unknown"], Kind::VersionNotFound),
    (&[": not found"], Kind::VersionNotFound),
];

const CLUSTER: &[Row] = &[
    (
        &["values don't meet the specifications of the schema"],
        Kind::ValuesRefused,
    ),
    (&["chart requires kubeversion"], Kind::KubeVersionRefused),
    (&["cannot re-use a name that is still in use"], Kind::NameInUse),
    (&["cannot reuse a name that is still in use"], Kind::NameInUse),
    (&["another operation", "is in progress"], Kind::Locked),
    (&["\"sh.helm.release.v1.", "already exists"], Kind::Locked),
    (&["\"sh.helm.release.v1.", "object has been modified"], Kind::Locked),
    (&["is being terminated"], Kind::NamespaceTerminating),
    (&["has no deployed releases"], Kind::ReleaseNotFound),
    (&["release: not found"], Kind::ReleaseNotFound),
    // Uninstalled earlier, with its history kept.
    (&["is already deleted"], Kind::ReleaseNotFound),
    (&["release has no", "version"], Kind::ReleaseNotFound),
    (&["must be logged in"], Kind::ClusterForbidden),
    (&["client to provide credentials"], Kind::ClusterForbidden),
    (&["is forbidden: user"], Kind::ClusterForbidden),
    (&["cluster unreachable", ": unauthorized"], Kind::ClusterForbidden),
    (&["cluster unreachable"], Kind::ClusterUnreachable),
    (&["cannot be imported into the current release"], Kind::ResourceExists),
    (&["invalid ownership metadata"], Kind::ResourceExists),
    (&["apply failed with", "conflict"], Kind::ResourceExists),
    (&["no matches for kind"], Kind::KindUnknown),
    (&["ensure crds are installed first"], Kind::KindUnknown),
    // A hook that timed out needs a longer timeout rather than another hook.
    (&["timed out waiting"], Kind::TimedOut),
    (&["deadline exceeded"], Kind::TimedOut),
    (&["resource not ready"], Kind::TimedOut),
    (&["failed pre-install"], Kind::HookFailed),
    (&["failed post-install"], Kind::HookFailed),
    (&["hooks failed"], Kind::HookFailed),
    (&["failed pre-delete"], Kind::HookFailed),
    (&["failed post-delete"], Kind::HookFailed),
    (&["job failed"], Kind::HookFailed),
    (&["job", "failed:", "backofflimitexceeded"], Kind::HookFailed),
    (&["execution error at ("], Kind::TemplateFailed),
    (&["templates/", "executing \""], Kind::TemplateFailed),
    (&["templates/", "error calling "], Kind::TemplateFailed),
    (&["template:", "function "], Kind::TemplateFailed),
    (&["parse error at ("], Kind::TemplateFailed),
    (&["yaml parse error on "], Kind::TemplateFailed),
    (&["render error in "], Kind::TemplateFailed),
    (&["error unmarshaling json"], Kind::TemplateFailed),
    (&["is invalid:"], Kind::ResourceRefused),
    (&["denied the request"], Kind::ResourceRefused),
    (&["error validating"], Kind::ResourceRefused),
    (&["cannot be handled as a"], Kind::ResourceRefused),
    (&["strict decoding error"], Kind::ResourceRefused),
    (&["object 'kind' is missing"], Kind::TemplateFailed),
    (&["unable to decode"], Kind::ResourceRefused),
    (&["is forbidden:"], Kind::ResourceRefused),
    (&["namespaces \"", "not found"], Kind::NamespaceNotFound),
    (&["already exists"], Kind::ResourceExists),
    (&["cancelled"], Kind::Cancelled),
    (&["context canceled"], Kind::Cancelled),
];

/// Messages that only report a missing answer.
const NO_ANSWER: &[&str] = &[
    "connection refused",
    "connection reset",
    "no such host",
    "network is unreachable",
    "no route to host",
    "i/o timeout",
    "tls handshake",
    "unexpected eof",
    ": eof",
    "deadline exceeded",
    "timeout awaiting",
    "not a valid chart repository",
    "failed to fetch",
    "unable to get an update",
    "server gave http response to https client",
    "malformed http response",
    "response status code 5",
    "x509:",
];

/// The kind of an error message.
pub(crate) fn kind(asked: Asked, words: &str) -> Kind {
    let words = words.to_lowercase();
    let tables: &[&[Row]] = match asked {
        Asked::Repository => &[REPOSITORY, CHART],
        Asked::LocalFile => &[CHART],
        Asked::Cluster => &[CLUSTER, CHART],
    };
    let rows = tables.iter().copied().flatten();
    let mut told = rows.filter(|(parts, _)| parts.iter().all(|part| words.contains(part)));
    if let Some((_, kind)) = told.next() {
        return *kind;
    }
    match asked {
        Asked::Repository if is_silence(&words) => Kind::RepositoryUnreachable,
        Asked::Cluster if is_silence(&words) => Kind::ClusterUnreachable,
        Asked::LocalFile => Kind::ChartBroken,
        _ => Kind::Other,
    }
}

fn is_silence(words: &str) -> bool {
    NO_ANSWER.iter().any(|part| words.contains(part))
}
