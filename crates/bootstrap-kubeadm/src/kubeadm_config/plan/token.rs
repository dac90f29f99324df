//! Keeping a bootstrap token alive until its machine has become a node.

use jiff::Timestamp;
use windlass_cluster_cache::{Outage, Workload};
use windlass_controller_runtime::{Moment, Seen};

use super::super::observed::Observed;
use super::super::token::{Token, is_fresh, refresh_interval};
use super::{Action, Plan, data};

/// Why data is made again.
const VANISHED: &str = "the bootstrap token has vanished before the machine used it";

/// When a token that is made or extended now ends.
pub(super) fn end(seen: &Observed, now: &Moment) -> Timestamp {
    // A life of minutes cannot reach the end of time.
    now.now().checked_add(seen.token_ttl).unwrap_or(Timestamp::MAX)
}

/// Extends the token when its end comes near, and makes a new one when it is gone. No event shows that a token has ended or is gone, so
/// it is looked at regularly.
pub(super) fn keep_alive(
    mut plan: Plan,
    seen: &Observed,
    token: Token,
    expires: &Workload<Seen<Timestamp>>,
    now: &Moment,
) -> Plan {
    plan.requeue = Some(refresh_interval(seen.token_ttl).unsigned_abs());
    match expires {
        Workload::Up(Seen::Found(expires)) if is_fresh(*expires, seen.token_ttl, now) => plan,
        Workload::Up(Seen::Found(_)) => {
            plan.actions.push(Action::ExtendToken {
                token,
                expires: end(seen, now),
            });
            plan.note("the machine has not joined yet: its bootstrap token is extended")
        }
        Workload::Up(Seen::NotFound) => data::rejoin(plan, seen, VANISHED, now),
        Workload::Up(Seen::Failed(why)) => plan.block(format!("Failed to read the bootstrap token: {why}")),
        Workload::Down(Outage { why, .. }) | Workload::NotTried(why) => {
            plan.note(format!("the end of the bootstrap token is not known: {why}"))
        }
    }
}

/// Replaces the token of a MachinePool when more than half of its life is over, or when it is gone: more machines may join at any time, and
/// boot with the data as it is then.
pub(super) fn rotate(mut plan: Plan, seen: &Observed, expires: &Workload<Seen<Timestamp>>, now: &Moment) -> Plan {
    plan.requeue = Some(refresh_interval(seen.token_ttl).unsigned_abs());
    match expires {
        Workload::Up(Seen::Found(expires)) => {
            let half = expires.saturating_sub(seen.token_ttl / 2).unwrap_or(Timestamp::MIN);
            if now.reached(half) {
                let why = "more than half of the life of the MachinePool's bootstrap token is over";
                return data::rejoin(plan, seen, why, now);
            }
            plan
        }
        Workload::Up(Seen::NotFound) => data::rejoin(plan, seen, "the MachinePool's bootstrap token has vanished", now),
        Workload::Up(Seen::Failed(why)) => plan.block(format!("Failed to read the bootstrap token: {why}")),
        Workload::Down(Outage { why, .. }) | Workload::NotTried(why) => {
            plan.note(format!("the end of the bootstrap token is not known: {why}"))
        }
    }
}
