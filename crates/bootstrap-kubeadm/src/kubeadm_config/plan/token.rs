//! Keeping a bootstrap token alive until its machine has become a node.

use jiff::Timestamp;
use windlass_kit::Seen;

use super::super::observed::{Connection, Observed, spec_token, token_due};
use super::super::token::{is_fresh, refresh_interval};
use super::{Action, Plan, data};

/// When a token that is made or extended now ends.
pub(super) fn end(seen: &Observed, now: Timestamp) -> Timestamp {
    // A life of minutes cannot reach the end of time.
    now.checked_add(seen.token_ttl).unwrap_or(Timestamp::MAX)
}

/// Extends the token when its end comes near, and makes a new one when it is gone.
pub(super) fn keep_alive(mut plan: Plan, seen: &Observed, now: Timestamp) -> Plan {
    let (Some(token), Some(due)) = (
        spec_token(&seen.config),
        token_due(&seen.config, &seen.data_secret, seen.token_ttl),
    ) else {
        return plan;
    };
    if now < due {
        plan.requeue = Some(due.duration_since(now));
        return plan;
    }
    plan.requeue = Some(refresh_interval(seen.token_ttl));
    match (&seen.token_expires, &seen.connection) {
        (Some(Seen::Found(expires)), _) if is_fresh(*expires, seen.token_ttl, now) => plan,
        (Some(Seen::Found(_)), _) => {
            plan.actions.push(Action::ExtendToken {
                token,
                expires: end(seen, now),
            });
            plan.note("the machine has not joined yet: its token is extended")
        }
        (Some(Seen::NotFound), _) => {
            let uid = seen
                .data_secret
                .found()
                .and_then(|secret| secret.metadata.uid.clone())
                .unwrap_or_default();
            data::rejoin(plan, seen, &uid, now)
        }
        (Some(Seen::Failed(why)), _) => {
            plan.error = Some(format!("Failed to read the bootstrap token: {why}"));
            plan
        }
        (None, Connection::NotConnected(why)) => {
            let note = format!("the token cannot be looked at: {why}");
            plan.note(note)
        }
        (None, _) => plan,
    }
}
