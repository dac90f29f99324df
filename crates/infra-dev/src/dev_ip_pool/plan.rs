//! Which claim has which address: pure.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};
use windlass_api::ipam::{IPAddress, IPAddressClaim, PROTECT_ADDRESS_FINALIZER, RELEASE_ADDRESS_FINALIZER};
use windlass_api::kind::{ApiKind as _, Conditioned as _};
use windlass_api::meta::MetaExt as _;
use windlass_api::owner;
use windlass_api_ext::conditions;
use windlass_api_ext::infrastructure::{DevIPPool, DevIPPoolSpec};
use windlass_conditions::{Builder, Draft};
use windlass_controller_runtime::{Note, owner as owners};

use super::observe::Observed;

/// One write.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Action {
    /// Give a claim the finalizer that holds it until its address is given back.
    Hold(Arc<IPAddressClaim>),
    /// Make an IPAddress, or restore what it lost.
    Apply(Box<Value>),
    /// Report on a claim.
    Report(Arc<IPAddressClaim>, Value),
    /// Delete an IPAddress.
    DeleteAddress(Arc<IPAddress>),
    /// Let an IPAddress go that is being deleted.
    ReleaseAddress(Arc<IPAddress>),
    /// Let a claim go.
    Release(Arc<IPAddressClaim>),
    /// Let the pool go.
    RemoveFinalizer,
}

/// The decision about one pool.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Plan {
    /// Writes, in order.
    pub(crate) actions: Vec<Action>,
    /// Why.
    pub(crate) notes: Vec<Note>,
    /// Addresses that claims have after it.
    pub(crate) used: i64,
    /// Addresses that are left.
    pub(crate) free: i64,
}

/// The addresses of a pool, as numbers.
struct Range {
    first: u128,
    last: u128,
    is_v4: bool,
}

impl Range {
    /// `None` if it is no range: admission refuses that.
    fn of(spec: &DevIPPoolSpec) -> Option<Self> {
        let (first, last): (IpAddr, IpAddr) = (spec.first.parse().ok()?, spec.last.parse().ok()?);
        let is_v4 = first.is_ipv4();
        let (first, last) = (number(first), number(last));
        (is_v4 == spec.last.parse::<IpAddr>().ok()?.is_ipv4() && first <= last).then_some(Self { first, last, is_v4 })
    }

    fn address(&self, number: u128) -> IpAddr {
        match u32::try_from(number) {
            Ok(number) if self.is_v4 => IpAddr::V4(Ipv4Addr::from(number)),
            _ => IpAddr::V6(Ipv6Addr::from(number)),
        }
    }

    fn has(&self, address: IpAddr) -> bool {
        address.is_ipv4() == self.is_v4 && (self.first..=self.last).contains(&number(address))
    }

    /// The first address that is not used. Each address that is used moves it by one at most.
    fn first_free(&self, used: &BTreeSet<IpAddr>) -> Option<IpAddr> {
        let mut at = self.first;
        loop {
            let address = self.address(at);
            if !used.contains(&address) {
                return Some(address);
            }
            if at == self.last {
                return None;
            }
            at += 1;
        }
    }

    fn size(&self) -> i64 {
        i64::try_from(self.last - self.first).map_or(i64::MAX, |size| size.saturating_add(1))
    }
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u32::from(address).into(),
        IpAddr::V6(address) => address.into(),
    }
}

/// Decides.
pub(super) fn plan(seen: &Observed, now: Timestamp) -> Plan {
    let mut plan = Plan::default();
    let range = Range::of(&seen.pool.spec);
    let mut used: BTreeSet<IpAddr> = seen
        .addresses
        .iter()
        .filter_map(|one| one.spec.address.parse().ok())
        .collect();
    let by_claim: BTreeMap<&str, &Arc<IPAddress>> = seen
        .addresses
        .iter()
        .map(|address| (address.spec.claim_ref.name.as_str(), address))
        .collect();
    release(seen, &by_claim, &mut plan);
    let leaving = seen.pool.metadata.is_deleting();
    for claim in &seen.claims {
        let object = &claim.object;
        if object.metadata.is_deleting() || claim.held.is_some() {
            continue;
        }
        let existing = by_claim.get(object.metadata.name()).copied();
        let found = existing.map(|one| one.spec.address.clone()).or_else(|| {
            let address = range.as_ref().filter(|_| !leaving)?.first_free(&used)?;
            used.insert(address);
            Some(address.to_string())
        });
        let is_held = |finalizer: &String| finalizer == RELEASE_ADDRESS_FINALIZER;
        if found.is_some() && !object.metadata.finalizers.iter().flatten().any(is_held) {
            plan.actions.push(Action::Hold(object.clone()));
        }
        if let Some(address) = &found
            && existing.is_none_or(|one| !is_whole(one, object, &seen.pool))
        {
            let desired = desired(&seen.pool, object, existing.map(|one| &**one), address);
            plan.actions.push(Action::Apply(Box::new(desired)));
        }
        report(object, found.is_some(), leaving, now, &mut plan);
    }
    let inside = used
        .iter()
        .filter(|address| range.as_ref().is_some_and(|range| range.has(**address)))
        .count();
    plan.used = i64::try_from(used.len()).unwrap_or(i64::MAX);
    let inside = i64::try_from(inside).unwrap_or(i64::MAX);
    plan.free = range.map_or(0, |range| range.size().saturating_sub(inside));
    // A claim that waits has no address that would hold the pool.
    if leaving && used.is_empty() && seen.addresses.is_empty() {
        plan.actions.push(Action::RemoveFinalizer);
    }
    plan
}

/// Takes back the addresses of claims that are being deleted, or were. One without its claim waits: a backup brings them in any order, and the
/// garbage collector deletes it with its claim.
fn release(seen: &Observed, by_claim: &BTreeMap<&str, &Arc<IPAddress>>, plan: &mut Plan) {
    let names: BTreeSet<&str> = seen.claims.iter().map(|claim| claim.object.metadata.name()).collect();
    for claim in &seen.claims {
        let object = &claim.object;
        if !object.metadata.is_deleting() || claim.held.is_some() {
            continue;
        }
        let name = object.metadata.name();
        plan.notes
            .push(Note::new(format!("claim {name} gives its address back")));
        // The address stays taken until it is gone from the API server.
        match by_claim.get(name) {
            Some(address) => plan.actions.push(give_back(address)),
            None => plan.actions.push(Action::Release(object.clone())),
        }
    }
    for address in &seen.addresses {
        if address.metadata.is_deleting() && !names.contains(address.spec.claim_ref.name.as_str()) {
            let message = format!("IPAddress {} has no claim any more", address.metadata.name());
            plan.notes.push(Note::new(message));
            plan.actions.push(give_back(address));
        }
    }
}

/// The next step of the deletion of an IPAddress.
fn give_back(address: &Arc<IPAddress>) -> Action {
    if address.metadata.is_deleting() {
        Action::ReleaseAddress(address.clone())
    } else {
        Action::DeleteAddress(address.clone())
    }
}

/// Whether an IPAddress has its owners and its finalizer.
fn is_whole(address: &IPAddress, claim: &IPAddressClaim, pool: &DevIPPool) -> bool {
    let meta = &address.metadata;
    let is_held = |finalizer: &String| finalizer == PROTECT_ADDRESS_FINALIZER;
    meta.is_deleting()
        || owner::is_controlled_by(meta, claim.metadata.uid())
            && owner::is_owned_by(meta, pool.metadata.uid())
            && meta.finalizers.iter().flatten().any(is_held)
}

fn desired(pool: &DevIPPool, claim: &IPAddressClaim, existing: Option<&IPAddress>, address: &str) -> Value {
    let mut of_pool = json!(owners::owner_ref(pool));
    of_pool["controller"] = json!(false);
    of_pool["blockOwnerDeletion"] = json!(true);
    let mut desired = json!({
        "apiVersion": IPAddress::API_VERSION,
        "kind": IPAddress::KIND,
        "metadata": {
            "name": claim.metadata.name,
            "namespace": claim.metadata.namespace,
            "finalizers": [PROTECT_ADDRESS_FINALIZER],
            "ownerReferences": [owners::controller_ref(claim), of_pool],
        },
        "spec": {
            "address": address,
            "claimRef": { "name": claim.metadata.name },
            "poolRef": claim.spec.pool_ref,
            "prefix": existing.map_or(pool.spec.prefix, |one| one.spec.prefix),
        },
    });
    if let Some(uid) = existing.and_then(|one| one.metadata.uid.as_ref()) {
        desired["metadata"]["uid"] = json!(uid);
    }
    let gateway = existing.map_or_else(|| pool.spec.gateway.clone(), |one| one.spec.gateway.clone());
    if let Some(gateway) = gateway {
        desired["spec"]["gateway"] = json!(gateway);
    }
    if let Some(cluster) = super::observe::cluster_name(claim) {
        desired["metadata"]["labels"] = json!({ (windlass_api::labels::CLUSTER_NAME): cluster });
    }
    desired
}

/// Says on a claim which address it has, or why it has none.
fn report(claim: &Arc<IPAddressClaim>, has_address: bool, leaving: bool, now: Timestamp, plan: &mut Plan) {
    let said = if has_address {
        Draft::yes("Ready", "")
    } else if leaving {
        Draft::no("PoolNotReady", "the pool is being deleted")
    } else {
        Draft::no(
            "PoolExhausted",
            "the pool has no free address: give addresses back, or enlarge its range",
        )
    };
    let mut all = Builder::new(claim.conditions(), claim.metadata.generation, now);
    all.set(conditions::READY, said);
    let mut status = json!({ "conditions": all.done() });
    if has_address {
        status["addressRef"] = json!({ "name": claim.metadata.name });
    }
    plan.actions.push(Action::Report(claim.clone(), status));
}

impl windlass_controller_runtime::Plan for Plan {
    fn notes(&self) -> &[Note] {
        &self.notes
    }
}
