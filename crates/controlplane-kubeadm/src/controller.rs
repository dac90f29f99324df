//! The controller as the driver runs it.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;
use windlass_api::core::v1beta2::{Cluster, Machine, MachinePool};
use windlass_api::kind::Conditioned as _;
use windlass_api::labels;
use windlass_api::runtime::ExtensionConfig;
use windlass_api_kubeadm::controlplane::v1beta2::KubeadmControlPlane;
use windlass_controller_runtime::{
    Controller, ControllerEntry, Cx, Decision, Moment, ObjectKey, StatusPace, Wake, Watch, owner,
};
use windlass_pki::{KeyPool, Purpose};
use windlass_runtime_client::Extensions;

use crate::apply;
use crate::names::{FINALIZER, MANAGER, STATUS_MANAGER, control_plane};
use crate::observe::{self, Observed};
use crate::plan::{self, Plan};
use crate::question::Question;
use crate::rotation::REPLACED_FOR;
use crate::status::{self, Done};
use crate::workload::WorkloadClusters;

/// Reconciles KubeadmControlPlanes.
pub struct ControlPlaneController {
    clusters: Arc<dyn WorkloadClusters>,
    keys: KeyPool,
    extensions: Extensions,
    /// When the conditions of Machines were written.
    pace: StatusPace,
}

impl std::fmt::Debug for ControlPlaneController {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ControlPlaneController").finish_non_exhaustive()
    }
}

impl ControlPlaneController {
    /// A controller that reaches workload clusters through `clusters` and has keys made by `keys`. `extensions` are asked whether Machines can
    /// be updated in place.
    pub fn new(clusters: Arc<dyn WorkloadClusters>, keys: KeyPool, extensions: Extensions) -> Self {
        Self {
            clusters,
            keys,
            extensions,
            pace: StatusPace::default(),
        }
    }

    /// As data for the list of controllers.
    pub fn entry(clusters: Arc<dyn WorkloadClusters>, keys: KeyPool, extensions: Extensions) -> ControllerEntry {
        ControllerEntry::of(Self::new(clusters, keys, extensions))
    }
}

impl Controller for ControlPlaneController {
    type Kind = KubeadmControlPlane;
    type Observed = Observed;
    type Question = Question;
    type Plan = Plan;
    type Done = Done;

    const NAME: &'static str = "kubeadmcontrolplane";
    const MANAGER: &'static str = MANAGER;
    const STATUS_MANAGER: &'static str = STATUS_MANAGER;
    const FINALIZER: Option<&'static str> = Some(FINALIZER);
    const STATUS_PACE: Duration = Duration::from_millis(300);

    fn cluster_of(object: &KubeadmControlPlane) -> Option<ObjectKey> {
        observe::cluster_key(object)
    }

    fn watches(&self) -> Vec<Watch> {
        let clusters = Arc::clone(&self.clusters);
        vec![
            Watch::owned::<Machine>(),
            Watch::owned::<Secret>(),
            Watch::read::<windlass_api_kubeadm::bootstrap::v1beta2::KubeadmConfig>(),
            Watch::map::<Cluster>(|_, old, new| new.or(old).map(of_cluster).unwrap_or_default()),
            Watch::map::<Machine>(|cx, old, new| waiting_for_workers(cx, old.map(|m| &m.metadata), new.is_some())),
            Watch::map::<MachinePool>(|cx, old, new| waiting_for_workers(cx, old.map(|p| &p.metadata), new.is_some())),
            Watch::map::<Machine>(without_controller),
            Watch::map::<Machine>(|cx, old, new| rotating(cx, old.map(|m| &m.metadata), new.map(|m| &m.metadata))),
            Watch::map::<MachinePool>(|cx, old, new| rotating(cx, old.map(|p| &p.metadata), new.map(|p| &p.metadata))),
            Watch::map::<ExtensionConfig>(|cx, _, _| rolling_out(cx)),
            Watch::map::<Secret>(certificate),
            Watch::dynamic_map(|cx, old, new| {
                let template = new.or(old).filter(|o| o.kind().ends_with("Template"));
                let Some(template) = template else {
                    return Vec::new();
                };
                let namespace = template.metadata().namespace.as_deref();
                let planes = cx.cache::<KubeadmControlPlane>().list(namespace.unwrap_or_default());
                let uses = |p: &&Arc<KubeadmControlPlane>| {
                    let reference = &p.spec.machine_template.spec.infrastructure_ref;
                    reference.kind == template.kind() && reference.name == template.name()
                };
                planes.iter().filter(uses).map(|p| key(p)).collect()
            }),
            Watch::source(move |cx, wake| {
                let waker = ClusterWake { cx, wake };
                clusters.subscribe(Arc::new(move |cluster| waker.wake(cluster)));
            }),
        ]
    }

    async fn observe(&self, cx: &Cx, object: Arc<KubeadmControlPlane>) -> Observed {
        observe::observe(cx, &*self.clusters, &self.pace, object).await
    }

    async fn answer(&self, cx: &Cx, seen: Observed, question: Question) -> Observed {
        observe::answer(cx, &self.extensions, seen, question).await
    }

    fn plan(&self, seen: &Observed, now: &Moment) -> Decision<Plan, Question> {
        match &seen.facts {
            Some(facts) => plan::plan(facts, now),
            // No Cluster was ever named: there is nothing to delete.
            None if seen.control_plane.metadata.deletion_timestamp.is_some() => Decision::Plan(Plan::gone()),
            None => Decision::Plan(Plan::default()),
        }
    }

    async fn apply(&self, cx: &Cx, seen: &Observed, plan: &Plan) -> Done {
        apply::apply(cx, &self.keys, &self.pace, seen, plan).await
    }

    fn status(&self, seen: &Observed, plan: &Plan, done: &Done, now: &Moment) -> Option<Value> {
        match &seen.facts {
            Some(facts) => Some(status::status(facts, plan, done, now)),
            None => status::without_cluster(&seen.control_plane, now),
        }
    }
}

fn key(control_plane: &KubeadmControlPlane) -> ObjectKey {
    let meta = &control_plane.metadata;
    ObjectKey::new(
        meta.namespace.as_deref().unwrap_or_default(),
        meta.name.as_deref().unwrap_or_default(),
    )
}

/// The control planes whose rollout may wait for an extension.
fn rolling_out(cx: &Cx) -> Vec<ObjectKey> {
    let all = cx.cache::<KubeadmControlPlane>().all();
    let is_rolling_out = |plane: &&Arc<KubeadmControlPlane>| {
        windlass_conditions::is_true(plane.conditions(), control_plane::ROLLING_OUT)
    };
    all.iter().filter(is_rolling_out).map(|plane| key(plane)).collect()
}

/// The control plane that a Cluster refers to.
fn of_cluster(cluster: &Cluster) -> Vec<ObjectKey> {
    let reference = cluster.spec.control_plane_ref.as_ref();
    let namespace = cluster.metadata.namespace.as_deref().unwrap_or_default();
    reference
        .filter(|r| r.kind == "KubeadmControlPlane")
        .map(|r| ObjectKey::new(namespace, r.name.as_str()))
        .into_iter()
        .collect()
}

/// A control plane waits for certificates that a user brings. No owner reference leads from them to the control plane.
fn certificate(cx: &Cx, old: Option<&Secret>, new: Option<&Secret>) -> Vec<ObjectKey> {
    let (Some(secret), true) = (new, old.map(|old| &old.data) != new.map(|new| &new.data)) else {
        return Vec::new();
    };
    let name = secret.metadata.name.as_deref().unwrap_or_default();
    let namespace = secret.metadata.namespace.as_deref().unwrap_or_default();
    let purposes = Purpose::CONTROL_PLANE.into_iter().chain([Purpose::ApiServerEtcdClient]);
    purposes
        .filter_map(|purpose| name.strip_suffix(purpose.suffix())?.strip_suffix('-'))
        .filter_map(|cluster| cx.cache::<Cluster>().get(&ObjectKey::new(namespace, cluster)))
        .flat_map(|cluster| of_cluster(&cluster))
        .collect()
}

/// A control plane that is being deleted waits until the last worker is gone.
fn waiting_for_workers(cx: &Cx, old: Option<&ObjectMeta>, stays: bool) -> Vec<ObjectKey> {
    let Some(meta) = old.filter(|_| !stays) else {
        return Vec::new();
    };
    let Some(cluster) = meta.labels.as_ref().and_then(|l| l.get(labels::CLUSTER_NAME)) else {
        return Vec::new();
    };
    let namespace = meta.namespace.as_deref().unwrap_or_default();
    let planes = cx.cache::<KubeadmControlPlane>().by_cluster(namespace, cluster);
    planes
        .iter()
        .filter(|p| p.metadata.deletion_timestamp.is_some())
        .map(|p| key(p))
        .collect()
}

/// A rotation of authorities waits for workers to be replaced.
fn rotating(cx: &Cx, old: Option<&ObjectMeta>, new: Option<&ObjectMeta>) -> Vec<ObjectKey> {
    let said = |meta: Option<&ObjectMeta>| meta.map(|meta| meta.annotations.as_ref()?.get(REPLACED_FOR).cloned());
    let Some(meta) = old.or(new).filter(|_| said(old) != said(new)) else {
        return Vec::new();
    };
    let Some(cluster) = meta.labels.as_ref().and_then(|l| l.get(labels::CLUSTER_NAME)) else {
        return Vec::new();
    };
    let namespace = meta.namespace.as_deref().unwrap_or_default();
    let planes = cx.cache::<KubeadmControlPlane>().by_cluster(namespace, cluster);
    let is_rotating =
        |plane: &&Arc<KubeadmControlPlane>| windlass_conditions::is_true(plane.conditions(), control_plane::ROTATING);
    planes.iter().filter(is_rotating).map(|plane| key(plane)).collect()
}

/// A control plane Machine without a controller is taken over by the control plane of its Cluster.
fn without_controller(cx: &Cx, _: Option<&Machine>, new: Option<&Machine>) -> Vec<ObjectKey> {
    let Some(machine) = new else {
        return Vec::new();
    };
    let meta = &machine.metadata;
    let labels = meta.labels.as_ref();
    if owner::controller_of(meta).is_some() || labels.is_none_or(|l| !l.contains_key(labels::CONTROL_PLANE)) {
        return Vec::new();
    }
    let namespace = meta.namespace.as_deref().unwrap_or_default();
    let planes = cx
        .cache::<KubeadmControlPlane>()
        .by_cluster(namespace, &machine.spec.cluster_name);
    planes.iter().map(|p| key(p)).collect()
}

/// Wakes the control plane of a Cluster when its workload cluster changes.
struct ClusterWake {
    cx: Cx,
    wake: Wake,
}

impl ClusterWake {
    fn wake(&self, cluster: &ObjectKey) {
        let cluster = self.cx.cache::<Cluster>().get(cluster);
        if let Some(cluster) = cluster {
            self.wake.add_all(of_cluster(&cluster));
        }
    }
}
