//! Reads everything the MachineSet controller decides from.

use std::collections::BTreeMap;
use std::sync::Arc;

use windlass_api::core::{Cluster, Machine, MachineDeployment, MachineSet};
use windlass_api::meta::MetaExt as _;
use windlass_contract::selector;
use windlass_controller_runtime::{Cx, Dynamic, ObjectKey, Seen};
use windlass_meta::SUFFIX_LENGTH;

use crate::machine_deployment::revision;
use crate::machine_set::desired::replicas;
use crate::machine_set::observed::Observed;
use crate::shared::keys::{annotations, labels};
use crate::shared::machines::{controlled_by, controller};
use crate::shared::preflight::PreflightChecks;
use crate::shared::read;

/// How many Machines one reconcile makes at most. Their events wake the set for the next ones, so that a number of replicas set by
/// mistake costs neither memory nor the time of other sets.
const AT_ONCE: usize = 50;

pub(super) async fn observe(cx: &Cx, checks: PreflightChecks, set: Arc<MachineSet>) -> Observed {
    let space = set.metadata.namespace();
    let cluster_key = ObjectKey::new(space, set.spec.cluster_name.as_str());
    let cluster: Seen<Arc<Cluster>> = cx.cache::<Cluster>().get(&cluster_key).into();
    let cache = cx.cache::<Machine>();
    let set_uid = set.metadata.uid();
    let mut machines = cache.by_owner(set_uid);
    machines.retain(|machine| controlled_by(&machine.metadata, set_uid));
    let orphans = if set.metadata.is_deleting() {
        Vec::new()
    } else {
        orphans(cx, &set)
    };
    let spec = &set.spec.template.spec;
    let bootstrap_template = match &spec.bootstrap.config_ref {
        Some(reference) => Some(read::object(cx, space, reference).await),
        None => None,
    };
    let infrastructure_template = read::object(cx, space, &spec.infrastructure_ref).await;
    let (mut bootstrap, mut infrastructure) = (BTreeMap::new(), BTreeMap::new());
    for machine in machines.iter().filter(|machine| !machine.metadata.is_deleting()) {
        let machine_name = machine.metadata.name().to_owned();
        if let Some(reference) = &machine.spec.bootstrap.config_ref {
            let clone: Seen<Arc<Dynamic>> = read::object(cx, space, reference).await;
            bootstrap.insert(machine_name.clone(), clone);
        }
        let clone = read::object(cx, space, &machine.spec.infrastructure_ref).await;
        infrastructure.insert(machine_name, clone);
    }
    let control_plane = match &cluster {
        Seen::Found(cluster) => read::control_plane(cx, cluster).await,
        _ => None,
    };
    let missing = usize::try_from(replicas(&set))
        .unwrap_or(0)
        .saturating_sub(machines.len())
        .min(AT_ONCE);
    Observed {
        deployment: deployment(cx, &set),
        checks,
        is_current: is_current(cx, &set),
        target: target(cx, &set),
        suffixes: (0..missing).map(|_| cx.names().suffix(SUFFIX_LENGTH)).collect(),
        set,
        cluster,
        machines,
        orphans,
        bootstrap_template,
        infrastructure_template,
        bootstrap,
        infrastructure,
        control_plane,
    }
}

/// Machines that match the set and have no controller, also those on their way out: they count until they are gone. Those of a control plane
/// are left alone.
fn orphans(cx: &Cx, set: &MachineSet) -> Vec<Arc<Machine>> {
    let mut found = cx
        .cache::<Machine>()
        .by_cluster(set.metadata.namespace(), &set.spec.cluster_name);
    found.retain(|machine| {
        let meta = &machine.metadata;
        controller(meta).is_none()
            && meta.label(labels::CONTROL_PLANE).is_none()
            && selector::owns(&set.spec.selector, meta.labels.as_ref())
    });
    found
}

fn deployment(cx: &Cx, set: &MachineSet) -> Option<Seen<Arc<MachineDeployment>>> {
    let owner = controller(&set.metadata).filter(|owner| owner.kind == "MachineDeployment")?;
    let key = ObjectKey::new(set.metadata.namespace(), owner.name.as_str());
    Some(cx.cache::<MachineDeployment>().get(&key).into())
}

/// The set that is to get Machines of this one.
fn target(cx: &Cx, set: &MachineSet) -> Option<Seen<Arc<MachineSet>>> {
    let name = set.metadata.annotation(annotations::MOVE_MACHINES_TO_MACHINE_SET)?;
    let key = ObjectKey::new(set.metadata.namespace(), name);
    Some(cx.cache::<MachineSet>().get(&key).into())
}

fn is_current(cx: &Cx, set: &MachineSet) -> bool {
    let Some(owner) = controller(&set.metadata) else {
        return true;
    };
    let siblings = cx.cache::<MachineSet>().by_owner(&owner.uid);
    siblings.iter().all(|sibling| revision(sibling) <= revision(set))
}
