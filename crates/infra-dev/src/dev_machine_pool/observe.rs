//! Everything the DevMachinePool controller reads, as plain data. The only file of this controller that reads.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass_api::core::{Machine, MachinePool};
use windlass_api::kind::ApiKind as _;
use windlass_api::meta::MetaExt as _;
use windlass_api::{labels, owner};
use windlass_api_ext::infrastructure::{DevMachine, DevMachinePool};
use windlass_controller_runtime::{Cx, ObjectKey};
use windlass_meta::{SUFFIX_LENGTH, label_or_hash};

/// How many machines one reconcile makes at most. Their events wake the pool for the next ones.
const AT_ONCE: usize = 50;

/// A machine of the pool.
#[derive(Clone, Debug)]
pub(crate) struct Host {
    /// Its DevMachine.
    pub(crate) object: Arc<DevMachine>,
    /// The Machine that owns the DevMachine, once the MachinePool controller has made it.
    pub(crate) machine: Option<Arc<Machine>>,
}

/// What was read.
#[derive(Clone, Debug)]
pub(crate) struct Observed {
    /// The DevMachinePool.
    pub(crate) object: Arc<DevMachinePool>,
    /// The MachinePool that owns it.
    pub(crate) pool: Option<Arc<MachinePool>>,
    /// The machines, by name.
    pub(crate) hosts: Vec<Host>,
    /// Machines of the pool whose DevMachine is gone.
    pub(crate) dangling: Vec<Arc<Machine>>,
    /// Random suffixes, one for each machine that may have to be made.
    pub(crate) suffixes: Vec<String>,
}

impl Observed {
    /// Whether the DevMachinePool is being deleted.
    pub(crate) fn deleting(&self) -> bool {
        self.object.metadata.is_deleting()
    }

    /// The number of machines that the MachinePool wants.
    pub(crate) fn replicas(&self) -> usize {
        let replicas = self.pool.as_ref().map_or(0, |pool| pool.spec.replicas.unwrap_or(1));
        usize::try_from(replicas).unwrap_or(0)
    }
}

/// Whether a machine is provisioned.
pub(super) fn is_provisioned(host: &DevMachine) -> bool {
    let status = host.status.as_ref();
    let done = status.and_then(|status| status.initialization.as_ref());
    done.and_then(|done| done.provisioned) == Some(true)
}

/// The provider ID of a machine, once it has one.
pub(super) fn provider_id(host: &DevMachine) -> Option<&str> {
    let id = host.spec.as_ref()?.provider_id.as_deref();
    id.filter(|id| !id.is_empty())
}

/// Reads everything.
pub(super) fn observe(cx: &Cx, object: Arc<DevMachinePool>) -> Observed {
    let space = object.metadata.namespace();
    let owner = owner::owner_of_kind(&object.metadata, MachinePool::GROUP, MachinePool::KIND);
    let pool = owner.and_then(|owner| {
        let pool = cx
            .cache::<MachinePool>()
            .get(&ObjectKey::new(space, owner.name.as_str()));
        pool.filter(|pool| pool.metadata.uid() == owner.uid)
    });
    let labels = Labels::of(&object, owner.map(|owner| owner.name.as_str()), pool.as_deref());
    let hosts = hosts(cx, &object, labels.as_ref());
    let dangling = match &labels {
        Some(labels) => dangling(cx, space, labels, &hosts),
        None => Vec::new(),
    };
    let mut seen = Observed {
        suffixes: Vec::new(),
        object,
        pool,
        hosts,
        dangling,
    };
    // Machines of another version do not count, so that more than the difference may be made.
    let missing = seen.replicas().min(AT_ONCE);
    seen.suffixes = (0..missing).map(|_| cx.names().suffix(SUFFIX_LENGTH)).collect();
    seen
}

/// The labels of the machines of a pool.
struct Labels {
    cluster: String,
    pool: String,
}

impl Labels {
    /// The pool may be gone already; its name is in the owner reference, and that of its Cluster in a label.
    fn of(object: &DevMachinePool, owner: Option<&str>, pool: Option<&MachinePool>) -> Option<Self> {
        let label = object.metadata.label(labels::CLUSTER_NAME);
        let cluster = pool.map(|pool| pool.spec.cluster_name.as_str()).or(label)?;
        Some(Self {
            cluster: cluster.to_owned(),
            pool: label_or_hash(owner?),
        })
    }

    fn are_on(&self, metadata: &ObjectMeta) -> bool {
        metadata.label(labels::MACHINE_POOL_NAME) == Some(self.pool.as_str())
    }
}

/// The machines by the labels of the pool, and by their owner when those are lost.
fn hosts(cx: &Cx, object: &DevMachinePool, labels: Option<&Labels>) -> Vec<Host> {
    let space = object.metadata.namespace();
    let cache = cx.cache::<DevMachine>();
    let mut found = cache.by_owner(object.metadata.uid());
    if let Some(labels) = labels {
        let mut labelled = cache.by_cluster(space, &labels.cluster);
        labelled.retain(|host| labels.are_on(&host.metadata));
        found.extend(labelled);
    }
    found.sort_by(|one, other| one.metadata.name().cmp(other.metadata.name()));
    found.dedup_by(|one, other| one.metadata.uid == other.metadata.uid);
    let machines = cx.cache::<Machine>();
    // A reference may be lost; the Machine has the name of its DevMachine.
    let with_machine = |object: Arc<DevMachine>| {
        let owner = owner::owner_of_kind(&object.metadata, Machine::GROUP, Machine::KIND);
        let name = owner.map_or(object.metadata.name(), |owner| owner.name.as_str());
        let machine = machines.get(&ObjectKey::new(space, name));
        let machine = machine.filter(|machine| is_of(machine, object.metadata.name()));
        Host { object, machine }
    };
    found.into_iter().map(with_machine).collect()
}

/// Whether a Machine is that of the DevMachine with this name.
fn is_of(machine: &Machine, host: &str) -> bool {
    let reference = &machine.spec.infrastructure_ref;
    reference.kind == DevMachine::KIND && reference.name == host
}

/// The Machines of the pool that had a machine which is gone. No other controller deletes them.
fn dangling(cx: &Cx, space: &str, labels: &Labels, hosts: &[Host]) -> Vec<Arc<Machine>> {
    let names: BTreeSet<&str> = hosts.iter().map(|host| host.object.metadata.name()).collect();
    let mut machines = cx.cache::<Machine>().by_cluster(space, &labels.cluster);
    machines.retain(|machine| {
        let reference = &machine.spec.infrastructure_ref;
        let status = machine.status.as_ref();
        let done = status.and_then(|status| status.initialization.as_ref());
        labels.are_on(&machine.metadata)
            && reference.kind == DevMachine::KIND
            && !names.contains(reference.name.as_str())
            && done.and_then(|done| done.infrastructure_provisioned) == Some(true)
            && !machine.metadata.is_deleting()
    });
    machines
}
