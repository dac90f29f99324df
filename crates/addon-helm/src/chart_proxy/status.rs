//! The status of a HelmChartProxy. Pure: computed from the observation, the plan and the result of the plan.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use windlass_api::Condition;
use windlass_api::kind::{ApiKind, Conditioned};
use windlass_api_ext::addons::{HelmChartProxyStatus, HelmReleaseProxy, conditions, reasons};
use windlass_conditions::{
    Aggregate, Reasons, Source, Status, Summary, aggregate, carried, condition, get, listed, summary,
};
use windlass_controller_runtime::ReconcileError;

use super::observed::Observed;
use super::plan::{Action, Failure, Plan, is_current};
use crate::desired::cluster_ref;

/// Messages that are spelled out.
const MOST_MESSAGES: usize = 8;
/// Clusters that are named for one message.
const MOST_NAMES: usize = 5;
/// The message about a release without a current status.
const NOT_ACTED_ON: &str = "its HelmReleaseProxy has not been acted on yet";
/// The message about a release whose Cluster is missing.
const AWAITED: &str =
    "it does not exist, and did not since its HelmReleaseProxy was created; restore it, or delete the HelmReleaseProxy";

/// The result of a plan.
#[derive(Clone, Debug, Default)]
pub struct Done {
    /// The actions that failed. A failure of one Cluster does not keep others waiting.
    pub failures: Vec<Failure>,
    /// All of them as one.
    pub failed: Option<ReconcileError>,
}

impl From<Vec<Failure>> for Done {
    fn from(failures: Vec<Failure>) -> Self {
        let errors: Vec<ReconcileError> = failures.iter().map(Failure::to_error).collect();
        Self {
            failed: ReconcileError::join(&errors),
            failures,
        }
    }
}

/// Something that keeps the HelmReleaseProxies from being as they should be.
struct Issue {
    reason: &'static str,
    cluster: Option<String>,
    message: String,
}

/// Reasons, the most important first.
const BY_WEIGHT: [&str; 7] = [
    reasons::CLUSTER_SELECTION_FAILED,
    reasons::HELM_RELEASE_PROXY_DELETION_FAILED,
    reasons::HELM_RELEASE_PROXY_CREATION_FAILED,
    reasons::VALUE_PARSING_FAILED,
    reasons::HELM_RELEASE_PROXY_REINSTALLING,
    reasons::DELETING,
    reasons::HELM_RELEASE_PROXY_SPECS_UPDATING,
];

/// The status to be applied.
pub(super) fn status(seen: &Observed, plan: &Plan, done: &Done, now: Timestamp) -> HelmChartProxyStatus {
    let proxy = &seen.proxy;
    let generation = proxy.metadata.generation;
    let changed = changed(plan, done);
    let mut all: Vec<Condition> = Vec::new();
    let mut put = |new: Condition| all.push(carried(proxy.conditions(), new));
    let (status, reason, message) = specs_up_to_date(&issues(seen, plan, done, &changed));
    let type_ = conditions::HELM_RELEASE_PROXY_SPECS_UP_TO_DATE;
    put(condition(type_, status, reason, message, now, generation));
    put(releases_ready(seen, &changed, now));
    if let Some((status, reason, message)) = rollout(seen, plan) {
        let type_ = conditions::HELM_RELEASE_PROXIES_ROLLOUT_COMPLETED;
        put(condition(type_, status, reason, message, now, generation));
    }
    let ready = carried(proxy.conditions(), ready(&all, now, generation));
    all.push(ready);
    windlass_conditions::sort(&mut all);
    let namespace = proxy.key().namespace;
    let matching = match &seen.chosen {
        Ok(chosen) => Some(chosen.keys().map(|cluster| cluster_ref(&namespace, cluster)).collect()),
        // The Clusters that were chosen last still have their releases.
        Err(_) => proxy
            .status
            .as_ref()
            .and_then(|status| status.matching_clusters.clone()),
    };
    HelmChartProxyStatus {
        conditions: all,
        matching_clusters: Some(matching.unwrap_or_default()),
        observed_generation: generation,
    }
}

/// The Clusters whose HelmReleaseProxy has just been created or changed: its status is not about the new spec.
fn changed<'a>(plan: &'a Plan, done: &Done) -> BTreeSet<&'a str> {
    let failed: BTreeSet<&str> = done
        .failures
        .iter()
        .filter_map(|failure| failure.cluster.as_deref())
        .collect();
    let clusters = plan.actions.iter().filter_map(|action| match action {
        Action::Create(release) => Some(release.spec.cluster_name()),
        Action::Patch { cluster, patch, .. } if patch.get("spec").is_some() => Some(cluster.as_str()),
        Action::Patch { .. } | Action::Delete { .. } | Action::RemoveFinalizer => None,
    });
    clusters.filter(|cluster| !failed.contains(cluster)).collect()
}

fn issues(seen: &Observed, plan: &Plan, done: &Done, changed: &BTreeSet<&str>) -> Vec<Issue> {
    let is_deleting = seen.proxy.is_deleting();
    let failures = plan.failures.iter().chain(&done.failures).map(|failure| Issue {
        reason: failure.reason,
        cluster: failure.cluster.clone(),
        message: failure.message.clone(),
    });
    let mut issues: Vec<Issue> = failures.collect();
    let mut add = |reason: &'static str, clusters: &[String], message: &str| {
        issues.extend(clusters.iter().map(|cluster| Issue {
            reason,
            cluster: Some(cluster.clone()),
            message: message.to_owned(),
        }));
    };
    let going = if is_deleting {
        reasons::DELETING
    } else {
        reasons::HELM_RELEASE_PROXY_SPECS_UPDATING
    };
    add(
        reasons::HELM_RELEASE_PROXY_REINSTALLING,
        &plan.reinstalling,
        "its release is uninstalled, to be installed again",
    );
    add(going, &plan.leaving, "its release is uninstalled");
    add(going, &plan.held, "nothing happens while it is paused");
    add(going, &plan.awaited, AWAITED);
    let stale = seen
        .releases
        .iter()
        .filter(|release| !release.is_deleting() && !is_current(release));
    let stale: BTreeSet<&str> = stale
        .map(|release| release.spec.cluster_name())
        .chain(changed.iter().copied())
        .collect();
    let reported: BTreeSet<String> = plan
        .leaving
        .iter()
        .chain(&plan.held)
        .chain(&plan.awaited)
        .chain(&plan.reinstalling)
        .cloned()
        .collect();
    let stale: Vec<String> = stale
        .into_iter()
        .map(str::to_owned)
        .filter(|cluster| !reported.contains(cluster))
        .collect();
    add(going, &stale, NOT_ACTED_ON);
    issues
}

fn specs_up_to_date(issues: &[Issue]) -> (Status, &'static str, String) {
    let weight = |issue: &Issue| {
        BY_WEIGHT
            .iter()
            .position(|reason| *reason == issue.reason)
            .unwrap_or(BY_WEIGHT.len())
    };
    let Some(worst) = issues.iter().min_by_key(|issue| weight(issue)) else {
        return (Status::True, reasons::UP_TO_DATE, String::new());
    };
    // One message for all Clusters that it concerns.
    let mut by_message: BTreeMap<(usize, &str), Vec<&str>> = BTreeMap::new();
    for issue in issues {
        let named = by_message.entry((weight(issue), issue.message.as_str())).or_default();
        named.extend(issue.cluster.as_deref());
    }
    let n_left = by_message.len().saturating_sub(MOST_MESSAGES);
    let mut lines: Vec<String> = Vec::new();
    for ((_, message), mut clusters) in by_message.into_iter().take(MOST_MESSAGES) {
        clusters.sort_unstable();
        clusters.dedup();
        lines.push(match clusters.len() {
            0 => format!("* {message}"),
            1 => format!("* Cluster {}: {message}", clusters[0]),
            _ => format!("* Clusters {}: {message}", listed(&clusters, MOST_NAMES)),
        });
    }
    if n_left > 0 {
        lines.push(format!("And {n_left} more messages"));
    }
    (Status::False, worst.reason, lines.join("\n"))
}

/// The state of all releases, by their Clusters.
fn releases_ready(seen: &Observed, changed: &BTreeSet<&str>, now: Timestamp) -> Condition {
    let generation = seen.proxy.metadata.generation;
    let target = conditions::HELM_RELEASE_PROXIES_READY;
    let mut of_cluster: Vec<(&str, Condition)> = Vec::new();
    let unknown = || {
        let reason = reasons::HELM_RELEASE_PROXY_SPECS_UPDATING;
        condition(conditions::READY, Status::Unknown, reason, NOT_ACTED_ON, now, None)
    };
    for release in &seen.releases {
        let cluster = release.spec.cluster_name();
        let known = is_current(release) && !changed.contains(cluster);
        of_cluster.push((
            cluster,
            if known {
                with_cause(release).unwrap_or_else(unknown)
            } else {
                unknown()
            },
        ));
    }
    let known: BTreeSet<&str> = of_cluster.iter().map(|(cluster, _)| *cluster).collect();
    of_cluster.extend(changed.difference(&known).map(|cluster| (*cluster, unknown())));
    let sources: Vec<Source<'_>> = of_cluster
        .iter()
        .map(|(name, ready)| Source {
            kind: "Cluster",
            name,
            control_plane: false,
            conditions: std::slice::from_ref(ready),
        })
        .collect();
    let how = Aggregate {
        reasons: READINESS,
        ..Aggregate::new(conditions::READY, target)
    };
    aggregate(&sources, &how, now, generation)
        .unwrap_or_else(|| condition(target, Status::True, reasons::READY, "", now, generation))
}

const READINESS: Reasons<'static> = Reasons {
    issue: reasons::NOT_READY,
    unknown: reasons::READY_UNKNOWN,
    info: reasons::READY,
};

/// The condition Ready of a release, with the reason and message of what keeps it from being so.
fn with_cause(release: &HelmReleaseProxy) -> Option<Condition> {
    let have = release.conditions();
    let mut ready = get(have, conditions::READY)?.clone();
    if ready.status == Status::True.as_str() {
        ready.message.clear();
        return Some(ready);
    }
    let parts = [conditions::CLUSTER_AVAILABLE, conditions::HELM_RELEASE_READY];
    let mut parts = parts.into_iter().filter_map(|part| get(have, part));
    let cause = parts
        .find(|part| part.status != Status::True.as_str())
        .unwrap_or(&ready);
    ready.message = match cause.message.as_str() {
        "" => cause.reason.clone(),
        message => format!("{}: {message}", cause.reason),
    };
    Some(ready)
}

/// Whether all Clusters had their turn, where they take turns.
fn rollout(seen: &Observed, plan: &Plan) -> Option<(Status, &'static str, String)> {
    let rollout = seen.proxy.spec.rollout.as_ref()?;
    let mut steps = [&rollout.install, &rollout.upgrade].into_iter().flatten();
    steps.find(|steps| steps.step_init.is_some())?;
    Some(match plan.waiting.len() {
        0 => (
            Status::True,
            reasons::HELM_RELEASE_PROXIES_ROLLOUT_COMPLETED,
            String::new(),
        ),
        n => {
            let (clusters, wait) = if n == 1 {
                ("Cluster", "waits")
            } else {
                ("Clusters", "wait")
            };
            let names = listed(&plan.waiting, MOST_NAMES);
            let message = format!("{n} {clusters} {wait} until those before are ready: {names}");
            (
                Status::False,
                reasons::HELM_RELEASE_PROXIES_ROLLOUT_NOT_COMPLETE,
                message,
            )
        }
    })
}

fn ready(all: &[Condition], now: Timestamp, generation: Option<i64>) -> Condition {
    let types = [
        conditions::HELM_RELEASE_PROXY_SPECS_UP_TO_DATE,
        conditions::HELM_RELEASE_PROXIES_READY,
        conditions::HELM_RELEASE_PROXIES_ROLLOUT_COMPLETED,
    ];
    let first = |of: &[windlass_conditions::Owned<'_>]| of.first().map(|one| one.condition.reason.clone());
    // The column of kubectl shows the reason that matters most.
    let reason: windlass_conditions::ComputeReason<'_> = &|issues, unknown, _| {
        first(issues)
            .or_else(|| first(unknown))
            .unwrap_or_else(|| reasons::READY.to_owned())
    };
    let how = Summary {
        ignore_if_missing: &[conditions::HELM_RELEASE_PROXIES_ROLLOUT_COMPLETED],
        reasons: READINESS,
        compute_reason: Some(reason),
        ..Summary::new(conditions::READY, &types)
    };
    summary(all, &how, now, generation)
}

impl windlass_controller_runtime::Done for Done {
    fn failed(&self) -> Option<&ReconcileError> {
        self.failed.as_ref()
    }
}

#[cfg(test)]
mod tests;
