//! Aggregated API servers forget the old authorities. They learn what to trust from a ConfigMap to which API servers add their authorities, and
//! from which they take out only what has expired.

use std::collections::BTreeSet;

use windlass_controller_runtime::Seen;
use windlass_pki::rotation::fingerprints;

use super::say;
use crate::facts::Facts;
use crate::plan::{Action, Plan, SETTLING, TROUBLED, WorkloadChange};
use crate::question::Question;
use crate::rotation::{Rotation, State};

/// Takes out what the rotation has dropped. No API server that has it may be left: it would add it again. Returns whether it is known to be
/// out.
pub(super) fn are_dropped(
    facts: &Facts,
    rotation: &Rotation,
    state: &State,
    plan: &mut Plan,
    question: &mut Question,
) -> bool {
    let dropped = dropped(rotation);
    if dropped.is_empty() {
        return true;
    }
    match &facts.answers.extension_authorities {
        None => {
            question.extension_authorities = true;
            false
        }
        // The next API server that looks makes it, of what it trusts itself.
        Some(Seen::NotFound) => true,
        Some(Seen::Found(known)) => {
            let left: BTreeSet<String> = known.intersection(&dropped).cloned().collect();
            if left.is_empty() {
                return true;
            }
            plan.push(Action::Workload(WorkloadChange::DropExtensionAuthorities {
                fingerprints: left,
            }));
            let message = "Aggregated API servers still trust the old authorities".to_owned();
            say(plan, state.stage.as_str(), message);
            // No event tells of the change.
            plan.again_within(SETTLING);
            false
        }
        Some(Seen::Failed(why)) => {
            let message = format!("What aggregated API servers trust cannot be read: {why}");
            say(plan, state.stage.as_str(), message);
            plan.again_within(TROUBLED);
            false
        }
    }
}

/// What was dropped and is not trusted by another way.
fn dropped(rotation: &Rotation) -> BTreeSet<String> {
    let all = rotation.authorities.iter();
    let mut dropped: BTreeSet<String> = all.clone().flat_map(|one| one.dropped.iter().cloned()).collect();
    for trusted in all.flat_map(|one| fingerprints(&one.bundle()).unwrap_or_default()) {
        dropped.remove(&trusted);
    }
    dropped
}
