//! When a provider may be removed.

use windlass_api_operator::ProviderType;
use windlass_controller_runtime::Until;

use super::Intent;
use crate::awaited::Awaited;
use crate::names::reasons;
use crate::provider::blocked::{Blocked, Stage};
use crate::provider::facts::Facts;

/// What becomes of a declaration that is being deleted.
pub fn intent(facts: &Facts) -> Result<Intent, Blocked> {
    let blocked = |reason, message: String| Blocked::new(Stage::Remove, reason, message);
    let kept = match &facts.kept {
        Ok(kept) => kept,
        Err(unread) => {
            let message = format!(
                "what is kept of the installed provider cannot be read, so it is not known what to remove: {}; restore the Secret, \
                 or delete it to leave the objects where they are",
                unread.why
            );
            return Err(unread.blocks(Stage::Remove, message));
        }
    };
    // What belongs to another declaration is none of this one's business.
    if facts.rival().is_some() {
        return Ok(Intent::Release);
    }
    // Whatever its kinds are used for goes on: they are those of this process.
    if facts.built_in().is_some() {
        return Ok(Intent::Release);
    }
    let lost = match &facts.lost {
        Ok(lost) => lost,
        Err(why) => {
            let message =
                format!("the Secrets with what is installed are gone, and its objects cannot be listed: {why}");
            return Err(blocked(reasons::KEPT_UNREADABLE, message).until(Until::Backoff));
        }
    };
    if kept.current.is_none() && kept.next.is_none() && lost.is_empty() {
        return Ok(Intent::Release);
    }
    if facts.type_() == ProviderType::Core {
        let others: Vec<_> = facts
            .peers
            .iter()
            .filter(|peer| peer.type_ != ProviderType::Core)
            .collect();
        if !others.is_empty() {
            let names: Vec<_> = others.iter().map(|peer| peer.told_to(facts.me.api)).collect();
            let message = format!(
                "other providers need the core provider; delete {} first",
                names.join(", ")
            );
            return Err(blocked(reasons::PROVIDERS_LEFT, message));
        }
    }
    match &facts.in_use {
        Err(why) => {
            let message = format!("it is not known whether workload clusters use the provider: {why}");
            Err(blocked(reasons::IN_USE, message).until(Until::Backoff))
        }
        Ok(in_use) if !in_use.is_empty() => {
            let each = in_use.iter().map(|found| {
                let more = if found.more { " and more" } else { "" };
                format!("{} {}{more}", found.kind, found.example)
            });
            let each: Vec<_> = each.collect();
            let message = format!(
                "objects of the provider's kinds are left, so workload clusters may use it; delete {}",
                each.join(", ")
            );
            let examples = in_use
                .iter()
                .map(|found| Awaited::one(&found.api_version, &found.kind, &found.example));
            Err(blocked(reasons::IN_USE, message).awaiting(examples))
        }
        Ok(_) => Ok(Intent::Remove { lost: lost.clone() }),
    }
}
