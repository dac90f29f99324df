//! Recorded messages of both versions of helm, and their classification.

use super::*;

fn check(asked: Asked, rows: &[(&str, Kind)]) {
    for (words, want) in rows {
        assert_eq!(kind(asked, words), *want, "{words}");
    }
}

#[test]
fn what_repositories_say() {
    check(
        Asked::Repository,
        &[
            (
                "chart \"x\" matching  not found in r index. (try 'helm repo update'): no chart name found",
                Kind::ChartNotFound,
            ),
            (
                "chart \"x\" matching 9.9.9 not found in r index. (try 'helm repo update'): no chart version found for x-9.9.9",
                Kind::VersionNotFound,
            ),
            (
                "could not locate a version matching provided version string ^9",
                Kind::VersionNotFound,
            ),
            ("improper constraint: nonsense", Kind::Invalid),
            (
                "failed to fetch https://h/index.yaml : 401 Unauthorized",
                Kind::Unauthorized,
            ),
            (
                "failed to fetch https://h/index.yaml : 404 Not Found",
                Kind::RepositoryUnreachable,
            ),
            (
                "GET \"https://h/v2/x/web/tags/list\": response status code 404: Not Found",
                Kind::ChartNotFound,
            ),
            // The digits of a port are no status.
            (
                "Get \"https://h:40443/v2/x/web/tags/list\": dial tcp 192.0.2.1:40443: connect: connection refused",
                Kind::RepositoryUnreachable,
            ),
            (
                "failed to fetch https://h/index.yaml : 503 Service Unavailable",
                Kind::RepositoryUnreachable,
            ),
            (
                "Get \"https://h/index.yaml\": tls: failed to verify certificate: x509: certificate signed by unknown authority",
                Kind::CertificateNotTrusted,
            ),
            (
                "Get \"https://h/index.yaml\": dial tcp 127.0.0.1:40301: connect: connection refused",
                Kind::RepositoryUnreachable,
            ),
            (
                "Get \"https://h/index.yaml\": dial tcp: lookup h: no such host",
                Kind::RepositoryUnreachable,
            ),
            ("Get \"https://h/index.yaml\": EOF", Kind::RepositoryUnreachable),
            ("something else", Kind::Other),
        ],
    );
}

#[test]
fn what_clusters_say() {
    check(
        Asked::Cluster,
        &[
            (
                "INSTALLATION FAILED: failed post-install: 1 error occurred:\n\t* timed out waiting for the condition",
                Kind::TimedOut,
            ),
            (
                "UPGRADE FAILED: pre-upgrade hooks failed: 1 error occurred:\n\t* job failed: BackoffLimitExceeded",
                Kind::HookFailed,
            ),
            (
                "INSTALLATION FAILED: Unable to continue with install: ConfigMap \"a\" in namespace \"b\" exists and cannot be imported into the current release: invalid ownership metadata",
                Kind::ResourceExists,
            ),
            (
                "INSTALLATION FAILED: create: failed to create: secrets \"sh.helm.release.v1.a.v1\" already exists",
                Kind::Locked,
            ),
            (
                "INSTALLATION FAILED: create: failed to create: secrets \"sh.helm.release.v1.a.v1\" is forbidden: unable to create new content in namespace a because it is being terminated",
                Kind::NamespaceTerminating,
            ),
            (
                "INSTALLATION FAILED: create: failed to create: namespaces \"a\" not found",
                Kind::NamespaceNotFound,
            ),
            (
                "query: failed to query with labels: secrets is forbidden: User \"a\" cannot list resource \"secrets\"",
                Kind::ClusterForbidden,
            ),
            (
                "INSTALLATION FAILED: pods \"a\" is forbidden: exceeded quota: b",
                Kind::ResourceRefused,
            ),
            (
                "INSTALLATION FAILED: Kubernetes cluster unreachable: the server has asked for the client to provide credentials",
                Kind::ClusterForbidden,
            ),
            (
                "INSTALLATION FAILED: Kubernetes cluster unreachable: Get \"https://h/version\": tls: failed to verify certificate: x509: unknown",
                Kind::ClusterUnreachable,
            ),
            ("UPGRADE FAILED: \"a\" has no deployed releases", Kind::ReleaseNotFound),
            (
                "INSTALLATION FAILED: found in Chart.yaml, but missing in charts/ directory: b",
                Kind::ChartBroken,
            ),
            (
                "INSTALLATION FAILED: unable to build kubernetes objects from release manifest: resource mapping not found for name: \"a\": no matches for kind \"B\" in version \"c/v1\"\nensure CRDs are installed first",
                Kind::KindUnknown,
            ),
            ("something else", Kind::Other),
        ],
    );
}

#[test]
fn what_is_said_of_a_file_is_about_the_chart() {
    check(
        Asked::LocalFile,
        &[
            (
                "file does not appear to be a gzipped archive; got 'text/plain'",
                Kind::ChartBroken,
            ),
            ("odd", Kind::ChartBroken),
        ],
    );
}
