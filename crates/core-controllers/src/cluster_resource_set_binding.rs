//! The ClusterResourceSetBinding controller: the record of what a Cluster got goes with the Cluster.
//!
//! Watches ClusterResourceSetBindings and Clusters. Deletes the record of a Cluster that is gone or being deleted, and takes owner
//! references to Clusters out of records of Cluster API before 1.4.

mod apply;

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::Value;
use windlass_api::addons::ClusterResourceSetBinding;
use windlass_api::core::Cluster;
use windlass_api::kind::ApiKind as _;
use windlass_api::meta::MetaExt as _;
use windlass_controller_runtime::{
    Blocked, Controller, ControllerEntry, Cx, Decision, Moment, NoQuestion, ObjectKey, ReconcileError, Seen, Watch,
};
use windlass_runtime_client::Extensions;

use crate::cluster::hook;
use crate::shared::keys::managers;

/// The ClusterResourceSetBinding controller.
#[derive(Debug)]
pub struct ClusterResourceSetBindingController {
    extensions: Extensions,
}

/// The controller, ready to be run.
pub fn entry(extensions: Extensions) -> ControllerEntry {
    ControllerEntry::of(ClusterResourceSetBindingController { extensions })
}

/// What was read for a record.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The record.
    pub record: Arc<ClusterResourceSetBinding>,
    /// Its Cluster, read from the API server before the record goes.
    pub cluster: Seen<Arc<Cluster>>,
    /// Whether the Cluster's deletion waits for an extension.
    pub is_held: bool,
}

/// What becomes of a record.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Its owners, if they change.
    pub owners: Option<Vec<OwnerReference>>,
    /// Whether it goes.
    pub goes: bool,
    /// Why it cannot be told.
    pub blocked: Option<Blocked>,
}

impl windlass_controller_runtime::Plan for Plan {
    fn blocked(&self) -> Option<Blocked> {
        self.blocked.clone()
    }
}

impl Controller for ClusterResourceSetBindingController {
    type Kind = ClusterResourceSetBinding;
    type Observed = Observed;
    type Question = NoQuestion;
    type Plan = Plan;
    type Done = Option<ReconcileError>;

    const NAME: &'static str = "clusterresourcesetbinding";
    const MANAGER: &'static str = managers::CLUSTER_RESOURCE_SET_BINDING;
    const STATUS_MANAGER: &'static str = "capi-clusterresourcesetbinding-status";
    const FINALIZER: Option<&'static str> = None;
    const FOLLOWS_CLUSTERS: bool = false;
    const SHOWS_PAUSED: bool = false;

    fn cluster_of(_: &ClusterResourceSetBinding) -> Option<ObjectKey> {
        None
    }

    fn watches(&self) -> Vec<Watch> {
        // The record of a Cluster has its name. Most Clusters have none.
        vec![Watch::map::<Cluster>(|cx, old, new| {
            let key = match (old, new) {
                (Some(old), Some(new)) if is_going(old) == is_going(new) => return Vec::new(),
                (_, Some(cluster)) | (Some(cluster), None) => cluster.key(),
                (None, None) => return Vec::new(),
            };
            let record = cx.cache::<ClusterResourceSetBinding>().get(&key);
            record.map(|_| key).into_iter().collect()
        })]
    }

    async fn observe(&self, cx: &Cx, object: Arc<ClusterResourceSetBinding>) -> Observed {
        let key = ObjectKey::new(object.metadata.namespace(), object.spec.cluster_name.as_str());
        let cluster = match cx.cache::<Cluster>().get(&key) {
            Some(cluster) => Seen::Found(cluster),
            // The cache may not have a new Cluster yet, and the record of one that is there must stay.
            None => cx.read::<Cluster>(&key).await.map(Arc::new),
        };
        let is_held = match cluster
            .found()
            .filter(|cluster| cluster.is_deleting() && hook::concerns(cluster))
        {
            Some(cluster) => hook::is_served(&self.extensions, cluster).await,
            None => false,
        };
        Observed {
            record: object,
            cluster,
            is_held,
        }
    }

    fn plan(&self, seen: &Observed, _: &Moment) -> Decision<Plan, NoQuestion> {
        plan(seen).into()
    }

    async fn apply(&self, cx: &Cx, seen: &Observed, plan: &Plan) -> Option<ReconcileError> {
        apply::apply(cx, seen, plan).await
    }

    fn status(&self, _: &Observed, _: &Plan, _: &Self::Done, _: &Moment) -> Option<Value> {
        None
    }
}

/// The facts about a Cluster that concern its record: whether it is being deleted, and whether extensions may hold that up.
fn is_going(cluster: &Cluster) -> (bool, bool) {
    (cluster.is_deleting(), hook::concerns(cluster))
}

/// Decides.
fn plan(seen: &Observed) -> Plan {
    let goes = match &seen.cluster {
        // What a Cluster got stays with it while it may still live on.
        Seen::Found(cluster) => cluster.is_deleting() && !seen.is_held,
        Seen::NotFound => true,
        Seen::Failed(why) => {
            let why = format!("Cluster {} cannot be read: {why}", seen.record.spec.cluster_name);
            return Plan {
                blocked: Some(Blocked::failed("Unreadable", why)),
                ..Plan::default()
            };
        }
    };
    let before = seen.record.metadata.owner_references.clone().unwrap_or_default();
    let is_cluster =
        |owner: &OwnerReference| owner.kind == Cluster::KIND && owner.api_version.starts_with("cluster.x-k8s.io/");
    let owners: Vec<OwnerReference> = before.iter().filter(|owner| !is_cluster(owner)).cloned().collect();
    Plan {
        owners: (owners.len() != before.len()).then_some(owners),
        goes: goes && !seen.record.metadata.is_deleting(),
        blocked: None,
    }
}
