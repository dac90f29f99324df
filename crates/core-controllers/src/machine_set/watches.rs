//! Which events wake which MachineSets.

use serde_json::Value;
use windlass_api::core::{Cluster, Machine, MachineDeployment, MachineSet};
use windlass_api::meta::MetaExt as _;
use windlass_contract::selector;
use windlass_controller_runtime::{Cx, Dynamic, Later, ObjectKey, Wake, Watch};

use crate::shared::in_place::sources;
use crate::shared::keys::labels;
use crate::shared::machines::controller;
use crate::shared::wake::{MOMENT, Urgency, of_machine};

pub(super) fn watches() -> Vec<Watch> {
    vec![
        Watch::source(follow_machines),
        Watch::map::<Cluster>(cluster_changed),
        Watch::map::<MachineDeployment>(deployment_changed),
        Watch::map::<MachineSet>(target_changed),
        Watch::dynamic_map(provider_changed),
    ]
}

fn key(set: &MachineSet) -> ObjectKey {
    ObjectKey::new(set.metadata.namespace(), set.metadata.name())
}

fn sets_of(cx: &Cx, space: &str, cluster: &str) -> Vec<ObjectKey> {
    cx.cache::<MachineSet>()
        .by_cluster(space, cluster)
        .iter()
        .map(|set| key(set))
        .collect()
}

/// The sets that control a Machine, or could.
fn follow_machines(cx: Cx, wake: Wake) {
    let later = Later::new(&cx, wake.clone(), MOMENT);
    let cache = cx.cache::<Machine>();
    cache.subscribe(move |change| {
        let (old, new) = (change.old.as_deref(), change.new.as_deref());
        let urgency = of_machine(old, new);
        if urgency == Urgency::Never {
            return;
        }
        for machine in [old, new].into_iter().flatten() {
            let owner = controller(&machine.metadata).filter(|owner| owner.kind == "MachineSet");
            let owner = owner.map(|owner| ObjectKey::new(machine.metadata.namespace(), owner.name.as_str()));
            match owner {
                Some(owner) if urgency == Urgency::Later => later.add(owner),
                Some(owner) => wake.add(owner),
                None => {}
            }
        }
        if let Some(machine) = new.filter(|machine| controller(&machine.metadata).is_none()) {
            wake.add_all(matching(&cx, machine));
        }
    });
}

/// The sets whose selectors match a Machine without a controller.
fn matching(cx: &Cx, machine: &Machine) -> Vec<ObjectKey> {
    let labels = machine.metadata.labels.as_ref();
    let sets = cx
        .cache::<MachineSet>()
        .by_cluster(machine.metadata.namespace(), &machine.spec.cluster_name);
    let matching = sets.iter().filter(|set| selector::owns(&set.spec.selector, labels));
    matching.map(|set| key(set)).collect()
}

/// Preflight checks look at the Cluster's topology.
fn cluster_changed(cx: &Cx, old: Option<&Cluster>, new: Option<&Cluster>) -> Vec<ObjectKey> {
    let Some(cluster) = new else { return Vec::new() };
    let same =
        old.is_some_and(|old| old.spec == cluster.spec && old.metadata.annotations == cluster.metadata.annotations);
    if same {
        Vec::new()
    } else {
        sets_of(cx, cluster.metadata.namespace(), cluster.metadata.name())
    }
}

/// How many Machines may be replaced at once is a setting of the MachineDeployment, and a part of its replicas.
fn deployment_changed(cx: &Cx, old: Option<&MachineDeployment>, new: Option<&MachineDeployment>) -> Vec<ObjectKey> {
    let (Some(old), Some(new)) = (old, new) else {
        return Vec::new();
    };
    if old.spec.remediation == new.spec.remediation && old.spec.replicas == new.spec.replicas {
        return Vec::new();
    }
    let sets = cx.cache::<MachineSet>().by_owner(new.metadata.uid());
    sets.iter().map(|set| key(set)).collect()
}

/// A set gives its Machines away once the other set takes them.
fn target_changed(_: &Cx, old: Option<&MachineSet>, new: Option<&MachineSet>) -> Vec<ObjectKey> {
    let Some(new) = new else { return Vec::new() };
    let from = sources(new);
    if from.is_empty() || old.is_some_and(|old| sources(old) == from) {
        return Vec::new();
    }
    let keys = from
        .into_iter()
        .map(|name| ObjectKey::new(new.metadata.namespace(), name));
    keys.collect()
}

/// A template that appears, or a control plane that changes its version.
fn provider_changed(cx: &Cx, old: Option<&Dynamic>, new: Option<&Dynamic>) -> Vec<ObjectKey> {
    let Some(object) = new else { return Vec::new() };
    let space = object.metadata().namespace.as_deref().unwrap_or_default();
    if object.kind().ends_with("Template") {
        if old.is_some() {
            return Vec::new();
        }
        let sets = cx.cache::<MachineSet>().list(space);
        return sets
            .iter()
            .filter(|set| refers_to(set, object))
            .map(|set| key(set))
            .collect();
    }
    let Some(cluster) = label_of(object) else {
        return Vec::new();
    };
    let Some(cluster) = cx.cache::<Cluster>().get(&ObjectKey::new(space, cluster)) else {
        return Vec::new();
    };
    let is_plane = cluster
        .spec
        .control_plane_ref
        .as_ref()
        .is_some_and(|reference| reference.kind == object.kind() && reference.name == object.name());
    let versions = |object: &Dynamic| -> [Option<Value>; 3] {
        ["/spec/version", "/status/version", "/status/versions"].map(|path| object.value().pointer(path).cloned())
    };
    if !is_plane || old.is_some_and(|old| versions(old) == versions(object)) {
        return Vec::new();
    }
    sets_of(cx, space, cluster.metadata.name())
}

fn label_of(object: &Dynamic) -> Option<&str> {
    object.metadata().label(labels::CLUSTER_NAME)
}

fn refers_to(set: &MachineSet, template: &Dynamic) -> bool {
    let spec = &set.spec.template.spec;
    let references = spec.bootstrap.config_ref.iter().chain([&spec.infrastructure_ref]);
    let group = template.gvk().group;
    references.into_iter().any(|reference| {
        reference.name == template.name() && reference.kind == template.kind() && reference.api_group == group
    })
}
