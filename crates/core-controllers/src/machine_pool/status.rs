//! The status of a MachinePool: pure, computed after every attempt from what was seen and done.

mod legacy;

use std::sync::Arc;

use k8s_openapi::api::core::v1::ObjectReference;
use windlass_api::core::{
    Machine, MachinePool, MachinePoolDeprecatedStatus, MachinePoolInitializationStatus, MachinePoolStatus,
    StatusVersion,
};
use windlass_api::k8s::Node;
use windlass_api::kind::Conditioned as _;
use windlass_api::meta::MetaExt as _;
use windlass_api::{Condition, reasons, versions};
use windlass_conditions::{Builder, Draft};
use windlass_contract::{bootstrap, infra_machine_pool};
use windlass_controller_runtime::{Moment, Seen};

use super::apply::Done;
use super::facts;
use super::observe::Observed;
use super::plan::{NAME_TAKEN, Plan};
use crate::shared::guards;
use crate::shared::keys::{annotations, conditions};
use crate::shared::machines;
use crate::shared::mirrored::mirrored;
use crate::shared::numbers::len_i32;
use crate::shared::read::Referenced;

/// The status to be applied. While the workload cluster does not answer, what was known of the Nodes stays.
pub(super) fn status(seen: &Observed, plan: &Plan, done: &Done, now: &Moment) -> MachinePoolStatus {
    let pool = &*seen.pool;
    let before = pool.status.clone().unwrap_or_default();
    let nodes = Nodes::of(seen, done, now);
    let replicas = facts::replicas(seen);
    let counted = counted(seen, replicas, nodes.as_ref());
    let initialization = MachinePoolInitializationStatus {
        bootstrap_data_secret_created: Some(facts::is_bootstrapped(seen)),
        infrastructure_provisioned: Some(facts::is_provisioned(seen)),
    };
    let ready = match &nodes {
        Some(nodes) => nodes.ready,
        None => legacy::ready_replicas(&before),
    };
    let node_refs = match &nodes {
        Some(nodes) => nodes.references.clone(),
        None => before.node_refs.clone(),
    };
    let phase = phase(seen, &node_refs, ready);
    let old = legacy::status(seen, &before, nodes.as_ref(), replicas, now.now());
    MachinePoolStatus {
        available_replicas: counted.available,
        conditions: own_conditions(seen, plan, now),
        deprecated: Some(MachinePoolDeprecatedStatus { v1beta1: Some(old) }),
        initialization: Some(initialization),
        node_refs,
        observed_generation: pool.metadata.generation,
        phase: Some(phase.to_owned()),
        ready_replicas: counted.ready,
        replicas,
        up_to_date_replicas: counted.up_to_date,
        versions: counted.versions,
    }
}

/// What the Nodes of a pool tell.
struct Nodes {
    /// Those of the listed machines, and those that are still to be deleted.
    references: Vec<ObjectReference>,
    /// How many machines have a Node.
    found: i32,
    /// How many of these are ready.
    ready: i32,
    /// How many have been ready for `minReadySeconds`.
    available: i32,
    /// The versions of their kubelets.
    versions: Vec<StatusVersion>,
}

impl Nodes {
    /// `None` while the workload cluster does not answer.
    fn of(seen: &Observed, done: &Done, now: &Moment) -> Option<Self> {
        let nodes = facts::nodes(seen)?;
        let (ready, available) = facts::ready_and_available(seen, &nodes, now);
        // A Node whose deletion was refused is tried again, as long as the status names it.
        let retired = facts::retired(seen).into_iter();
        let left = retired.filter(|node| !done.deleted.contains(node.metadata.name()));
        let references = nodes.iter().copied().chain(left).map(reference);
        Some(Self {
            references: references.collect(),
            found: len_i32(nodes.len()),
            ready: len_i32(ready),
            available: len_i32(available),
            versions: versions::added_up(nodes.iter().filter_map(|node| {
                let info = node.status.as_ref()?.node_info.as_ref()?;
                versions::of_machine(Some(&info.kubelet_version), None)
            })),
        })
    }
}

fn reference(node: &Arc<Node>) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Node".to_owned()),
        name: node.metadata.name.clone(),
        uid: node.metadata.uid.clone(),
        ..ObjectReference::default()
    }
}

/// The numbers of the current API.
struct Counted {
    ready: Option<i32>,
    available: Option<i32>,
    up_to_date: Option<i32>,
    versions: Vec<StatusVersion>,
}

/// Counts the Machines, and without those what the infrastructure reports.
fn counted(seen: &Observed, replicas: Option<i32>, nodes: Option<&Nodes>) -> Counted {
    let before = seen.pool.status.clone().unwrap_or_default();
    if seen.infrastructure.found().is_none() {
        return Counted {
            ready: before.ready_replicas,
            available: before.available_replicas,
            up_to_date: before.up_to_date_replicas,
            versions: before.versions,
        };
    }
    if !facts::has_machines(seen) {
        return Counted {
            ready: replicas,
            available: replicas,
            up_to_date: seen.pool.spec.replicas,
            versions: nodes.map_or(before.versions, |nodes| nodes.versions.clone()),
        };
    }
    let own: Vec<&Machine> = facts::own_machines(seen).map(|machine| &**machine).collect();
    let number = |type_: &str| {
        let is = own.iter().filter(|machine| machines::is_true(machine, type_));
        Some(len_i32(is.count()))
    };
    Counted {
        ready: number(conditions::READY),
        available: number(conditions::AVAILABLE),
        up_to_date: number(conditions::UP_TO_DATE),
        versions: machines::versions(own.iter().copied()),
    }
}

/// Where in its life the pool is.
fn phase(seen: &Observed, node_refs: &[ObjectReference], ready: i32) -> &'static str {
    let pool = &*seen.pool;
    if seen.deleting() {
        return "Deleting";
    }
    if let (true, Some(desired)) = (facts::is_provisioned(seen), pool.spec.replicas) {
        return match desired.cmp(&ready) {
            std::cmp::Ordering::Equal => "Running",
            _ if is_scaled_elsewhere(pool) => "Scaling",
            std::cmp::Ordering::Greater => "ScalingUp",
            std::cmp::Ordering::Less => "ScalingDown",
        };
    }
    if !node_refs.is_empty() {
        "Provisioned"
    } else if facts::is_bootstrapped(seen) && !facts::is_provisioned(seen) {
        "Provisioning"
    } else {
        "Pending"
    }
}

/// Whether another system decides the number of replicas, so that it is unknown in which direction the pool scales.
fn is_scaled_elsewhere(pool: &MachinePool) -> bool {
    let by = pool.metadata.annotation(annotations::REPLICAS_MANAGED_BY);
    by.is_some_and(|by| by != "false")
}

/// The conditions that this controller owns.
fn own_conditions(seen: &Observed, plan: &Plan, now: &Moment) -> Vec<Condition> {
    let pool = &*seen.pool;
    let generation = pool.metadata.generation;
    let template = &pool.spec.template.spec;
    let mut all = Builder::new(pool.conditions(), generation, now.now());
    let kind = template.bootstrap.config_ref.as_ref().map_or("", |to| to.kind.as_str());
    let bootstrapped = facts::is_bootstrapped(seen);
    let lack = |object: &Referenced| bootstrap::data_secret_created_lack(object.value(), object.contract);
    match &seen.bootstrap {
        None if bootstrapped => all.set(
            conditions::BOOTSTRAP_CONFIG_READY,
            Draft::yes(reasons::DATA_SECRET_PROVIDED, ""),
        ),
        None => {
            let message = "spec.template.spec.bootstrap has neither configRef nor dataSecretName";
            all.set(
                conditions::BOOTSTRAP_CONFIG_READY,
                Draft::no(reasons::OBJECT_DOES_NOT_EXIST, message),
            )
        }
        Some(object) => all.set(
            conditions::BOOTSTRAP_CONFIG_READY,
            external(seen, object, kind, lack, bootstrapped),
        ),
    };
    let kind = template.infrastructure_ref.kind.as_str();
    let taken = plan.blocked.as_ref().filter(|blocked| blocked.reason == NAME_TAKEN);
    let obstacle =
        guards::moved(&pool.metadata, &pool.spec.cluster_name).or_else(|| taken.map(|blocked| blocked.message.clone()));
    let lack = |object: &Referenced| infra_machine_pool::provisioned_lack(object.value(), object.contract);
    let provisioned = facts::was_provisioned(seen);
    all.set(
        conditions::INFRASTRUCTURE_READY,
        match obstacle {
            Some(why) => Draft::no(reasons::INTERNAL_ERROR, why),
            None => external(seen, &seen.infrastructure, kind, lack, provisioned),
        },
    );
    all.set(
        conditions::DELETING,
        match &plan.deleting {
            Some(deleting) => Draft::yes(deleting.reason, deleting.message.clone()),
            None => Draft::no(reasons::NOT_DELETING, ""),
        },
    );
    all.done()
}

/// What a referenced object says of itself.
fn external(
    seen: &Observed,
    object: &Seen<Referenced>,
    kind: &str,
    lack: impl Fn(&Referenced) -> Option<String>,
    was_done: bool,
) -> Draft {
    match object {
        Seen::Found(found) => mirrored(found, lack(found)),
        Seen::Failed(why) => Draft::unknown(reasons::INTERNAL_ERROR, why.clone()),
        Seen::NotFound if was_done && seen.deleting() => {
            Draft::no(reasons::OBJECT_DELETED, format!("{kind} has been deleted"))
        }
        Seen::NotFound if was_done => {
            let message = format!("{kind} has been deleted while the MachinePool still exists");
            Draft::no(reasons::OBJECT_DELETED, message)
        }
        Seen::NotFound => Draft::no(reasons::OBJECT_DOES_NOT_EXIST, format!("{kind} does not exist")),
    }
}
