//! Rollouts without replacement: an old MachineSet gives its Machines to the new one, where they are updated, if an extension can make every
//! change (the hook CanUpdateMachineSet of the Runtime SDK). The MachineSets do the moves; annotations of Cluster API tell them which.
//!
//! A Machine on its way counts once: its new set gets a replica more when the move is acknowledged, and the set it has left lost one before.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use serde_json::Value;
use windlass_api::codec::Stored as _;
use windlass_api::core::{ContractVersionedObjectReference, MachineDeployment, MachineSet};
use windlass_api::meta::MetaExt as _;
use windlass_controller_runtime::{Cx, Dynamic, Moment, Seen};
use windlass_runtime_client::in_place::{self, InPlace, NO_EXTENSION, left_of_machine};
use windlass_runtime_client::{About, Extensions, Handler};
use windlass_runtime_hooks::in_place::{
    CanUpdateMachineSet, CanUpdateMachineSetRequest, CanUpdateMachineSetResponse, MachineSetObjects,
};

use crate::machine_deployment::observed::Observed;
use crate::machine_deployment::plan_rollout::World;
use crate::shared::in_place::{acknowledged, is_arriving, join, shown, shown_object};
use crate::shared::keys::annotations::{
    ACKNOWLEDGED_MOVE, MOVE_MACHINES_TO_MACHINE_SET, RECEIVE_MACHINES_FROM_MACHINE_SETS,
};
use crate::shared::{read, templates};

/// The part of a MachineSet, or of a template, that an extension can change.
const PART: &str = "/spec/template/spec";

/// A fact that the plan asks for: which old sets an extension can turn into the new one.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// The new set, as it is planned.
    pub new: Box<MachineSet>,
    /// The old sets in question.
    pub old: Vec<Arc<MachineSet>>,
}

/// Which sets give Machines to the new one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Moves {
    /// These.
    Of(BTreeSet<String>),
    /// Nothing is decided: what has been, stays.
    AsBefore,
}

/// The old sets whose Machines may be updated in place as far as the deployment goes.
pub(super) fn candidates(
    seen: &Observed,
    new: Option<&Arc<MachineSet>>,
    world: &World,
    now: &Moment,
) -> Vec<Arc<MachineSet>> {
    let deployment = &seen.deployment;
    if world.new.replicas >= world.replicas {
        return Vec::new();
    }
    let rollout = deployment.spec.rollout.as_ref();
    let after = rollout.and_then(|rollout| rollout.after.as_ref()).map(|time| time.0);
    let after = after.filter(|after| now.reached(*after));
    let may = |set: &&Arc<MachineSet>| {
        let is_new = new.is_some_and(|new| new.metadata.uid == set.metadata.uid);
        let has_machines = world
            .old
            .iter()
            .any(|old| old.name == set.metadata.name() && old.have > 0);
        // A user who sets rollout.after wants Machines replaced.
        let is_expired = after.is_some_and(|after| set.metadata.created() < after);
        !is_new
            && has_machines
            && !is_expired
            && !set.metadata.is_deleting()
            && !templates::same_machines(&set.spec.template, &deployment.spec.template)
            && has_same_kinds(set, deployment)
    };
    seen.sets.iter().filter(may).cloned().collect()
}

/// An object cannot become one of another kind.
fn has_same_kinds(set: &MachineSet, deployment: &MachineDeployment) -> bool {
    let (have, want) = (&set.spec.template.spec, &deployment.spec.template.spec);
    let kind = |reference: &ContractVersionedObjectReference| (reference.api_group.clone(), reference.kind.clone());
    let bootstrap = |config: &Option<ContractVersionedObjectReference>| config.as_ref().map(kind);
    kind(&have.infrastructure_ref) == kind(&want.infrastructure_ref)
        && bootstrap(&have.bootstrap.config_ref) == bootstrap(&want.bootstrap.config_ref)
}

/// The Machines of a set that have come from another one, by name, and how many of them are not counted in its replicas yet.
pub(super) fn arrivals(seen: &Observed, set: &MachineSet) -> (Vec<String>, usize) {
    let machines = seen.machines_of(set).iter().filter(|machine| is_arriving(machine));
    let mut names: Vec<String> = machines.map(|machine| machine.metadata.name().to_owned()).collect();
    names.sort_unstable();
    let before = acknowledged(set);
    let fresh = names.iter().filter(|name| !before.contains(name.as_str())).count();
    (names, fresh)
}

/// Marks the new set: where its Machines come from, and which of them are counted.
pub(super) fn mark_new(set: &mut MachineSet, have: Option<&MachineSet>, arrivals: &[String], moves: &Moves) {
    let from = match moves {
        Moves::Of(sets) => join(sets.iter().map(String::as_str)),
        Moves::AsBefore => as_before(have, RECEIVE_MACHINES_FROM_MACHINE_SETS),
    };
    annotate(set, RECEIVE_MACHINES_FROM_MACHINE_SETS, from);
    annotate(set, ACKNOWLEDGED_MOVE, join(arrivals.iter().map(String::as_str)));
}

/// Marks an old set: where its Machines go to. One that was the new set a moment ago may have Machines that have just come.
pub(super) fn mark_old(set: &mut MachineSet, have: &MachineSet, new: &str, arrivals: &[String], moves: &Moves) {
    if *moves == Moves::AsBefore {
        let from = as_before(Some(have), RECEIVE_MACHINES_FROM_MACHINE_SETS);
        annotate(set, RECEIVE_MACHINES_FROM_MACHINE_SETS, from);
    }
    annotate(set, ACKNOWLEDGED_MOVE, join(arrivals.iter().map(String::as_str)));
    let to = match moves {
        Moves::Of(sets) if sets.contains(have.metadata.name()) => new.to_owned(),
        Moves::Of(_) => String::new(),
        Moves::AsBefore => as_before(Some(have), MOVE_MACHINES_TO_MACHINE_SET),
    };
    annotate(set, MOVE_MACHINES_TO_MACHINE_SET, to);
}

fn as_before(have: Option<&MachineSet>, key: &str) -> String {
    let value = have.and_then(|have| have.metadata.annotation(key));
    value.unwrap_or_default().to_owned()
}

fn annotate(set: &mut MachineSet, key: &str, value: String) {
    if !value.is_empty() {
        let all = set.metadata.annotations.get_or_insert_default();
        all.insert(key.to_owned(), value);
    }
}

/// Asks the extension about each of the old sets.
pub(super) async fn ask(cx: &Cx, extensions: &Extensions, mut seen: Observed, question: Question) -> Observed {
    let namespace = seen.deployment.metadata.namespace();
    let handlers = extensions.handlers::<CanUpdateMachineSet>(namespace).await;
    let handlers = handlers.map_err(|error| error.to_string());
    let mut answers = BTreeMap::new();
    for old in &question.old {
        let answer = match &handlers {
            // The templates do not matter.
            Ok(none) if none.is_empty() => InPlace::Impossible(NO_EXTENSION.to_owned()),
            Ok(handlers) => {
                let asked = asked(cx, &seen, old, &question.new).await;
                match asked {
                    Ok(request) => can(extensions, handlers, old, &request).await,
                    Err(answer) => answer,
                }
            }
            Err(why) => InPlace::Unknown(why.clone()),
        };
        let is_unknown = matches!(answer, InPlace::Unknown(_));
        answers.insert(old.metadata.name().to_owned(), answer);
        if is_unknown {
            // The rollout waits for it anyway: an extension that does not answer costs one time-out, not one for each set.
            break;
        }
    }
    seen.in_place = Some(answers);
    seen
}

async fn can(
    extensions: &Extensions,
    handlers: &[Handler],
    old: &MachineSet,
    request: &CanUpdateMachineSetRequest,
) -> InPlace {
    let (have, want) = (&request.current, &request.desired);
    let about = About {
        uid: old.metadata.uid().to_owned(),
        version: version(have, want),
    };
    let left = |answer: &CanUpdateMachineSetResponse| {
        let set = (have.machine_set.to_json(), want.machine_set.to_json());
        let mut left = left_of_machine(&set.0, answer.machine_set_patch.as_ref(), &set.1, PART)?;
        let patch = answer.bootstrap_config_template_patch.as_ref();
        left.extend(in_place::left(
            &have.bootstrap_config_template,
            patch,
            &want.bootstrap_config_template,
            PART,
        )?);
        let patch = answer.infrastructure_machine_template_patch.as_ref();
        let (have, want) = (
            &have.infrastructure_machine_template,
            &want.infrastructure_machine_template,
        );
        left.extend(in_place::left(have, patch, want, PART)?);
        Ok(left)
    };
    extensions
        .can::<CanUpdateMachineSet>(handlers, &about, request, left)
        .await
}

/// What the extension is asked, or the answer that follows without it.
async fn asked(
    cx: &Cx,
    seen: &Observed,
    old: &MachineSet,
    new: &MachineSet,
) -> Result<CanUpdateMachineSetRequest, InPlace> {
    let spec = &old.spec.template.spec;
    let namespace = old.metadata.namespace();
    let bootstrap = match &spec.bootstrap.config_ref {
        Some(reference) => Some(read::object(cx, namespace, reference).await),
        None => None,
    };
    let infrastructure = read::object(cx, namespace, &spec.infrastructure_ref).await;
    let current = objects(old, &infrastructure, bootstrap.as_ref()).map_err(InPlace::Unknown)?;
    let desired = objects(new, &seen.infrastructure_template, seen.bootstrap_template.as_ref());
    let Some(desired) = desired.map_err(InPlace::Unknown)? else {
        return Err(InPlace::Unknown(
            "a template of the new MachineSet does not exist".to_owned(),
        ));
    };
    let Some(current) = current else {
        let why = "a template of the old MachineSet does not exist any more".to_owned();
        // What is about to move is not deleted because of that.
        let is_moving = old.metadata.has_annotation(MOVE_MACHINES_TO_MACHINE_SET);
        return Err(if is_moving {
            InPlace::Unknown(why)
        } else {
            InPlace::Impossible(why)
        });
    };
    Ok(CanUpdateMachineSetRequest {
        current,
        desired,
        ..CanUpdateMachineSetRequest::default()
    })
}

/// A set and its templates as the extension sees them. `None` when a template is gone.
fn objects(
    set: &MachineSet,
    infrastructure: &Seen<Arc<Dynamic>>,
    bootstrap: Option<&Seen<Arc<Dynamic>>>,
) -> Result<Option<MachineSetObjects>, String> {
    let template = |read: &Seen<Arc<Dynamic>>| match read {
        Seen::Found(object) => Ok(Some(shown_object(object))),
        Seen::NotFound => Ok(None),
        Seen::Failed(why) => Err(why.clone()),
    };
    let Some(infrastructure_machine_template) = template(infrastructure)? else {
        return Ok(None);
    };
    let bootstrap_config_template = match bootstrap.map(template).transpose()? {
        None => Value::Null,
        Some(Some(found)) => found,
        Some(None) => return Ok(None),
    };
    Ok(Some(MachineSetObjects {
        machine_set: MachineSet {
            metadata: shown(&set.metadata),
            spec: set.spec.clone(),
            status: None,
        },
        infrastructure_machine_template,
        bootstrap_config_template,
    }))
}

/// Changes with what is asked. The replicas and annotations of the sets change with every step of a rollout, and are not a part of it.
fn version(current: &MachineSetObjects, desired: &MachineSetObjects) -> u64 {
    let mut hasher = DefaultHasher::new();
    for side in [current, desired] {
        side.machine_set.metadata.name.hash(&mut hasher);
        let machine = &side.machine_set.spec.template.spec;
        (&machine.version, &machine.failure_domain).hash(&mut hasher);
        side.infrastructure_machine_template.to_string().hash(&mut hasher);
        side.bootstrap_config_template.to_string().hash(&mut hasher);
    }
    hasher.finish()
}
