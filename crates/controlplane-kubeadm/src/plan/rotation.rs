//! Rotates the authorities of a cluster, one stage after another.
//!
//! In each stage the authorities change first, then what joining machines learn, then the control plane Machines, then the workers.
//! A stage begins only when the one before has reached everything, so that each machine trusts what its peers show:
//!
//! | Stage | signs | trusted | replaced |
//! | --- | --- | --- | --- |
//! | Preparing | old | both | control plane, workers |
//! | Completing | new | both | control plane |
//! | Renewing | new | both; machines that join only the new | control plane, workers |
//! | Dropping | new | new | control plane |
//!
//! Completing begins when the user says so: until then, kubeconfigs that were handed out can be exchanged. While its control plane Machines
//! join, a controller manager of before may still sign the certificates of their kubelets with the old authority. Renewing replaces them
//! once more. Where kubelets talk to the API server of their own machine alone, that does not matter: the stage is left out, and the
//! workers are replaced in Completing.

mod extension_authorities;
mod guards;

use jiff::{SignedDuration, Timestamp};
use windlass_controller_runtime::{EventType, Moment, Note, Seen};
use windlass_meta::label_or_hash;
use windlass_pki::rotation::{NEXT_CRT, NEXT_KEY, ROTATION, blocks, mark};
use windlass_pki::{Purpose, RotationStage};

use super::{Action, Plan, TROUBLED, WorkloadChange, addons, rollout, settled};
use crate::desired;
use crate::facts::{Control, Facts, Kubeconfig};
use crate::finding::listed;
use crate::health::Health;
use crate::names::control_plane::ROTATING;
use crate::question::Question;
use crate::rotation::{Authority, COMPLETE, Data, REPLACED_FOR, ROTATE, ROTATED, Rotation, State, Worker};

/// The next stage of an authority, or its end.
#[derive(Clone, Debug, PartialEq)]
pub struct StageChange {
    /// What the authority is for.
    pub purpose: Purpose,
    /// Identity of its Secret.
    pub uid: String,
    /// Version of its Secret: a change in the meantime is not overwritten.
    pub resource_version: String,
    /// Name of the rotation.
    pub name: String,
    /// The stage; none when the rotation is over.
    pub to: Option<RotationStage>,
    /// When it begins.
    pub since: Timestamp,
    /// A new pair is to be made, as the Secret has none for it.
    pub makes_pair: bool,
    /// The next pair stays in the Secret, as a user brought it.
    pub keeps_next: bool,
}

/// Which pair signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signer {
    /// The one of `tls.key`.
    Current,
    /// The one of `next.key`.
    Next,
}

/// The administrator's kubeconfig for a stage.
#[derive(Clone, Debug, PartialEq)]
pub struct RotatedKubeconfig {
    /// URL of the API server.
    pub server: String,
    /// What it trusts.
    pub authorities: String,
    /// What signs its client certificate.
    pub signer: Signer,
    /// Tells both.
    pub mark: String,
}

/// How far the rotation is, for people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Reason of the condition.
    pub reason: &'static str,
    /// What is waited for.
    pub message: String,
}

/// What comes before the Machines: a change that was interrupted is completed, and what joins trusts what it meets. Returns whether the
/// Machines may change.
pub(super) fn begin(facts: &Facts, now: &Moment, plan: &mut Plan, question: &mut Question) -> bool {
    let Some((rotation, state)) = under_way(facts) else {
        return true;
    };
    if facts.control_plane.has_ended(state) {
        change_all(rotation, &state.name, None, now, plan);
        return true;
    }
    say(plan, state.stage.as_str(), control_plane_left(facts, rotation));
    let keeps = facts.control_plane.keeps(state);
    if keeps && let Some(why) = guards::altered(facts, rotation) {
        say(plan, state.stage.as_str(), why.clone());
        plan.block(why);
        return false;
    }
    let behind: Vec<&Authority> = rotating(rotation)
        .filter(|one| stage(one) != Some(state.stage))
        .collect();
    if keeps && !behind.is_empty() {
        for authority in behind {
            if let Err(why) = advance_one(authority, state, now, plan) {
                say(plan, state.stage.as_str(), why.clone());
                plan.block(why);
            }
        }
        return false;
    }
    let alone = !keeps || state.stage > RotationStage::Completing || state.workers.is_some() && signs_new(state);
    let ready = cluster_info(facts, rotation, alone, state, plan, question);
    kubeconfig(facts, rotation, state, false, plan);
    if keeps || !ready {
        return ready;
    }
    if let Some(why) = guards::without_data(facts, rotation) {
        say(plan, state.stage.as_str(), why);
    } else {
        plan.notes.push(Note::event(
            EventType::Normal,
            ROTATING,
            format!("Rotation {} of the authorities is taken back", state.name),
        ));
        change_all(rotation, &state.name, None, now, plan);
    }
    // A Machine that is made now would join by a configuration of before.
    false
}

/// What comes after the Machines, when nothing is left to do with them: workers, and the next stage.
pub(super) fn advance(facts: &Facts, health: &Health, now: &Moment, plan: &mut Plan, question: &mut Question) {
    let Some(rotation) = &facts.rotation else {
        return;
    };
    let Some((_, state)) = under_way(facts) else {
        start(facts, rotation, health, now, plan);
        return;
    };
    if !facts.control_plane.keeps(state) {
        return;
    }
    let stage = state.stage;
    let unmarked = facts.machines.iter().filter(|machine| rotation.is_unmarked(machine));
    let unmarked: Vec<&str> = unmarked.map(|machine| machine.name.as_str()).collect();
    if !unmarked.is_empty() {
        let message = format!(
            "The bootstrap data of Machines {} does not tell of which authorities it was made: another program reconciles their \
             KubeadmConfigs; let Windlass do it, then delete these Machines",
            listed(&unmarked)
        );
        say(plan, stage.as_str(), message);
        return;
    }
    if !is_ready(facts, health) {
        return;
    }
    if stage == RotationStage::Dropping {
        if !extension_authorities::are_dropped(facts, rotation, state, plan, question) {
            return;
        }
        plan.push(Action::Annotate {
            key: ROTATED,
            value: Some(state.name.clone()),
        });
        change_all(rotation, &state.name, None, now, plan);
        plan.notes.push(Note::event(
            EventType::Normal,
            ROTATING,
            format!("Rotation {} of the authorities is complete", state.name),
        ));
        return;
    }
    if stage == RotationStage::Completing && !desired::has_local_kubelets(&facts.control_plane) {
        enter(rotation, state, RotationStage::Renewing, now, plan);
        return;
    }
    if signs_new(state) && !cluster_info(facts, rotation, true, state, plan, question) {
        return;
    }
    if workers(rotation, state, now, plan) {
        next(facts, rotation, state, now, plan);
    }
}

/// Brings the workers to a stage. Returns whether all are.
fn workers(rotation: &Rotation, state: &State, now: &Moment, plan: &mut Plan) -> bool {
    let Some(before) = state.workers else {
        let Some(authority) = rotation.authority(Purpose::ClusterCa) else {
            return false;
        };
        plan.push(Action::MarkWorkers {
            uid: authority.uid.clone(),
            resource_version: authority.resource_version.clone(),
            // Times of creation are whole seconds: one that comes in this very second counts as older.
            before: whole_second_after(now.now()),
        });
        say(plan, state.stage.as_str(), "Workers are next".to_owned());
        return false;
    };
    if !now.reached(before) {
        say(plan, state.stage.as_str(), "Workers are next".to_owned());
        return false;
    }
    if let Some(why) = guards::unknown_workers(rotation) {
        say(plan, state.stage.as_str(), why);
        plan.again_within(TROUBLED);
        return false;
    }
    let left = || {
        rotation
            .workers
            .iter()
            .filter(|worker| rotation.precedes(worker, before))
    };
    for (name, after) in &rotation.deployments {
        // A Machine that was moved or restored is younger than its host. One whose data another program made after the call is as good as it
        // gets, and not rolled out without end.
        let counts = |worker: &&Worker| matches!(worker.data, Data::Marked(_)) || rotation.is_older(worker, before);
        let own = left().filter(|worker| worker.deployment.as_ref() == Some(&label_or_hash(name)));
        let own = own.filter(counts);
        let youngest = own.map(|worker| whole_second_after(worker.created)).max();
        let wanted = youngest.map_or(before, |youngest| youngest.max(before));
        if after.is_none_or(|after| after < wanted) {
            plan.push(Action::RollOut {
                deployment: name.clone(),
                after: wanted,
            });
        }
    }
    let left: Vec<&str> = left().map(|worker| worker.name.as_str()).collect();
    if !left.is_empty() {
        let mut message = format!(
            "Machines {} are to be replaced; MachineDeployments roll theirs out, unless they are paused or their strategy is OnDelete; \
             delete others yourself",
            listed(&left)
        );
        let reasons = [
            guards::held_back(rotation, before, now),
            guards::unmarked_workers(rotation, before),
        ];
        for why in reasons.into_iter().flatten() {
            message = format!("{message}; {why}");
        }
        say(plan, state.stage.as_str(), message);
        return false;
    }
    let done = format!("{}/{}", state.name, state.stage);
    let pools = rotation
        .pools
        .iter()
        .filter(|(_, replaced)| replaced.as_ref() != Some(&done));
    let pools: Vec<&str> = pools.map(|(name, _)| name.as_str()).collect();
    if !pools.is_empty() {
        let message = format!(
            "Instances of MachinePools {} are to be replaced: do so, then annotate them with {REPLACED_FOR}={done}",
            listed(&pools)
        );
        say(plan, state.stage.as_str(), message);
        return false;
    }
    true
}

/// A stage has reached everything.
fn next(facts: &Facts, rotation: &Rotation, state: &State, now: &Moment, plan: &mut Plan) {
    let to = match state.stage {
        RotationStage::Preparing => {
            kubeconfig(facts, rotation, state, true, plan);
            let completing = facts.control_plane.annotations.get(COMPLETE);
            if completing != Some(&state.name) {
                let message = format!(
                    "All machines trust the old and the new authorities. Fetch kubeconfigs again, then annotate the control plane with \
                     {COMPLETE}={}",
                    state.name
                );
                say(plan, "Prepared", message);
                return;
            }
            if let Some(why) = guards::untrusting_kubeconfig(facts, rotation) {
                say(plan, "Prepared", why);
                return;
            }
            RotationStage::Completing
        }
        RotationStage::Completing | RotationStage::Renewing => {
            let lifetime = match facts.control_plane.token_lifetime() {
                Ok(lifetime) => SignedDuration::try_from(lifetime).unwrap_or(SignedDuration::MAX),
                Err(why) => {
                    say(plan, state.stage.as_str(), why);
                    return;
                }
            };
            let end = state.workers.unwrap_or(state.since).saturating_add(lifetime);
            let end = end.unwrap_or(Timestamp::MAX);
            if !now.reached(end) {
                let message = format!("Tokens of service accounts that the old key signed may live until {end}");
                say(plan, state.stage.as_str(), message);
                return;
            }
            if let Some(why) = guards::outdated_kubeconfig(facts, rotation) {
                say(plan, state.stage.as_str(), why);
                return;
            }
            RotationStage::Dropping
        }
        RotationStage::Dropping => return,
    };
    enter(rotation, state, to, now, plan);
}

fn enter(rotation: &Rotation, state: &State, to: RotationStage, now: &Moment, plan: &mut Plan) {
    plan.notes.push(Note::event(
        EventType::Normal,
        ROTATING,
        format!("Rotation {} of the authorities enters stage {to}", state.name),
    ));
    change_all(rotation, &state.name, Some(to), now, plan);
    say(plan, to.as_str(), "Authorities change".to_owned());
}

fn signs_new(state: &State) -> bool {
    state.stage > RotationStage::Preparing
}

/// Begins what a user asks for, once nothing else is under way.
fn start(facts: &Facts, rotation: &Rotation, health: &Health, now: &Moment, plan: &mut Plan) {
    const WAITING: &str = "Waiting";
    let Some(name) = facts.control_plane.rotation_asked() else {
        return;
    };
    let broken = rotating(rotation).find_map(|one| Some(format!("{}: {}", secret(facts, one), cannot_start(one)?)));
    let missing = facts
        .certificates
        .iter()
        .any(|one| one.can_generate && one.secret.found().is_none());
    if let Some(why) = broken.or_else(|| facts.control_plane.token_lifetime().err()) {
        say(plan, WAITING, why.clone());
        plan.warn(ROTATING, why);
    } else if missing {
        say(plan, WAITING, "Waiting for the Secrets of all authorities".to_owned());
    } else if is_ready(facts, health) {
        plan.notes.push(Note::event(
            EventType::Normal,
            ROTATING,
            format!("Rotation {name} of the authorities begins"),
        ));
        change_all(rotation, name, Some(RotationStage::Preparing), now, plan);
        say(plan, RotationStage::Preparing.as_str(), "Authorities change".to_owned());
    } else {
        say(plan, WAITING, "Waiting for the control plane to be at rest".to_owned());
    }
}

/// Why an authority cannot be rotated.
fn cannot_start(authority: &Authority) -> Option<String> {
    if let Some(why) = &authority.broken {
        return Some(why.clone());
    }
    if authority.trusted.len() > 1 {
        return Some(format!(
            "tls.crt has {} certificates already, of which {ROTATE} rotates only one; leave the first one, which signs, once nothing relies on \
             the others",
            authority.trusted.len()
        ));
    }
    (authority.next.is_none() && !authority.is_ours).then(|| {
        format!(
            "it is not of this control plane, so no new pair is made for it; put one into {NEXT_CRT} and {NEXT_KEY}, or take {ROTATE} \
             off"
        )
    })
}

fn advance_one(authority: &Authority, state: &State, now: &Moment, plan: &mut Plan) -> Result<(), String> {
    let possible = match state.stage {
        RotationStage::Preparing => cannot_start(authority).is_none(),
        RotationStage::Completing => stage(authority) == Some(RotationStage::Preparing) && authority.next.is_some(),
        RotationStage::Renewing => stage(authority) == Some(RotationStage::Completing),
        RotationStage::Dropping => {
            let before = [Some(RotationStage::Completing), Some(RotationStage::Renewing)];
            before.contains(&stage(authority))
        }
    };
    if !possible {
        return Err(format!(
            "the Secret of authority {} is not part of rotation {}, which is in stage {}: it was replaced or restored; bring its state \
             of before back, or delete the annotations {ROTATION}* from the Secrets of all authorities: that ends the rotation, and all \
             certificates there stay trusted",
            authority.purpose.suffix(),
            state.name,
            state.stage
        ));
    }
    plan.push(change(authority, &state.name, Some(state.stage), now));
    Ok(())
}

fn change_all(rotation: &Rotation, name: &str, to: Option<RotationStage>, now: &Moment, plan: &mut Plan) {
    let affected = rotating(rotation).filter(|one| to.is_some() || one.state.is_some());
    plan.actions.extend(affected.map(|one| change(one, name, to, now)));
}

fn change(authority: &Authority, name: &str, to: Option<RotationStage>, now: &Moment) -> Action {
    Action::StageAuthority(Box::new(StageChange {
        purpose: authority.purpose,
        uid: authority.uid.clone(),
        resource_version: authority.resource_version.clone(),
        name: name.to_owned(),
        to,
        since: whole_second(now.now()),
        makes_pair: to == Some(RotationStage::Preparing) && authority.next.is_none(),
        keeps_next: to.is_none() && !authority.is_ours,
    }))
}

/// What machines that join must trust. Returns whether it is known to be right when the plan has been carried out.
fn cluster_info(
    facts: &Facts,
    rotation: &Rotation,
    alone: bool,
    state: &State,
    plan: &mut Plan,
    question: &mut Question,
) -> bool {
    let Some(authority) = rotation.authority(Purpose::ClusterCa) else {
        return true;
    };
    let authorities = if alone {
        authority.signer().to_owned()
    } else {
        authority.bundle()
    };
    if facts.reached().is_none() {
        say(
            plan,
            state.stage.as_str(),
            "Waiting for the workload cluster to be reached".to_owned(),
        );
        return false;
    }
    match &facts.answers.cluster_info {
        None => {
            question.cluster_info = true;
            true
        }
        // Machines of this cluster join in another way.
        Some(Seen::NotFound) => true,
        Some(Seen::Found(text)) => {
            let is_known = blocks(text).is_ok_and(|blocks| blocks.concat() == authorities);
            let change = Action::Workload(WorkloadChange::ClusterInfo { authorities });
            if !is_known && !plan.actions.contains(&change) {
                plan.actions
                    .retain(|action| !matches!(action, Action::Workload(WorkloadChange::ClusterInfo { .. })));
                plan.push(change);
            }
            true
        }
        Some(Seen::Failed(why)) => {
            let message = format!("ConfigMap kube-public/cluster-info cannot be read: {why}");
            say(plan, state.stage.as_str(), message);
            plan.again_within(TROUBLED);
            false
        }
    }
}

/// The administrator's kubeconfig of a stage. It is `prepared` when all API servers know clients of the next authority.
fn kubeconfig(facts: &Facts, rotation: &Rotation, state: &State, prepared: bool, plan: &mut Plan) {
    let (Some(authority), Kubeconfig::Found { secret, server, .. }) =
        (rotation.authority(Purpose::ClusterCa), &facts.kubeconfig)
    else {
        return;
    };
    let (Control::Ours, Some(server)) = (secret.control, server) else {
        return;
    };
    let keeps = facts.control_plane.keeps(state);
    let authorities = if keeps {
        authority.bundle()
    } else {
        authority.signer().to_owned()
    };
    let wanted = |signer: &str| {
        mark(
            "",
            [
                (Purpose::ClusterCa, authorities.as_str()),
                (Purpose::Kubeconfig, signer),
            ],
        )
    };
    let next = authority.next.as_deref().filter(|_| keeps);
    let (signer, wanted, also) = match next {
        Some(next) if prepared => (Signer::Next, wanted(next), None),
        next => (Signer::Current, wanted(authority.signer()), next.map(wanted)),
    };
    let is_known = |mark: &String| *mark == wanted || also.as_ref() == Some(mark);
    if !rotation.kubeconfig.as_ref().is_some_and(is_known) {
        plan.push(Action::RotateKubeconfig(Box::new(RotatedKubeconfig {
            server: server.clone(),
            authorities,
            signer,
            mark: wanted,
        })));
    }
}

/// What the control plane still has to do in a stage.
fn control_plane_left(facts: &Facts, rotation: &Rotation) -> String {
    let left = facts.machines.iter().filter(|machine| rotation.is_outdated(machine));
    let left: Vec<&str> = left.map(|machine| machine.name.as_str()).collect();
    match left.as_slice() {
        [] => "Waiting for the control plane to be at rest".to_owned(),
        left => format!("Control plane Machines {} are to be replaced", listed(left)),
    }
}

/// All Machines of the control plane are there, as asked for and healthy.
fn is_ready(facts: &Facts, health: &Health) -> bool {
    facts.initialized()
        && facts.reached().is_some()
        && !facts.machines.is_empty()
        && facts.unowned.is_empty()
        && addons::at_rest(facts)
        && rollout::outdated(health).is_empty()
        && settled(health)
}

fn under_way(facts: &Facts) -> Option<(&Rotation, &State)> {
    let rotation = facts.rotation.as_ref()?;
    Some((rotation, rotation.state()?))
}

fn rotating(rotation: &Rotation) -> impl Iterator<Item = &Authority> {
    rotation.authorities.iter().filter(|authority| authority.rotates)
}

fn stage(authority: &Authority) -> Option<RotationStage> {
    authority.state.as_ref().map(|state| state.stage)
}

fn secret(facts: &Facts, authority: &Authority) -> String {
    let name = authority.purpose.secret_name(&facts.cluster.name);
    format!("Secret {}/{name}", facts.control_plane.namespace)
}

fn say(plan: &mut Plan, reason: &'static str, message: String) {
    plan.rotation = Some(Progress { reason, message });
}

fn whole_second(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap_or(at)
}

fn whole_second_after(at: Timestamp) -> Timestamp {
    let later = at.saturating_add(SignedDuration::from_secs(1));
    whole_second(later.unwrap_or(at))
}
