//! What to do about an update in place: pure.

use std::time::Duration;

use windlass_api::annotations::UPDATE_IN_PROGRESS;
use windlass_api::reasons;
use windlass_controller_runtime::{Blocked, Note, Seen};

use super::{Action, Plan, Updating};
use crate::machine::in_place::{Question, Update};
use crate::machine::observe::Observed;
use crate::shared::in_place::{is_marked, is_pending};
use crate::shared::read::Referenced;

/// Adds what is done now, or asks for the answer of the extension.
pub(super) fn plan(seen: &Observed, plan: &mut Plan) -> Option<Question> {
    let (is_marked, is_pending) = (is_marked(&seen.machine), is_pending(&seen.machine));
    if !is_marked {
        if is_pending {
            plan.notes.push(Note::new(
                "the mark of the update in place is gone: what is left of it goes, too",
            ));
            end(seen, plan);
        }
        return None;
    }
    if !is_pending {
        plan.notes
            .push(Note::new("the update in place waits for the Machine's owner"));
        return None;
    }
    if !has_come_up(seen) {
        plan.notes
            .push(Note::new("the update in place waits for the Machine to come up"));
        return None;
    }
    let (infrastructure, bootstrap) = (&seen.infrastructure, seen.bootstrap.as_ref());
    let unread = std::iter::once(infrastructure).chain(bootstrap).find_map(Seen::failure);
    if let Some(why) = unread {
        stuck(plan, format!("In-place update not possible: {why}"));
        return None;
    }
    if matches!(infrastructure, Seen::NotFound) {
        stuck(plan, "In-place update not possible: InfraMachine not found".to_owned());
        return None;
    }
    let lacks_mark = |object: &Seen<Referenced>| {
        object
            .found()
            .is_some_and(|object| object.annotation(UPDATE_IN_PROGRESS).is_none())
    };
    if lacks_mark(infrastructure) || bootstrap.is_some_and(lacks_mark) {
        plan.notes.push(Note::new(
            "the update in place waits for the marks of the objects that the Machine refers to",
        ));
        return None;
    }
    match &seen.update {
        None => return Some(Question::Update),
        Some(Update::Running(seconds, message)) => {
            let colon = if message.is_empty() { "" } else { ": " };
            plan.updating = Some(Updating {
                reason: reasons::IN_PLACE_UPDATING,
                message: format!("In-place update in progress{colon}{message}"),
            });
            let again = Duration::from_secs(u64::try_from(*seconds).unwrap_or_default());
            plan.requeue = Some(plan.requeue.map_or(again, |before| before.min(again)));
        }
        Some(Update::Failed(why)) => stuck(plan, format!("UpdateMachine hook failed: {why}")),
        Some(Update::Done) => {
            plan.notes
                .push(Note::new("the extension has updated the Machine in place"));
            end(seen, plan);
        }
    }
    None
}

fn stuck(plan: &mut Plan, message: String) {
    plan.blocked = Some(Blocked::failed("InPlaceUpdateFailed", message.as_str()));
    plan.updating = Some(Updating {
        reason: reasons::IN_PLACE_UPDATE_FAILED,
        message,
    });
}

/// Takes the marks away. The pending hook goes last: while it is there, what an interrupted pass has left is taken away by the next one.
fn end(seen: &Observed, plan: &mut Plan) {
    let has_mark = |object: &Seen<Referenced>| {
        object
            .found()
            .is_some_and(|object| object.annotation(UPDATE_IN_PROGRESS).is_some())
    };
    if is_marked(&seen.machine) {
        plan.actions.push(Action::Unmark(None));
    }
    for (which, object) in super::externals(seen) {
        if has_mark(object) {
            plan.actions.push(Action::Unmark(Some(which)));
        }
    }
    plan.actions.push(Action::EndHook);
}

/// Whether the Machine has everything that an update needs.
fn has_come_up(seen: &Observed) -> bool {
    let status = seen.machine.status.as_ref();
    let done = status.and_then(|status| status.initialization.as_ref());
    let is_done = |done: Option<bool>| done == Some(true);
    is_done(done.and_then(|done| done.infrastructure_provisioned))
        && is_done(done.and_then(|done| done.bootstrap_data_secret_created))
        && status.is_some_and(|status| status.node_ref.is_some())
}
