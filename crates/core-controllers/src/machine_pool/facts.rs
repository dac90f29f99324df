//! Facts about a MachinePool that follow from what was read: shared by what is read next, the plan and the status. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use windlass_api::core::{Machine, MachinePool, MachinePoolInitializationStatus};
use windlass_api::k8s::Node;
use windlass_api::meta::MetaExt as _;
use windlass_api::{labels, owner};
use windlass_contract::{bootstrap, infra_machine_pool};
use windlass_controller_runtime::owner::controller_ref;
use windlass_controller_runtime::{Moment, Seen};
use windlass_meta::label_or_hash;

use super::observe::Observed;
use crate::shared::machines::controller;
use crate::shared::read::Referenced;

/// The provider ID of a Node.
pub(super) fn provider_id(node: &Node) -> Option<&str> {
    let id = node.spec.as_ref()?.provider_id.as_deref();
    id.filter(|id| !id.is_empty())
}

/// The name of the Secret with the bootstrap data, once there is one.
pub(super) fn data_secret_name(seen: &Observed) -> Option<String> {
    let own = seen.pool.spec.template.spec.bootstrap.data_secret_name.clone();
    let object = usable(seen.bootstrap.as_ref());
    let created = object.filter(|object| bootstrap::data_secret_created(object.value(), object.contract));
    let name = created.and_then(|object| bootstrap::data_secret_name(object.value()));
    name.map(str::to_owned).or(own)
}

/// Whether the bootstrap data exists. What cannot be read, or is going, leaves it as it was.
pub(super) fn is_bootstrapped(seen: &Observed) -> bool {
    match &seen.bootstrap {
        None => seen.pool.spec.template.spec.bootstrap.data_secret_name.is_some(),
        Some(Seen::Found(object)) if !object.is_deleting() => {
            bootstrap::data_secret_created(object.value(), object.contract)
        }
        Some(_) => was(seen, |done| done.bootstrap_data_secret_created),
    }
}

/// Whether the infrastructure is provisioned. What cannot be read, is missing or is going leaves it as it was.
pub(super) fn is_provisioned(seen: &Observed) -> bool {
    match &seen.infrastructure {
        Seen::Found(object) if !object.is_deleting() => {
            infra_machine_pool::provisioned(object.value(), object.contract)
        }
        _ => was(seen, |done| done.infrastructure_provisioned),
    }
}

/// Whether the pool has been provisioned before.
pub(super) fn was_provisioned(seen: &Observed) -> bool {
    was(seen, |done| done.infrastructure_provisioned)
}

fn was(seen: &Observed, milestone: fn(&MachinePoolInitializationStatus) -> Option<bool>) -> bool {
    let status = seen.pool.status.as_ref();
    let done = status.and_then(|status| status.initialization.as_ref());
    done.and_then(milestone) == Some(true)
}

/// The infrastructure object when something may be taken over from it: it is there to stay, and provisioned.
pub(super) fn usable_infrastructure(seen: &Observed) -> Option<&Referenced> {
    usable(Some(&seen.infrastructure)).filter(|_| is_provisioned(seen))
}

fn usable(object: Option<&Seen<Referenced>>) -> Option<&Referenced> {
    object.and_then(Seen::found).filter(|object| !object.is_deleting())
}

/// The number of machines that the infrastructure reports. What was reported before stays until there is another number.
pub(super) fn replicas(seen: &Observed) -> Option<i32> {
    let reported = usable_infrastructure(seen).and_then(|object| infra_machine_pool::replicas(object.value()));
    let before = seen.pool.status.as_ref().and_then(|status| status.replicas);
    reported.or(before)
}

/// The provider IDs of the pool. A provider that lists none has not listed them yet, unless it says that there are no machines.
pub(super) fn provider_ids(seen: &Observed) -> Vec<String> {
    let listed = usable_infrastructure(seen).and_then(|object| {
        let ids = infra_machine_pool::provider_ids(object.value())?;
        let is_empty = infra_machine_pool::replicas(object.value()) == Some(0);
        (is_empty || !ids.is_empty()).then_some(ids)
    });
    listed.unwrap_or_else(|| seen.pool.spec.provider_id_list.clone())
}

/// Whether there is an object, and so a Machine, for each machine.
pub(super) fn has_machines(seen: &Observed) -> bool {
    seen.hosts.is_some()
}

/// Whether an owner is the pool as it was before a restore: the uid is another one.
pub(super) fn is_former(owner: &OwnerReference, pool: &MachinePool) -> bool {
    let want = controller_ref(pool);
    owner::is_same(owner, &want) && owner.uid != want.uid
}

/// The Machines that count: those that no other object controls.
pub(super) fn own_machines(seen: &Observed) -> impl Iterator<Item = &Arc<Machine>> {
    let uid = seen.pool.metadata.uid();
    let label = label_or_hash(seen.pool.metadata.name());
    seen.machines.iter().filter(move |machine| {
        let meta = &machine.metadata;
        match controller(meta) {
            Some(owner) => owner.uid == uid || is_former(owner, &seen.pool),
            None => meta.label(labels::MACHINE_POOL_NAME) == Some(label.as_str()),
        }
    })
}

/// The Nodes by provider ID; `None` while the workload cluster does not answer. Nothing follows from the absence of one alone.
pub(super) fn nodes_by_id(seen: &Observed) -> Option<BTreeMap<&str, &Arc<Node>>> {
    let known = seen.nodes.up()?.values();
    Some(known.filter_map(|node| Some((provider_id(node)?, node))).collect())
}

/// The Nodes of the machines in the order of the provider IDs; `None` while the workload cluster does not answer.
pub(super) fn nodes(seen: &Observed) -> Option<Vec<&Arc<Node>>> {
    let by_id = nodes_by_id(seen)?;
    let ids = provider_ids(seen);
    Some(ids.iter().filter_map(|id| by_id.get(id.as_str()).copied()).collect())
}

/// The Nodes that the status still names and whose machine is gone: their provider ID is no longer listed. A Node that was registered again is
/// another one, and one without a provider ID may be anyone's.
pub(super) fn retired(seen: &Observed) -> Vec<&Arc<Node>> {
    let ids = provider_ids(seen);
    let ids: BTreeSet<&str> = ids.iter().map(String::as_str).collect();
    named(seen)
        .filter(|node| provider_id(node).is_some_and(|id| !ids.contains(id)))
        .collect()
}

/// The Nodes that the status names, as long as they are the same; none while the workload cluster does not answer.
pub(super) fn named(seen: &Observed) -> impl Iterator<Item = &Arc<Node>> {
    let status = seen.pool.status.as_ref();
    let references = status.into_iter().flat_map(|status| &status.node_refs);
    references.filter_map(|reference| {
        let node = seen.nodes.up()?.get(reference.name.as_deref()?)?;
        (reference.uid.is_none() || reference.uid == node.metadata.uid).then_some(node)
    })
}

/// How many of the Nodes are ready, and how many have been for `minReadySeconds`.
pub(super) fn ready_and_available(seen: &Observed, nodes: &[&Arc<Node>], now: &Moment) -> (usize, usize) {
    let least = seen.pool.spec.template.spec.min_ready_seconds.unwrap_or_default();
    let ready_since = nodes.iter().filter_map(|node| {
        let conditions = node.status.as_ref()?.conditions.as_ref()?;
        let ready = conditions.iter().find(|condition| condition.type_ == "Ready")?;
        (ready.status == "True").then_some(ready.last_transition_time.as_ref())
    });
    let (mut ready, mut available) = (0, 0);
    for since in ready_since {
        ready += 1;
        let limit = SignedDuration::from_secs(i64::from(least));
        let is_available = least == 0 || since.is_some_and(|since| now.elapsed(since.0, limit));
        available += usize::from(is_available);
    }
    (ready, available)
}
