//! Secrets with releases that others have written or changed: what is reported, and what may take the place of the release.

use windlass_controller_runtime::{EventType, Note, Until};

use super::Plan;
use crate::names::{VOUCHED, reasons};
use crate::provider::blocked::{Blocked, Stage, TRY_AGAIN};
use crate::provider::desired::{inputs, is_remote};
use crate::provider::facts::Facts;

/// Reports Secrets that others have written or changed: as the obstacle, if there is one, as it keeps the release from being rendered
/// again.
pub(super) fn report(facts: &Facts, plan: &mut Plan) {
    let Some(finding) = facts.finding() else { return };
    match &mut plan.blocked {
        Some(blocked) if facts.current().is_none() => {
            blocked.message = format!(
                "{finding}; what runs stays as it is, and is not repaired before the release is rendered again from its source, which is \
                 not possible yet: {}",
                blocked.message
            );
            blocked.reason = reasons::KEPT_UNTRUSTED;
        }
        _ => {
            let message = format!(
                "{finding}; the provider is kept by what its source has, or by another release that the operator wrote"
            );
            plan.notes
                .push(Note::event(EventType::Warning, reasons::KEPT_UNTRUSTED, message));
        }
    }
}

/// What takes the place of an installed release that is no longer kept as it was written has to be made of the same. Otherwise those who
/// may write its Secrets would decide when changed files are installed.
pub(super) fn check_content(facts: &Facts, version: &str, content: &str) -> Result<(), Blocked> {
    let Ok(kept) = &facts.kept else { return Ok(()) };
    let lost = kept.vouched.lost_content(&kept.heads(), version, &facts.hash);
    if lost.is_none_or(|lost| lost == content) {
        return Ok(());
    }
    let message = format!(
        "the files of version {version}, its variables or the additional manifests are not those that it was installed from, and what was \
         installed is no longer kept as it was written; put them back, or review them and remove the annotation {VOUCHED} from the \
         declaration"
    );
    let declared = facts.declared.as_ref().ok();
    let until = match declared {
        Some(declared) if is_remote(declared) => Until::After(TRY_AGAIN.unsigned_abs()),
        _ => Until::Event,
    };
    let blocked = Blocked::new(Stage::Install, reasons::KEPT_UNTRUSTED, message).until(until);
    Err(blocked.awaiting(declared.into_iter().flat_map(inputs)))
}
