//! Keeping an installed provider as it is: pauses, drift, certificates, storage versions.

use jiff::SignedDuration;
use windlass_controller_runtime::{Moment, Note, Timestamp};

use super::{Action, Plan, contract, rollback};
use crate::kept::Release;
use crate::objects::Running;
use crate::provider::facts::Facts;
use crate::tracker::REMEMBERED;

/// How often things are put back at once before pauses begin.
const FREE_REPAIRS: usize = 10;

/// What keeps an installed provider as it is.
pub(super) fn upkeep(facts: &Facts, now: &Moment) -> Plan {
    let mut plan = Plan::default();
    let (Some(current), false) = (facts.current(), facts.me.deleting) else {
        return plan;
    };
    if facts.rival().is_some() {
        return plan;
    }
    if let Ok(declared) = &facts.declared
        && declared.version.is_none()
    {
        plan.actions.push(Action::SetVersion(current.version.clone()));
    }
    let asked = facts.declared.as_ref().is_ok_and(|declared| declared.paused);
    let held = contract::is_held(facts);
    if held && !asked {
        plan.blocked = contract::unpause(facts);
    }
    if facts
        .kept
        .as_ref()
        .is_ok_and(|kept| !(kept.strange.is_empty() && kept.spare.is_empty()))
    {
        plan.actions.push(Action::Sweep);
    }
    if held != current.paused {
        plan.actions.push(if held { Action::Hold } else { Action::Restore });
    }
    if held {
        // Users pause a provider to change something by hand.
        return plan;
    }
    if rollback::is_unfinished(facts) {
        plan.actions.push(Action::TakeBack);
    } else if !facts.watched {
        // Comparing comes first, for all plans, and says what has to be repaired.
        if !is_comparable(facts) {
            plan.actions.push(Action::Repair(None));
        }
    } else if let Some(first) = facts.drifted.first() {
        if may_repair(&facts.repairs, now) {
            let drifted = facts.drifted.iter().cloned().collect();
            plan.actions.push(Action::Repair(Some(drifted)));
        } else {
            let message = format!("{first} is changed by another field manager again and again");
            plan.notes.push(Note::new(message));
        }
    }
    if !current.migrated && is_available(facts) {
        plan.actions.push(Action::Settle);
    }
    if current.renew.is_some_and(|renew| now.reached(renew)) {
        plan.actions.push(Action::Renew);
    }
    plan
}

/// Whether what is installed can be compared with how it was left: in a process that has not watched or changed any of it yet.
pub(super) fn is_comparable(facts: &Facts) -> bool {
    let knows_better = facts.watched || facts.doubted || facts.me.deleting;
    let current = facts.current().filter(|_| !knows_better);
    current.is_some_and(|current| current.index.len() == current.left.len())
}

/// Whether something may be put back now. Another field manager may insist on its own value, so after many repairs each one waits twice
/// as long as the one before.
fn may_repair(repairs: &[Timestamp], now: &Moment) -> bool {
    if repairs.len() <= FREE_REPAIRS {
        return true;
    }
    let lately = repairs.iter().filter(|at| now.precedes(end_of(**at))).count();
    let Some(last) = repairs.last().filter(|_| lately > FREE_REPAIRS) else {
        return true;
    };
    let doublings = u32::try_from(lately - FREE_REPAIRS).unwrap_or(u32::MAX).min(7);
    now.elapsed(*last, SignedDuration::from_secs(2_i64.saturating_pow(doublings)))
}

/// When a repair no longer counts.
fn end_of(repair: Timestamp) -> Timestamp {
    repair.saturating_add(REMEMBERED).unwrap_or(Timestamp::MAX)
}

/// Whether all Deployments are available, and those of what is installed: watches may still show the ones before.
fn is_available(facts: &Facts) -> bool {
    let id = facts.current().map(Release::id);
    let is_up = |running: &Option<Running>| {
        let running = running.as_ref().filter(|running| running.release == id);
        let available = running.and_then(|running| running.available.as_ref());
        available.is_some_and(|(status, _, _)| status == "True")
    };
    facts.running.iter().all(|(_, running)| is_up(running))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::plan::tests::now;

    #[test]
    fn repairs_against_another_field_manager_become_ever_slower() {
        let check = |count: usize, since: i64, wait: i64| {
            let last = now() - SignedDuration::from_secs(since);
            let moment = Moment::at(now());
            assert_eq!(may_repair(&vec![last; count], &moment), wait == 0);
            // The end of the pause is a deadline.
            let due = now() + SignedDuration::from_secs(wait);
            if wait > 0 {
                assert_eq!(moment.next_deadline(), Some(due));
            }
        };
        check(10, 0, 0);
        check(11, 0, 2);
        check(13, 0, 8);
        check(13, 5, 3);
        check(13, 9, 0);
        check(90, 0, 128);
        // What was long ago no longer counts.
        check(90, 600, 0);
    }
}
