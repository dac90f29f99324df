//! Decides the next step towards the desired release, from the observation alone.
//!
//! A release of another owner is never written. Every operation can be taken up again after a crash: the name of a release is stored before
//! it is installed, and the label of its owner is part of the release itself.

mod deletion;
mod difference;
mod following;
mod recovery;

use std::time::Duration;

use windlass_api_ext::addons::reasons;
use windlass_controller_runtime::{Blocked, Decision, Moment, Note, Seen, Until};
use windlass_helm::{ChartSource, Options, Status};

use super::digest::Digest;
use super::observed::{ClusterState, Latest, Lookup, Observed, Operation, ReadLive, Release};
use super::{facts, options};
use crate::rules;
use difference::Difference;

/// The interval at which it is checked again whether Helm can be used.
pub(super) const CHECK_FOR_HELM: Duration = Duration::from_secs(30);

/// The next step, or the obstacle to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    /// At most one action concerns the release. A change of the followed chart comes before it.
    pub(super) actions: Vec<Action>,
    /// The reasons.
    pub(super) notes: Vec<Note>,
    /// The obstacle.
    pub(super) blocked: Option<Blocked>,
    /// The condition that reports the obstacle.
    pub(super) about: About,
    /// The message about a release that stays as it is.
    pub(super) remark: String,
}

/// One action. The reconcile after it decides the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Follow the newest version of this chart.
    Follow(ChartSource),
    /// Follow no chart any more.
    Unfollow,
    /// Generate and store a name for the release of this chart.
    StoreName(String),
    /// Store the name of a release that is on the cluster already.
    TakeName(String),
    /// Record in an annotation that the Cluster has existed.
    RecordCluster,
    /// Record in an annotation that the release was installed.
    RecordInstallation,
    /// Start an operation of Helm.
    Start(Box<Start>),
    /// End the operation that is running.
    Stop,
    /// Remove the finalizer, for this reason.
    RemoveFinalizer(String),
}

/// An operation with its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Start {
    /// The operation.
    pub(super) operation: Operation,
    /// The desired state that it is for.
    pub(super) desired: Digest,
    /// The chart in its exact version. `None` for operations without a chart.
    pub(super) source: Option<ChartSource>,
    /// The options of Helm.
    pub(super) options: Options,
}

/// The subject of an obstacle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum About {
    /// The cluster, or what is needed to fetch the chart: condition ClusterAvailable.
    Cluster,
    /// The release: condition HelmReleaseReady.
    #[default]
    Release,
}

impl Action {
    /// Whether it relies on the release as it is on the cluster at this moment.
    fn needs_live_release(&self) -> bool {
        match self {
            Self::Start(_) | Self::RemoveFinalizer(_) => true,
            Self::Follow(_)
            | Self::Unfollow
            | Self::StoreName(_)
            | Self::TakeName(_)
            | Self::RecordCluster
            | Self::RecordInstallation
            | Self::Stop => false,
        }
    }
}

impl Plan {
    fn act(action: Action, note: Note) -> Self {
        Self {
            actions: vec![action],
            notes: vec![note],
            ..Self::default()
        }
    }

    /// Whether the object is gone after this plan.
    pub(super) fn removes_finalizer(&self) -> bool {
        let removes = |action: &Action| matches!(action, Action::RemoveFinalizer(_));
        self.actions.iter().any(removes)
    }

    fn rest(remark: impl Into<String>) -> Self {
        let remark = remark.into();
        Self {
            notes: (!remark.is_empty())
                .then(|| Note::new(remark.clone()))
                .into_iter()
                .collect(),
            remark,
            ..Self::default()
        }
    }

    fn blocked(about: About, blocked: Blocked) -> Self {
        Self {
            blocked: Some(blocked),
            about,
            ..Self::default()
        }
    }

    fn waiting(about: About, reason: &'static str, message: impl Into<String>) -> Self {
        Self::blocked(about, facts::waiting(reason, message))
    }
}

/// Decides. Operations are started, and the finalizer is removed, only after the release was read from the cluster: the watch may be late.
pub(super) fn plan(seen: &Observed, now: &Moment) -> Decision<Plan, ReadLive> {
    let mut plan = if seen.proxy.metadata.deletion_timestamp.is_some() {
        deletion::plan(seen, now)
    } else {
        upkeep(seen, now)
    };
    let is_watched = matches!(facts::reachable(seen), Ok(Lookup::Watched(_)));
    if is_watched && plan.actions.iter().any(Action::needs_live_release) {
        return Decision::Ask(ReadLive(facts::depth(&seen.proxy, seen.work.running)));
    }
    plan.actions.splice(0..0, following::action(seen));
    if records_cluster(seen) {
        plan.actions.insert(0, Action::RecordCluster);
    }
    Decision::Plan(plan)
}

/// Whether it has to be recorded that the Cluster exists: only then, its absence means that it was deleted.
fn records_cluster(seen: &Observed) -> bool {
    let is_there = !matches!(seen.cluster, ClusterState::Missing | ClusterState::OtherNamespace(_));
    is_there && seen.proxy.metadata.deletion_timestamp.is_none() && seen.proxy.may_precede_its_cluster()
}

fn upkeep(seen: &Observed, now: &Moment) -> Plan {
    let spec = &seen.proxy.spec;
    if seen.cluster_is_leaving {
        let message = format!(
            "Cluster {} is being deleted: nothing is installed there any more",
            spec.cluster_name()
        );
        return Plan::waiting(About::Cluster, reasons::DELETING, message);
    }
    let lookup = match facts::reachable(seen) {
        Ok(lookup) => lookup,
        Err(blocked) => return Plan::blocked(About::Cluster, blocked),
    };
    if let Some(operation) = seen.work.running {
        return Plan::blocked(About::Release, facts::progress(seen, operation));
    }
    if seen.work.is_taken {
        return taken();
    }
    if spec.is_install_once() && seen.proxy.was_installed() {
        return Plan::rest("installed once, and left alone since, as reconcileStrategy says");
    }
    let problems = rules::release_problems(&seen.proxy);
    if !problems.is_empty() {
        let words: Vec<String> = problems.iter().map(ToString::to_string).collect();
        return Plan::waiting(
            About::Release,
            reasons::HELM_INSTALL_OR_UPGRADE_FAILED,
            words.join("; "),
        );
    }
    if let Err(obstacle) = &seen.source {
        return Plan::waiting(About::Cluster, obstacle.reason, &*obstacle.message);
    }
    if let Err(why) = &seen.values {
        let message = format!("spec.values cannot be used: {why}");
        return Plan::waiting(About::Release, reasons::HELM_INSTALL_OR_UPGRADE_FAILED, message);
    }
    match lookup {
        Lookup::Unnamed(Seen::Failed(why)) => unread(why),
        // The release was installed for an object that is lost.
        Lookup::Unnamed(Seen::Found(name)) => Plan::act(
            Action::TakeName(name.clone()),
            Note::new(format!(
                "spec.releaseName is unset, and release {name} is there already: its name is stored"
            )),
        ),
        Lookup::Unnamed(Seen::NotFound) => Plan::act(
            Action::StoreName(spec.chart_name.clone()),
            Note::new("spec.releaseName is unset: a name is generated and stored before the installation"),
        ),
        Lookup::Watched(release) | Lookup::Live(release) => match release {
            Seen::Failed(why) => unread(why),
            Seen::NotFound => start(seen, now, Operation::Install { replace: false }, "it is not there"),
            Seen::Found(release) => of_release(seen, release, now),
        },
    }
}

/// The release cannot be read.
fn unread(why: &str) -> Plan {
    Plan::blocked(About::Release, Blocked::failed(reasons::HELM_RELEASE_GET_FAILED, why))
}

/// Two objects name the same release: one after the other.
fn taken() -> Plan {
    let message = "another HelmReleaseProxy works on the release";
    Plan::waiting(About::Release, reasons::HELM_RELEASE_PENDING, message)
}

fn of_release(seen: &Observed, release: &Release, now: &Moment) -> Plan {
    if !is_ours(seen, release) {
        return Plan::waiting(
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

/// Whether a release belongs to this object: its label names the object as owner, or it has no such label and the object has recorded the
/// installation.
pub(super) fn is_ours(seen: &Observed, release: &Release) -> bool {
    match &release.owner {
        Some(owner) => *owner == seen.owner,
        None => seen.proxy.was_installed(),
    }
}

/// Why a release of the name is not written.
fn in_use(seen: &Observed, release: &Release) -> String {
    let name = release_name(seen);
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

fn deployed(seen: &Observed, release: &Release, now: &Moment) -> Plan {
    if !seen.proxy.was_installed() {
        let note = format!("the installation of release {} is recorded", release_name(seen));
        return Plan::act(Action::RecordInstallation, Note::new(note));
    }
    // The result of Helm for exactly this desired state is right, even if the release describes it otherwise.
    let is_made = seen
        .work
        .made
        .is_some_and(|made| made.desired == facts::desired(seen) && made.revision == release.revision);
    if is_made {
        return Plan::rest(String::new());
    }
    match difference::between(seen, release) {
        Difference::Nothing => Plan::rest(String::new()),
        Difference::Unknown(why) => Plan::rest(why),
        Difference::Found(what) => start(seen, now, Operation::Upgrade, &what),
    }
}

/// Starts an operation, unless it has to wait.
fn start(seen: &Observed, now: &Moment, operation: Operation, why: &str) -> Plan {
    let desired = facts::desired(seen);
    if let Some(failure) = &seen.work.failure
        && failure.desired == desired
        && now.precedes(failure.retry_at())
    {
        return Plan::blocked(About::Release, facts::failed(failure));
    }
    if let Some(why) = &seen.unusable {
        let blocked = Blocked {
            reason: failing_reason(seen),
            message: why.clone(),
            until: Until::After(CHECK_FOR_HELM),
        };
        return Plan::blocked(About::Release, blocked);
    }
    let has_chart = matches!(operation, Operation::Install { .. } | Operation::Upgrade);
    if has_chart {
        match &seen.version {
            Latest::Pinned(_) | Latest::Found(_) => {}
            Latest::Asking => {
                let message = "asking the repository which version of the chart is the newest";
                return Plan::waiting(About::Release, reasons::PREPARING_TO_HELM_INSTALL, message);
            }
            Latest::Failed(why) => {
                return Plan::waiting(About::Release, reasons::HELM_INSTALL_OR_UPGRADE_FAILED, why);
            }
        }
    }
    let start = Start {
        operation,
        desired,
        source: facts::exact_source(seen).filter(|_| has_chart),
        options: options::of(seen.proxy.spec.options.as_ref(), operation, facts::timeout(&seen.proxy)),
    };
    let note = format!("helm {} of release {}: {why}", operation.name(), release_name(seen));
    Plan::act(Action::Start(Box::new(start)), Note::new(note))
}

/// The namespace and name of the release.
fn release_name(seen: &Observed) -> String {
    let spec = &seen.proxy.spec;
    let name = spec.release_name().unwrap_or_default();
    format!("{}/{name}", spec.release_namespace())
}

/// The reason of the condition when operations fail.
fn failing_reason(seen: &Observed) -> &'static str {
    if seen.proxy.metadata.deletion_timestamp.is_some() {
        reasons::HELM_RELEASE_DELETION_FAILED
    } else {
        reasons::HELM_INSTALL_OR_UPGRADE_FAILED
    }
}

impl windlass_controller_runtime::Plan for Plan {
    fn notes(&self) -> &[Note] {
        &self.notes
    }

    fn blocked(&self) -> Option<Blocked> {
        self.blocked.clone()
    }
}

#[cfg(test)]
#[path = "plan/properties.rs"]
mod properties;
#[cfg(test)]
#[path = "plan/tests.rs"]
mod tests;
