//! Which events wake which MachineDeployments.

use windlass_api::core::{Cluster, Machine, MachineDeployment, MachineSet};
use windlass_kit::{Cx, Dynamic, ObjectKey, Watch};

use crate::machine_deployment::settings;
use crate::shared::machines::{controller, name, namespace};
use crate::shared::selector;

pub(super) fn watches() -> Vec<Watch> {
    vec![
        Watch::owned::<MachineSet>(),
        Watch::map::<MachineSet>(orphaned),
        Watch::map::<Machine>(machine_changed),
        Watch::map::<Cluster>(cluster_appeared),
        Watch::dynamic_map(template_appeared),
    ]
}

fn key(deployment: &MachineDeployment) -> ObjectKey {
    ObjectKey::new(namespace(&deployment.metadata), name(&deployment.metadata))
}

/// A Machine belongs to a deployment through its set.
fn machine_changed(cx: &Cx, old: Option<&Machine>, new: Option<&Machine>) -> Vec<ObjectKey> {
    let mut found = Vec::new();
    for machine in [old, new].into_iter().flatten() {
        let space = namespace(&machine.metadata);
        let Some(set) = controller(&machine.metadata).filter(|owner| owner.kind == "MachineSet") else {
            continue;
        };
        let Some(set) = cx.cache::<MachineSet>().get(&ObjectKey::new(space, set.name.as_str())) else {
            continue;
        };
        let owner = controller(&set.metadata).filter(|owner| owner.kind == "MachineDeployment");
        found.extend(owner.map(|owner| ObjectKey::new(space, owner.name.as_str())));
    }
    found.dedup();
    found
}

/// A set that nobody controls may match a deployment.
fn orphaned(cx: &Cx, _: Option<&MachineSet>, new: Option<&MachineSet>) -> Vec<ObjectKey> {
    let Some(set) = new.filter(|set| controller(&set.metadata).is_none()) else {
        return Vec::new();
    };
    let all = cx
        .cache::<MachineDeployment>()
        .by_cluster(namespace(&set.metadata), &set.spec.cluster_name);
    let matching = all
        .iter()
        .filter(|deployment| selector::matches(&settings::selector(deployment), set.metadata.labels.as_ref()));
    matching.map(|deployment| key(deployment)).collect()
}

fn cluster_appeared(cx: &Cx, old: Option<&Cluster>, new: Option<&Cluster>) -> Vec<ObjectKey> {
    let Some(cluster) = new.filter(|_| old.is_none()) else {
        return Vec::new();
    };
    let all = cx.cache::<MachineDeployment>().list(namespace(&cluster.metadata));
    let of_cluster = all
        .iter()
        .filter(|one| one.spec.cluster_name == name(&cluster.metadata));
    of_cluster.map(|deployment| key(deployment)).collect()
}

fn template_appeared(cx: &Cx, old: Option<&Dynamic>, new: Option<&Dynamic>) -> Vec<ObjectKey> {
    let Some(template) = new.filter(|object| old.is_none() && object.kind().ends_with("Template")) else {
        return Vec::new();
    };
    let space = template.metadata().namespace.as_deref().unwrap_or_default();
    let group = template.gvk().group;
    let all = cx.cache::<MachineDeployment>().list(space);
    let referring = all.iter().filter(|deployment| {
        let spec = &deployment.spec.template.spec;
        let mut references = spec.bootstrap.config_ref.iter().chain([&spec.infrastructure_ref]);
        references.any(|reference| {
            reference.name == template.name() && reference.kind == template.kind() && reference.api_group == group
        })
    });
    referring.map(|deployment| key(deployment)).collect()
}
