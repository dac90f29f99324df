//! Decides which HelmReleaseProxies are created, changed and deleted. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use windlass_api::annotations::DELETE_FOR_MOVE;
use windlass_api::core::Cluster;
use windlass_api::kind::{ApiKind, Conditioned};
use windlass_api_ext::addons::{HelmReleaseProxy, conditions, reasons};
use windlass_controller_runtime::{Blocked, Decision, Note, ReconcileError, Triage as _, Until};

use super::IsAvailable;
use super::observed::{Observed, Values, is_paused, is_served};
use crate::cluster::is_initialized;
use crate::desired::{self, Change};
use crate::rules;
use crate::steps::{self, Gone, Waiting};

/// One write.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// A HelmReleaseProxy that a Cluster lacks.
    Create(Box<HelmReleaseProxy>),
    /// A change of a HelmReleaseProxy.
    Patch {
        /// Its name.
        name: String,
        /// Its Cluster.
        cluster: String,
        /// The change, as a JSON merge patch.
        patch: Value,
    },
    /// A HelmReleaseProxy goes, and its release with it.
    Delete {
        /// The object.
        release: Arc<HelmReleaseProxy>,
        /// Why.
        why: String,
    },
    /// Nothing is left of the HelmChartProxy.
    RemoveFinalizer,
}

/// A failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The Cluster that it is about; all of them when there is none.
    pub cluster: Option<String>,
    /// The reason of the condition.
    pub reason: &'static str,
    /// The message.
    pub message: String,
    /// Whether it may pass by itself.
    pub may_pass: bool,
}

impl Failure {
    /// As the outcome of the reconcile.
    pub(super) fn to_error(&self) -> ReconcileError {
        let message = match &self.cluster {
            Some(cluster) => format!("Cluster {cluster}: {}", self.message),
            None => self.message.clone(),
        };
        ReconcileError::new(self.reason, message)
    }
}

/// The actions, the failures, and the Clusters that wait.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// The actions.
    pub actions: Vec<Action>,
    /// The reasons of deletions.
    pub notes: Vec<Note>,
    /// The failures. A failure of one Cluster does not keep others waiting.
    pub failures: Vec<Failure>,
    /// Clusters whose release goes, to be installed again.
    pub reinstalling: Vec<String>,
    /// Clusters whose release goes for good.
    pub leaving: Vec<String>,
    /// Clusters that wait for their turn.
    pub waiting: Vec<String>,
    /// Clusters that are paused although something would have to be done.
    pub held: Vec<String>,
    /// Clusters that do not exist, but may be restored.
    pub awaited: Vec<String>,
    /// An object whose chart has to be fetched before others go for it.
    pub unseen: Option<Box<HelmReleaseProxy>>,
}

/// What a Cluster has of the HelmChartProxy.
type OnCluster<'a> = BTreeMap<&'a str, Vec<&'a Arc<HelmReleaseProxy>>>;

/// Decides, or asks whether the chart can be fetched before a release goes for one of it.
pub(super) fn decide(seen: &Observed) -> Decision<Plan, IsAvailable> {
    let mut plan = plan(seen);
    match plan.unseen.take() {
        Some(wanted) => Decision::Ask(IsAvailable(wanted)),
        None => Decision::Plan(plan),
    }
}

/// The plan; one with [`Plan::unseen`] is made without a fact.
pub(super) fn plan(seen: &Observed) -> Plan {
    let mut plan = Plan::default();
    let mut on_cluster = OnCluster::new();
    for release in &seen.releases {
        on_cluster.entry(release.spec.cluster_name()).or_default().push(release);
    }
    if seen.proxy.is_deleting() {
        remove_all(seen, &mut plan);
        return plan;
    }
    let chosen = match &seen.chosen {
        Ok(chosen) => chosen,
        // Nothing is uninstalled because of a selector that cannot be read.
        Err(why) => {
            plan.fail(None, reasons::CLUSTER_SELECTION_FAILED, why.clone(), false);
            return plan;
        }
    };
    for (cluster, releases) in on_cluster.iter().filter(|(cluster, _)| !chosen.contains_key(**cluster)) {
        remove_from(seen, cluster, releases, &mut plan);
    }
    for problem in rules::chart_problems(&seen.proxy) {
        plan.fail(
            None,
            reasons::HELM_RELEASE_PROXY_CREATION_FAILED,
            problem.to_string(),
            false,
        );
    }
    if let Some(why) = &seen.template {
        plan.fail(None, reasons::VALUE_PARSING_FAILED, why.clone(), false);
    }
    let mut turns = Turns::default();
    for (cluster, values) in chosen {
        let releases = on_cluster.get(cluster.as_str()).map(Vec::as_slice).unwrap_or_default();
        serve(seen, cluster, values, releases, &mut plan, &mut turns);
    }
    turns.take(seen, chosen.len(), &mut plan);
    plan
}

impl Plan {
    fn fail(&mut self, cluster: Option<&str>, reason: &'static str, message: String, may_pass: bool) {
        self.failures.push(Failure {
            cluster: cluster.map(str::to_owned),
            reason,
            message,
            may_pass,
        });
    }

    fn delete(&mut self, release: &Arc<HelmReleaseProxy>, why: impl Into<String>) {
        self.add(Action::Delete {
            release: release.clone(),
            why: why.into(),
        });
    }

    fn add(&mut self, action: Action) {
        if let Action::Delete { release, why } = &action {
            let (name, cluster) = (release.key().name, release.spec.cluster_name());
            let note = format!("deleting HelmReleaseProxy {name} of Cluster {cluster}: {why}");
            self.notes.push(Note::new(note));
        }
        self.actions.push(action);
    }
}

/// The HelmChartProxy goes: everything of it goes first.
fn remove_all(seen: &Observed, plan: &mut Plan) {
    let annotations = seen.proxy.metadata.annotations.as_ref();
    // It was moved to another management cluster, which goes on with its releases.
    let is_moved = annotations.is_some_and(|all| all.contains_key(DELETE_FOR_MOVE));
    if is_moved || seen.releases.is_empty() {
        plan.actions.push(Action::RemoveFinalizer);
        return;
    }
    for release in &seen.releases {
        let cluster = release.spec.cluster_name();
        let is_paused = seen.clusters.get(cluster).is_some_and(|cluster| is_paused(cluster));
        if release.is_deleting() || !is_paused {
            plan.leaving.push(cluster.to_owned());
        } else {
            plan.held.push(cluster.to_owned());
        }
        if !release.is_deleting() && !is_paused {
            plan.delete(release, "its HelmChartProxy is deleted");
        }
    }
}

/// A Cluster is not chosen, or is gone: what it has goes.
fn remove_from(seen: &Observed, cluster: &str, releases: &[&Arc<HelmReleaseProxy>], plan: &mut Plan) {
    let of_cluster = seen.clusters.get(cluster);
    for release in releases {
        // What was to be installed once stays, as long as there is something that it can be on.
        let stays = of_cluster.is_some() && release.spec.is_install_once() && release.was_installed();
        let is_paused = of_cluster.is_some_and(|cluster| is_paused(cluster));
        if release.is_deleting() {
            plan.leaving.push(cluster.to_owned());
        } else if stays {
        } else if of_cluster.is_none() && release.may_precede_its_cluster() {
            plan.awaited.push(cluster.to_owned());
        } else if is_paused {
            plan.held.push(cluster.to_owned());
        } else {
            plan.leaving.push(cluster.to_owned());
            let gone = if of_cluster.is_some() {
                "is no longer chosen"
            } else {
                "does not exist"
            };
            plan.delete(release, format!("its Cluster {gone}"));
        }
    }
}

/// What waits for its turn, by Cluster, and how far the others are.
#[derive(Default)]
struct Turns {
    installs: BTreeMap<String, Action>,
    upgrades: BTreeMap<String, (Action, bool)>,
    installed: Progress,
    upgraded: Progress,
}

/// Of the Clusters that had their turn.
struct Progress {
    started: usize,
    all_ready: bool,
}

impl Default for Progress {
    fn default() -> Self {
        Self {
            started: 0,
            all_ready: true,
        }
    }
}

impl Progress {
    fn add(&mut self, ready: bool) {
        self.started += 1;
        self.all_ready &= ready;
    }

    fn gone(&self) -> Gone {
        Gone {
            started: self.started,
            all_ready: self.all_ready,
        }
    }
}

impl Turns {
    /// Plans what may be done now.
    fn take(mut self, seen: &Observed, total: usize, plan: &mut Plan) {
        let rollout = seen.proxy.spec.rollout.as_ref();
        let waiting = |cluster: &String| Waiting {
            is_late: !seen
                .clusters
                .get(cluster)
                .is_some_and(|cluster| is_initialized(cluster)),
            cluster: cluster.clone(),
        };
        let steps = rollout.and_then(|rollout| rollout.upgrade.as_ref());
        let upgrades = self.upgrades.keys().map(waiting).collect();
        for cluster in steps::next(steps, total, self.upgraded.gone(), upgrades) {
            let Some((action, reinstalls)) = self.upgrades.remove(&cluster) else {
                continue;
            };
            if reinstalls {
                plan.reinstalling.push(cluster);
            }
            plan.add(action);
        }
        let steps = rollout.and_then(|rollout| rollout.install.as_ref());
        let installs = self.installs.keys().map(waiting).collect();
        for cluster in steps::next(steps, total, self.installed.gone(), installs) {
            plan.actions.extend(self.installs.remove(&cluster));
        }
        plan.waiting
            .extend(self.upgrades.into_keys().chain(self.installs.into_keys()));
        plan.waiting.sort();
    }
}

/// A Cluster is chosen: it has to have one HelmReleaseProxy with these values.
fn serve(
    seen: &Observed,
    cluster: &str,
    values: &Values,
    releases: &[&Arc<HelmReleaseProxy>],
    plan: &mut Plan,
    turns: &mut Turns,
) {
    let Some(object) = seen.clusters.get(cluster) else {
        return;
    };
    let living: Vec<_> = releases.iter().filter(|release| !release.is_deleting()).collect();
    if living.len() > 1 {
        let names: Vec<String> = living.iter().map(|release| release.key().name).collect();
        let message = format!(
            "there are {} HelmReleaseProxies for it, where one is expected, so none of them is changed: delete all but one of {}",
            names.len(),
            names.join(", ")
        );
        plan.fail(
            Some(cluster),
            reasons::HELM_RELEASE_PROXY_CREATION_FAILED,
            message,
            false,
        );
        return;
    }
    let is_served = is_served(object);
    if let Some(release) = living.first() {
        let counts = !is_served || is_ready(release);
        turns.installed.add(counts);
        keep(seen, object, values, release, plan, turns);
    } else if !releases.is_empty() {
        // The old one goes first, however it came to be deleted.
        turns.installed.add(!is_served);
        turns.upgraded.add(!is_served);
        plan.reinstalling.push(cluster.to_owned());
    } else if is_paused(object) {
        plan.held.push(cluster.to_owned());
    } else if let Values::Rendered(values) = values {
        let wanted = desired::release_proxy(&seen.proxy, cluster, values);
        turns
            .installs
            .insert(cluster.to_owned(), Action::Create(Box::new(wanted)));
    } else {
        report(cluster, values, plan);
    }
}

/// Reports why a Cluster has no values.
fn report(cluster: &str, values: &Values, plan: &mut Plan) {
    if let Values::Failed { why, may_pass } = values {
        plan.fail(Some(cluster), reasons::VALUE_PARSING_FAILED, why.clone(), *may_pass);
    }
}

/// A Cluster has the one HelmReleaseProxy that it has to have.
fn keep(
    seen: &Observed,
    object: &Cluster,
    values: &Values,
    release: &Arc<HelmReleaseProxy>,
    plan: &mut Plan,
    turns: &mut Turns,
) {
    let (cluster, name) = (object.key().name, release.key().name);
    let ready = !is_served(object) || is_ready(release);
    let patch = |patch| Action::Patch {
        name: name.clone(),
        cluster: cluster.clone(),
        patch,
    };
    let Values::Rendered(values) = values else {
        // With the last good values, or as it was when nothing more may happen.
        report(&cluster, values, plan);
        turns.upgraded.add(ready);
        return;
    };
    let wanted = desired::release_proxy(&seen.proxy, &cluster, values);
    let is_finished = release.spec.is_install_once() && release.was_installed();
    match desired::change(&wanted, release) {
        Change::None => turns.upgraded.add(ready),
        change if is_finished || !changes_spec(&change) => {
            turns.upgraded.add(ready);
            plan.actions.extend(desired::adoption(&wanted, release).map(patch));
        }
        Change::Patch(change) => {
            turns.upgrades.insert(cluster.clone(), (patch(change), false));
        }
        Change::Reinstall(fields) => match &seen.available {
            None => {
                turns.upgraded.add(ready);
                plan.unseen = Some(Box::new(wanted));
            }
            Some(Err(why)) => {
                turns.upgraded.add(ready);
                let message = format!("its release stays as it is, because the new one cannot be installed: {why}");
                let reason = reasons::HELM_RELEASE_PROXY_CREATION_FAILED;
                plan.fail(Some(&cluster), reason, message, true);
            }
            Some(Ok(())) => {
                let why = format!("another {} means another release", fields.join(", another "));
                let action = Action::Delete {
                    release: release.clone(),
                    why,
                };
                turns.upgrades.insert(cluster.clone(), (action, true));
            }
        },
    }
}

fn changes_spec(change: &Change) -> bool {
    match change {
        Change::None => false,
        Change::Patch(patch) => patch.get("spec").is_some(),
        Change::Reinstall(_) => true,
    }
}

/// Whether the status of a HelmReleaseProxy is about its present spec.
pub(super) fn is_current(release: &HelmReleaseProxy) -> bool {
    let observed = release.status.as_ref().and_then(|status| status.observed_generation);
    observed.is_some() && observed == release.metadata.generation
}

/// Whether a release is as it should be.
pub(super) fn is_ready(release: &HelmReleaseProxy) -> bool {
    is_current(release) && windlass_conditions::is_true(release.conditions(), conditions::READY)
}

impl windlass_controller_runtime::Plan for Plan {
    fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// All failures that may pass by themselves, as one. The others last until a user changes an object, which is an event.
    fn blocked(&self) -> Option<Blocked> {
        let passing = self.failures.iter().filter(|failure| failure.may_pass);
        let errors: Vec<ReconcileError> = passing.map(Failure::to_error).collect();
        if let Some(error) = ReconcileError::join(&errors) {
            return Some(Blocked::failed(error.reason(), error.to_string()));
        }
        let lasting = self.failures.first()?;
        Some(Blocked {
            reason: lasting.reason,
            message: lasting.to_error().to_string(),
            until: Until::Event,
        })
    }
}

#[cfg(test)]
mod tests;
