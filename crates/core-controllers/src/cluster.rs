//! The Cluster controller.
//!
//! It makes each Cluster an owner of its infrastructure cluster and its control plane, takes the endpoint over from them
//! once, gathers what its machines report, and takes a Cluster down in order: workers, control plane, infrastructure. What
//! becomes of `spec.topology` is another controller's.

mod apply;
mod facts;
pub(crate) mod hook;
mod observe;
mod plan;
mod status;
#[cfg(test)]
#[allow(
    clippy::needless_pass_by_value,
    clippy::unnecessary_wraps,
    reason = "cases hand in literals as they stand in what is seen"
)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use serde_json::Value;
use windlass_api::core::{Cluster, ClusterClass, Machine, MachineDeployment, MachinePool, MachineSet};
use windlass_api::finalizers;
use windlass_api::runtime::ExtensionConfig;
use windlass_cluster_cache::{Clusters, RemoteEvent};
use windlass_controller_runtime::{
    Controller, ControllerEntry, Cx, Decision, Moment, Object, ObjectKey, Part as _, Watch, key_of, refers_to,
};

use windlass_pki::{KeyPool, Purpose};
use windlass_runtime_client::Extensions;

use crate::shared::clusters::is_standalone;
use apply::Done;
use hook::Question;
use observe::Observed;
use plan::{Action, Plan};

/// Reconciles Clusters.
#[derive(Debug)]
struct ClusterController {
    clusters: Clusters,
    keys: KeyPool,
    extensions: Extensions,
}

/// The controller, to run.
pub fn entry(clusters: Clusters, keys: KeyPool, extensions: Extensions) -> ControllerEntry {
    ControllerEntry::of(ClusterController {
        clusters,
        keys,
        extensions,
    })
}

impl Controller for ClusterController {
    type Kind = Cluster;
    type Observed = Observed;
    type Question = Question;
    type Plan = Plan;
    type Done = Done;
    const NAME: &'static str = "cluster";
    const MANAGER: &'static str = apply::MANAGER;
    const STATUS_MANAGER: &'static str = "capi-cluster-status";
    const FINALIZER: Option<&'static str> = Some(finalizers::CLUSTER);
    // Everything below a Cluster shows in its status, and hardly anything waits for it.
    const STATUS_PACE: Duration = Duration::from_millis(500);

    fn cluster_of(object: &Cluster) -> Option<ObjectKey> {
        Some(key_of(&object.metadata))
    }

    fn watches(&self) -> Vec<Watch> {
        vec![
            Watch::dynamic_owned(),
            Watch::referenced::<Cluster>(references),
            Watch::map::<MachineDeployment>(|_, old, new| {
                cluster_named(old.or(new).map(|md| (md, &md.spec.cluster_name)))
            }),
            Watch::map::<MachinePool>(|_, old, new| cluster_named(old.or(new).map(|mp| (mp, &mp.spec.cluster_name)))),
            Watch::map::<MachineSet>(|_, old, new| cluster_named(old.or(new).map(|ms| (ms, &ms.spec.cluster_name)))),
            Watch::map::<Machine>(machine_changed),
            Watch::map::<ClusterClass>(|cx, _, new| new.map_or_else(Vec::new, |class| clusters_of_class(cx, class))),
            Watch::map::<Secret>(credentials_changed),
            Watch::map::<ExtensionConfig>(|cx, _, _| held_by_extensions(cx)),
            {
                let clusters = self.clusters.clone();
                self.clusters.watch(move |_, event| remote_changed(&clusters, event))
            },
        ]
    }

    async fn observe(&self, cx: &Cx, object: Arc<Cluster>) -> Observed {
        observe::observe(cx, &self.clusters, object).await
    }

    async fn answer(&self, _: &Cx, seen: Observed, _: Question) -> Observed {
        hook::ask(&self.extensions, seen).await
    }

    fn plan(&self, seen: &Observed, _: &Moment) -> Decision<Plan, Question> {
        plan::plan(seen)
    }

    async fn apply(&self, cx: &Cx, seen: &Observed, plan: &Plan) -> Done {
        apply::apply(cx, &self.keys, seen, plan).await
    }

    fn status(&self, seen: &Observed, plan: &Plan, done: &Done, now: &Moment) -> Option<Value> {
        let released = plan.actions.contains(&Action::RemoveFinalizer) && done.failed.is_none();
        let mut status = status::status(seen, plan, now);
        if done.lacks_endpoint {
            status::hold_back(seen, &mut status);
        }
        (!released).then(|| status.to_json())
    }
}

/// What a Cluster refers to may come after it, with its kind, and when it went it may come again.
fn references(cluster: &Cluster) -> Vec<String> {
    let namespace = cluster.metadata.namespace.as_deref().unwrap_or_default();
    let all = [&cluster.spec.infrastructure_ref, &cluster.spec.control_plane_ref];
    let all = all.into_iter().flatten();
    all.flat_map(|to| refers_to(&to.group_kind(), &ObjectKey::new(namespace, &to.name)))
        .collect()
}

/// The Clusters whose deletion waits for an extension, or may.
fn held_by_extensions(cx: &Cx) -> Vec<ObjectKey> {
    let all = cx.cache::<Cluster>().all();
    let held = |cluster: &&Arc<Cluster>| cluster.metadata.deletion_timestamp.is_some() && hook::concerns(cluster);
    all.iter()
        .filter(held)
        .map(|cluster| key_of(&cluster.metadata))
        .collect()
}

fn cluster_named<K: Object>(object: Option<(&K, &String)>) -> Vec<ObjectKey> {
    let Some((object, cluster)) = object else {
        return Vec::new();
    };
    vec![ObjectKey::new(
        object.meta().namespace.as_deref().unwrap_or_default(),
        cluster,
    )]
}

/// A Machine concerns its Cluster when it comes, goes, or reports something that the Cluster gathers.
fn machine_changed(_: &Cx, old: Option<&Machine>, new: Option<&Machine>) -> Vec<ObjectKey> {
    let gathered = |machine: &Machine| {
        let status = machine.status.clone().unwrap_or_default();
        let deleting = machine.metadata.deletion_timestamp.is_some();
        let said = |type_: &str| {
            let found = windlass_conditions::get(&status.conditions, type_);
            found.map(|condition| (condition.status.clone(), condition.message.clone()))
        };
        let told = [
            "Ready",
            "Available",
            "UpToDate",
            "HealthCheckSucceeded",
            "OwnerRemediated",
        ]
        .map(said);
        (deleting, told, status.node_ref.is_some())
    };
    let belongs_alike = |old: &Machine, new: &Machine| {
        let (old, new) = (&old.metadata, &new.metadata);
        old.owner_references == new.owner_references && old.labels == new.labels
    };
    match (old, new) {
        (Some(old), Some(new)) if belongs_alike(old, new) && gathered(old) == gathered(new) => Vec::new(),
        _ => cluster_named(new.or(old).map(|machine| (machine, &machine.spec.cluster_name))),
    }
}

/// The authority and the kubeconfig of a Cluster whose control plane has no object. A user's Secret need not have a label.
fn credentials_changed(cx: &Cx, old: Option<&Secret>, new: Option<&Secret>) -> Vec<ObjectKey> {
    let Some(secret) = new.or(old) else { return Vec::new() };
    let key = key_of(&secret.metadata);
    let of = |purpose: Purpose| key.name.strip_suffix(purpose.suffix())?.strip_suffix('-');
    let Some(name) = of(Purpose::ClusterCa).or_else(|| of(Purpose::Kubeconfig)) else {
        return Vec::new();
    };
    let cluster = ObjectKey::new(key.namespace.as_str(), name);
    let concerns = cx
        .cache::<Cluster>()
        .get(&cluster)
        .is_some_and(|cluster| is_standalone(&cluster));
    if concerns { vec![cluster] } else { Vec::new() }
}

fn clusters_of_class(cx: &Cx, class: &ClusterClass) -> Vec<ObjectKey> {
    let key = key_of(&class.metadata);
    let uses = |cluster: &Cluster| {
        cluster.spec.topology.as_ref().is_some_and(|topology| {
            let namespace = topology
                .class_ref
                .namespace
                .as_deref()
                .or(cluster.metadata.namespace.as_deref());
            topology.class_ref.name == key.name && namespace == Some(key.namespace.as_str())
        })
    };
    cx.cache::<Cluster>()
        .all()
        .iter()
        .filter(|cluster| uses(cluster))
        .map(|cluster| key_of(&cluster.metadata))
        .collect()
}

fn remote_changed(clusters: &Clusters, event: &RemoteEvent) -> Vec<ObjectKey> {
    match event {
        RemoteEvent::Connected(cluster) | RemoteEvent::Disconnected(cluster) => vec![cluster.clone()],
        // An outage begins with its first failure, and ends with the first success. The failures between change nothing.
        RemoteEvent::Probed(cluster) if clusters.health(cluster).failures <= 1 => vec![cluster.clone()],
        RemoteEvent::Listed(_) | RemoteEvent::Probed(_) | RemoteEvent::Node { .. } => Vec::new(),
    }
}
