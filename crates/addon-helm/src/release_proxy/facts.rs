//! Facts that follow from an observation: the desired state, the way to it, and the obstacles. Pure; shared by observation, plan and status.

use std::time::Duration;

use semver::Version;
use windlass_api_ext::addons::{HelmReleaseProxy, reasons, values};
use windlass_cluster_cache::{Outage, Workload};
use windlass_controller_runtime::{Blocked, Until};
use windlass_helm::{ChartSource, Credentials};
use windlass_meta::GoDuration;

use super::digest::{Digest, Digester};
use super::observed::{ClusterState, Depth, Failure, Latest, Lookup, Observed, Obstacle, Operation};
use crate::rules;

/// The timeout of an operation when the text of the timeout cannot be parsed.
const TIMEOUT: Duration = Duration::from_mins(10);
/// The API limits names of releases to this many characters.
const LONGEST_NAME: usize = 53;

/// The timeout of an operation.
pub(super) fn timeout(proxy: &HelmReleaseProxy) -> Duration {
    let options = proxy.spec.options.as_ref();
    let text = options.and_then(|options| options.timeout.as_deref());
    let text = text.filter(|text| !text.is_empty()).unwrap_or(values::DEFAULT_TIMEOUT);
    text.parse::<GoDuration>().map_or(TIMEOUT, GoDuration::to_std)
}

/// A version that no repository has to be asked about: one alone, with all its parts.
pub(super) fn pinned(version: Option<&str>) -> Option<&str> {
    let text = version?.trim();
    Version::parse(text.strip_prefix('v').unwrap_or(text)).ok()?;
    Some(text)
}

/// Whether the desired values are merged into those of the release.
pub(super) fn reuses_values(proxy: &HelmReleaseProxy) -> bool {
    let options = proxy.spec.options.as_ref();
    let upgrade = options.and_then(|options| options.upgrade.as_ref());
    upgrade.is_some_and(|upgrade| upgrade.reuse_values == Some(true) || upgrade.reset_then_reuse_values == Some(true))
}

/// How much of the release the plan needs.
pub(super) fn depth(proxy: &HelmReleaseProxy, running: Option<Operation>) -> Depth {
    if running.is_some() {
        Depth::Labels
    } else if reuses_values(proxy) {
        Depth::Values
    } else {
        Depth::Contents
    }
}

/// The chart whose newest version is followed. `None` when the version is pinned or does not matter.
pub(super) fn followed_source<'a>(
    proxy: &HelmReleaseProxy,
    source: &'a Result<ChartSource, Obstacle>,
) -> Option<&'a ChartSource> {
    let is_done = proxy.spec.is_install_once() && proxy.was_installed();
    let is_leaving = proxy.metadata.deletion_timestamp.is_some();
    if pinned(proxy.spec.version()).is_some() || is_leaving || is_done {
        return None;
    }
    // A repository is not asked about an object that breaks the rules.
    source
        .as_ref()
        .ok()
        .filter(|_| rules::release_problems(proxy).is_empty())
}

/// The chart in exactly the desired version.
pub(super) fn exact_source(seen: &Observed) -> Option<ChartSource> {
    let mut source = seen.source.as_ref().ok()?.clone();
    match &seen.version {
        Latest::Pinned(version) | Latest::Found(version) => source.version = Some(version.clone()),
        Latest::Asking | Latest::Failed(_) => {}
    }
    Some(source)
}

/// The digest of the desired state, as far as operations depend on it: an operation that failed for one desired state may succeed for
/// another. The absence of the release is a desired state of its own.
pub(super) fn desired(seen: &Observed) -> Digest {
    let spec = &seen.proxy.spec;
    let options = serde_json::to_vec(&spec.options).unwrap_or_default();
    let version = match &seen.version {
        Latest::Pinned(version) | Latest::Found(version) => version.as_str(),
        Latest::Asking | Latest::Failed(_) => "",
    };
    let digester = Digester::default()
        .part(spec.repo_url.as_bytes())
        .part(spec.chart_name.as_bytes())
        .part(version.as_bytes())
        .part(spec.values.as_deref().unwrap_or_default().as_bytes())
        .part(&options)
        .part(&[u8::from(seen.proxy.metadata.deletion_timestamp.is_some())]);
    let digester = match &seen.source {
        Ok(source) => with_source(digester, source),
        Err(_) => digester,
    };
    digester.done()
}

/// Adds the credentials: a repository that refused some may accept others.
fn with_source(digester: Digester, source: &ChartSource) -> Digester {
    let digester = match &source.credentials {
        Some(Credentials::RegistryConfig(text)) => digester.part(text.reveal().as_bytes()),
        Some(Credentials::Login { username, password, .. }) => {
            digester.part(username.as_bytes()).part(password.reveal().as_bytes())
        }
        None => digester,
    };
    match &source.tls {
        Some(tls) => digester
            .part(tls.ca.as_deref().unwrap_or_default().as_bytes())
            .part(&[u8::from(tls.insecure_skip_verify)]),
        None => digester,
    }
}

/// The release on a cluster that answers; else the obstacle, which an event ends.
pub(super) fn reachable(seen: &Observed) -> Result<&Lookup, Blocked> {
    let name = seen.proxy.spec.cluster_name();
    let namespace = seen.proxy.metadata.namespace.as_deref().unwrap_or_default();
    let (reason, message) = match &seen.cluster {
        ClusterState::Missing => (
            reasons::GET_CLUSTER_FAILED,
            format!("there is no Cluster {namespace}/{name}"),
        ),
        ClusterState::OtherNamespace(other) => (
            reasons::GET_CLUSTER_FAILED,
            format!(
                "spec.clusterRef.namespace is {other}, but only Clusters of the same namespace get releases: leave it out, or set it to {namespace}"
            ),
        ),
        ClusterState::Uninitialized => (
            reasons::NOT_INITIALIZED,
            format!("waiting for the control plane of Cluster {name} to be initialized"),
        ),
        ClusterState::Initialized {
            has_kubeconfig,
            release,
            ..
        } => match release {
            Workload::Up(found) => return Ok(found),
            Workload::NotTried(why) | Workload::Down(Outage { why, .. }) if *has_kubeconfig => (
                reasons::CONNECTION_DOWN,
                format!("Cluster {name} cannot be reached: {why}"),
            ),
            Workload::NotTried(why) | Workload::Down(Outage { why, .. }) => {
                (reasons::GET_KUBECONFIG_FAILED, why.clone())
            }
        },
    };
    Err(waiting(reason, message))
}

/// An obstacle that an event ends.
pub(super) fn waiting(reason: &'static str, message: impl Into<String>) -> Blocked {
    Blocked {
        reason,
        message: message.into(),
        until: Until::Event,
    }
}

/// The progress of an operation that is running.
pub(super) fn progress(seen: &Observed, operation: Operation) -> Blocked {
    let failure = seen.work.failure.as_ref();
    if let Some(failure) = failure.filter(|failure| failure.desired == desired(seen)) {
        // A failure stays visible during the next attempt.
        return failed(failure);
    }
    let release = seen.proxy.spec.release_name().unwrap_or_default();
    let message = format!("helm {} of release {release} is going on", operation.name());
    waiting(reasons::HELM_RELEASE_PENDING, message)
}

/// An operation that failed and has to wait before the next attempt.
pub(super) fn failed(failure: &Failure) -> Blocked {
    let reason = match failure.operation {
        Operation::Uninstall { .. } => reasons::HELM_RELEASE_DELETION_FAILED,
        _ => reasons::HELM_INSTALL_OR_UPGRADE_FAILED,
    };
    let message = format!("helm {} failed: {}", failure.operation.name(), failure.message);
    waiting(reason, message)
}

/// The name of a release that has none in the spec: `<chart>-<unix time>`, as Helm generates names, without characters that are not
/// legal in names.
pub(super) fn generated_name(chart: &str, second: i64) -> String {
    let last = chart.rsplit('/').next().unwrap_or_default();
    let legal = last
        .to_ascii_lowercase()
        .replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    let suffix = format!("-{second}");
    let room = LONGEST_NAME.saturating_sub(suffix.len());
    let stem: String = legal.trim_matches('-').chars().take(room).collect();
    let stem = stem.trim_matches('-');
    let stem = if stem.is_empty() { "chart" } else { stem };
    format!("{stem}{suffix}")
}

#[cfg(test)]
mod tests {
    use super::super::testing::seen;
    use super::*;

    // AD-104, AD-116
    #[test]
    fn only_whole_versions_are_pinned() {
        for version in ["1.2.3", "v1.2.3", "0.1.0-rc.1", "1.2.3+build"] {
            assert_eq!(pinned(Some(version)), Some(version));
        }
        for range in ["1.2", "1", "^1.2.3", ">=1 <2", "1.2.x", "*", "1.2.3 || 2.0.0", ">1.0.0"] {
            assert_eq!(pinned(Some(range)), None, "{range}");
        }
        assert_eq!(pinned(None), None);
    }

    // AD-078: a legal name of at most 53 characters for every name of a chart.
    #[test]
    fn generated_names_are_legal() {
        let check = |chart: &str, expect: &str| assert_eq!(generated_name(chart, 1_800_000_000), expect);
        check("web", "web-1800000000");
        check("group/Web_Server.v2", "web-server-v2-1800000000");
        check("--", "chart-1800000000");
        check(&"x".repeat(80), &format!("{}-1800000000", "x".repeat(42)));
        check(
            &format!("{}-tail", "x".repeat(41)),
            &format!("{}-1800000000", "x".repeat(41)),
        );
    }

    #[test]
    fn other_credentials_are_another_desired_state() {
        let one = seen();
        let hidden = |text: &str| Credentials::RegistryConfig(windlass_helm::Secret::new(text));
        let with = |text: &str| {
            seen().but(|seen| {
                seen.source.as_mut().unwrap().credentials = Some(hidden(text));
            })
        };
        assert_ne!(desired(&one), desired(&with("a")));
        assert_ne!(desired(&with("b")), desired(&with("a")));
        assert_eq!(desired(&with("a")), desired(&with("a")));
    }
}
