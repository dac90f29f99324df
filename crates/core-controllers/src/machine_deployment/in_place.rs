//! Rollouts without replacement: an old MachineSet gives its Machines to the new one, where they are updated, if an extension can make every
//! change (the hook CanUpdateMachineSet of the Runtime SDK). The MachineSets do the moves; annotations of Cluster API tell them which.
//!
//! A Machine on its way counts once: its new set gets a replica more when the move is acknowledged, and the set it has left lost one before.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use serde_json::{Value, json};
use windlass_api::codec::Stored as _;
use windlass_api::core::{ContractVersionedObjectReference, MachineDeployment, MachineSet};
use windlass_api::meta::MetaExt as _;
use windlass_controller_runtime::{Cx, Dynamic, Moment, Seen};
use windlass_runtime_client::{About, CAPABILITY_COUNTS_FOR, Extensions, in_place as promises};
use windlass_runtime_hooks::in_place::{CanUpdateMachineSet, CanUpdateMachineSetRequest, MachineSetObjects};

use crate::machine_deployment::observed::Observed;
use crate::machine_deployment::plan_rollout::World;
use crate::shared::in_place::{acknowledged, is_arriving, join, shown, shown_object};
use crate::shared::keys::annotations::{
    ACKNOWLEDGED_MOVE, MOVE_MACHINES_TO_MACHINE_SET, RECEIVE_MACHINES_FROM_MACHINE_SETS,
};
use crate::shared::{read, templates};

/// The part of a MachineSet, or of a template, that an extension can change.
const PART: &str = "/spec/template/spec";
/// The fields of a Machine that are compared. The references differ always, and the rest goes in place without an extension.
const COMPARED: [&str; 2] = ["version", "failureDomain"];

/// A fact that the plan asks for: which old sets an extension can turn into the new one.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// The new set, as it is planned.
    pub new: Box<MachineSet>,
    /// The old sets in question.
    pub old: Vec<Arc<MachineSet>>,
}

/// Whether the Machines of an old set can be updated in place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InPlace {
    /// An extension can make every change.
    Possible,
    /// No extension can: Machines are replaced.
    Impossible(String),
    /// This cannot be told.
    Unknown(String),
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
    let mut answers = BTreeMap::new();
    for old in &question.old {
        let answer = answer(cx, extensions, &seen, old, &question.new).await;
        let answer = answer.unwrap_or_else(InPlace::Unknown);
        answers.insert(old.metadata.name().to_owned(), answer);
    }
    seen.in_place = Some(answers);
    seen
}

async fn answer(
    cx: &Cx,
    extensions: &Extensions,
    seen: &Observed,
    old: &MachineSet,
    new: &MachineSet,
) -> Result<InPlace, String> {
    let namespace = old.metadata.namespace();
    let handlers = extensions.handlers::<CanUpdateMachineSet>(namespace).await;
    if handlers.map_err(|error| error.to_string())?.is_empty() {
        return Ok(InPlace::Impossible("no extension updates Machines in place".to_owned()));
    }
    let spec = &old.spec.template.spec;
    let bootstrap = match &spec.bootstrap.config_ref {
        Some(reference) => Some(read::object(cx, namespace, reference).await),
        None => None,
    };
    let infrastructure = read::object(cx, namespace, &spec.infrastructure_ref).await;
    let current = objects(old, &infrastructure, bootstrap.as_ref())?;
    let desired = objects(new, &seen.infrastructure_template, seen.bootstrap_template.as_ref())?;
    let Some(desired) = desired else {
        return Err("a template of the new MachineSet does not exist".to_owned());
    };
    let Some(current) = current else {
        let why = "a template of the old MachineSet does not exist any more";
        // What is about to move is not deleted because of that.
        return match old.metadata.annotation(MOVE_MACHINES_TO_MACHINE_SET) {
            Some(_) => Err(why.to_owned()),
            None => Ok(InPlace::Impossible(why.to_owned())),
        };
    };
    let about = About {
        uid: old.metadata.uid().to_owned(),
        version: version(&current, &desired),
    };
    let request = CanUpdateMachineSetRequest {
        current,
        desired,
        ..CanUpdateMachineSetRequest::default()
    };
    let keep = CAPABILITY_COUNTS_FOR;
    let answer = extensions
        .call_only::<CanUpdateMachineSet>(namespace, &about, &request, keep)
        .await;
    let Some(answer) = answer.map_err(|error| error.to_string())? else {
        return Ok(InPlace::Impossible("no extension updates Machines in place".to_owned()));
    };
    let (have, want) = (&request.current, &request.desired);
    let set = promises::patched(&have.machine_set.to_json(), answer.machine_set_patch.as_ref(), PART)?;
    let infrastructure = promises::patched(
        &have.infrastructure_machine_template,
        answer.infrastructure_machine_template_patch.as_ref(),
        PART,
    )?;
    let bootstrap = promises::patched(
        &have.bootstrap_config_template,
        answer.bootstrap_config_template_patch.as_ref(),
        PART,
    )?;
    let mut left = differences(&compared(&set), &compared(&want.machine_set.to_json()), "MachineSet");
    left.extend(differences(
        &bootstrap,
        &want.bootstrap_config_template,
        &kind_of(&bootstrap),
    ));
    left.extend(differences(
        &infrastructure,
        &want.infrastructure_machine_template,
        &kind_of(&infrastructure),
    ));
    if left.is_empty() {
        Ok(InPlace::Possible)
    } else {
        Ok(InPlace::Impossible(format!(
            "the extension does not change {}",
            left.join(", ")
        )))
    }
}

fn kind_of(object: &Value) -> String {
    object["kind"].as_str().unwrap_or_default().to_owned()
}

fn differences(have: &Value, want: &Value, kind: &str) -> Vec<String> {
    let paths = promises::differences(have, want, PART);
    paths.into_iter().map(|path| format!("{path} of {kind}")).collect()
}

/// A MachineSet with only what is compared. An empty text is the same as none.
fn compared(set: &Value) -> Value {
    let spec = &set["spec"]["template"]["spec"];
    let fields = COMPARED.map(|field| (field.to_owned(), json!(spec[field].as_str().unwrap_or_default())));
    let spec: Value = fields.into_iter().collect::<serde_json::Map<_, _>>().into();
    json!({ "spec": { "template": { "spec": spec } } })
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
        compared(&side.machine_set.to_json()).to_string().hash(&mut hasher);
        side.infrastructure_machine_template.to_string().hash(&mut hasher);
        side.bootstrap_config_template.to_string().hash(&mut hasher);
    }
    hasher.finish()
}
