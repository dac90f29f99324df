//! Which contract a provider may follow, and what a change of contract asks of all the others.
//!
//! Through `v1alpha2`, the core goes first and the others follow: a provider may follow what the core understands. Through
//! `v1alpha1`, all providers follow the core's own contract; it changes only while all are paused, and none comes back before
//! all have changed. A built-in core understands the contracts before its own, through both APIs: its contract changes only with the
//! program.

use windlass_api_operator::{Api, ProviderType, reasons as known};
use windlass_provider_components::metadata::{CONTRACTS, compatible};

use crate::names::reasons;
use crate::peers::Peer;
use crate::provider::blocked::{Blocked, Stage};
use crate::provider::facts::Facts;

/// Whether a release that follows a contract may be installed; or what is in the way.
pub fn check(facts: &Facts, version: &str, contract: &str) -> Result<(), Blocked> {
    let blocked = |reason, message: String| Err(Blocked::new(Stage::Preflight, reason, message));
    if !CONTRACTS.contains(&contract) {
        let message = format!(
            "version {version} follows contract {contract}, and only {} are supported; choose another version",
            CONTRACTS.join(" and ")
        );
        return blocked(known::CAPI_VERSION_INCOMPATIBILITY, message);
    }
    let strict = facts.me.api == Api::V1Alpha1;
    let mine = facts.current().map(|current| current.contract.as_str());
    if facts.type_() != ProviderType::Core
        && let Some(core) = facts.core()
    {
        let theirs = core.contract;
        let fits = if strict && !core.is_built_in() {
            theirs == contract
        } else {
            compatible(theirs, contract)
        };
        if !fits {
            let message = format!(
                "version {version} follows contract {contract}, and {} follows {theirs}; upgrade {} first, or choose a version \
                 that follows {theirs}",
                core.told_to(facts.me.api),
                if core.is_built_in() { "Windlass" } else { "that" }
            );
            let is_ahead = CONTRACTS.iter().position(|c| *c == contract) < CONTRACTS.iter().position(|c| *c == theirs);
            let reason = if is_ahead {
                reasons::WAITING_FOR_CORE_UPGRADE
            } else {
                reasons::CONTRACT_MISMATCH
            };
            return blocked(reason, message);
        }
    }
    if strict && mine.is_some_and(|mine| mine != contract) {
        let running = unpaused(facts);
        if !running.is_empty() {
            let message = format!(
                "version {version} changes the contract from {} to {contract}, for which all providers have to be paused; set \
                 spec.paused of {}",
                mine.unwrap_or_default(),
                names(facts, &running)
            );
            return blocked(reasons::NOT_ALL_PAUSED, message);
        }
    }
    Ok(())
}

/// The providers that can be paused by their specification and run. Those that asked to come back and may not yet do not run, and
/// wait for just this change.
fn unpaused(facts: &Facts) -> Vec<&Peer> {
    let peers = facts.peers.iter().filter(|peer| !peer.paused && !peer.held);
    // What is built in has no Deployments that could be paused.
    let peers = peers.filter(|peer| !facts.is_built_in(peer));
    let me = (!is_held(facts)).then_some(&facts.me);
    me.into_iter()
        .chain(peers)
        .filter(|peer| peer.api == Api::V1Alpha1)
        .collect()
}

/// The installed providers that do not follow the core's contract.
fn lagging(facts: &Facts) -> Vec<&Peer> {
    let Some(core) = facts.core() else {
        return Vec::new();
    };
    let lags = |peer: &&Peer| {
        facts.contract_of(peer).is_some_and(|contract| match peer.api {
            Api::V1Alpha1 if !core.is_built_in() => contract != core.contract,
            Api::V1Alpha1 | Api::V1Alpha2 => !compatible(core.contract, contract),
        })
    };
    std::iter::once(&facts.me).chain(&facts.peers).filter(lags).collect()
}

/// Whether the provider is without replicas, or has to be: because it is paused, or because it may not come back yet.
pub fn is_held(facts: &Facts) -> bool {
    let asked = facts.declared.as_ref().is_ok_and(|declared| declared.paused);
    asked || (facts.current().is_some_and(|current| current.paused) && !lagging(facts).is_empty())
}

/// Why a provider that is no longer paused stays without replicas.
pub fn unpause(facts: &Facts) -> Option<Blocked> {
    let lagging = lagging(facts);
    let core = facts.core()?.contract;
    (!lagging.is_empty()).then(|| {
        let message = format!(
            "the provider stays without replicas until all providers follow contract {core}, as the core does; upgrade {}",
            names(facts, &lagging)
        );
        Blocked::new(Stage::Unpause, reasons::UNPAUSE_BLOCKED, message)
    })
}

fn names(facts: &Facts, peers: &[&Peer]) -> String {
    let names: Vec<_> = peers.iter().map(|peer| peer.told_to(facts.me.api)).collect();
    names.join(", ")
}
