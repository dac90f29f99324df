//! What becomes of Machines: asked of the rules of their owners' controllers.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use windlass_api::annotations::PAUSED;
use windlass_api::core::{Cluster, Machine, MachineDeployment, MachineSet};
use windlass_api::meta::MetaExt as _;
use windlass_api_kubeadm::controlplane::KubeadmControlPlane;
use windlass_controller_runtime::{Moment, ObjectKey, Stored as _, key_of};
use windlass_controlplane_kubeadm::preview as control_planes;
use windlass_core_controllers::machine_deployment::preview as deployments;
use windlass_runtime_client::Extensions;

use crate::fields;
use crate::model::{MachineChange, MachineReason, ObjectChange, Verb};
use crate::names::{Id, text};
use crate::phase::is_going;
use crate::shadow::{Shadow, Written};

/// Fields of a control plane whose change replaces Machines, for control planes of which no Machine is known.
const OF_CONTROL_PLANE: [&str; 3] = [
    "spec.version",
    "spec.machineTemplate.spec.infrastructureRef",
    "spec.kubeadmConfigSpec",
];
/// The same of MachineDeployments.
const OF_DEPLOYMENT: [&str; 4] = [
    "spec.template.spec.version",
    "spec.template.spec.infrastructureRef",
    "spec.template.spec.bootstrap",
    "spec.template.spec.failureDomain",
];

/// Looks at Machines.
pub(crate) struct Machines {
    extensions: Extensions,
    /// Replicas that were planned for already: Machines that are made or go are not in the copy.
    planned: Mutex<HashMap<Id, i32>>,
}

/// What was found.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) changes: Vec<MachineChange>,
    /// What goes with a deleted object.
    pub(crate) gone: Vec<ObjectChange>,
    /// Objects of Machines as rollouts leave them.
    pub(crate) after: Vec<Value>,
}

impl Machines {
    pub(crate) fn new(extensions: Extensions) -> Self {
        Self {
            extensions,
            planned: Mutex::default(),
        }
    }

    /// What the written objects of a Cluster do with their Machines.
    pub(crate) async fn of(&self, shadow: &Shadow, cluster: &ObjectKey, written: &[Written]) -> Found {
        let mut found = Found::default();
        let object = shadow.cx().cache::<Cluster>().get(cluster);
        let control_plane = object.as_ref().and_then(|object| object.spec.control_plane_ref.clone());
        let mut seen: Vec<&Id> = Vec::new();
        for one in written {
            if seen.contains(&&one.id) {
                continue;
            }
            let last = written
                .iter()
                .rfind(|other| other.id == one.id)
                .and_then(|last| last.after.as_ref());
            let is_control_plane = control_plane
                .as_ref()
                .is_some_and(|reference| reference.kind == one.id.kind && reference.name == one.id.name);
            let is_deployment = one.id.kind == "MachineDeployment";
            if !is_control_plane && !is_deployment && one.id.kind != "MachinePool" {
                continue;
            }
            seen.push(&one.id);
            let Some(after) = last.filter(|after| !is_going(after)) else {
                if !is_control_plane && let Some(before) = &one.before {
                    deleted(shadow, &one.id, before, &mut found).await;
                }
                continue;
            };
            if is_deployment {
                self.deployment(shadow, one, after, &mut found).await;
            } else if one.id.kind == "KubeadmControlPlane" {
                self.kubeadm(shadow, one, after, &mut found).await;
            } else {
                self.foreign(one, after, &mut found);
            }
        }
        found
    }

    /// Replicas that change beside the rollout: how many come, and how many go.
    fn scaled(&self, id: &Id, replicas: i32, have: i32) -> (i32, i32) {
        let mut planned = self.planned.lock();
        let before = planned.insert(id.clone(), replicas).unwrap_or(have);
        ((replicas - before).max(0), (before - replicas).max(0))
    }

    async fn deployment(&self, shadow: &Shadow, one: &Written, after: &Value, found: &mut Found) {
        let cx = shadow.fresh();
        let Some(deployment) = cx.cache::<MachineDeployment>().get(&one.id.key()) else {
            return;
        };
        let rollout = deployments::rollout(&cx, &self.extensions, deployment.clone(), &Moment::at(cx.now())).await;
        let total = rollout.kept.len() + rollout.outdated.len() + rollout.removed.len();
        let (added, surplus) = self.scaled(&one.id, rollout.replicas, count(total));
        let is_known = total > 0 || one.before.is_none();
        let replaced: Vec<MachineReason> = if is_known {
            let outdated = rollout.outdated.iter();
            outdated
                .map(|machine| MachineReason {
                    name: machine.name.clone(),
                    reasons: machine.reasons.clone(),
                })
                .collect()
        } else {
            unnamed(one, after, rollout.replicas, &OF_DEPLOYMENT)
        };
        let how = if replaced.is_empty() {
            String::new()
        } else if rollout.paused {
            "not before it is resumed: it is paused".to_owned()
        } else if rollout.on_delete {
            "when users delete them (OnDelete)".to_owned()
        } else {
            let (more, fewer) = rollout.limits;
            let one_more = one_more(fewer == 0 && !rollout.in_place.is_empty());
            format!("at most {more} more and {fewer} fewer at a time{one_more}")
        };
        if !rollout.paused && !rollout.on_delete {
            self.rolled_out(shadow, &deployment, found).await;
        }
        let removed = if surplus > 0 {
            rollout.removed.clone()
        } else {
            Vec::new()
        };
        push(
            found,
            MachineChange {
                owner: one.id.clone(),
                total,
                replaced,
                kept: rollout.kept,
                surplus: surplus - count(removed.len()).min(surplus),
                removed,
                added,
                how,
                in_place: rollout.in_place,
            },
        );
        if let Some(refused) = rollout.refused
            && let Some(last) = found.changes.last_mut()
        {
            last.how = refused;
        }
    }

    /// MachineSets and Machines as a finished rollout leaves them. Machines keep their names.
    async fn rolled_out(&self, shadow: &Shadow, deployment: &Arc<MachineDeployment>, found: &mut Found) {
        let cx = shadow.cx();
        let uid = deployment.metadata.uid.clone().unwrap_or_default();
        let whole = deployment.to_json();
        let template = whole.pointer("/spec/template/spec").cloned().unwrap_or_default();
        for set in cx.cache::<MachineSet>().by_owner(&uid) {
            let set_uid = set.metadata.uid.clone().unwrap_or_default();
            if let Some(mut object) = shadow.own("MachineSet", &key_of(&set.metadata)).await
                && object.pointer("/spec/template/spec") != Some(&template)
            {
                object["spec"]["template"]["spec"] = template.clone();
                found.after.push(object);
            }
            for machine in cx.cache::<Machine>().by_owner(&set_uid) {
                found
                    .after
                    .extend(with_version(shadow, &machine, &template["version"]).await);
            }
        }
    }

    async fn kubeadm(&self, shadow: &Shadow, one: &Written, after: &Value, found: &mut Found) {
        let cx = shadow.fresh();
        let Some(object) = cx.cache::<KubeadmControlPlane>().get(&one.id.key()) else {
            return;
        };
        let Some(rollout) = control_planes::rollout(&cx, &self.extensions, object.clone(), &Moment::at(cx.now())).await
        else {
            return;
        };
        let total = rollout.machines.len();
        let (added, surplus) = self.scaled(&one.id, rollout.replicas, count(total));
        let mut replaced = Vec::new();
        let mut kept = Vec::new();
        for (name, judged) in &rollout.machines {
            if judged.holds() {
                kept.push(name.clone());
                continue;
            }
            replaced.push(MachineReason {
                name: name.clone(),
                reasons: judged.differences.clone(),
            });
            let machine = cx
                .cache::<Machine>()
                .get(&ObjectKey::new(one.id.namespace.as_str(), name.as_str()));
            if let Some(machine) = machine.filter(|_| object.metadata.annotation(PAUSED).is_none()) {
                replace_member(shadow, &machine, after, &rollout.config, found).await;
            }
        }
        if total == 0 && one.before.is_some() {
            replaced = unnamed(one, after, rollout.replicas, &OF_CONTROL_PLANE);
        }
        let is_paused = object.metadata.annotation(PAUSED).is_some();
        let how = match (replaced.is_empty(), rollout.max_surge) {
            (true, _) => String::new(),
            (false, _) if is_paused => "not before it is resumed: it is paused".to_owned(),
            (false, 0) => "one at a time, each is deleted before its replacement is made".to_owned(),
            (false, _) => {
                let one_more = one_more(!rollout.in_place.is_empty());
                format!("one at a time, each after its replacement is up{one_more}")
            }
        };
        push(
            found,
            MachineChange {
                owner: one.id.clone(),
                total,
                replaced,
                kept,
                removed: Vec::new(),
                added,
                surplus,
                how,
                in_place: rollout.in_place,
            },
        );
    }

    /// A control plane or pool of a provider.
    fn foreign(&self, one: &Written, after: &Value, found: &mut Found) {
        let replicas = after.pointer("/spec/replicas").and_then(Value::as_i64);
        let replicas = replicas
            .and_then(|number| i32::try_from(number).ok())
            .unwrap_or_default();
        let before = one.before.as_ref();
        let had = before
            .and_then(|before| before.pointer("/spec/replicas"))
            .and_then(Value::as_i64);
        let had = had.and_then(|number| i32::try_from(number).ok()).unwrap_or_default();
        let (added, surplus) = self.scaled(&one.id, replicas, had);
        let changes = before.map_or_else(Vec::new, |before| fields::changes(before, after));
        let is_more = changes
            .iter()
            .any(|field| field.path.starts_with("spec.") && field.path != "spec.replicas");
        let how = if is_more {
            let kind = &one.id.kind;
            format!("the provider decides which machines of a {kind} are replaced or updated in place")
        } else {
            String::new()
        };
        push(
            found,
            MachineChange {
                owner: one.id.clone(),
                total: usize::try_from(had).unwrap_or_default(),
                replaced: Vec::new(),
                kept: Vec::new(),
                removed: Vec::new(),
                added,
                surplus,
                how,
                in_place: Vec::new(),
            },
        );
    }
}

/// What is to be said of updates in place where no Machine may be missing.
fn one_more(is_so: bool) -> &'static str {
    if is_so {
        "; with updates in place, one more is made first and one goes"
    } else {
        ""
    }
}

/// A change that says something.
fn push(found: &mut Found, change: MachineChange) {
    let is_silent = change.replaced.is_empty() && change.removed.is_empty() && change.added == 0 && change.surplus == 0;
    if !is_silent || !change.how.is_empty() {
        found.changes.push(change);
    }
}

fn count(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// Replacements of Machines that are not in the files: all of them, if a field changes that decides about it.
fn unnamed(one: &Written, after: &Value, replicas: i32, fields_of_machines: &[&str]) -> Vec<MachineReason> {
    let Some(before) = &one.before else { return Vec::new() };
    let changed: Vec<String> = fields::changes(before, after)
        .into_iter()
        .map(|field| field.path)
        .filter(|path| fields_of_machines.iter().any(|field| path.starts_with(field)))
        .collect();
    if changed.is_empty() {
        return Vec::new();
    }
    let reasons: Vec<String> = changed.into_iter().map(|path| format!("{path} changes")).collect();
    (1..=replicas)
        .map(|number| MachineReason {
            name: format!("(Machine {number} of {replicas})"),
            reasons: reasons.clone(),
        })
        .collect()
}

async fn with_version(shadow: &Shadow, machine: &Machine, version: &Value) -> Option<Value> {
    let mut object = shadow.own("Machine", &key_of(&machine.metadata)).await?;
    if version.is_null() || object["spec"]["version"] == *version {
        return None;
    }
    object["spec"]["version"] = version.clone();
    Some(object)
}

/// A Machine of a control plane as its replacement will be.
async fn replace_member(shadow: &Shadow, machine: &Machine, owner: &Value, config: &Value, found: &mut Found) {
    found
        .after
        .extend(with_version(shadow, machine, &owner["spec"]["version"]).await);
    let namespace = machine.metadata.namespace.clone().unwrap_or_default();
    if let Some(reference) = &machine.spec.bootstrap.config_ref
        && let Some(mut object) = shadow
            .named(&reference.api_group, &reference.kind, &namespace, &reference.name)
            .await
    {
        object["spec"] = config.clone();
        found.after.push(object);
    }
    let reference = &machine.spec.infrastructure_ref;
    if let Some(mut object) = shadow
        .named(&reference.api_group, &reference.kind, &namespace, &reference.name)
        .await
    {
        let template = owner.pointer("/spec/machineTemplate/spec/infrastructureRef/name");
        let key = windlass_topology::keys::CLONED_FROM_NAME;
        object["metadata"]["annotations"][key] = template.cloned().unwrap_or_default();
        found.after.push(object);
    }
}

/// What goes with a MachineDeployment or a MachinePool: its Machines, and what it refers to.
async fn deleted(shadow: &Shadow, id: &Id, before: &Value, found: &mut Found) {
    let cx = shadow.cx();
    let mut removed = Vec::new();
    let mut owners = vec![text(before, "/metadata/uid").to_owned()];
    let sets = cx.cache::<MachineSet>().by_owner(&owners[0]);
    owners.extend(sets.iter().filter_map(|set| set.metadata.uid.clone()));
    for owner in owners {
        let machines = cx.cache::<Machine>().by_owner(&owner);
        removed.extend(machines.iter().filter_map(|machine| machine.metadata.name.clone()));
    }
    removed.sort_unstable();
    // Pools of some providers have machines without an object.
    let is_pool = id.kind == "MachinePool";
    let unnamed = before.pointer("/spec/replicas").and_then(Value::as_i64);
    let unnamed = unnamed.filter(|_| is_pool && removed.is_empty());
    let surplus = unnamed
        .and_then(|number| i32::try_from(number).ok())
        .unwrap_or_default();
    for pointer in [
        "/spec/template/spec/bootstrap/configRef",
        "/spec/template/spec/infrastructureRef",
    ] {
        let Some(reference) = before.pointer(pointer) else {
            continue;
        };
        let at = |field: &str| text(reference, field).to_owned();
        let template = Id {
            kind: at("/kind"),
            group: at("/apiGroup"),
            namespace: id.namespace.clone(),
            name: at("/name"),
        };
        let object = shadow
            .named(&template.group, &template.kind, &template.namespace, &template.name)
            .await;
        let is_owned = object.as_ref().is_some_and(|object| {
            object["metadata"]["labels"]
                .get(windlass_topology::keys::OWNED)
                .is_some()
        });
        if is_owned {
            found.gone.push(ObjectChange {
                verb: Verb::Deleted,
                object: template,
                reason: Some(format!("it goes with {id}")),
                fields: Vec::new(),
            });
        }
    }
    push(
        found,
        MachineChange {
            owner: id.clone(),
            total: removed.len().max(usize::try_from(surplus).unwrap_or_default()),
            replaced: Vec::new(),
            kept: Vec::new(),
            removed,
            added: 0,
            surplus,
            how: "it is deleted".to_owned(),
            in_place: Vec::new(),
        },
    );
}
