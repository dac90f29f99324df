//! What is to be done about a release: decided from what was seen, and from nothing else.
//!
//! A release that is not ours is never written, and nothing is begun that cannot be taken up again by whoever comes after a crash: the name of
//! a release is stored before it is installed, and the mark that makes it ours is part of the release itself.

mod deletion;
mod difference;
mod recovery;

use std::time::Duration;

use windlass_api_ext::addons::reasons;
use windlass_helm::Status;
use windlass_kit::{Seen, Timestamp};

use super::digest::{Digest, Digester};
use super::observed::{Failure, Latest, Observed, Operation, Release, Way};
use crate::rules;
use difference::Difference;
pub(super) use difference::{pinned, reuses_values};
pub(super) use recovery::timeout;

/// How soon it is looked again whether Helm can be used.
pub(super) const LOOK_FOR_HELM: Duration = Duration::from_secs(30);

/// What is to be done, and when to look again although nothing happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// What to do.
    pub(super) step: Step,
    /// When to look again.
    pub(super) again: Again,
}

/// When to look again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Again {
    /// When something happens.
    Event,
    /// After this time, too.
    After(Duration),
    /// After a time that grows with every failure.
    Backoff,
}

/// One step; what follows it is decided when it is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The release is as it should be, and this is to be said of it.
    Rest(String),
    /// It cannot go on.
    Wait(Blocked),
    /// Store a name for the release.
    Name(String),
    /// Note that the release was installed.
    Remember,
    /// Ask Helm; and why.
    Start(Operation, String),
    /// End the operation that goes on, as nobody wants its outcome any more.
    Stop,
    /// Drop the finalizer; and why.
    LetGo(String),
}

/// What cannot go on, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Blocked {
    /// What it is about.
    pub(super) about: About,
    /// A reason of the condition.
    pub(super) reason: &'static str,
    /// A sentence for the person who can do something.
    pub(super) message: String,
}

/// What a problem is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum About {
    /// The cluster, or what it takes to fetch the chart for it: condition ClusterAvailable.
    Cluster,
    /// The release: condition HelmReleaseReady.
    Release,
}

impl Step {
    /// Whether it relies on what is on the cluster at this moment.
    pub(super) fn acts(&self) -> bool {
        matches!(self, Self::Start(..) | Self::LetGo(_))
    }
}

impl Plan {
    fn of(step: Step) -> Self {
        Self {
            step,
            again: Again::Event,
        }
    }

    fn wait(about: About, reason: &'static str, message: impl Into<String>) -> Self {
        Self::of(Step::Wait(Blocked {
            about,
            reason,
            message: message.into(),
        }))
    }

    fn again(self, again: Again) -> Self {
        Self { again, ..self }
    }
}

/// Decides.
pub(super) fn plan(seen: &Observed, now: Timestamp) -> Plan {
    if seen.proxy.metadata.deletion_timestamp.is_some() {
        deletion::plan(seen, now)
    } else {
        upkeep(seen, now)
    }
}

/// What is wished for, as far as an operation depends on it: what failed for one wish may succeed for another.
pub(super) fn wish(seen: &Observed) -> Digest {
    let spec = &seen.proxy.spec;
    let options = serde_json::to_vec(&spec.options).unwrap_or_default();
    let version = match &seen.version {
        Latest::Pinned(version) | Latest::Found(version) => version.as_str(),
        Latest::Asking | Latest::Failed(_) => "",
    };
    let wish = Digester::default()
        .part(spec.repo_url.as_bytes())
        .part(spec.chart_name.as_bytes())
        .part(version.as_bytes())
        .part(spec.values.as_deref().unwrap_or_default().as_bytes())
        .part(&options);
    let wish = match &seen.source {
        Ok(source) => source_of(wish, source),
        Err(_) => wish,
    };
    wish.done()
}

/// Other credentials may be let in where these were not.
fn source_of(wish: Digester, source: &windlass_helm::ChartSource) -> Digester {
    let wish = match &source.credentials {
        Some(windlass_helm::Credentials::RegistryConfig(text)) => wish.part(text.reveal().as_bytes()),
        Some(windlass_helm::Credentials::Login { username, password, .. }) => {
            wish.part(username.as_bytes()).part(password.reveal().as_bytes())
        }
        None => wish,
    };
    match &source.tls {
        Some(tls) => wish
            .part(tls.ca.as_deref().unwrap_or_default().as_bytes())
            .part(&[u8::from(tls.insecure_skip_verify)]),
        None => wish,
    }
}

/// What stands in the way of reaching the cluster.
pub(super) fn closed(seen: &Observed) -> Option<Blocked> {
    let spec = &seen.proxy.spec;
    let (name, namespace) = (
        spec.cluster_name(),
        seen.proxy.metadata.namespace.as_deref().unwrap_or_default(),
    );
    let (reason, message) = match &seen.way {
        Way::Open => return None,
        Way::Gone => (
            reasons::GET_CLUSTER_FAILED,
            format!("there is no Cluster {namespace}/{name}"),
        ),
        Way::Elsewhere(other) => (
            reasons::GET_CLUSTER_FAILED,
            format!(
                "spec.clusterRef.namespace is {other}, but only Clusters of the same namespace get releases: leave it out, or set it to {namespace}"
            ),
        ),
        Way::Uninitialized => (
            reasons::NOT_INITIALIZED,
            format!("waiting for the control plane of Cluster {name} to be initialized"),
        ),
        Way::Unknown(why) => (reasons::GET_KUBECONFIG_FAILED, why.clone()),
        Way::Closed(why) => (
            reasons::CONNECTION_DOWN,
            format!("Cluster {name} cannot be reached: {why}"),
        ),
    };
    let about = About::Cluster;
    Some(Blocked { about, reason, message })
}

fn upkeep(seen: &Observed, now: Timestamp) -> Plan {
    let spec = &seen.proxy.spec;
    if seen.cluster_is_leaving {
        let message = format!(
            "Cluster {} is being deleted: nothing is installed there any more",
            spec.cluster_name()
        );
        return Plan::wait(About::Cluster, reasons::DELETING, message);
    }
    if let Some(blocked) = closed(seen) {
        return Plan::of(Step::Wait(blocked));
    }
    if let Some(operation) = seen.work.running {
        return Plan::of(Step::Wait(started(seen, operation)));
    }
    if seen.work.is_taken {
        return Plan::of(Step::Wait(taken()));
    }
    if spec.is_install_once() && seen.proxy.was_installed() {
        return Plan::of(Step::Rest(
            "installed once, and left alone since, as reconcileStrategy says".to_owned(),
        ));
    }
    let problems = rules::release_problems(&seen.proxy);
    if !problems.is_empty() {
        let words: Vec<String> = problems.iter().map(ToString::to_string).collect();
        return Plan::wait(
            About::Release,
            reasons::HELM_INSTALL_OR_UPGRADE_FAILED,
            words.join("; "),
        );
    }
    if let Err(obstacle) = &seen.source {
        return Plan::wait(About::Cluster, obstacle.reason, &*obstacle.message);
    }
    if let Err(why) = &seen.values {
        let message = format!("spec.values cannot be used: {why}");
        return Plan::wait(About::Release, reasons::HELM_INSTALL_OR_UPGRADE_FAILED, message);
    }
    if spec.release_name().is_none() {
        return Plan::of(Step::Name(generated_name(&spec.chart_name, seen.second)));
    }
    match &seen.release {
        Seen::Failed(why) => unread(why),
        Seen::NotFound => start(seen, now, Operation::Install { replace: false }, "it is not there"),
        Seen::Found(release) => of_release(seen, release, now),
    }
}

fn unread(why: &str) -> Plan {
    Plan::wait(About::Release, reasons::HELM_RELEASE_GET_FAILED, why).again(Again::Backoff)
}

/// What is said while an operation goes on.
pub(super) fn started(seen: &Observed, operation: Operation) -> Blocked {
    let before = seen.work.failure.as_ref().filter(|failure| failure.wish == wish(seen));
    if let Some(failure) = before {
        // What is wrong stays to be seen while it is tried again.
        return failed(failure);
    }
    let release = seen.proxy.spec.release_name().unwrap_or_default();
    let message = format!("helm {} of release {release} is going on", operation.name());
    of_the_release(reasons::HELM_RELEASE_PENDING, message)
}

/// Two objects name the same release: one after the other.
fn taken() -> Blocked {
    let message = "another HelmReleaseProxy works on the release";
    of_the_release(reasons::HELM_RELEASE_PENDING, message.to_owned())
}

fn failed(failure: &Failure) -> Blocked {
    let reason = match failure.operation {
        Operation::Uninstall { .. } => reasons::HELM_RELEASE_DELETION_FAILED,
        _ => reasons::HELM_INSTALL_OR_UPGRADE_FAILED,
    };
    let message = format!("helm {} failed: {}", failure.operation.name(), failure.message);
    of_the_release(reason, message)
}

fn of_the_release(reason: &'static str, message: String) -> Blocked {
    let about = About::Release;
    Blocked { about, reason, message }
}

fn of_release(seen: &Observed, release: &Release, now: Timestamp) -> Plan {
    if !is_ours(seen, release) {
        return Plan::wait(
            About::Release,
            reasons::HELM_INSTALL_OR_UPGRADE_FAILED,
            in_use(seen, release),
        );
    }
    match release.status {
        Status::Deployed => deployed(seen, release, now),
        Status::Uninstalled => start(seen, now, Operation::Install { replace: true }, "it was uninstalled"),
        status => recovery::plan(seen, release, status, now),
    }
}

/// Whether a release is this object's: it is marked so, or it is not marked at all and the object says that it has installed it.
pub(super) fn is_ours(seen: &Observed, release: &Release) -> bool {
    match &release.owner {
        Some(owner) => *owner == seen.owner,
        None => seen.proxy.was_installed(),
    }
}

/// Why a release of the name is left alone.
fn in_use(seen: &Observed, release: &Release) -> String {
    let spec = &seen.proxy.spec;
    let name = format!(
        "{}/{}",
        spec.release_namespace(),
        spec.release_name().unwrap_or_default()
    );
    match &release.owner {
        Some(owner) => format!(
            "the name is in use: release {name} belongs to HelmChartProxy {} already, and is left as it is; choose another releaseName or namespace",
            owner.replacen('.', "/", 1)
        ),
        None => format!(
            "the name is in use: release {name} was not installed by this HelmReleaseProxy, and is left as it is; choose another releaseName or \
             namespace, uninstall it, or hand it over with the annotation {}=true on the HelmReleaseProxy",
            windlass_api_ext::addons::annotations::RELEASE_SUCCESSFULLY_INSTALLED
        ),
    }
}

fn deployed(seen: &Observed, release: &Release, now: Timestamp) -> Plan {
    if !seen.proxy.was_installed() {
        return Plan::of(Step::Remember);
    }
    // What Helm made of exactly this wish is what was wished for, in whatever words the release tells it.
    let is_made = seen
        .work
        .made
        .is_some_and(|made| made.wish == wish(seen) && made.revision == release.revision);
    if is_made {
        return Plan::of(Step::Rest(String::new()));
    }
    match difference::between(seen, release) {
        Difference::Nothing => Plan::of(Step::Rest(String::new())),
        Difference::Unknown(why) => Plan::of(Step::Rest(why)),
        Difference::Found(what) => start(seen, now, Operation::Upgrade, &what),
    }
}

/// Begins an operation, unless it has to wait.
fn start(seen: &Observed, now: Timestamp, operation: Operation, why: &str) -> Plan {
    if let Some(failure) = &seen.work.failure
        && failure.wish == wish(seen)
        && let Some(left) = failure.remaining(now)
    {
        return Plan::of(Step::Wait(failed(failure))).again(Again::After(left));
    }
    if let Some(why) = &seen.unusable {
        let reason = failing_reason(seen);
        return Plan::wait(About::Release, reason, why).again(Again::After(LOOK_FOR_HELM));
    }
    if matches!(operation, Operation::Install { .. } | Operation::Upgrade) {
        match &seen.version {
            Latest::Pinned(_) | Latest::Found(_) => {}
            Latest::Asking => {
                let message = "asking the repository which version of the chart is the newest";
                return Plan::wait(About::Release, reasons::PREPARING_TO_HELM_INSTALL, message);
            }
            Latest::Failed(why) => {
                return Plan::wait(About::Release, reasons::HELM_INSTALL_OR_UPGRADE_FAILED, why);
            }
        }
    }
    Plan::of(Step::Start(operation, why.to_owned()))
}

/// What is said of operations that fail.
fn failing_reason(seen: &Observed) -> &'static str {
    if seen.proxy.metadata.deletion_timestamp.is_some() {
        reasons::HELM_RELEASE_DELETION_FAILED
    } else {
        reasons::HELM_INSTALL_OR_UPGRADE_FAILED
    }
}

/// Names of releases are legal names of objects, of at most this many characters.
const MOST_OF_NAME: usize = 53;

/// `<chart>-<unix time>`, as Helm makes names up; what no name may have is left out.
fn generated_name(chart: &str, second: i64) -> String {
    let last = chart.rsplit('/').next().unwrap_or_default();
    let legal = last
        .to_ascii_lowercase()
        .replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    let suffix = format!("-{second}");
    let room = MOST_OF_NAME.saturating_sub(suffix.len());
    let stem: String = legal.trim_matches('-').chars().take(room).collect();
    let stem = stem.trim_matches('-');
    let stem = if stem.is_empty() { "chart" } else { stem };
    format!("{stem}{suffix}")
}

impl windlass_kit::Plan for Plan {}

#[cfg(test)]
#[path = "plan/properties.rs"]
mod properties;
#[cfg(test)]
#[path = "plan/tests.rs"]
mod tests;
