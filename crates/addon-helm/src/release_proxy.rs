//! The HelmReleaseProxy controller.
//!
//! - It makes the release on a Cluster match the HelmReleaseProxy. `observe` reads, `plan` decides, `apply` writes and begins operations of
//!   Helm, which run beside reconciles.
//! - It begins when the control plane of the Cluster is initialized. It does not wait for nodes: some charts are what nodes wait for.
//! - It compares with the release on the cluster. One new revision reverts a manual change. A fleet at rest causes no requests, except to
//!   repositories of charts whose version is not pinned.
//! - It never writes a release of another owner. A release belongs to the HelmReleaseProxy that its label names; one without the label belongs
//!   to it when the HelmReleaseProxy has recorded the installation.
//! - It never reads HelmChartProxies.

mod address;
mod apply;
mod charts;
mod digest;
mod facts;
mod fetches;
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

use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Secret;
use serde_json::Value;
use windlass_api::core::Cluster;
use windlass_api_ext::addons::{HelmReleaseProxy, finalizers};
use windlass_cluster_cache::{Clusters, RemoteEvent};
use windlass_controller_runtime::{Controller, ControllerEntry, Cx, Decision, Moment, ObjectKey, Watch, key_of};

use windlass_helm::Freshness;

use crate::cluster::is_initialized;
use crate::lookup::ChartLookup;
use crate::names::managers::{RELEASE_PROXY, RELEASE_PROXY_STATUS};

pub use metrics::METRICS;
use observed::{Observed, ReadLive};
use plan::Plan;
pub use ports::{HelmReleases, Settings};
use status::Done;

/// Reconciles HelmReleaseProxies.
#[derive(Debug)]
struct ReleaseProxies {
    helm: HelmReleases,
}

impl ChartLookup for HelmReleases {
    fn look<'a>(&'a self, cx: &'a Cx, proxy: &'a HelmReleaseProxy) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            let source = observe::source(cx, proxy).map_err(|obstacle| obstacle.message)?;
            let fetched = self.0.engine.chart(&source, Freshness::Any).await;
            fetched.map(drop).map_err(|error| error.to_string())
        })
    }
}

/// The controller, to run.
pub fn entry(helm: &HelmReleases) -> ControllerEntry {
    ControllerEntry::of(ReleaseProxies { helm: helm.clone() })
}

impl Controller for ReleaseProxies {
    type Kind = HelmReleaseProxy;
    type Observed = Observed;
    type Question = ReadLive;
    type Plan = Plan;
    type Done = Done;
    const NAME: &'static str = "helmreleaseproxy";
    const MANAGER: &'static str = RELEASE_PROXY;
    const STATUS_MANAGER: &'static str = RELEASE_PROXY_STATUS;
    const FINALIZER: Option<&'static str> = Some(finalizers::HELM_RELEASE_PROXY);
    const OBSERVED_BY_SUCCESS: bool = false;

    fn cluster_of(object: &HelmReleaseProxy) -> Option<ObjectKey> {
        Some(index::cluster_of(object))
    }

    fn watches(&self) -> Vec<Watch> {
        let clusters = &self.helm.0.clusters;
        let (of_clusters, helm, gone) = (clusters.clone(), self.helm.clone(), self.helm.clone());
        let begun = self.helm.clone();
        vec![
            Watch::source(move |cx, wake| {
                index::add(&cx.cache::<HelmReleaseProxy>());
                begun.measure(&cx);
                begun.listen(&cx, wake);
            }),
            Watch::map::<Cluster>(move |cx, old, new| {
                if let (Some(old), None) = (old, new) {
                    helm.0.operations.forget_cluster(&key_of(&old.metadata));
                }
                cluster_changed(cx, old, new)
            }),
            Watch::map::<Secret>(secret_changed),
            {
                let helm = self.helm.clone();
                clusters.watch(move |cx, event| remote_changed(cx, &helm, &of_clusters, event))
            },
            // An object may go without this controller's finalizer.
            Watch::map::<HelmReleaseProxy>(move |_, old, new| {
                if let (Some(old), None) = (old, new) {
                    gone.forget(old);
                }
                Vec::new()
            }),
        ]
    }

    async fn observe(&self, cx: &Cx, object: Arc<HelmReleaseProxy>) -> Observed {
        observe::observe(cx, &self.helm, object).await
    }

    async fn answer(&self, _: &Cx, seen: Observed, question: ReadLive) -> Observed {
        observe::answer(&self.helm, seen, question).await
    }

    fn plan(&self, seen: &Observed, now: &Moment) -> Decision<Plan, ReadLive> {
        plan::plan(seen, now)
    }

    async fn apply(&self, cx: &Cx, seen: &Observed, plan: &Plan) -> Done {
        apply::apply(cx, &self.helm, seen, plan).await
    }

    fn status(&self, seen: &Observed, plan: &Plan, done: &Done, now: &Moment) -> Option<Value> {
        status::status(seen, plan, done, now.now())
    }
}

/// Wakes the objects of a Cluster when a field that they depend on changes.
fn cluster_changed(cx: &Cx, old: Option<&Cluster>, new: Option<&Cluster>) -> Vec<ObjectKey> {
    let matters = |cluster: &Cluster| {
        let is_leaving = cluster.metadata.deletion_timestamp.is_some();
        // A deletion waits for a first attempt to connect only if one can be made.
        (is_initialized(cluster), is_provisioned(cluster), is_leaving)
    };
    if old.map(matters) == new.map(matters) {
        return Vec::new();
    }
    let cluster = new.or(old).map(|cluster| key_of(&cluster.metadata));
    cluster.map_or_else(Vec::new, |cluster| index::of_cluster(&cx.cache(), &cluster))
}

fn is_provisioned(cluster: &Cluster) -> bool {
    let status = cluster.status.as_ref();
    let initialization = status.and_then(|status| status.initialization.as_ref());
    initialization.and_then(|initialization| initialization.infrastructure_provisioned) == Some(true)
}

/// Wakes the objects that read a Secret with credentials or authorities. A kubeconfig shows in the connection, except when it goes before
/// the first attempt to connect: a deletion that waits for the attempt has to hear of it.
fn secret_changed(cx: &Cx, old: Option<&Secret>, new: Option<&Secret>) -> Vec<ObjectKey> {
    let Some(secret) = new.or(old).map(|secret| key_of(&secret.metadata)) else {
        return Vec::new();
    };
    let mut woken = index::of_secret(&cx.cache(), &secret);
    let has_value = |secret: &Secret| secret.data.as_ref().is_some_and(|data| data.contains_key("value"));
    if let Some(cluster) = secret.name.strip_suffix("-kubeconfig")
        && old.is_some_and(has_value)
        && !new.is_some_and(has_value)
    {
        let cluster = ObjectKey::new(secret.namespace.as_str(), cluster);
        woken.extend(index::of_cluster(&cx.cache(), &cluster));
    }
    woken
}

fn remote_changed(cx: &Cx, helm: &HelmReleases, clusters: &Clusters, event: &RemoteEvent) -> Vec<ObjectKey> {
    let cluster = match event {
        RemoteEvent::Connected(cluster) => cluster,
        RemoteEvent::Disconnected(cluster) => {
            helm.0.releases.close(cluster);
            cluster
        }
        // The first failure is reported. The others change nothing.
        RemoteEvent::Probed(cluster) if clusters.health(cluster).failures == 1 => cluster,
        RemoteEvent::Listed(_) | RemoteEvent::Probed(_) | RemoteEvent::Node { .. } => return Vec::new(),
    };
    index::of_cluster(&cx.cache(), cluster)
}
