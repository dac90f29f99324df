//! Which events wake which MachineDeployments.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass_api::core::{Cluster, Machine, MachineDeployment, MachineSet};
use windlass_api::meta::MetaExt as _;
use windlass_api::runtime::ExtensionConfig;
use windlass_contract::selector;
use windlass_controller_runtime::{Cx, Dynamic, Later, ObjectKey, Wake, Watch};

use crate::machine_deployment::settings;
use crate::shared::keys::conditions;
use crate::shared::machines::controller;
use crate::shared::wake::{MOMENT, Urgency, of_machine, of_set};

pub(super) fn watches() -> Vec<Watch> {
    vec![
        Watch::source(|cx, wake| follow(&cx, &wake)),
        Watch::map::<Cluster>(cluster_appeared),
        Watch::map::<ExtensionConfig>(|cx, _, _| rolling_out(cx)),
        Watch::dynamic_map(template_appeared),
    ]
}

/// The MachineDeployments whose rollout may wait for an extension.
fn rolling_out(cx: &Cx) -> Vec<ObjectKey> {
    let all = cx.cache::<MachineDeployment>().all();
    let is_rolling_out = |deployment: &&Arc<MachineDeployment>| {
        let status = deployment.status.as_ref();
        status.is_some_and(|status| windlass_conditions::is_true(&status.conditions, conditions::ROLLING_OUT))
    };
    all.iter()
        .filter(is_rolling_out)
        .map(|deployment| key(deployment))
        .collect()
}

fn key(deployment: &MachineDeployment) -> ObjectKey {
    ObjectKey::new(deployment.metadata.namespace(), deployment.metadata.name())
}

/// Sets and Machines wake the deployment they belong to.
fn follow(cx: &Cx, wake: &Wake) {
    let later = Later::new(cx, wake.clone(), MOMENT);
    let wake = wake.clone();
    let rouse = move |urgency: Urgency, keys: Vec<ObjectKey>| match urgency {
        Urgency::Never => {}
        Urgency::Later => keys.into_iter().for_each(|key| later.add(key)),
        Urgency::Now => wake.add_all(keys),
    };
    let rouse_too = rouse.clone();
    let context = cx.clone();
    cx.cache::<MachineSet>().subscribe(move |change| {
        let (old, new) = (change.old.as_deref(), change.new.as_deref());
        let urgency = of_set(old, new);
        if urgency != Urgency::Never {
            rouse(urgency, set_changed(&context, old, new));
        }
    });
    let context = cx.clone();
    cx.cache::<Machine>().subscribe(move |change| {
        let (old, new) = (change.old.as_deref(), change.new.as_deref());
        let urgency = of_machine(old, new);
        if urgency != Urgency::Never {
            rouse_too(urgency, machine_changed(&context, old, new));
        }
    });
}

fn deployment_of(meta: &ObjectMeta) -> Option<ObjectKey> {
    let owner = controller(meta).filter(|owner| owner.kind == "MachineDeployment")?;
    Some(ObjectKey::new(meta.namespace(), owner.name.as_str()))
}

/// A Machine belongs to a deployment through its set.
fn machine_changed(cx: &Cx, old: Option<&Machine>, new: Option<&Machine>) -> Vec<ObjectKey> {
    let mut found = Vec::new();
    for machine in [old, new].into_iter().flatten() {
        let set = controller(&machine.metadata).filter(|owner| owner.kind == "MachineSet");
        let set = set.map(|set| ObjectKey::new(machine.metadata.namespace(), set.name.as_str()));
        let set = set.and_then(|set| cx.cache::<MachineSet>().get(&set));
        found.extend(set.and_then(|set| deployment_of(&set.metadata)));
    }
    found.dedup();
    found
}

/// A set belongs to a deployment, or could.
fn set_changed(cx: &Cx, old: Option<&MachineSet>, new: Option<&MachineSet>) -> Vec<ObjectKey> {
    let owners = [old, new]
        .into_iter()
        .flatten()
        .filter_map(|set| deployment_of(&set.metadata));
    let mut found: Vec<ObjectKey> = owners.collect();
    if let Some(set) = new.filter(|set| controller(&set.metadata).is_none()) {
        let all = cx
            .cache::<MachineDeployment>()
            .by_cluster(set.metadata.namespace(), &set.spec.cluster_name);
        let labels = set.metadata.labels.as_ref();
        let matching = all
            .iter()
            .filter(|deployment| selector::owns(&settings::selector(deployment), labels));
        found.extend(matching.map(|deployment| key(deployment)));
    }
    found.dedup();
    found
}

fn cluster_appeared(cx: &Cx, old: Option<&Cluster>, new: Option<&Cluster>) -> Vec<ObjectKey> {
    let Some(cluster) = new.filter(|_| old.is_none()) else {
        return Vec::new();
    };
    let all = cx.cache::<MachineDeployment>().list(cluster.metadata.namespace());
    let of_cluster = all
        .iter()
        .filter(|one| one.spec.cluster_name == cluster.metadata.name());
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
