//! Which version each part of a topology should have now.
//!
//! An upgrade runs in steps: the control plane goes first, one version at a time; worker sets follow one after
//! another when the control plane is at rest. While a part waits, nothing else about it is changed either, so that
//! its Machines are not replaced twice.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use semver::Version;

use crate::error::Error;
use crate::hooks::{Call, Calls, Hook};
use crate::{keys, version};

/// How many minor releases a kubelet may be behind the API server.
const MAX_SKEW: u64 = 3;

/// The versions still to be gone through; empty when nothing is to do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UpgradePlan {
    /// For the control plane, in order.
    pub control_plane: Vec<String>,
    /// For the workers, in order.
    pub workers: Vec<String>,
}

impl UpgradePlan {
    /// Whether nothing is left to do.
    pub fn is_empty(&self) -> bool {
        self.control_plane.is_empty() && self.workers.is_empty()
    }
}

/// Where a plan starts and ends.
#[derive(Debug, Clone, Copy)]
pub struct Route<'a> {
    /// Version in the spec of the control plane.
    pub control_plane: &'a str,
    /// Oldest version in the spec of a worker set, if there are any.
    pub workers: Option<&'a str>,
    /// Version of the topology.
    pub target: &'a str,
    /// Versions that the class allows, oldest first; may be empty.
    pub allowed: &'a [String],
}

/// Finds the versions to go through.
pub fn plan(cluster: &str, route: &Route<'_>) -> Result<UpgradePlan, Error> {
    let field = "spec.topology.version";
    let read = |text: &str| {
        version::parse(text).ok_or_else(|| {
            Error::new(
                cluster,
                field,
                format!("{text:?} is no semantic version such as v1.35.0"),
            )
        })
    };
    let target = read(route.target)?;
    let from = read(route.control_plane)?;
    let workers = route.workers.map(read).transpose()?;
    let mut out = UpgradePlan::default();
    if version::compare(&target, &from) == Some(Ordering::Less) {
        let message = format!(
            "cannot go back from {} to {}; set a version that is not older",
            route.control_plane, route.target
        );
        return Err(Error::new(cluster, field, message));
    }
    let steps = steps(cluster, &from, &target, route)?;
    out.control_plane.extend(steps.iter().map(|(_, text)| text.clone()));
    if let Some(workers) = workers {
        out.workers = worker_steps(&from, workers, &steps, route);
    }
    Ok(out)
}

/// The versions that an extension has given, checked, with a way for the workers if it gives none. `class` and the field are named in errors.
pub fn given(class: &str, route: &Route<'_>, answer: &UpgradePlan) -> Result<UpgradePlan, Error> {
    let refuse = |message: String| Err(Error::new(class, EXTENSION_FIELD, message));
    let read = |text: &str| {
        let wrong = || {
            Error::new(
                class,
                EXTENSION_FIELD,
                format!("{text:?} is no semantic version such as v1.35.0"),
            )
        };
        version::parse(text).ok_or_else(wrong)
    };
    let (target, from) = (read(route.target)?, read(route.control_plane)?);
    let mut steps = Vec::new();
    let mut before = from.clone();
    for (index, text) in answer.control_plane.iter().enumerate() {
        let step = read(text)?;
        // Builds of one version may have no order.
        if matches!(version::compare(&step, &before), Some(Ordering::Less | Ordering::Equal)) {
            return refuse(format!(
                "invalid ControlPlane upgrade plan: item {index}; version {text} must be greater than v{before}"
            ));
        }
        if version::minors_between(&before, &step) > 1 {
            let (same, next) = (before.minor, before.minor.saturating_add(1));
            return refuse(format!(
                "invalid ControlPlane upgrade plan: item {index}; expecting a version with minor {same} or {next}, found version {text}"
            ));
        }
        before = step.clone();
        steps.push((step, version::canonical(text)));
    }
    if before != target {
        let target = route.target;
        return refuse(format!(
            "invalid ControlPlane upgrade plan: control plane upgrade plan must end with version {target}, ends with v{before} instead"
        ));
    }
    let mut out = UpgradePlan {
        control_plane: steps.iter().map(|(_, text)| text.clone()).collect(),
        workers: Vec::new(),
    };
    let workers = route
        .workers
        .map(read)
        .transpose()?
        .filter(|workers| *workers != target);
    let Some(workers) = workers else {
        if !answer.workers.is_empty() {
            return refuse(
                "invalid worker upgrade plan; there are no workers or workers already at the desired version".into(),
            );
        }
        return Ok(out);
    };
    if answer.workers.is_empty() {
        out.workers = worker_steps(&from, workers, &steps, route);
        return Ok(out);
    }
    let mut before = workers;
    for (index, text) in answer.workers.iter().enumerate() {
        let step = read(text)?;
        if step != from && !steps.iter().any(|(known, _)| *known == step) {
            return refuse(format!(
                "invalid workers upgrade plan: versions {text} doesn't match any versions in the control plane upgrade plan nor the \
                 control plane version"
            ));
        }
        if matches!(version::compare(&step, &before), Some(Ordering::Less | Ordering::Equal)) {
            return refuse(format!(
                "invalid workers upgrade plan, item {index}; version {text} must be greater than v{before}"
            ));
        }
        if version::minors_between(&before, &step) > MAX_SKEW {
            return refuse(format!(
                "invalid workers upgrade plan, item {index}; workers cannot go from v{before} to {text}: an intermediate step is required \
                 to comply with Kubernetes version skew rules"
            ));
        }
        before = step;
        out.workers.push(version::canonical(text));
    }
    if before != target {
        let target = route.target;
        return refuse(format!(
            "invalid workers upgrade plan; workers upgrade plan must end with version {target}, ends with v{before} instead"
        ));
    }
    Ok(out)
}

/// Where a class names the extension for upgrade plans.
pub(crate) const EXTENSION_FIELD: &str = "spec.upgrade.external.generateUpgradePlanExtension";

/// The control plane's way: every minor release once.
fn steps(cluster: &str, from: &Version, target: &Version, route: &Route<'_>) -> Result<Vec<(Version, String)>, Error> {
    let goal = (target.clone(), version::canonical(route.target));
    if target == from {
        return Ok(Vec::new());
    }
    if version::minors_between(from, target) <= 1 {
        return Ok(vec![goal]);
    }
    // The newest patch release of each minor release in between.
    let mut between: BTreeMap<(u64, u64), (Version, String)> = BTreeMap::new();
    for text in route.allowed {
        let Some(version) = version::parse(text) else { continue };
        let minor = (version.major, version.minor);
        if minor <= (from.major, from.minor) || minor >= (target.major, target.minor) {
            continue;
        }
        let newer = between.get(&minor).is_none_or(|(have, _)| *have < version);
        if newer {
            between.insert(minor, (version, version::canonical(text)));
        }
    }
    let mut steps: Vec<(Version, String)> = between.into_values().collect();
    steps.push(goal);
    let mut before = from;
    for (step, text) in &steps {
        if version::minors_between(before, step) > 1 {
            let message = format!(
                "cannot go from v{before} to {text} in one step, and the ClusterClass lists no version in \
                 between; add one to its spec.kubernetesVersions or upgrade one minor release at a time"
            );
            return Err(Error::new(cluster, "spec.topology.version", message));
        }
        before = step;
    }
    Ok(steps)
}

/// The workers' way: only where they would fall too far behind, and at the end.
fn worker_steps(from: &Version, workers: Version, steps: &[(Version, String)], route: &Route<'_>) -> Vec<String> {
    let mut out = Vec::new();
    let mut at = workers;
    let mut reached = (from.clone(), version::canonical(route.control_plane));
    for step in steps {
        if version::minors_between(&at, &step.0) > MAX_SKEW && version::is_behind(&at, &reached.0) {
            out.push(reached.1.clone());
            at = reached.0.clone();
        }
        reached = step.clone();
    }
    if version::is_behind(&at, &reached.0) {
        out.push(reached.1);
    }
    out
}

/// The observed state of the control plane.
#[derive(Debug, Clone, Copy, Default)]
pub struct ControlPlaneFacts<'a> {
    /// `spec.version`.
    pub version: &'a str,
    /// The oldest version that runs, empty while none is reported; or one that cannot be read.
    pub running: &'a str,
    /// Whether replicas are being added or removed.
    pub scaling: bool,
    /// Which annotations on the Cluster hold upgrades back, in words.
    pub held_back: Option<&'a str>,
    /// The oldest version in the spec of a worker set.
    pub workers: Option<&'a str>,
    /// Names of MachineDeployments whose Machines do not all have the version of their spec.
    pub workers_upgrading: &'a [String],
    /// Names of MachinePools whose Nodes do not all have the version of their spec.
    pub pools_upgrading: &'a [String],
}

/// The decision about the control plane.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ControlPlaneStep {
    /// The version to have in its spec now.
    pub version: String,
    /// Not running any version yet.
    pub provisioning: bool,
    /// On its way to the version in its spec.
    pub upgrading: bool,
    /// Gets a new version in this pass.
    pub starting: bool,
    /// Must wait before it may get the next version: why.
    pub pending: Option<String>,
    /// Whether replicas are being added or removed.
    pub scaling: bool,
    /// Whether a hook keeps the workers from the version of the control plane.
    pub workers_blocked: bool,
}

impl ControlPlaneStep {
    /// Whether worker sets may be upgraded.
    pub fn stable(&self) -> bool {
        !self.provisioning && !self.changing_version() && !self.scaling
    }

    /// Whether it has, gets or waits for a new version.
    pub fn changing_version(&self) -> bool {
        self.upgrading || self.starting || self.pending.is_some()
    }
}

/// Decides the control plane's version. Hooks are called on the way, in the order of Cluster API.
pub(crate) fn control_plane(
    facts: &ControlPlaneFacts<'_>,
    plan: &UpgradePlan,
    calls: &mut Calls<'_>,
) -> ControlPlaneStep {
    let mut out = ControlPlaneStep {
        version: version::canonical(facts.version),
        provisioning: facts.running.is_empty(),
        // What cannot be read may be behind.
        upgrading: version::behind(facts.running, facts.version)
            || (!facts.running.is_empty() && version::parse(facts.running).is_none()),
        scaling: facts.scaling,
        ..ControlPlaneStep::default()
    };
    let obstacle = obstacle(facts, plan, &mut out, calls);
    match (plan.control_plane.first(), obstacle) {
        (None, _) => {}
        (Some(_), Some(why)) => out.pending = Some(why),
        (Some(next), None) => {
            out.version.clone_from(next);
            out.starting = true;
        }
    }
    out
}

/// Why the control plane has to wait for the next version. Without one: why what belongs to the last step is not done.
fn obstacle(
    facts: &ControlPlaneFacts<'_>,
    plan: &UpgradePlan,
    step: &mut ControlPlaneStep,
    calls: &mut Calls<'_>,
) -> Option<String> {
    if step.provisioning {
        return Some("the control plane is still being provisioned".to_owned());
    }
    if step.upgrading {
        let version = &step.version;
        return Some(format!("the control plane is still upgrading to version {version}"));
    }
    if step.scaling {
        return Some("the control plane is scaling".to_owned());
    }
    let call = |hook: Hook, from: &str, to: &str| Call {
        hook,
        from: from.to_owned(),
        to: to.to_owned(),
        control_plane: plan.control_plane.clone(),
        workers: plan.workers.clone(),
    };
    let blocks = |hook: Hook| Some(format!("hook {} blocks it", hook.name()));
    let version = step.version.clone();
    for hook in [Hook::AfterControlPlaneUpgrade, Hook::BeforeWorkersUpgrade] {
        if !calls.completes(call(hook, facts.workers.unwrap_or_default(), &version)) {
            step.workers_blocked = true;
            return blocks(hook);
        }
    }
    // They are at rest, but behind.
    let workers_first = plan
        .workers
        .first()
        .is_some_and(|w| !version::older(&version, w) && !plan.control_plane.contains(w));
    if !facts.workers_upgrading.is_empty() {
        let names = facts.workers_upgrading.join(", ");
        return Some(format!("MachineDeployments are upgrading: {names}"));
    }
    if !facts.pools_upgrading.is_empty() {
        let names = facts.pools_upgrading.join(", ");
        return Some(format!("MachinePools are upgrading: {names}"));
    }
    if workers_first {
        return Some(format!("workers must upgrade to version {version} first"));
    }
    if !calls.completes(call(Hook::AfterWorkersUpgrade, "", &version)) {
        return blocks(Hook::AfterWorkersUpgrade);
    }
    let (next, last) = (plan.control_plane.first()?, plan.control_plane.last()?);
    if !calls.is_pending(Hook::AfterClusterUpgrade) {
        if let Some(annotations) = facts.held_back {
            calls.block(Hook::BeforeClusterUpgrade, annotations.to_owned(), None);
            return Some(format!("{annotations} on the Cluster"));
        }
        if !calls.passes(call(Hook::BeforeClusterUpgrade, &version, last)) {
            return blocks(Hook::BeforeClusterUpgrade);
        }
        // The upgrade begins. Neither annotations nor the hook stop it any more.
        calls.mark_upgrade(plan.control_plane.len() > 1);
    }
    if !calls.passes(call(Hook::BeforeControlPlaneUpgrade, &version, next)) {
        return blocks(Hook::BeforeControlPlaneUpgrade);
    }
    calls.mark(Hook::AfterControlPlaneUpgrade);
    if plan.workers.first() == Some(next) {
        calls.mark(Hook::BeforeWorkersUpgrade);
        calls.mark(Hook::AfterWorkersUpgrade);
    }
    None
}

/// The observed state of one worker set.
#[derive(Debug, Clone, Copy)]
pub struct WorkerFacts<'a> {
    /// The annotations of its entry in the topology.
    pub annotations: &'a BTreeMap<String, String>,
    /// `spec.template.spec.version`.
    pub version: &'a str,
    /// Whether some of its Machines do not have that version.
    pub upgrading: bool,
}

/// The decision about a worker set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkerStep {
    /// The version to have in its spec now.
    pub version: String,
    /// Some of its Machines do not have the version in its spec.
    pub upgrading: bool,
    /// Gets a new version in this pass.
    pub starting: bool,
    /// Waits for its turn.
    pub pending: bool,
    /// Whether its turn comes only when the control plane has another version.
    pub out_of_reach: bool,
    /// Waits because an annotation says so.
    pub deferred: bool,
}

impl WorkerStep {
    /// Whether nothing about it may be changed now.
    pub fn on_hold(&self) -> bool {
        self.pending || self.deferred
    }
}

/// Decides the versions of the worker sets, given in upgrade order.
pub fn workers(
    facts: &[WorkerFacts<'_>],
    control_plane: &ControlPlaneStep,
    plan: &UpgradePlan,
    concurrency: usize,
) -> Vec<WorkerStep> {
    let mut busy = facts.iter().filter(|f| f.upgrading).count();
    let mut sequence_held = false;
    let mut out = Vec::with_capacity(facts.len());
    for fact in facts {
        let annotations = fact.annotations;
        sequence_held |= annotations.contains_key(keys::HOLD_UPGRADE_SEQUENCE);
        let deferred = sequence_held || annotations.contains_key(keys::DEFER_UPGRADE);
        let mut step = WorkerStep {
            version: version::canonical(fact.version),
            upgrading: fact.upgrading,
            ..WorkerStep::default()
        };
        let behind = plan.workers.iter().find(|v| version::behind(fact.version, v));
        if let Some(next) = behind {
            // A worker never overtakes the control plane.
            // Builds of one version may have no order.
            let reachable = !version::older(&control_plane.version, next) && !plan.control_plane.contains(next);
            let ready = control_plane_ready(control_plane) && reachable;
            if deferred {
                step.deferred = true;
            } else if ready && busy < concurrency && !fact.upgrading {
                step.version.clone_from(next);
                step.starting = true;
                busy += 1;
            } else {
                step.pending = true;
                step.out_of_reach = !reachable;
            }
        }
        out.push(step);
    }
    out
}

/// At rest, or only waiting for these very workers.
fn control_plane_ready(step: &ControlPlaneStep) -> bool {
    !step.provisioning && !step.upgrading && !step.starting && !step.scaling && !step.workers_blocked
}

/// How many worker sets may be upgraded at once.
pub fn concurrency(cluster: &str, annotation: Option<&str>) -> Result<usize, Error> {
    let Some(text) = annotation else { return Ok(1) };
    match text.parse::<usize>() {
        Ok(n) if n > 0 => Ok(n),
        _ => Err(Error::new(
            cluster,
            format!("metadata.annotations[{}]", keys::UPGRADE_CONCURRENCY),
            format!("{text:?} is no number of at least 1"),
        )),
    }
}

#[cfg(test)]
mod tests;
