//! The Machine controller.
//!
//! It gives a Machine that nothing controls to its Cluster, makes each Machine the controller of its bootstrap configuration and
//! infrastructure machine, takes over what those report (data Secret, provider ID, addresses), finds the Node by provider ID and keeps
//! its metadata, calls the extension that updates a Machine in place, and takes a Machine down stage by stage. It owns the conditions
//! Available, Ready, UpToDate (workers), BootstrapConfigReady, InfrastructureReady, NodeHealthy, NodeReady, Updating and Deleting.

mod apply;
mod drain;
mod facts;
pub(crate) mod in_place;
mod node_sync;
mod observe;
mod plan;
mod status;
#[cfg(test)]
#[allow(clippy::needless_pass_by_value, reason = "cases hand in literals")]
mod tests;
mod volumes;

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use windlass_api::core::{Cluster, Machine, MachineDeployment, MachineDrainRule, MachineSet};
use windlass_api::finalizers;
use windlass_api::meta::MetaExt as _;
use windlass_api::runtime::ExtensionConfig;
use windlass_cluster_cache::{Clusters, RemoteEvent};
use windlass_controller_runtime::{
    Controller, ControllerEntry, Cx, Decision, Moment, ObjectKey, Part as _, Watch, key_of, refers_to,
};
use windlass_runtime_client::Extensions;

pub use node_sync::{KeyPattern, NodeSync};

use crate::shared::in_place::is_under_way;
use apply::Done;
use in_place::Question;
use observe::Observed;
use plan::{Action, Plan};

/// Reconciles Machines.
#[derive(Debug)]
struct MachineController {
    clusters: Clusters,
    sync: Arc<NodeSync>,
    extensions: Extensions,
}

/// The controller, to run. `sync` says what goes from Machines to their Nodes beside what always does.
pub fn entry(clusters: Clusters, sync: &NodeSync, extensions: Extensions) -> ControllerEntry {
    let sync = Arc::new(sync.clone());
    ControllerEntry::of(MachineController {
        clusters,
        sync,
        extensions,
    })
}

impl Controller for MachineController {
    type Kind = Machine;
    type Observed = Observed;
    type Question = Question;
    type Plan = Plan;
    type Done = Done;
    const NAME: &'static str = "machine";
    const MANAGER: &'static str = apply::MANAGER;
    const STATUS_MANAGER: &'static str = "capi-machine-status";
    const FINALIZER: Option<&'static str> = Some(finalizers::MACHINE);
    const STATUS_PACE: Duration = Duration::from_millis(200);
    // What waits for a Machine's bootstrap data or infrastructure watches these themselves.
    const INITIALIZATION_IS_AWAITED: bool = false;

    fn cluster_of(object: &Machine) -> Option<ObjectKey> {
        Some(ObjectKey::new(
            object.metadata.namespace.as_deref()?,
            &object.spec.cluster_name,
        ))
    }

    fn watches(&self) -> Vec<Watch> {
        vec![
            Watch::dynamic_owned(),
            Watch::referenced::<Machine>(references),
            Watch::map::<Cluster>(machines_of_cluster),
            Watch::map::<MachineSet>(machines_of_set),
            Watch::map::<MachineDeployment>(machines_of_deployment),
            Watch::map::<MachineDrainRule>(machines_that_drain),
            Watch::map::<ExtensionConfig>(|cx, _, _| machines_in_update(cx)),
            {
                let clusters = self.clusters.clone();
                self.clusters
                    .watch(move |cx, event| machines_of_remote(cx, &clusters, event))
            },
        ]
    }

    async fn observe(&self, cx: &Cx, object: Arc<Machine>) -> Observed {
        observe::observe(cx, &self.clusters, &self.sync, object).await
    }

    async fn answer(&self, _: &Cx, seen: Observed, _: Question) -> Observed {
        in_place::ask(&self.extensions, seen).await
    }

    fn plan(&self, seen: &Observed, now: &Moment) -> Decision<Plan, Question> {
        plan::plan(seen, now)
    }

    async fn apply(&self, cx: &Cx, seen: &Observed, plan: &Plan) -> Done {
        apply::apply(cx, &self.clusters, seen, plan).await
    }

    fn status(&self, seen: &Observed, plan: &Plan, done: &Done, now: &Moment) -> Option<Value> {
        let released = plan.actions.contains(&Action::RemoveFinalizer) && done.failed.is_none();
        (!released).then(|| status::status(seen, &plan.after(done), now).to_json())
    }
}

/// What a Machine refers to may come after it, with its kind. Once the Machine has what it needs from there, its owner reference
/// says as much, and takes no room in an index.
fn references(machine: &Machine) -> Vec<String> {
    let done = machine
        .status
        .as_ref()
        .and_then(|status| status.initialization.clone())
        .unwrap_or_default();
    if done.bootstrap_data_secret_created == Some(true) && done.infrastructure_provisioned == Some(true) {
        return Vec::new();
    }
    let namespace = machine.metadata.namespace.as_deref().unwrap_or_default();
    let bootstrap = machine.spec.bootstrap.config_ref.as_ref();
    let all = bootstrap.into_iter().chain([&machine.spec.infrastructure_ref]);
    all.flat_map(|to| refers_to(&to.group_kind(), &ObjectKey::new(namespace, &to.name)))
        .collect()
}

/// Machines wait for their Cluster's infrastructure and control plane, and stop waiting when it goes.
fn machines_of_cluster(cx: &Cx, old: Option<&Cluster>, new: Option<&Cluster>) -> Vec<ObjectKey> {
    let marks = |cluster: &Cluster| {
        let status = cluster.status.as_ref();
        let initialized = status.is_some_and(|s| {
            windlass_conditions::is_true(&s.conditions, windlass_api::conditions::CONTROL_PLANE_INITIALIZED)
        });
        let done = status.and_then(|s| s.initialization.clone());
        (initialized, done, cluster.metadata.deletion_timestamp.is_some())
    };
    match (old, new) {
        (Some(old), Some(new)) if marks(old) == marks(new) => Vec::new(),
        (_, Some(cluster)) => machines_in(cx, &key_of(&cluster.metadata)),
        _ => Vec::new(),
    }
}

/// A MachineSet's template and revision, and whose set it is, decide whether its Machines are up to date.
fn machines_of_set(cx: &Cx, old: Option<&MachineSet>, new: Option<&MachineSet>) -> Vec<ObjectKey> {
    let (Some(old), Some(new)) = (old, new) else {
        return Vec::new();
    };
    let revision = |set: &MachineSet| {
        set.metadata
            .annotation(windlass_api::annotations::REVISION)
            .map(str::to_owned)
    };
    let is_same = revision(old) == revision(new)
        && old.metadata.owner_references == new.metadata.owner_references
        && old.spec.template == new.spec.template;
    if is_same {
        return Vec::new();
    }
    let of_set = cx.cache::<Machine>().by_owner(new.metadata.uid());
    of_set.iter().map(|machine| key_of(&machine.metadata)).collect()
}

/// A MachineDeployment's template decides whether its Machines are up to date.
fn machines_of_deployment(cx: &Cx, old: Option<&MachineDeployment>, new: Option<&MachineDeployment>) -> Vec<ObjectKey> {
    let Some(new) = new else { return Vec::new() };
    let revision = |deployment: &MachineDeployment| {
        let annotations = deployment.metadata.annotations.as_ref();
        annotations.and_then(|all| all.get(windlass_api::annotations::REVISION).cloned())
    };
    if old.is_some_and(|old| old.metadata.generation == new.metadata.generation && revision(old) == revision(new)) {
        return Vec::new();
    }
    let name = new.metadata.name.as_deref();
    let key = ObjectKey::new(
        new.metadata.namespace.as_deref().unwrap_or_default(),
        &new.spec.cluster_name,
    );
    let belongs = |machine: &Machine| {
        let labels = machine.metadata.labels.as_ref();
        labels
            .and_then(|all| all.get(windlass_api::labels::MACHINE_DEPLOYMENT_NAME))
            .map(String::as_str)
            == name
    };
    let machines = cx.cache::<Machine>().by_cluster(&key.namespace, &key.name);
    machines
        .iter()
        .filter(|machine| belongs(machine))
        .map(|machine| key_of(&machine.metadata))
        .collect()
}

/// A rule may let a drain go on that waits, or hold one back. Which Machines a rule was about before is not asked: deletions are rare.
fn machines_that_drain(cx: &Cx, old: Option<&MachineDrainRule>, new: Option<&MachineDrainRule>) -> Vec<ObjectKey> {
    let Some(rule) = new
        .or(old)
        .filter(|_| old.map(|old| &old.spec) != new.map(|new| &new.spec))
    else {
        return Vec::new();
    };
    let namespace = rule.metadata.namespace.as_deref().unwrap_or_default();
    let machines = cx.cache::<Machine>().list(namespace);
    deleting(&machines).collect()
}

fn deleting(machines: &[Arc<Machine>]) -> impl Iterator<Item = ObjectKey> {
    let deleting = machines
        .iter()
        .filter(|machine| machine.metadata.deletion_timestamp.is_some());
    deleting.map(|machine| key_of(&machine.metadata))
}

/// A connection that comes or goes, and the list of its Nodes, concern all Machines of a Cluster, a Node the one it belongs to. Deletions wait
/// for the first answer after silence.
fn machines_of_remote(cx: &Cx, clusters: &Clusters, event: &RemoteEvent) -> Vec<ObjectKey> {
    match event {
        RemoteEvent::Connected(cluster) | RemoteEvent::Disconnected(cluster) | RemoteEvent::Listed(cluster) => {
            machines_in(cx, cluster)
        }
        RemoteEvent::Probed(cluster) if clusters.health(cluster).failing_since.is_none() => {
            let machines = cx.cache::<Machine>().by_cluster(&cluster.namespace, &cluster.name);
            deleting(&machines).collect()
        }
        RemoteEvent::Probed(_) => Vec::new(),
        RemoteEvent::Node { cluster, old, new } => {
            let id = new
                .as_ref()
                .or(old.as_ref())
                .and_then(|node| node.spec.as_ref()?.provider_id.clone());
            let name = new
                .as_ref()
                .or(old.as_ref())
                .and_then(|node| node.metadata.name.clone());
            let machines = cx.cache::<Machine>().by_cluster(&cluster.namespace, &cluster.name);
            let matches = |machine: &Machine| {
                let node_ref = machine
                    .status
                    .as_ref()
                    .and_then(|s| s.node_ref.as_ref())
                    .map(|node| node.name.clone());
                (id.is_some() && machine.spec.provider_id == id) || (name.is_some() && node_ref == name)
            };
            machines
                .iter()
                .filter(|machine| matches(machine))
                .map(|machine| key_of(&machine.metadata))
                .collect()
        }
    }
}

/// The Machines that an extension updates in place, or is to.
fn machines_in_update(cx: &Cx) -> Vec<ObjectKey> {
    let all = cx.cache::<Machine>().all();
    let updated = all.iter().filter(|machine| is_under_way(machine));
    updated.map(|machine| key_of(&machine.metadata)).collect()
}

fn machines_in(cx: &Cx, cluster: &ObjectKey) -> Vec<ObjectKey> {
    let machines = cx.cache::<Machine>().by_cluster(&cluster.namespace, &cluster.name);
    machines.iter().map(|machine| key_of(&machine.metadata)).collect()
}
