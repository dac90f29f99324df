//! Which Pods of a Node have to go before its machine may, and the words for what is still there. Pure.
//!
//! The rules are those of `kubectl drain`, then those of the label `cluster.x-k8s.io/drain`, then the MachineDrainRules: Pods of an existing
//! DaemonSet and mirror Pods stay, a Pod may ask to be left alone or to be waited for, a rule may say the same of it or when it goes, and all
//! others are evicted. Those with the lowest order go first: the next are evicted when they are gone.

pub(crate) mod rules;

use std::collections::{BTreeMap, BTreeSet};

use jiff::SignedDuration;
use windlass_api::k8s::{Node, Pod};
use windlass_api::{labels, owner};
use windlass_controller_runtime::{Moment, ObjectKey, RequestError, Seen, key_of};

use rules::{Behavior, Namespaces, Rules};

/// The annotation that the kubelet puts on the API object of a static Pod.
const MIRROR: &str = "kubernetes.io/config.mirror";
/// How many Pods a message names before it counts the rest.
const NAMED: usize = 3;
/// How many different refusals a message lists before it counts the Pods of the rest.
const REFUSALS: usize = 5;
/// For how long a Pod of an unreachable Node is waited for after the end of its grace period.
const GIVEN_UP: SignedDuration = SignedDuration::from_secs(2);
/// The grace period of Pods on an unreachable Node, in seconds: no kubelet uses it, so it only delays the drain.
const UNREACHABLE_GRACE: u32 = 1;
/// How the API server's sentence about a disruption budget begins, and how messages write it.
const OVER_BUDGET: (&str, &str) = (
    "Cannot evict pod as it would violate the pod's disruption budget.",
    "cannot evict pod as it would violate the pod's disruption budget.",
);

/// What draining does with the Pods of a Node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Draining {
    /// To evict now.
    pub(crate) evict: BTreeSet<ObjectKey>,
    /// The grace period of the evictions in seconds; the Pods' own when unset.
    pub(crate) grace_period: Option<u32>,
    /// Asked to go, still there.
    pub(crate) terminating: BTreeSet<ObjectKey>,
    /// To be waited for until they complete.
    pub(crate) completing: BTreeSet<ObjectKey>,
    /// To evict when those before are gone.
    pub(crate) evict_later: BTreeSet<ObjectKey>,
    /// To be waited for when those before are gone.
    pub(crate) complete_later: BTreeSet<ObjectKey>,
    /// The PersistentVolumeClaims of Pods that stay: their volumes stay as well.
    pub(crate) kept_claims: BTreeSet<ObjectKey>,
}

/// What became of evictions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Evictions {
    /// Pods that did not exist any more.
    pub(crate) gone: BTreeSet<ObjectKey>,
    /// Pods that may not go yet, by the reason.
    pub(crate) refused: BTreeMap<String, BTreeSet<ObjectKey>>,
}

impl Draining {
    /// Whether nothing is left that has to go.
    pub(crate) fn is_done(&self) -> bool {
        let left = [
            &self.evict,
            &self.terminating,
            &self.completing,
            &self.evict_later,
            &self.complete_later,
        ];
        left.into_iter().all(BTreeSet::is_empty)
    }

    /// What is still there after the evictions, a line each, for the Deleting condition. The words are those of Cluster API: summaries of
    /// slow deletions look for them.
    pub(crate) fn lines(&self, evictions: &Evictions) -> Vec<String> {
        let refused: BTreeSet<&ObjectKey> = evictions.refused.values().flatten().collect();
        let asked = self
            .evict
            .iter()
            .filter(|pod| !evictions.gone.contains(pod) && !refused.contains(pod));
        let terminating: BTreeSet<&ObjectKey> = self.terminating.iter().chain(asked).collect();
        let line = |pods: &BTreeSet<&ObjectKey>, what: &str| format!("* {}: {what}", named(pods));
        let mut lines = Vec::new();
        if !terminating.is_empty() {
            let what = "deletionTimestamp set, but still not removed from the Node";
            lines.push(line(&terminating, what));
        }
        for (why, pods) in evictions.refused.iter().take(REFUSALS) {
            lines.push(line(&pods.iter().collect(), &refusal(why)));
        }
        match evictions.refused.values().skip(REFUSALS).map(BTreeSet::len).sum() {
            0 => {}
            1 => lines.push("* 1 Pod with other issues".to_owned()),
            more => lines.push(format!("* {more} Pods with other issues")),
        }
        if !self.completing.is_empty() {
            lines.push(line(&self.completing.iter().collect(), "waiting for completion"));
        }
        let later = "After above Pods have been removed from the Node,";
        if !self.evict_later.is_empty() {
            let names = listed(&self.evict_later.iter().collect());
            lines.push(format!("{later} the following Pods will be evicted: {names}"));
        }
        if !self.complete_later.is_empty() {
            let names = listed(&self.complete_later.iter().collect());
            lines.push(format!(
                "{later} waiting for the following Pods to complete without eviction: {names}"
            ));
        }
        lines
    }
}

impl Evictions {
    /// Adds the answer to an eviction.
    pub(crate) fn add(&mut self, pod: &ObjectKey, answer: Result<(), RequestError>) {
        match answer {
            Ok(()) => {}
            Err(error) if error.is_not_found() => {
                self.gone.insert(pod.clone());
            }
            Err(error) => self.refuse(pod, why_refused(&error)),
        }
    }

    /// Adds a Pod that was not evicted.
    pub(crate) fn refuse(&mut self, pod: &ObjectKey, why: String) {
        self.refused.entry(why).or_default().insert(pod.clone());
    }
}

/// Why the API server does not evict a Pod. Its causes name the disruption budget.
fn why_refused(error: &RequestError) -> String {
    let is_ending = |cause: &windlass_controller_runtime::Cause| cause.reason == "NamespaceTerminating";
    if error.code() == 403 && error.causes().iter().any(is_ending) {
        return "Cannot evict pod from terminating namespace: unable to create eviction (kube-controller-manager should set deletionTimestamp)"
            .to_owned();
    }
    let causes: Vec<&str> = error.causes().iter().map(|cause| cause.message.as_str()).collect();
    if error.code() == 429 && !causes.is_empty() {
        return format!("{error} {}", causes.join(","));
    }
    error.to_string()
}

/// A refusal as messages write it.
fn refusal(why: &str) -> String {
    let (sent, written) = OVER_BUDGET;
    match why.strip_prefix(sent) {
        Some(rest) => format!("{written}{rest}"),
        None => format!("failed to evict Pod, {why}"),
    }
}

fn named(pods: &BTreeSet<&ObjectKey>) -> String {
    let noun = if pods.len() == 1 { "Pod" } else { "Pods" };
    format!("{noun} {}", listed(pods))
}

fn listed(pods: &BTreeSet<&ObjectKey>) -> String {
    let names: Vec<String> = pods.iter().map(ToString::to_string).collect();
    windlass_conditions::listed(&names, NAMED)
}

/// Whether the kubelet of a Node has stopped to report: its Pods will not end, and its volumes will not be detached.
pub(crate) fn is_unreachable(node: &Node) -> bool {
    let mut conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions
        .find(|condition| condition.type_ == "Ready")
        .is_some_and(|ready| ready.status == "Unknown")
}

/// What decides about the Pods on a Node, beside themselves.
#[derive(Debug)]
pub(crate) struct Beside<'a> {
    /// The DaemonSets that exist.
    pub(crate) daemon_sets: &'a Seen<BTreeSet<ObjectKey>>,
    /// The rules about the Machine.
    pub(crate) rules: &'a Rules,
    /// The labels of namespaces; not looked for unless the rules ask for them.
    pub(crate) namespaces: &'a Seen<Namespaces>,
    /// Whether the Node is unreachable.
    pub(crate) unreachable: bool,
}

/// Sorts the Pods on a Node. An error says why that cannot be done.
pub(crate) fn classify(pods: &[Pod], beside: &Beside<'_>, now: &Moment) -> Result<Draining, String> {
    let mut draining = Draining {
        grace_period: beside.unreachable.then_some(UNREACHABLE_GRACE),
        ..Draining::default()
    };
    let mut treated = Vec::new();
    for pod in pods {
        match treatment(pod, beside, now)? {
            Treatment::Stays => draining.kept_claims.extend(claims(pod)),
            other => treated.push((pod, other)),
        }
    }
    let first = treated.iter().map(|(_, treatment)| treatment.order()).min();
    for (pod, treatment) in treated {
        let is_now = Some(treatment.order()) == first;
        let set = match treatment {
            Treatment::Stays => continue,
            Treatment::Completes if is_now => &mut draining.completing,
            Treatment::Completes => &mut draining.complete_later,
            // Whenever it was asked to go, it is waited for.
            Treatment::Goes(_) if pod.metadata.deletion_timestamp.is_some() => &mut draining.terminating,
            Treatment::Goes(_) if is_now => &mut draining.evict,
            Treatment::Goes(_) => &mut draining.evict_later,
        };
        set.insert(key_of(&pod.metadata));
    }
    Ok(draining)
}

/// How draining treats a Pod.
enum Treatment {
    /// It is left alone.
    Stays,
    /// It is waited for until it has completed.
    Completes,
    /// It is evicted, in this order.
    Goes(i32),
}

impl Treatment {
    /// Its turn.
    fn order(&self) -> i32 {
        match self {
            Self::Goes(order) => *order,
            Self::Stays | Self::Completes => 0,
        }
    }
}

fn treatment(pod: &Pod, beside: &Beside<'_>, now: &Moment) -> Result<Treatment, String> {
    let ended = pod.metadata.deletion_timestamp.as_ref().map(|time| time.0);
    if beside.unreachable && ended.is_some_and(|ended| now.elapsed(ended, GIVEN_UP)) {
        return Ok(Treatment::Stays);
    }
    if let Some(set) = daemon_set_of(pod)
        && exists(&set, beside.daemon_sets)?
    {
        return Ok(Treatment::Stays);
    }
    let annotations = pod.metadata.annotations.as_ref();
    if annotations.is_some_and(|all| all.contains_key(MIRROR)) {
        return Ok(Treatment::Stays);
    }
    let label = pod.metadata.labels.as_ref().and_then(|all| all.get(labels::DRAIN));
    let is = |value: &str| label.is_some_and(|label| label.replacen('-', "", 1).eq_ignore_ascii_case(value));
    let behavior = if label.is_some_and(|label| label.eq_ignore_ascii_case(labels::DRAIN_SKIP)) {
        Behavior::Skip
    } else if is(&labels::DRAIN_WAIT_COMPLETED.replacen('-', "", 1)) {
        Behavior::WaitCompleted
    } else {
        beside.rules.behavior(pod, beside.namespaces)?
    };
    Ok(match behavior {
        Behavior::Drain(order) => Treatment::Goes(order),
        Behavior::Skip => Treatment::Stays,
        Behavior::WaitCompleted if is_finished(pod) => Treatment::Stays,
        Behavior::WaitCompleted => Treatment::Completes,
    })
}

fn exists(set: &ObjectKey, daemon_sets: &Seen<BTreeSet<ObjectKey>>) -> Result<bool, String> {
    match daemon_sets {
        Seen::Found(all) => Ok(all.contains(set)),
        Seen::NotFound => Ok(false),
        Seen::Failed(why) => Err(format!("failed to list DaemonSets: {why}")),
    }
}

/// The DaemonSet that keeps a Pod on its Node. A finished Pod is not kept.
pub(crate) fn daemon_set_of(pod: &Pod) -> Option<ObjectKey> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    owner::controller_of(&pod.metadata)
        .filter(|owner| owner.kind == "DaemonSet" && !is_finished(pod))
        .map(|owner| ObjectKey::new(namespace, owner.name.as_str()))
}

fn is_finished(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

/// The PersistentVolumeClaims of a Pod.
fn claims(pod: &Pod) -> impl Iterator<Item = ObjectKey> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let volumes = pod.spec.volumes.iter().flatten();
    volumes
        .filter_map(|volume| volume.persistent_volume_claim.as_ref())
        .map(move |claim| ObjectKey::new(namespace, claim.claim_name.as_str()))
}

#[cfg(test)]
#[allow(clippy::needless_pass_by_value, reason = "cases hand in literals")]
mod tests;
