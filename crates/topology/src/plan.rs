//! The steps from what exists to what a topology should have, with the reason for each.
//!
//! The order matters: the Cluster learns the names of its infrastructure and control plane before these exist, so
//! that a pass that dies half-way leaves nothing without an owner; a template exists before what refers to it, and
//! goes after it.

mod cluster;
mod spot;

use std::collections::BTreeSet;

use serde_json::Value;

use crate::current::{WorkerSet, is_deleting};
use crate::desired::{Input, Worker, desired, machine_reference_path};
use crate::diff::{Change, compare, compare_metadata};
use crate::error::Error;
use crate::model::{name_of, text};
use crate::patches::set_or_remove;
use crate::status::Progress;
use crate::target::Target;
use crate::trial::{Rotation, Trial, Verdict};
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
    /// Templates that were replaced several times and still do not have the content that was applied.
    pub unstable: Vec<Error>,
    /// The progress of the topology, for its condition.
    pub progress: Progress,
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
    let mut desired = desired(input)?;
    let mut plan = Plan {
        progress: Progress::of(input.current, &desired),
        ..Plan::default()
    };
    let contract = input.blueprint.contract;
    for (have, want) in [
        (&input.current.infrastructure_cluster, &desired.infrastructure_cluster),
        (&input.current.control_plane, &desired.control_plane.object),
    ] {
        same_kind(have.as_deref(), want, &input.blueprint.class_name)?;
    }
    let machines = (
        &input.current.control_plane_machines,
        desired.control_plane.machines.as_ref(),
    );
    if let (have, Some(want)) = machines {
        same_kind(have.as_deref(), want, &input.blueprint.class_name)?;
    }
    for worker in &desired.workers {
        // The kind of a bootstrap template may change.
        let have = input.current.machine_deployments.get(&worker.name);
        let have = have.and_then(|set| set.infrastructure.as_deref());
        same_kind(have, &worker.infrastructure, &input.blueprint.class_name)?;
    }

    plan.cluster(input, &desired);
    plan.ensure(
        input.current.infrastructure_cluster.as_deref(),
        desired.infrastructure_cluster.clone(),
        "",
    );

    let have = input.current.control_plane.as_deref();
    let control_plane = &mut desired.control_plane;
    plan.health_check(
        input.current.control_plane_health_check.as_deref(),
        control_plane.health_check.clone(),
    );
    if let Some(why) = control_plane.step.pending.clone() {
        let name = have.map(name_of).unwrap_or_default();
        plan.notes
            .push(format!("{name} is left as it is until it may be upgraded: {why}"));
    } else if let Some(going) = have.filter(|have| is_deleting(have)) {
        // It uses its template until it is gone.
        plan.wait_until_gone(&name_of(going));
    } else {
        let template = input.current.control_plane_machines.as_deref();
        let mut old = None;
        if let Some(mut machines) = control_plane.machines.take() {
            let spot = Spot {
                input,
                place: "control-plane-machines".to_owned(),
                worker: "",
                version: &control_plane.step.version,
                source: input.blueprint.control_plane_machines.as_deref(),
            };
            old = plan.template(&spot, template, &mut machines);
            let name = machines["metadata"]["name"].clone();
            let mut path = machine_reference_path(contract).to_vec();
            path.push("name");
            set_or_remove(&mut control_plane.object, &path, Some(name));
        }
        let versions = version_change(have, &control_plane.object, "/spec/version");
        plan.ensure(have, control_plane.object.clone(), &versions);
        plan.delete_replaced(old);
    }
    plan.workers(input, desired.workers);
    Ok(plan)
}

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
        });
    }

    /// A template of which Machines are made: a change in its spec needs a new name. Gives what was replaced.
    fn template(&mut self, spot: &Spot<'_>, have: Option<&Value>, want: &mut Value) -> Option<Target> {
        let Some(have) = have else {
            self.create(want.clone(), format!("create {}: it does not exist", name_of(want)), "");
            return None;
        };
        if is_deleting(have) {
            self.wait_until_gone(&name_of(have));
            return None;
        }
        let changed = if group_kind(have) != group_kind(want) {
            Some("kind")
        } else if have["spec"] == want["spec"] {
            None
        } else {
            match spot.input.current.verdicts.get(&spot.place) {
                Some(Verdict::Same) => None,
                Some(Verdict::Changes(field)) => Some(field.as_str()),
                // The event of its deletion comes.
                Some(Verdict::Gone) => return None,
                None => {
                    self.trials.push(Trial::new(&spot.place, have, want));
                    return None;
                }
            }
        };
        let Some(field) = changed else {
            self.keep(have, want.clone(), compare_metadata(have, want), "");
            return None;
        };
        let old = text(have, "/metadata/name").to_owned();
        let rotation = Rotation {
            place: spot.place.clone(),
            inputs: spot.inputs(),
            name: spot.fresh_name(&old, want),
        };
        let before = spot.input.current.rotations.get(&spot.place);
        if before.is_some_and(|before| before.refuse(&rotation)) {
            let message = format!(
                "is not what was applied, although the template was replaced several times with the same content; a webhook, a \
                 default or a patch gives this field another value each time. The template and its Machines are left as they are \
                 until {} or the Cluster changes",
                spot.input.blueprint.class_name
            );
            self.unstable.push(Error::new(name_of(have), field, message));
            return None;
        }
        want["metadata"]["name"] = rotation.name.as_str().into();
        let note = format!(
            "create {}: its {field} differs from {old}, and templates of Machines are not changed in place",
            name_of(want)
        );
        self.create(
            want.clone(),
            note,
            &format!(" as a replacement for {old:?} (template rotation)"),
        );
        if let Some(step) = self.steps.last_mut() {
            step.rotation = Some(rotation);
        }
        Some(Target::of(have))
    }

    fn delete_replaced(&mut self, old: Option<Target>) {
        if let Some(old) = old {
            let note = format!("delete {} {}/{}: it was replaced", old.kind, old.namespace, old.name);
            self.delete(old, note);
        }
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
        }
        for worker in workers {
            self.worker(input, sets.get(&worker.name), worker);
        }
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
            let (bootstrap, machines) = (&mut worker.bootstrap, &mut worker.infrastructure);
            let at = ["spec", "template", "spec"];
            let templates = input.blueprint.machine_deployments.get(&worker.class);
            let mut spot = Spot {
                input,
                place: format!("machines/{}", worker.name),
                worker: &worker.name,
                version: &worker.step.version,
                source: templates.map(|templates| &*templates.infrastructure),
            };
            let current = have.and_then(|set| set.infrastructure.as_deref());
            self.template(&spot, current, machines);
            let name = machines["metadata"]["name"].clone();
            set_or_remove(
                &mut worker.object,
                &[&at[..], &["infrastructureRef", "name"]].concat(),
                Some(name),
            );
            let current = have.and_then(|set| set.bootstrap.as_deref());
            spot.place = format!("bootstrap/{}", worker.name);
            spot.source = templates.map(|templates| &*templates.bootstrap);
            self.template(&spot, current, bootstrap);
            let name = bootstrap["metadata"]["name"].clone();
            let path = [&at[..], &["bootstrap", "configRef", "name"]].concat();
            set_or_remove(&mut worker.object, &path, Some(name));
            let object = have.map(|set| &*set.object);
            let versions = version_change(object, &worker.object, "/spec/template/spec/version");
            self.ensure(object, worker.object, &versions);
        }
        self.health_check(have.and_then(|set| set.health_check.as_deref()), worker.health_check);
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
