//! Releases that were installed and do not work: when the one before takes their place again, and when they are tried again.
//!
//! The controller of Deployments says whether a release works: a Deployment that has missed its own deadline failed, and nothing else did.

use windlass_api_operator::{Api, Declared, ProviderType, reasons as known};
use windlass_controller_runtime::{Moment, Until};
use windlass_provider_components::metadata::compatible;

use super::Intent;
use crate::awaited::REMOTE;
use crate::kept::{Failure, Release, State};
use crate::provider::blocked::{Blocked, Stage, TRY_AGAIN};
use crate::provider::desired::{DesiredRelease, Occasion, inputs, is_remote};
use crate::provider::facts::Facts;

/// Why what is installed never came up, while there is something to go back to.
pub fn failing(facts: &Facts) -> Option<String> {
    let current = facts.current()?;
    facts.previous()?;
    if current.migrated || current.paused || current.failure.is_some() {
        return None;
    }
    let id = current.id();
    facts.running.iter().find_map(|(name, running)| {
        let running = running
            .as_ref()
            .filter(|running| running.release.as_ref() == Some(&id))?;
        let message = running.overdue.as_ref()?;
        Some(format!("Deployment {name} did not come up: {message}"))
    })
}

/// Why going back would break what other providers rely on.
pub fn obstacle(facts: &Facts) -> Option<String> {
    let (new, old) = (facts.current()?, facts.previous()?);
    if new.contract == old.contract {
        return None;
    }
    let told = |why: &str| format!("it follows contract {}, and {why}", old.contract);
    if facts.me.api == Api::V1Alpha1 {
        return Some(told("all providers change their contract together"));
    }
    let fits = |peer: &&crate::peers::Peer| {
        let theirs = facts.contract_of(peer);
        theirs.is_none_or(|theirs| match facts.type_() {
            ProviderType::Core => compatible(&old.contract, theirs),
            _ => peer.type_ != ProviderType::Core || compatible(theirs, &old.contract),
        })
    };
    let lost = facts.peers.iter().find(|peer| !fits(peer))?;
    let theirs = facts.contract_of(lost).unwrap_or_default();
    Some(told(&format!("{} follows {theirs}", lost.told_to(facts.me.api))))
}

/// What is done about a desired release that failed before.
pub fn again(
    facts: &Facts,
    next: &Release,
    occasion: &Occasion,
    paused: bool,
    now: &Moment,
) -> Result<Intent, Blocked> {
    let render = |unless: Option<String>| {
        Ok(Intent::Render(DesiredRelease {
            version: Some(next.version.clone()),
            occasion: occasion.clone(),
            paused,
            unless,
        }))
    };
    let unknown = || Failure {
        generation: facts.generation,
        ..Failure::default()
    };
    let failure = next.failure.clone().unwrap_or_else(unknown);
    if failure.generation != facts.generation {
        return render(None);
    }
    if failure.lasting {
        if facts.stirred.is_some() || is_old(facts, next, now) {
            return render(Some(next.content.clone()));
        }
        return Err(taken_back(facts.declared.as_ref().ok(), next));
    }
    if now.elapsed(next.made, TRY_AGAIN) {
        return render(None);
    }
    let message = format!("version {} was taken back: {}", next.version, failure.message);
    Err(Blocked::new(Stage::Install, known::COMPONENTS_UPGRADE_ERROR, message))
}

/// Whether a release that is kept but was never installed has to be rendered again before the next attempt: the server refused it, or
/// what it is made of changed since.
pub fn is_stale(facts: &Facts, next: &Release) -> bool {
    let failure = next.failure.as_ref();
    facts.stirred.is_some() || failure.is_some_and(|failure| failure.lasting || failure.generation != facts.generation)
}

/// Whether the files of a failed release have to be read again as they may have changed: no watch shows that of remote ones.
fn is_old(facts: &Facts, failed: &Release, now: &Moment) -> bool {
    let is_remote = facts.declared.as_ref().is_ok_and(is_remote);
    is_remote && now.elapsed(facts.looked.unwrap_or(failed.made), REMOTE)
}

/// The obstacle that a release did not come up, and is not tried again as it is.
pub fn taken_back(declared: Option<&Declared>, next: &Release) -> Blocked {
    let Failure { message, .. } = next.failure.clone().unwrap_or_default();
    let message = format!(
        "version {} was taken back, and the one before runs again: {message}; it is tried again when the declaration, its Secret or \
         the files of the release change",
        next.version
    );
    let blocked = Blocked::new(Stage::Install, known::COMPONENTS_UPGRADE_ERROR, message);
    let Some(declared) = declared else { return blocked };
    let until = if is_remote(declared) {
        Until::After(REMOTE.unsigned_abs())
    } else {
        Until::Event
    };
    blocked.until(until).awaiting(inputs(declared))
}

/// Whether what a failed release changed has to be taken back yet.
pub fn is_unfinished(facts: &Facts) -> bool {
    let next = facts.next().filter(|next| next.state == State::Failed);
    next.and_then(|next| next.failure.as_ref())
        .is_some_and(|failure| !failure.undone)
}
