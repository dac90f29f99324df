//! The HelmReleaseProxy controller.
//!
//! - It makes the release on a Cluster what the HelmReleaseProxy says: `observe` reads, `plan` decides, `apply` writes and begins what Helm is
//!   to do, `status` tells.
//! - It begins when the control plane of the Cluster is initialized, whatever becomes of nodes: some charts are what nodes wait for.
//! - It compares with what is on the cluster, so that what somebody else changed is put back by one new revision, and a fleet at rest asks
//!   for nothing: not the clusters, not Helm, and repositories only for versions that are not pinned.
//! - A release that is not its own is left alone. A release is its own when it is marked so; an unmarked one, when the HelmReleaseProxy says
//!   that it was installed.
//! - It never reads HelmChartProxies.

mod address;
mod apply;
mod charts;
mod digest;
mod index;
mod known;
mod metrics;
mod observe;
mod observed;
mod operations;
mod options;
mod plan;
mod ports;
mod releases;
mod status;
#[cfg(test)]
mod testing;

use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use serde_json::Value;
use windlass_api::core::Cluster;
use windlass_api_ext::addons::{HelmReleaseProxy, finalizers};
use windlass_kit::{
    Controller, ControllerEntry, Cx, Decision, Moment, NoQuestion, ObjectKey, Outcome, ReconcileError, Watch, key_of,
};
use windlass_remote::{Clusters, RemoteEvent};

use crate::names::managers::{RELEASE_PROXY, RELEASE_PROXY_STATUS};

pub use metrics::METRICS;
use observe::Sight;
use plan::{Again, Plan, Step};
pub use ports::{HelmReleases, Settings};
use status::Done;

/// Reconciles HelmReleaseProxies.
#[derive(Debug)]
struct ReleaseProxies {
    helm: HelmReleases,
}

/// The controller, to run.
pub fn entry(helm: &HelmReleases) -> ControllerEntry {
    ControllerEntry::of(ReleaseProxies { helm: helm.clone() })
}

impl Controller for ReleaseProxies {
    type Kind = HelmReleaseProxy;
    type Observed = Sight;
    type Question = NoQuestion;
    type Plan = Plan;
    type Done = Done;
    const NAME: &'static str = "helmreleaseproxy";
    const MANAGER: &'static str = RELEASE_PROXY;
    const STATUS_MANAGER: &'static str = RELEASE_PROXY_STATUS;
    const FINALIZER: Option<&'static str> = Some(finalizers::HELM_RELEASE_PROXY);

    fn cluster_of(object: &HelmReleaseProxy) -> Option<ObjectKey> {
        Some(index::cluster_of(object))
    }

    fn watches(&self) -> Vec<Watch> {
        let clusters = &self.helm.0.clusters;
        let (of_clusters, told, gone) = (clusters.clone(), self.helm.clone(), self.helm.clone());
        let begun = self.helm.clone();
        vec![
            Watch::source(move |cx, wake| {
                index::add(&cx.cache::<HelmReleaseProxy>());
                begun.measure(&cx);
                begun.listen(&cx, wake);
            }),
            Watch::map::<Cluster>(move |cx, old, new| {
                if let (Some(old), None) = (old, new) {
                    told.0.operations.forget_cluster(&key_of(&old.metadata));
                }
                cluster_changed(cx, old, new)
            }),
            Watch::map::<Secret>(secret_changed),
            {
                let helm = self.helm.clone();
                clusters.watch(move |cx, event| remote_changed(cx, &helm, &of_clusters, event))
            },
            // However it went, with or without the finalizer.
            Watch::map::<HelmReleaseProxy>(move |_, old, new| {
                if let (Some(old), None) = (old, new) {
                    gone.forget(old);
                }
                Vec::new()
            }),
        ]
    }

    async fn observe(&self, cx: &Cx, object: Arc<HelmReleaseProxy>) -> Sight {
        observe::observe(cx, &self.helm, object).await
    }

    fn plan(&self, seen: &Sight, now: &Moment) -> Decision<Plan, NoQuestion> {
        plan::plan(&seen.observed, now.now()).into()
    }

    async fn apply(&self, cx: &Cx, seen: &Sight, plan: &Plan) -> Done {
        apply::apply(cx, &self.helm, seen, plan).await
    }

    fn status(&self, seen: &Sight, plan: &Plan, done: &Done, now: &Moment) -> Option<Value> {
        status::status(&seen.observed, plan, done, now.now())
    }

    fn outcome(&self, _: &Sight, plan: &Plan, done: &Done) -> Outcome {
        if let Some(error) = &done.failed {
            return Outcome::Failed(error.clone());
        }
        match (plan.again, &plan.step) {
            (Again::After(after), _) => Outcome::RequeueAfter(after),
            (Again::Backoff, Step::Wait(blocked)) => {
                Outcome::Failed(ReconcileError::new(blocked.reason, blocked.message.as_str()))
            }
            (Again::Event | Again::Backoff, _) => Outcome::Settled,
        }
    }
}

/// What of a Cluster its releases depend on.
fn cluster_changed(cx: &Cx, old: Option<&Cluster>, new: Option<&Cluster>) -> Vec<ObjectKey> {
    let matters = |cluster: &Cluster| {
        let is_leaving = cluster.metadata.deletion_timestamp.is_some();
        // Also for objects without the label of their Cluster, which the driver finds by that.
        let is_paused = cluster.spec.paused == Some(true);
        (observe::is_initialized(cluster), is_leaving, is_paused)
    };
    if old.map(matters) == new.map(matters) {
        return Vec::new();
    }
    let cluster = new.or(old).map(|cluster| key_of(&cluster.metadata));
    cluster.map_or_else(Vec::new, |cluster| index::of_cluster(&cx.cache(), &cluster))
}

/// A Secret with credentials or authorities. That of a kubeconfig shows in the connection.
fn secret_changed(cx: &Cx, old: Option<&Secret>, new: Option<&Secret>) -> Vec<ObjectKey> {
    let secret = new.or(old).map(|secret| key_of(&secret.metadata));
    secret.map_or_else(Vec::new, |secret| index::of_secret(&cx.cache(), &secret))
}

fn remote_changed(cx: &Cx, helm: &HelmReleases, clusters: &Clusters, event: &RemoteEvent) -> Vec<ObjectKey> {
    let cluster = match event {
        RemoteEvent::Connected(cluster) => cluster,
        RemoteEvent::Disconnected(cluster) => {
            helm.0.releases.close(cluster);
            cluster
        }
        // Why it cannot be reached is told once; asking again would hasten the next attempt.
        RemoteEvent::Probed(cluster) if clusters.health(cluster).failures == 1 => cluster,
        RemoteEvent::Probed(_) | RemoteEvent::Node { .. } => return Vec::new(),
    };
    index::of_cluster(&cx.cache(), cluster)
}
