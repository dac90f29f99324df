//! Releases that were installed and do not work: when the one before takes their place again, and when they are tried anew.
//!
//! Whether a release works is for whoever runs Deployments to say: one that has missed its own deadline failed, and nothing else did.

use windlass_api_operator::{Api, Declared, Fetch, ProviderType, reasons as known};
use windlass_components::metadata::compatible;
use windlass_kit::Timestamp;

use super::{Again, Blocked, Intent, Occasion, Stage, TRY_AGAIN, Wish};
use crate::awaited::REMOTE;
use crate::kept::{Failure, Release, State};
use crate::prepare::inputs;
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

/// What becomes of a release that is wished for and failed before.
pub fn again(
    facts: &Facts,
    next: &Release,
    occasion: &Occasion,
    paused: bool,
    now: Timestamp,
) -> Result<Intent, Blocked> {
    let render = |unless: Option<String>| {
        Ok(Intent::Render(Wish {
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
        if facts.stirred {
            return render(Some(next.content.clone()));
        }
        return Err(taken_back(facts.declared.as_ref().ok(), next));
    }
    let since = now.duration_since(next.made).unsigned_abs();
    if since >= TRY_AGAIN {
        return render(None);
    }
    let message = format!("version {} was taken back: {}", next.version, failure.message);
    let blocked = Blocked::new(Stage::Install, known::COMPONENTS_UPGRADE_ERROR, message);
    Err(blocked.again(Again::After(TRY_AGAIN.saturating_sub(since))))
}

/// What people are told of a release that did not come up, and is not tried again as it is.
pub fn taken_back(declared: Option<&Declared>, next: &Release) -> Blocked {
    let Failure { message, .. } = next.failure.clone().unwrap_or_default();
    let message = format!(
        "version {} was taken back, and the one before runs again: {message}; it is tried again when the declaration, its Secret or \
         the files of the release change",
        next.version
    );
    let blocked = Blocked::new(Stage::Install, known::COMPONENTS_UPGRADE_ERROR, message);
    let Some(declared) = declared else { return blocked };
    let again = match declared.fetch {
        Fetch::Selector(_) => Again::Event,
        _ => Again::After(REMOTE),
    };
    blocked.again(again).until(inputs(declared))
}

/// Whether what a failed release changed has to be taken back yet.
pub fn is_unfinished(facts: &Facts) -> bool {
    let next = facts.next().filter(|next| next.state == State::Failed);
    next.and_then(|next| next.failure.as_ref())
        .is_some_and(|failure| !failure.undone)
}
