//! What each Cluster gets, and what is recorded of it. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Time};
use serde_json::Value;
use windlass_api::addons::reasons;
use windlass_api::addons::{
    ClusterResourceSet, ClusterResourceSetBinding, ResourceBinding, ResourceRef, ResourceSetBinding, STRATEGY_RECONCILE,
};
use windlass_api::meta::MetaExt as _;
use windlass_cluster_cache::Workload;
use windlass_conditions::whole_seconds;
use windlass_controller_runtime::owner::{self, owner_of_kind, owner_ref};
use windlass_controller_runtime::{Blocked, Decision, Note, ObjectKey, Seen, Stored as _, Until};

use super::ContentsOf;
use super::contents::Contents;
use super::observed::{Observed, Read, Resource};
use crate::shared::legacy::Legacy;

/// Resources of a set in a record, by its schema.
const MOST_RESOURCES: usize = 100;
/// When to look again whether a Secret has come.
const SECRET_AGAIN: Duration = Duration::from_mins(1);

/// One step. A step of one Cluster does not wait for those of others.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Adds the set to the owners of a resource.
    Own {
        /// The resource.
        resource: ResourceRef,
        /// All of its owners.
        owners: Vec<OwnerReference>,
        /// What it was read as.
        resource_version: Option<String>,
    },
    /// Applies resources to a Cluster, and records it.
    Bind(Box<Bind>),
    /// Takes the set out of the record of a Cluster.
    Unbind(Arc<ClusterResourceSetBinding>),
    /// Lets the set go.
    RemoveFinalizer,
}

/// What a Cluster gets.
#[derive(Clone, Debug, PartialEq)]
pub struct Bind {
    /// The Cluster.
    pub cluster: ObjectKey,
    /// Its record, if it has one.
    pub record: Option<Arc<ClusterResourceSetBinding>>,
    /// The resources that it does not have yet.
    pub items: Vec<Item>,
}

/// A resource that a Cluster does not have yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// The resource.
    pub resource: ResourceRef,
    /// Its contents; `None` if they could not be read, or the Cluster cannot be reached.
    pub contents: Option<Contents>,
}

/// Something that keeps a resource from a Cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// The reason of the condition.
    pub reason: &'static str,
    /// The same in the conditions of v1beta1.
    pub(super) legacy: Legacy,
    /// What happened, and what to do.
    pub message: String,
}

/// All steps, and what keeps resources from Clusters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// The steps, in order.
    pub actions: Vec<Action>,
    /// Why.
    pub notes: Vec<Note>,
    /// What keeps resources from Clusters.
    pub problems: Vec<Problem>,
    /// What was not read, so that only time can tell.
    pub unread: Option<String>,
    /// Whether a Secret is missing: one of another type may come, which is not watched.
    pub lacks_secret: bool,
}

/// Decides, or asks for the contents of resources.
pub(super) fn plan(seen: &Observed) -> Decision<Plan, ContentsOf> {
    let mut plan = Plan::default();
    if seen.set.metadata.is_deleting() {
        let name = seen.set.metadata.name();
        let recorded = seen.bindings.values().filter(|record| is_recorded(record, name));
        plan.actions.extend(recorded.map(Arc::clone).map(Action::Unbind));
        // A record that cannot be read may name the set, and would count its resources as applied to a set of the same name.
        if let Some((cluster, why)) = seen.unreadable.first_key_value() {
            plan.record_problem(cluster, why);
        } else {
            plan.actions.push(Action::RemoveFinalizer);
        }
        return plan.into();
    }
    let chosen = match &seen.chosen {
        Ok(chosen) => chosen,
        Err(why) => {
            plan.problem(
                reasons::INTERNAL_ERROR,
                "ClusterMatchFailed",
                &format!("spec.clusterSelector.{why}"),
            );
            return plan.into();
        }
    };
    let missing: BTreeMap<&String, Vec<usize>> =
        chosen.keys().map(|cluster| (cluster, missing(seen, cluster))).collect();
    let asked: Vec<usize> = (0..seen.resources.len())
        .filter(|index| missing.values().any(|of| of.contains(index)) && is_worth_reading(&seen.resources[*index]))
        .collect();
    if !asked.is_empty() {
        return Decision::Ask(ContentsOf(asked));
    }
    plan.read_problems(seen, &missing);
    if !chosen.is_empty() {
        plan.actions
            .extend(seen.resources.iter().filter_map(|resource| own(seen, resource)));
    }
    for (cluster, workload) in chosen {
        plan.bind(seen, cluster, workload, &missing[cluster]);
    }
    plan.into()
}

/// Whether a record is of a set: it has an entry of it, or it as an owner.
fn is_recorded(record: &ClusterResourceSetBinding, set: &str) -> bool {
    record.entry(set).is_some() || owner(record).is_some_and(|owner| owner.name == set)
}

fn owner(record: &ClusterResourceSetBinding) -> Option<&OwnerReference> {
    owner_of_kind(&record.metadata, "addons.cluster.x-k8s.io", "ClusterResourceSet")
}

/// The resources that a Cluster does not have yet, by their places. With the strategy Reconcile that is known when they were read.
fn missing(seen: &Observed, cluster: &str) -> Vec<usize> {
    let entry = entry(seen, cluster);
    let reconciles = seen.set.spec.strategy.as_deref() == Some(STRATEGY_RECONCILE);
    let is_missing = |(_, resource): &(usize, &Resource)| {
        let have = entry.and_then(|entry| entry.resources.iter().find(|one| one.is_of(&resource.reference)));
        let Some(have) = have.filter(|have| have.applied) else {
            return true;
        };
        match &resource.read {
            Some(Read::Contents(Seen::Found(contents))) => reconciles && have.hash.as_ref() != Some(&contents.hash),
            // What it has now is asked for, unless it is gone.
            None => reconciles && resource.found.is_some(),
            Some(_) => false,
        }
    };
    let all = seen.resources.iter().enumerate();
    all.filter(is_missing).map(|(index, _)| index).collect()
}

fn entry<'a>(seen: &'a Observed, cluster: &str) -> Option<&'a ResourceSetBinding> {
    seen.bindings.get(cluster)?.entry(seen.set.metadata.name())
}

/// Whether a resource is read: it is there, or it may be a Secret of another type.
fn is_worth_reading(resource: &Resource) -> bool {
    resource.read.is_none() && (resource.found.is_some() || resource.reference.kind == "Secret")
}

/// The step that makes the set an owner of a resource, so that it is known whose it is before a Cluster can be reached.
fn own(seen: &Observed, resource: &Resource) -> Option<Action> {
    let metadata = resource.found.as_ref()?.metadata();
    if matches!(resource.read, Some(Read::WrongType(_) | Read::Contents(Seen::NotFound))) {
        return None;
    }
    let before = metadata.owner_references.clone().unwrap_or_default();
    let mut owners = before.clone();
    owner::ensure(&mut owners, owner_ref(&*seen.set));
    (owners != before).then(|| Action::Own {
        resource: resource.reference.clone(),
        owners,
        resource_version: metadata.resource_version.clone(),
    })
}

impl Plan {
    fn problem(&mut self, reason: &'static str, legacy: &str, message: &str) {
        self.problems.push(Problem {
            reason,
            legacy: Legacy::warning(legacy, message),
            message: message.to_owned(),
        });
    }

    /// The record of a Cluster cannot be read.
    fn record_problem(&mut self, cluster: &str, why: &str) {
        let message = format!("ClusterResourceSetBinding {cluster} cannot be read: {why}");
        self.unread.get_or_insert_with(|| message.clone());
        self.problem(reasons::INTERNAL_ERROR, "ApplyFailed", &message);
    }

    /// The resources that cannot be read and that a Cluster does not have.
    fn read_problems(&mut self, seen: &Observed, missing: &BTreeMap<&String, Vec<usize>>) {
        for (index, resource) in seen.resources.iter().enumerate() {
            if !missing.values().any(|of| of.contains(&index)) {
                continue;
            }
            let ResourceRef { kind, name } = &resource.reference;
            let retrieving = "RetrievingResourceFailed";
            match &resource.read {
                Some(Read::WrongType(found)) => self.problem(
                    reasons::WRONG_SECRET_TYPE,
                    reasons::WRONG_SECRET_TYPE,
                    &format!(
                        "Secret type of resource {name} is not supported: it is {found}, and must be addons.cluster.x-k8s.io/resource-set"
                    ),
                ),
                Some(Read::Contents(Seen::Failed(why))) => {
                    let message = format!("{kind} {name} cannot be read: {why}");
                    self.unread.get_or_insert_with(|| message.clone());
                    self.problem(reasons::INTERNAL_ERROR, retrieving, &message);
                }
                Some(Read::Contents(Seen::NotFound)) | None => {
                    self.lacks_secret |= kind == "Secret";
                    let message = format!("{kind} {name} does not exist; create it, or remove it from spec.resources");
                    self.problem(reasons::INTERNAL_ERROR, retrieving, &message);
                }
                Some(Read::Contents(Seen::Found(contents))) => {
                    if let Err(why) = &contents.objects {
                        let message = format!("{kind} {name}: {why}");
                        self.problem(reasons::NOT_APPLIED, "ApplyFailed", &message);
                    }
                }
            }
        }
    }

    /// What a Cluster gets, and its record.
    fn bind(&mut self, seen: &Observed, cluster: &str, workload: &Workload<()>, missing: &[usize]) {
        let mut items: Vec<Item> = Vec::new();
        for resource in missing.iter().map(|index| &seen.resources[*index]) {
            let Some(Read::Contents(Seen::Found(contents))) = &resource.read else {
                continue;
            };
            items.push(Item {
                resource: resource.reference.clone(),
                contents: Some(contents.clone()).filter(|contents| contents.objects.is_ok()),
            });
        }
        if let Some(why) = seen.unreadable.get(cluster) {
            self.record_problem(cluster, why);
            return;
        }
        // Why it cannot be reached changes without an event of its own, and the Cluster says it.
        if workload.unknown().is_some() && !items.is_empty() {
            let message =
                format!("Cluster {cluster} cannot be reached; its condition RemoteConnectionProbe has the reason");
            self.problems.push(Problem {
                reason: reasons::INTERNAL_ERROR,
                legacy: Legacy::error("RemoteClusterClientFailed", message.as_str()),
                message,
            });
            items.clear();
        }
        let bind = Bind {
            cluster: ObjectKey::new(seen.set.metadata.namespace(), cluster),
            record: seen.bindings.get(cluster).cloned(),
            items,
        };
        // Times and hashes of what fails again stay as they are, so the record need not change.
        let is_new = recorded(&seen.set, &bind, &[], Timestamp::UNIX_EPOCH).is_some();
        if is_new || !bind.items.is_empty() {
            for item in &bind.items {
                let ResourceRef { kind, name } = &item.resource;
                self.notes
                    .push(Note::new(format!("Applying {kind} {name} to Cluster {cluster}")));
            }
            self.actions.push(Action::Bind(Box::new(bind)));
        }
    }
}

/// The record after a Cluster got its items, of which these were applied; `None` if it is as it was.
pub(super) fn recorded(
    set: &ClusterResourceSet,
    bind: &Bind,
    applied: &[bool],
    now: Timestamp,
) -> Option<ClusterResourceSetBinding> {
    let mut record = bind.record.as_deref().cloned().unwrap_or_else(|| {
        let mut record = ClusterResourceSetBinding::default();
        record.metadata.namespace = Some(bind.cluster.namespace.clone());
        record.metadata.name = Some(bind.cluster.name.clone());
        record.spec.cluster_name.clone_from(&bind.cluster.name);
        record
    });
    let owners = record.metadata.owner_references.get_or_insert_default();
    owner::ensure(owners, owner_ref(set));
    let name = set.metadata.name();
    let bindings = &mut record.spec.bindings;
    let place = bindings
        .iter()
        .position(|entry| entry.cluster_resource_set_name == name);
    let place = place.unwrap_or_else(|| {
        bindings.push(ResourceSetBinding {
            cluster_resource_set_name: name.to_owned(),
            resources: Vec::new(),
        });
        bindings.len() - 1
    });
    let entry = &mut bindings[place];
    for (item, applied) in bind.items.iter().zip(applied) {
        let mut new = ResourceBinding {
            applied: *applied,
            hash: item.contents.as_ref().map(|contents| contents.hash.clone()),
            kind: item.resource.kind.clone(),
            last_applied_time: Some(Time(whole_seconds(now))),
            name: item.resource.name.clone(),
        };
        if let Some(old) = entry.resources.iter_mut().find(|one| one.is_of(&item.resource)) {
            if !new.applied && (old.applied, &old.hash) == (new.applied, &new.hash) {
                new.last_applied_time.clone_from(&old.last_applied_time);
            }
            *old = new;
            continue;
        }
        // Names of resources may change with their contents.
        if entry.resources.len() >= MOST_RESOURCES {
            entry
                .resources
                .retain(|one| set.spec.resources.iter().any(|resource| one.is_of(resource)));
        }
        entry.resources.push(new);
    }
    (bind.record.as_deref() != Some(&record)).then_some(record)
}

/// The record without a set; `None` if nothing is left in it.
pub(super) fn unrecorded(
    set: &ClusterResourceSet,
    record: &ClusterResourceSetBinding,
) -> Option<ClusterResourceSetBinding> {
    let mut rest = record.clone();
    let name = set.metadata.name();
    rest.spec
        .bindings
        .retain(|entry| entry.cluster_resource_set_name != name);
    let itself = owner_ref(set);
    let owners = rest.metadata.owner_references.get_or_insert_default();
    owners.retain(|one| !owner::is_same(one, &itself));
    (!rest.spec.bindings.is_empty()).then_some(rest)
}

/// The change that makes a stored record this one. The server refuses it if the record has changed since.
pub(super) fn change(record: &ClusterResourceSetBinding) -> Value {
    serde_json::json!({
        "metadata": {
            "uid": record.metadata.uid,
            "resourceVersion": record.metadata.resource_version,
            "ownerReferences": record.metadata.owner_references,
        },
        "spec": windlass_controller_runtime::Part::to_json(&record.spec),
    })
}

impl windlass_controller_runtime::Plan for Plan {
    fn notes(&self) -> &[Note] {
        &self.notes
    }

    fn requeue(&self) -> Option<Duration> {
        self.lacks_secret.then_some(SECRET_AGAIN)
    }

    /// What is missing comes with an event: ConfigMaps, Secrets of the type and connections to Clusters are watched.
    fn blocked(&self) -> Option<Blocked> {
        if let Some(why) = &self.unread {
            return Some(Blocked::failed("Unreadable", why.as_str()));
        }
        let first = self.problems.first()?;
        Some(Blocked {
            reason: first.reason,
            message: first.message.clone(),
            until: Until::Event,
        })
    }
}
