//! What to do about one MachineDeployment. Pure.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};
use windlass_api::core::{MachineDeployment, MachineSet};
use windlass_api::meta::MetaExt as _;
use windlass_controller_runtime::{Blocked, Decision, Dynamic, Moment, Note, Seen};
use windlass_runtime_client::in_place::InPlace;

use crate::machine_deployment::desired::{find_new, new_revision, new_set, old_set, replicas_before};
use crate::machine_deployment::in_place::{self, Moves, Question};
use crate::machine_deployment::observed::Observed;
use crate::machine_deployment::plan_rollout::{
    MachineView, SetView, Targets, World, on_delete, paused, rolling_update,
};
use crate::machine_deployment::settings::{self, Strategy};
use crate::machine_set::{default_replicas, replicas_patch};
use crate::shared::guards;
use crate::shared::in_place::is_under_way;
use crate::shared::keys::{annotations, conditions, finalizers, labels};
use crate::shared::machines::{counts_as_available, deletion_class, is_true, owner_reference};
use crate::shared::numbers::len_i32;
use crate::shared::templates;

/// One write.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Writes the replicas that the deployment leaves out, so that its scale can be read and written.
    SetReplicas(Box<Value>),
    /// Applies the deployment's own owner, label and revision.
    ApplySelf(Box<Value>),
    /// Applies an owner to a template.
    AdoptTemplate(Box<Value>),
    /// Takes over a MachineSet without a controller.
    AdoptSet(Box<Value>),
    /// Applies a MachineSet.
    ApplySet {
        /// The desired set.
        set: Box<MachineSet>,
        /// Replicas it has now; `None` when it does not exist.
        from: Option<i32>,
    },
    /// Deletes a MachineSet.
    DeleteSet(Arc<MachineSet>),
    /// Lets the deployment go.
    RemoveFinalizer,
}

/// Everything to be done, in order, and why something is not.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Writes, in order.
    pub actions: Vec<Action>,
    /// Why.
    pub notes: Vec<Note>,
    /// Name of the set with the current template, also when it is only planned.
    pub new: Option<String>,
    /// What keeps the plan from going further.
    pub blocked: Option<Blocked>,
    /// Why the spec must not be acted on.
    pub refused: Option<String>,
    /// Why it cannot be told whether Machines are updated in place.
    pub undecided: Option<String>,
}

/// Decides.
pub(crate) fn plan(seen: &Observed, now: &Moment) -> Decision<Plan, Question> {
    let mut plan = Plan::default();
    match fill(seen, now, &mut plan) {
        Some(question) => Decision::Ask(question),
        None => plan.into(),
    }
}

fn fill(seen: &Observed, now: &Moment, plan: &mut Plan) -> Option<Question> {
    let deployment = &seen.deployment;
    if deployment.metadata.is_deleting() {
        delete(seen, plan);
        return None;
    }
    if let Some(why) = refused(deployment) {
        plan.blocked = Some(guards::blocked(&why));
        plan.refused = Some(why);
        return None;
    }
    if seen.awaits_replicas() {
        // Its change comes as an event, and everything else follows from the number.
        set_replicas(seen, plan);
        return None;
    }
    let cluster = match &seen.cluster {
        Seen::Found(cluster) => cluster,
        Seen::NotFound => {
            let name = &deployment.spec.cluster_name;
            let why = format!("spec.clusterName: Cluster {name} does not exist");
            plan.blocked = Some(Blocked::failed("CannotPlan", why));
            return None;
        }
        Seen::Failed(why) => {
            plan.blocked = Some(Blocked::failed("CannotPlan", why.as_str()));
            return None;
        }
    };
    let owner = owner_reference("Cluster", &cluster.metadata, false);
    let templates = seen.bootstrap_template.iter().chain([&seen.infrastructure_template]);
    for template in templates.filter_map(Seen::found) {
        plan.actions.extend(adopt_template(template, &owner));
    }
    if !seen.orphans.is_empty() {
        // Only once they are ours is it clear whether a set is missing.
        plan.actions
            .extend(seen.orphans.iter().map(|set| adopt_set(deployment, set)));
        return None;
    }
    let is_paused = deployment.spec.paused == Some(true);
    let new = find_new(deployment, &seen.sets, now);
    let revision = new_revision(new.map(|set| &**set), &seen.sets);
    let creates = new.is_none() && !is_paused;
    let has_revision = new.is_some() || creates;
    plan.actions
        .push(apply_self(deployment, &owner, has_revision.then_some(revision)));
    if creates && let Some(missing) = missing_templates(seen) {
        let why = format!("a new MachineSet cannot be made because {missing}");
        plan.blocked = Some(Blocked::failed("CannotPlan", why));
        return None;
    }
    roll_out(seen, new, revision, now, plan)
}

fn set_replicas(seen: &Observed, plan: &mut Plan) {
    let meta = &seen.deployment.metadata;
    let replicas = default_replicas(meta, replicas_before(&seen.sets));
    let note = format!("spec.replicas is not set and becomes {replicas}");
    plan.notes.push(Note::new(note));
    let patch = replicas_patch(meta, replicas);
    plan.actions.push(Action::SetReplicas(Box::new(patch)));
}

/// Why the spec must not be acted on: Machines would be lost, or fewer of them available than the user allows.
fn refused(deployment: &MachineDeployment) -> Option<String> {
    guards::moved(&deployment.metadata, &deployment.spec.cluster_name).or_else(|| settings::immovable(deployment))
}

fn roll_out(
    seen: &Observed,
    new: Option<&Arc<MachineSet>>,
    revision: i64,
    now: &Moment,
    plan: &mut Plan,
) -> Option<Question> {
    let deployment = &seen.deployment;
    let planned = new_set(deployment, new.map(|set| &**set), &seen.suffix, 0, revision);
    let new_name = planned.metadata.name().to_owned();
    let is_paused = deployment.spec.paused == Some(true);
    let mut world = world(seen, new, &new_name);
    let arrivals = new.map_or_else(Vec::new, |set| in_place::arrivals(seen, set).0);
    let (targets, moves) = if is_paused {
        (paused(&world), Moves::AsBefore)
    } else if settings::strategy(deployment) == Strategy::OnDelete {
        (on_delete(&world), Moves::Of(BTreeSet::new()))
    } else {
        let candidates = in_place::candidates(seen, new, &world, now);
        if !candidates.is_empty() && seen.in_place.is_none() {
            return Some(Question {
                new: Box::new(planned),
                old: candidates,
            });
        }
        let moves = moves(seen, &candidates, plan);
        match moves {
            Moves::AsBefore => (Targets::keep(&world), moves),
            Moves::Of(ref sets) => {
                for set in &mut world.old {
                    set.moves = sets.contains(&set.name);
                }
                (rolling_update(&world), moves)
            }
        }
    };
    plan.notes.extend(targets.notes.iter().cloned());
    if !is_paused || new.is_some() {
        plan.new = Some(new_name);
    }
    // Shrinking comes first only in effect: each set is one write, and the order of sets does not matter to the promises.
    if !is_paused {
        let replicas = targets.of(&world.new);
        let have = new.map(|set| &**set);
        let mut set = new_set(deployment, have, &seen.suffix, replicas, revision);
        in_place::mark_new(&mut set, have, &arrivals, &moves);
        let from = new.map(|set| set.spec.replicas.unwrap_or(0));
        push_set(new, set, from, plan);
    }
    let complete = is_complete(seen, &world, &targets);
    for set in &seen.sets {
        let is_new = new.is_some_and(|new| new.metadata.uid == set.metadata.uid);
        if (is_new && !is_paused) || set.metadata.is_deleting() {
            continue;
        }
        let have = set.spec.replicas.unwrap_or(0);
        let want = targets.replicas.get(set.metadata.name()).copied().unwrap_or(have);
        let reported = set.status.as_ref().and_then(|status| status.replicas).unwrap_or(0);
        let empty = have == 0 && want == 0 && reported == 0 && seen.machines_of(set).is_empty();
        if empty && complete && !is_new && !is_paused {
            let note = format!(
                "MachineSet {} is deleted: the rollout has replaced it",
                set.metadata.name()
            );
            plan.notes.push(Note::new(note));
            plan.actions.push(Action::DeleteSet(set.clone()));
        } else {
            // A pause stops the rollout. It makes no old set of the new one, which makes Machines and takes over changes.
            let wanted = if is_new {
                let mut wanted = new_set(deployment, Some(&**set), &seen.suffix, want, revision);
                in_place::mark_new(&mut wanted, Some(&**set), &arrivals, &moves);
                wanted
            } else {
                let mut wanted = old_set(deployment, set, want);
                let arrivals = in_place::arrivals(seen, set).0;
                in_place::mark_old(&mut wanted, set, &world.new.name, &arrivals, &moves);
                wanted
            };
            plan.actions.push(Action::ApplySet {
                set: Box::new(wanted),
                from: Some(have),
            });
        }
    }
    None
}

/// Which old sets give their Machines to the new one. While that cannot be told, nothing is replaced that could be updated in place.
fn moves(seen: &Observed, candidates: &[Arc<MachineSet>], plan: &mut Plan) -> Moves {
    let mut sets = BTreeSet::new();
    for set in candidates {
        let name = set.metadata.name();
        let answer = seen.in_place.as_ref().and_then(|answers| answers.get(name));
        let why = match answer {
            Some(InPlace::Possible) => {
                let note = format!(
                    "MachineSet {name} gives its Machines to the new MachineSet, where they are updated in place"
                );
                plan.notes.push(Note::new(note));
                sets.insert(name.to_owned());
                continue;
            }
            Some(InPlace::Impossible(why)) => {
                let note = format!("Machines of MachineSet {name} are replaced: {why}");
                plan.notes.push(Note::new(note));
                continue;
            }
            Some(InPlace::Unknown(why)) => why.as_str(),
            None => "no extension was asked about it",
        };
        let why = format!("it cannot be told whether Machines of MachineSet {name} can be updated in place: {why}");
        plan.blocked = Some(Blocked::failed("CannotPlan", why.as_str()));
        plan.undecided = Some(why);
        return Moves::AsBefore;
    }
    Moves::Of(sets)
}

fn push_set(new: Option<&Arc<MachineSet>>, set: MachineSet, from: Option<i32>, plan: &mut Plan) {
    if new.is_none_or(|set| !set.metadata.is_deleting()) {
        plan.actions.push(Action::ApplySet {
            set: Box::new(set),
            from,
        });
    }
}

/// Whether all Machines are those of the new set, and available.
fn is_complete(seen: &Observed, world: &World, targets: &Targets) -> bool {
    let replicas = settings::replicas(&seen.deployment);
    let available = world
        .new
        .machines
        .iter()
        .filter(|machine| machine.available && !machine.deleting);
    targets.of(&world.new) == replicas
        && world.new.have == replicas
        && len_i32(available.count()) >= replicas
        && world.old.iter().all(|set| set.have == 0 && targets.of(set) == 0)
}

fn view(seen: &Observed, set: &MachineSet) -> SetView {
    let machines = seen.machines_of(set);
    let reported = set.status.as_ref().and_then(|status| status.replicas).unwrap_or(0);
    SetView {
        name: set.metadata.name().to_owned(),
        created: set.metadata.created(),
        replicas: set.spec.replicas.unwrap_or(0),
        have: reported.max(len_i32(machines.len())),
        machines: machines
            .iter()
            .map(|machine| MachineView {
                deleting: machine.metadata.is_deleting(),
                // It says so itself a moment later.
                available: counts_as_available(machine) && !is_under_way(machine),
                up_to_date: is_true(machine, conditions::UP_TO_DATE),
                updating: is_under_way(machine),
                class: deletion_class(machine),
            })
            .collect(),
        moves: false,
    }
}

/// The planner's view of the sets.
pub(crate) fn world(seen: &Observed, new: Option<&Arc<MachineSet>>, new_name: &str) -> World {
    let (max_surge, max_unavailable) = settings::limits(&seen.deployment);
    let is_new = |set: &MachineSet| new.is_some_and(|new| new.metadata.uid == set.metadata.uid);
    let none = SetView {
        name: new_name.to_owned(),
        created: Timestamp::MAX,
        replicas: 0,
        have: 0,
        machines: Vec::new(),
        moves: false,
    };
    let grown = |set: &MachineSet| {
        let mut view = view(seen, set);
        // Machines that have come from other sets count here from now on, also where the set has become an old one since.
        view.replicas += len_i32(in_place::arrivals(seen, set).1);
        view
    };
    World {
        replicas: settings::replicas(&seen.deployment),
        max_surge,
        max_unavailable,
        new: new.map_or(none, |set| grown(set)),
        old: seen
            .sets
            .iter()
            .filter(|set| !is_new(set))
            .map(|set| grown(set))
            .collect(),
    }
}

fn delete(seen: &Observed, plan: &mut Plan) {
    plan.actions.extend(
        seen.sets
            .iter()
            .filter(|set| !set.metadata.is_deleting())
            .cloned()
            .map(Action::DeleteSet),
    );
    let mut finalizer = seen.deployment.metadata.finalizers.iter().flatten();
    if seen.sets.is_empty() && finalizer.any(|name| name == finalizers::MACHINE_DEPLOYMENT) {
        plan.actions.push(Action::RemoveFinalizer);
    }
}

/// The templates that are missing or unreadable, in words; `None` when all are there.
pub(crate) fn missing_templates(seen: &Observed) -> Option<String> {
    let spec = &seen.deployment.spec.template.spec;
    let mut missing = Vec::new();
    if let (Some(reference), Some(read)) = (&spec.bootstrap.config_ref, &seen.bootstrap_template) {
        match read {
            Seen::Found(_) => {}
            Seen::NotFound => missing.push(reference.kind.clone()),
            Seen::Failed(why) => return Some(why.clone()),
        }
    }
    match &seen.infrastructure_template {
        Seen::Found(_) => {}
        Seen::NotFound => missing.push(spec.infrastructure_ref.kind.clone()),
        Seen::Failed(why) => return Some(why.clone()),
    }
    match missing.as_slice() {
        [] => None,
        [one] => Some(format!("{one} does not exist")),
        more => Some(format!("{} do not exist", more.join(" and "))),
    }
}

fn apply_self(
    deployment: &MachineDeployment,
    owner: &k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference,
    revision: Option<i64>,
) -> Action {
    let mut meta = json!({
        "name": deployment.metadata.name,
        "namespace": deployment.metadata.namespace,
        "uid": deployment.metadata.uid,
        "ownerReferences": [owner],
    });
    // A topology labels what it makes.
    if deployment.metadata.label(labels::TOPOLOGY_OWNED).is_none() {
        meta["labels"] = json!({ labels::CLUSTER_NAME: deployment.spec.cluster_name });
    }
    if let Some(revision) = revision {
        meta["annotations"] = json!({ annotations::REVISION: revision.to_string() });
    }
    Action::ApplySelf(Box::new(json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "MachineDeployment",
        "metadata": meta,
    })))
}

fn adopt_set(deployment: &MachineDeployment, set: &MachineSet) -> Action {
    Action::AdoptSet(Box::new(json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "MachineSet",
        "metadata": {
            "name": set.metadata.name,
            "namespace": set.metadata.namespace,
            "uid": set.metadata.uid,
            "ownerReferences": [owner_reference("MachineDeployment", &deployment.metadata, true)],
        },
    })))
}

fn adopt_template(
    template: &Dynamic,
    owner: &k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference,
) -> Option<Action> {
    templates::adopt(template, owner).map(|patch| Action::AdoptTemplate(Box::new(patch)))
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
pub(super) mod tests;
