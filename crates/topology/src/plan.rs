//! The steps from what exists to what a topology should have, with the reason for each.
//!
//! The order matters: the Cluster learns the names of its infrastructure and control plane before these exist, so
//! that a pass that dies half-way leaves nothing without an owner; a template exists before what refers to it, and
//! goes after it. What refers to a template of which it is not known whether it changes is left as it is.

mod cluster;
mod hooks;
mod pools;
mod spot;
mod template;

use std::collections::BTreeSet;

use serde_json::Value;

use crate::current::{WorkerSet, is_deleting};
use crate::desired::{ControlPlane, Input, Worker, desired, machine_reference_path, plan_request};
use crate::diff::{Change, compare};
use crate::error::Error;
use crate::hooks::{Call, Calls, Hook, PlanRequest};
use crate::model::{name_of, text};
use crate::patches::external::{self, Halt};
use crate::patches::set_or_remove;
use crate::status::Progress;
use crate::target::Target;
use crate::trial::{Rotation, Trial};
use crate::upgrade::EXTENSION_FIELD;
use spot::Spot;

/// One write.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Changes the Cluster itself: a JSON merge patch.
    PatchCluster(Value),
    /// Makes an object, or brings it to this intent; an intent for an existing object carries its uid.
    Apply(Value),
    /// Deletes an object.
    Delete(Target),
}

/// The event type of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Something new.
    Create,
    /// Something changed.
    Update,
    /// Something removed.
    Delete,
}

/// One write and what is to be said about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The write.
    pub action: Action,
    /// What it is.
    pub verb: Verb,
    /// The action and its reason, for previews and logs.
    pub note: String,
    /// The event text of a completed step.
    pub event: String,
    /// False when it is expected to change nothing and only makes sure.
    pub changes: bool,
    /// The replacement of a template that this step is part of.
    pub rotation: Option<Rotation>,
    /// The worker set in the topology that it is about. Others do not depend on it.
    pub worker_set: Option<String>,
    /// Whether it is about something that only a later step refers to. What it makes has no use without that one.
    pub is_part: bool,
}

/// All steps of one pass.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// The actions, in order.
    pub steps: Vec<Step>,
    /// Why some things are not done now.
    pub notes: Vec<String>,
    /// Templates of which only the API server can say whether their spec would change. Nothing is decided about them.
    pub trials: Vec<Trial>,
    /// Templates whose trial failed. Control plane or worker set are left as they are, and have to be planned again.
    pub failed_trials: Vec<Error>,
    /// Hooks of extensions that were not asked yet. All else is planned as if they had passed.
    pub calls: Vec<Call>,
    /// The question for the versions of an upgrade. Nothing else is planned before it is answered.
    pub plan_request: Option<PlanRequest>,
    /// The question for patches of the templates, or for a check of them. Nothing else is planned before it is answered.
    pub patches: Option<Box<external::Question>>,
    /// Why a hook could not be asked. What comes after it is left as it is, and has to be planned again.
    pub failed_hook: Option<Error>,
    /// Why parts are left as they are until an object changes: templates that were replaced several times within an hour and still do not have the
    /// content that was applied, and MachinePools that have lost what they refer to.
    pub left: Vec<Error>,
    /// The progress of the topology, for its condition.
    pub progress: Progress,
    /// Whether the versions of an upgrade, and so its progress, are not known.
    pub is_lost: bool,
}

impl Plan {
    /// The steps that are expected to change something.
    pub fn changes(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().filter(|step| step.changes)
    }
}

/// The text of a preview: a line per change, then a line per deferred change.
impl std::fmt::Display for Plan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for step in self.changes() {
            writeln!(f, "{}", step.note)?;
        }
        for note in &self.notes {
            writeln!(f, "later: {note}")?;
        }
        Ok(())
    }
}

/// Plans one pass.
pub fn plan(input: Input<'_>) -> Result<Plan, Error> {
    let mut calls = Calls::new(input.cluster, &input.current.hooks);
    if !hooks::may_exist(input.cluster, &mut calls) {
        let mut plan = Plan::default();
        plan.progress.creation_blocked = true;
        plan.hooks(input.cluster, calls);
        return Ok(plan);
    }
    if let Some(request) = plan_request(input)? {
        match input.upgrade_plan.filter(|known| known.request == request) {
            None => return Ok(Plan::asking(request)),
            Some(known) => {
                if let Err(why) = &known.answer {
                    return Ok(Plan::without_versions(input.cluster, why));
                }
            }
        }
    }
    let mut desired = match desired(input, &mut calls) {
        Ok(desired) => desired,
        // The extension may give other versions next time.
        Err(Halt::Refused(error)) if error.field == EXTENSION_FIELD => {
            return Ok(Plan::without_versions(input.cluster, &error.to_string()));
        }
        Err(Halt::Refused(error)) => return Err(error),
        // A hook that blocks leaves versions as they are, and so the templates that extensions are asked about.
        Err(_) if !calls.asked.is_empty() => return Ok(Plan::about_hooks(calls)),
        Err(Halt::Asks(question)) => return Ok(Plan::about_patches(*question)),
        Err(Halt::Unanswered(error)) => {
            let mut plan = Plan::unanswered(error);
            // A hook that has passed is not called again with each attempt.
            plan.marks(input.cluster, &calls);
            return Ok(plan);
        }
    };
    let mut plan = Plan {
        progress: Progress::of(input.current, &desired),
        ..Plan::default()
    };
    plan.progress.after_upgrade = calls.is_pending(Hook::AfterClusterUpgrade);
    for (have, want) in [
        (&input.current.infrastructure_cluster, &desired.infrastructure_cluster),
        (&input.current.control_plane, &desired.control_plane.object),
    ] {
        same_kind(have.as_deref(), want, &input.blueprint.class.name)?;
    }
    let machines = (
        &input.current.control_plane_machines,
        desired.control_plane.machines.as_ref(),
    );
    if let (have, Some(want)) = machines {
        same_kind(have.as_deref(), want, &input.blueprint.class.name)?;
    }
    for worker in &desired.workers {
        // The kind of a bootstrap template may change.
        let have = input.current.machine_deployments.get(&worker.name);
        let have = have.and_then(|set| set.infrastructure.as_deref());
        same_kind(have, &worker.infrastructure, &input.blueprint.class.name)?;
    }
    for pool in &desired.pools {
        let Some(have) = input.current.machine_pools.get(&pool.name) else {
            continue;
        };
        for (have, want) in [
            (&have.bootstrap, &pool.bootstrap),
            (&have.infrastructure, &pool.infrastructure),
        ] {
            same_kind(have.as_deref(), want, &input.blueprint.class.name)?;
        }
    }

    if input.stores_defaults {
        plan.variables(input.cluster, &desired);
    }
    plan.cluster(input, &desired, &calls);
    plan.hooks(input.cluster, calls);
    plan.shim(input);
    plan.ensure(
        input.current.infrastructure_cluster.as_deref(),
        std::mem::take(&mut desired.infrastructure_cluster),
        "",
    );

    if plan.control_plane(input, &mut desired.control_plane).is_err() {
        // Workers come after the control plane.
        return Ok(plan);
    }
    let step = &desired.control_plane.step.version;
    plan.upgrade_step(
        input.cluster,
        (!desired.upgrade_plan.is_empty()).then_some(step.as_str()),
    );
    plan.workers(input, desired.workers);
    plan.pools(input, desired.pools);
    Ok(plan)
}

/// Nothing may be changed about what refers to a template.
struct LeftAsItIs;

/// An existing object cannot change its kind.
fn same_kind(have: Option<&Value>, want: &Value, class: &str) -> Result<(), Error> {
    let Some(have) = have else { return Ok(()) };
    let (is, would) = (group_kind(have), group_kind(want));
    if is == would {
        return Ok(());
    }
    let message = format!(
        "kind cannot change from {}.{} to {}.{} as {class} wants; use a class of the same kinds",
        is.1, is.0, would.1, would.0
    );
    Err(Error::new(name_of(have), "kind", message))
}

fn group_kind(object: &Value) -> (&str, &str) {
    let group = text(object, "/apiVersion")
        .split_once('/')
        .map_or("", |(group, _)| group);
    (group, text(object, "/kind"))
}

/// ` with version change from a to b`, as events say it.
fn version_change(have: Option<&Value>, want: &Value, pointer: &str) -> String {
    let Some(have) = have else { return String::new() };
    let (from, to) = (text(have, pointer), text(want, pointer));
    if from == to {
        String::new()
    } else {
        format!(" with version change from {from} to {to}")
    }
}

impl Plan {
    /// The control plane with its health check and its template.
    fn control_plane(&mut self, input: Input<'_>, want: &mut ControlPlane) -> Result<(), LeftAsItIs> {
        let have = input.current.control_plane.as_deref();
        self.health_check(
            input.current.control_plane_health_check.as_deref(),
            want.health_check.take(),
        );
        if let Some(why) = &want.step.pending {
            let name = have.map(name_of).unwrap_or_default();
            self.notes
                .push(format!("{name} is left as it is until it may be upgraded: {why}"));
            return Ok(());
        }
        if let Some(going) = have.filter(|have| is_deleting(have)) {
            // It uses its template until it is gone.
            self.wait_until_gone(&name_of(going));
            return Ok(());
        }
        let mut old = None;
        if let Some(machines) = want.machines.take() {
            let spot = Spot {
                input,
                place: "control-plane-machines".to_owned(),
                user: name_of(&want.object),
                worker: "",
                version: &want.step.version,
                source: input.blueprint.control_plane_machines.as_deref(),
            };
            let template = input.current.control_plane_machines.as_deref();
            let planned = self.template(&spot, template, machines)?;
            old = planned.replaces;
            let mut path = machine_reference_path(input.blueprint.contract).to_vec();
            path.push("name");
            set_or_remove(&mut want.object, &path, Some(planned.name));
        }
        let versions = version_change(have, &want.object, "/spec/version");
        self.ensure(have, std::mem::take(&mut want.object), &versions);
        self.delete_replaced(old);
        Ok(())
    }

    /// An object that keeps its name.
    fn ensure(&mut self, have: Option<&Value>, want: Value, versions: &str) {
        let name = name_of(&want);
        let Some(have) = have else {
            self.create(
                want,
                format!("create {name}: the topology needs it and it does not exist"),
                "",
            );
            return;
        };
        if is_deleting(have) {
            self.wait_until_gone(&name);
            return;
        }
        let change = compare(have, &want);
        self.keep(have, want, change, versions);
    }

    /// An object that has to go first.
    fn wait_until_gone(&mut self, name: &str) {
        self.notes
            .push(format!("{name} is being deleted; it is made again when it is gone"));
    }

    /// An existing object, brought to its intent in place.
    fn keep(&mut self, have: &Value, mut want: Value, change: Change, versions: &str) {
        let (kind, name) = (text(&want, "/kind").to_owned(), name_of(&want));
        want["metadata"]["uid"] = have["metadata"]["uid"].clone();
        let event = format!("Updated {kind} {:?}{versions}", place(&want));
        self.steps.push(Step {
            action: Action::Apply(want),
            verb: Verb::Update,
            note: match change {
                Change::None => format!("keep {name}: nothing to change"),
                Change::Metadata => format!("update {name}: its metadata differs from the topology's"),
                Change::Spec => format!("update {name}: its spec differs from the topology's{versions}"),
            },
            event,
            changes: change > Change::None,
            rotation: None,
            worker_set: None,
            is_part: false,
        });
    }

    fn create(&mut self, object: Value, note: String, event: &str) {
        let event = format!("Created {} {:?}{event}", text(&object, "/kind"), place(&object));
        self.steps.push(Step {
            action: Action::Apply(object),
            verb: Verb::Create,
            note,
            event,
            changes: true,
            rotation: None,
            worker_set: None,
            is_part: false,
        });
    }

    fn delete(&mut self, target: Target, note: String) {
        let event = format!("Deleted {} \"{}/{}\"", target.kind, target.namespace, target.name);
        self.steps.push(Step {
            action: Action::Delete(target),
            verb: Verb::Delete,
            note,
            event,
            changes: true,
            rotation: None,
            worker_set: None,
            is_part: false,
        });
    }

    fn health_check(&mut self, have: Option<&Value>, want: Option<Value>) {
        match (have, want) {
            (_, Some(want)) => self.ensure(have, want, ""),
            (Some(have), None) if !is_deleting(have) => {
                let note = format!("delete {}: no health check is defined any more", name_of(have));
                self.delete(Target::of(have), note);
            }
            (_, None) => {}
        }
    }

    fn workers(&mut self, input: Input<'_>, workers: Vec<Worker>) {
        let sets = &input.current.machine_deployments;
        let wanted: BTreeSet<&str> = workers.iter().map(|w| w.name.as_str()).collect();
        for (name, set) in sets {
            if !wanted.contains(name.as_str()) && !is_deleting(&set.object) {
                self.about(name, |plan| plan.remove(name, set));
            }
        }
        for worker in workers {
            let name = worker.name.clone();
            self.about(&name, |plan| plan.worker(input, sets.get(&name), worker));
        }
    }

    /// Plans for one worker set.
    fn about(&mut self, worker_set: &str, plan: impl FnOnce(&mut Self)) {
        let first = self.steps.len();
        plan(self);
        for step in &mut self.steps[first..] {
            step.worker_set = Some(worker_set.to_owned());
        }
    }

    fn remove(&mut self, name: &str, set: &WorkerSet) {
        if let Some(check) = set.health_check.as_deref().filter(|c| !is_deleting(c)) {
            let note = format!("delete {}: its worker set goes", name_of(check));
            self.delete(Target::of(check), note);
        }
        let note = format!(
            "delete {}: the topology has no entry {name:?} any more",
            name_of(&set.object)
        );
        self.delete(Target::of(&set.object), note);
    }

    fn worker(&mut self, input: Input<'_>, have: Option<&WorkerSet>, mut worker: Worker) {
        let deleting = have.is_some_and(|set| is_deleting(&set.object));
        if deleting {
            self.wait_until_gone(&name_of(&worker.object));
            return;
        }
        if have.is_none() && worker.step.on_hold() {
            let note = format!(
                "MachineDeployment for {:?} is made when the control plane has its new version",
                worker.name
            );
            self.notes.push(note);
            return;
        }
        if worker.step.on_hold() {
            let name = name_of(&worker.object);
            self.notes
                .push(format!("{name} is left as it is until its turn to be upgraded"));
        } else {
            let first = self.steps.len();
            if self.worker_templates(input, have, &mut worker).is_ok() {
                let object = have.map(|set| &*set.object);
                let versions = version_change(object, &worker.object, "/spec/template/spec/version");
                self.ensure(object, worker.object, &versions);
            } else {
                // The other template has nothing that refers to it either.
                self.steps.truncate(first);
            }
        }
        self.health_check(have.and_then(|set| set.health_check.as_deref()), worker.health_check);
    }

    /// Both templates of a worker set, and its references to them.
    fn worker_templates(
        &mut self,
        input: Input<'_>,
        have: Option<&WorkerSet>,
        worker: &mut Worker,
    ) -> Result<(), LeftAsItIs> {
        let at = ["spec", "template", "spec"];
        let templates = input.blueprint.machine_deployments.get(&worker.class);
        let mut spot = Spot {
            input,
            place: format!("machines/{}", worker.name),
            user: name_of(&worker.object),
            worker: &worker.name,
            version: &worker.step.version,
            source: templates.map(|templates| &*templates.infrastructure),
        };
        let current = have.and_then(|set| set.infrastructure.as_deref());
        let machines = self.template(&spot, current, std::mem::take(&mut worker.infrastructure));
        let current = have.and_then(|set| set.bootstrap.as_deref());
        spot.place = format!("bootstrap/{}", worker.name);
        spot.source = templates.map(|templates| &*templates.bootstrap);
        let bootstrap = self.template(&spot, current, std::mem::take(&mut worker.bootstrap));
        // Both are planned, whatever becomes of the other.
        let (machines, bootstrap) = (machines?, bootstrap?);
        let path = [&at[..], &["infrastructureRef", "name"]].concat();
        set_or_remove(&mut worker.object, &path, Some(machines.name));
        let path = [&at[..], &["bootstrap", "configRef", "name"]].concat();
        set_or_remove(&mut worker.object, &path, Some(bootstrap.name));
        Ok(())
    }
}

/// `namespace/name`.
fn place(object: &Value) -> String {
    format!(
        "{}/{}",
        text(object, "/metadata/namespace"),
        text(object, "/metadata/name")
    )
}

#[cfg(test)]
mod tests;
