//! The DevIPPool controller: addresses for IPAddressClaims, as the contract of IPAM providers of Cluster API v1.14 has them.
//!
//! All claims of a pool are served by one reconcile of the pool, so no address is given twice. Each claim with an address has an IPAddress of
//! its name, which nothing but the deletion of the claim takes away; a claim that finds the pool exhausted says so. Claims that are paused,
//! by themselves or by their Cluster, are left as they are. A pool stays until the last of its addresses was given back.

mod apply;
mod observe;
mod plan;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde_json::{Value, json};
use windlass_api::core::Cluster;
use windlass_api::ipam::{IPAddress, IPAddressClaim, IPPoolReference};
use windlass_api::kind::ApiKind as _;
use windlass_api::meta::MetaExt as _;
use windlass_api_ext::finalizers;
use windlass_api_ext::infrastructure::DevIPPool;
use windlass_controller_runtime::{Controller, ControllerEntry, Cx, Decision, Moment, NoQuestion, ObjectKey, Watch};

use apply::Done;
use observe::Observed;
use plan::{Action, Plan};

/// Reconciles DevIPPools.
#[derive(Debug)]
struct DevIPPools;

/// The controller, to run.
pub fn entry() -> ControllerEntry {
    ControllerEntry::of(DevIPPools)
}

impl Controller for DevIPPools {
    type Kind = DevIPPool;
    type Observed = Observed;
    type Question = NoQuestion;
    type Plan = Plan;
    type Done = Done;
    const NAME: &'static str = "devippool";
    const MANAGER: &'static str = crate::dev_machine::MANAGER;
    const STATUS_MANAGER: &'static str = "capd-manager-status";
    const FINALIZER: Option<&'static str> = Some(finalizers::DEV_IP_POOL);

    fn watches(&self) -> Vec<Watch> {
        vec![
            Watch::map::<IPAddressClaim>(|cx, old, new| {
                let claim = new.or(old);
                claim.map_or_else(Vec::new, |claim| {
                    pool_of(cx, claim.metadata.namespace(), &claim.spec.pool_ref)
                })
            }),
            Watch::map::<IPAddress>(|cx, old, new| {
                let address = new.or(old);
                address.map_or_else(Vec::new, |one| {
                    pool_of(cx, one.metadata.namespace(), &one.spec.pool_ref)
                })
            }),
            Watch::map::<Cluster>(cluster_changed),
        ]
    }

    async fn observe(&self, cx: &Cx, object: Arc<DevIPPool>) -> Observed {
        observe::observe(cx, object)
    }

    fn plan(&self, seen: &Observed, now: &Moment) -> Decision<Plan, NoQuestion> {
        plan::plan(seen, now.now()).into()
    }

    async fn apply(&self, cx: &Cx, seen: &Observed, plan: &Plan) -> Done {
        apply::apply(cx, seen, plan).await
    }

    fn status(&self, _: &Observed, plan: &Plan, done: &Done, _: &Moment) -> Option<Value> {
        let released = plan.actions.contains(&Action::RemoveFinalizer) && done.failed.is_none();
        (!released).then(|| json!({ "used": plan.used, "free": plan.free }))
    }
}

/// The pool of a reference, if there is one.
fn pool_of(cx: &Cx, namespace: &str, reference: &IPPoolReference) -> Vec<ObjectKey> {
    if !is_ours(reference) {
        return Vec::new();
    }
    let key = ObjectKey::new(namespace, reference.name.as_str());
    let exists = cx.cache::<DevIPPool>().get(&key).is_some();
    exists.then_some(key).into_iter().collect()
}

/// Whether a reference names a pool of this provider.
fn is_ours(reference: &IPPoolReference) -> bool {
    reference.kind == DevIPPool::KIND && reference.api_group == DevIPPool::GROUP
}

/// A Cluster that comes, or that is paused or goes on, concerns the pools of its claims.
fn cluster_changed(cx: &Cx, old: Option<&Cluster>, new: Option<&Cluster>) -> Vec<ObjectKey> {
    if let (Some(old), Some(new)) = (old, new)
        && observe::is_paused(old) == observe::is_paused(new)
    {
        return Vec::new();
    }
    // A claim is no longer held by the pause of a Cluster that is gone.
    let Some(cluster) = new.or(old) else { return Vec::new() };
    let (space, name) = (cluster.metadata.namespace(), cluster.metadata.name());
    let claims = cx.cache::<IPAddressClaim>().list(space);
    let of_cluster = claims.iter().filter(|claim| observe::cluster_name(claim) == Some(name));
    of_cluster
        .flat_map(|claim| pool_of(cx, space, &claim.spec.pool_ref))
        .collect()
}
