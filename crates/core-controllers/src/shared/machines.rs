//! Facts about Machines that several controllers ask for.

use std::sync::Arc;

use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use windlass_api::Condition;
use windlass_api::core::{Machine, StatusVersion, V1Beta1Condition};
use windlass_api::kind::ApiKind as _;
use windlass_api::meta::MetaExt as _;
pub(crate) use windlass_api::owner::controller_of as controller;
use windlass_api::{owner, versions};
use windlass_conditions::Going;
use windlass_meta::Moment;

use crate::shared::deletion_order::DeletionClass;
use crate::shared::in_place;
use crate::shared::keys::{annotations, conditions};
use crate::shared::numbers::len_i32;
use crate::shared::templates;

/// How long a Machine may be without an UpToDate condition before that counts.
const GRACE: SignedDuration = SignedDuration::from_secs(10);

/// Whether the object with this uid controls the object.
pub(crate) fn controlled_by(meta: &ObjectMeta, owner: &str) -> bool {
    owner::is_controlled_by(meta, owner)
}

/// An owner reference to an object of the core group.
pub(crate) fn owner_reference(kind: &str, meta: &ObjectMeta, controls: bool) -> OwnerReference {
    let make = if controls { owner::controller } else { owner::reference };
    make(Machine::API_VERSION, kind, meta.name(), meta.uid())
}

pub(crate) fn conditions_of(machine: &Machine) -> &[Condition] {
    machine.status.as_ref().map_or(&[], |status| &status.conditions)
}

pub(crate) fn condition<'a>(machine: &'a Machine, type_: &str) -> Option<&'a Condition> {
    windlass_conditions::get(conditions_of(machine), type_)
}

pub(crate) fn is(machine: &Machine, type_: &str, status: &str) -> bool {
    condition(machine, type_).is_some_and(|condition| condition.status == status)
}

pub(crate) fn is_true(machine: &Machine, type_: &str) -> bool {
    is(machine, type_, "True")
}

pub(crate) fn legacy_conditions(machine: &Machine) -> &[V1Beta1Condition] {
    let deprecated = machine.status.as_ref().and_then(|status| status.deprecated.as_ref());
    deprecated
        .and_then(|deprecated| deprecated.v1beta1.as_ref())
        .map_or(&[], |old| &old.conditions)
}

/// A health check found the Machine unhealthy.
pub(crate) fn is_unhealthy(machine: &Machine) -> bool {
    is(machine, conditions::HEALTH_CHECK_SUCCEEDED, "False")
}

/// The Machine is unhealthy and its owner was asked to replace it.
pub(crate) fn is_to_be_remediated(machine: &Machine) -> bool {
    is_unhealthy(machine) && is(machine, conditions::OWNER_REMEDIATED, "False")
}

/// The Machine counts as one that can be used.
pub(crate) fn counts_as_available(machine: &Machine) -> bool {
    !machine.metadata.is_deleting() && is_true(machine, conditions::AVAILABLE)
}

pub(crate) fn deletion_class(machine: &Machine) -> DeletionClass {
    let no_node = machine.status.as_ref().is_none_or(|status| status.node_ref.is_none());
    if machine.metadata.is_deleting() {
        DeletionClass::Deleting
    } else if machine.metadata.has_annotation(annotations::DELETE_MACHINE) {
        DeletionClass::Annotated
    } else if in_place::is_under_way(machine) {
        DeletionClass::Updating
    } else if no_node || is_unhealthy(machine) || is(machine, conditions::NODE_HEALTHY, "False") {
        DeletionClass::Unhealthy
    } else {
        DeletionClass::Ordinary
    }
}

/// Counts of a group of Machines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) replicas: i32,
    pub(crate) ready: i32,
    pub(crate) available: i32,
    pub(crate) up_to_date: i32,
    pub(crate) legacy_ready: i32,
    pub(crate) legacy_available: i32,
}

pub(crate) fn counts(machines: &[Arc<Machine>]) -> Counts {
    let number = |test: &dyn Fn(&Machine) -> bool| len_i32(machines.iter().filter(|machine| test(machine)).count());
    // Its own conditions say so a moment later.
    let has = |machine: &Machine, type_: &str| is_true(machine, type_) && !in_place::is_under_way(machine);
    let node_ready = |machine: &Machine| is_true(machine, conditions::NODE_READY) && !machine.metadata.is_deleting();
    Counts {
        replicas: number(&|_| true),
        ready: number(&|machine| has(machine, conditions::READY)),
        available: number(&|machine| has(machine, conditions::AVAILABLE)),
        up_to_date: number(&|machine| has(machine, conditions::UP_TO_DATE)),
        legacy_ready: number(&node_ready),
        legacy_available: number(&|machine| {
            let at_once = machine.spec.min_ready_seconds.unwrap_or(0) == 0;
            node_ready(machine) && (at_once || is_true(machine, conditions::AVAILABLE))
        }),
    }
}

/// The versions of Machines for `status.versions`. Builds without an order follow the age of their Machines.
pub(crate) fn versions<'a>(machines: impl Iterator<Item = &'a Machine>) -> Vec<StatusVersion> {
    let mut machines: Vec<&Machine> = machines.collect();
    machines.sort_by_key(|machine| (machine.metadata.created(), &machine.metadata.name));
    versions::added_up(machines.into_iter().filter_map(|machine| {
        let info = machine.status.as_ref().and_then(|status| status.node_info.as_ref());
        let wanted = machine.spec.version.as_deref().map(templates::with_v);
        versions::of_machine(info.map(|info| info.kubelet_version.as_str()), wanted.as_deref())
    }))
}

/// Machines whose UpToDate condition is worth looking at: those just created have none yet.
pub(crate) fn with_known_age(machines: &[Arc<Machine>], now: &Moment) -> Vec<Arc<Machine>> {
    let known = |machine: &&Arc<Machine>| is_age_known(machine, now);
    machines.iter().filter(known).cloned().collect()
}

/// Whether a Machine has a condition UpToDate, or is old enough to have one.
pub(crate) fn is_age_known(machine: &Machine, now: &Moment) -> bool {
    condition(machine, conditions::UP_TO_DATE).is_some() || now.elapsed(machine.metadata.created(), GRACE)
}

/// A line about Machines whose deletion takes long, with what their Deleting condition says about it.
pub(crate) fn slow_deletions(machines: &[Arc<Machine>], now: &Moment) -> Option<String> {
    let going = machines.iter().map(|machine| Going {
        name: machine.metadata.name(),
        since: machine.metadata.deletion_timestamp.as_ref().map(|since| since.0),
        deleting: condition(machine, conditions::DELETING),
    });
    windlass_conditions::slow_deletions(going, now).map(|line| format!("* {line}"))
}
