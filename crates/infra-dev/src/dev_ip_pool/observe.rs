//! Everything the DevIPPool controller reads, as plain data. The only file of this controller that reads.

use std::sync::Arc;

use windlass_api::core::Cluster;
use windlass_api::ipam::{IPAddress, IPAddressClaim};
use windlass_api::meta::MetaExt as _;
use windlass_api::{annotations, labels};
use windlass_api_ext::infrastructure::DevIPPool;
use windlass_controller_runtime::{Cx, ObjectKey};

use super::is_ours;

/// A claim of the pool.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    /// The claim.
    pub(crate) object: Arc<IPAddressClaim>,
    /// Why it is left as it is, if it is.
    pub(crate) held: Option<&'static str>,
}

/// What was read.
#[derive(Clone, Debug)]
pub(crate) struct Observed {
    /// The pool.
    pub(crate) pool: Arc<DevIPPool>,
    /// Its claims, the oldest first.
    pub(crate) claims: Vec<Claim>,
    /// Its addresses.
    pub(crate) addresses: Vec<Arc<IPAddress>>,
}

/// The name of the Cluster that a claim is for: by its field, or by the label that came before.
pub(super) fn cluster_name(claim: &IPAddressClaim) -> Option<&str> {
    let field = claim.spec.cluster_name.as_deref();
    field.or_else(|| claim.metadata.label(labels::CLUSTER_NAME))
}

/// Whether a Cluster pauses what belongs to it.
pub(super) fn is_paused(cluster: &Cluster) -> bool {
    cluster.spec.paused == Some(true) || cluster.metadata.has_annotation(annotations::PAUSED)
}

/// Reads everything.
pub(super) fn observe(cx: &Cx, pool: Arc<DevIPPool>) -> Observed {
    let (space, name) = (pool.metadata.namespace(), pool.metadata.name());
    let mut claims = cx.cache::<IPAddressClaim>().list(space);
    claims.retain(|claim| is_ours(&claim.spec.pool_ref) && claim.spec.pool_ref.name == name);
    claims.sort_by_key(|claim| (claim.metadata.created(), claim.metadata.name.clone()));
    let mut addresses = cx.cache::<IPAddress>().list(space);
    addresses.retain(|address| is_ours(&address.spec.pool_ref) && address.spec.pool_ref.name == name);
    let claims = claims.into_iter().map(|object| Claim {
        held: held(cx, &object),
        object,
    });
    Observed {
        claims: claims.collect(),
        addresses,
        pool,
    }
}

fn held(cx: &Cx, claim: &IPAddressClaim) -> Option<&'static str> {
    if claim.metadata.has_annotation(annotations::PAUSED) {
        return Some("it is paused");
    }
    let name = cluster_name(claim)?;
    let key = ObjectKey::new(claim.metadata.namespace(), name);
    match cx.cache::<Cluster>().get(&key) {
        None if claim.metadata.is_deleting() => None,
        None => Some("its Cluster does not exist"),
        Some(cluster) => is_paused(&cluster).then_some("its Cluster is paused"),
    }
}
