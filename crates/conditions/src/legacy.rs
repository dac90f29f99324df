//! The deprecated conditions of v1beta1, kept in `status.deprecated.v1beta1.conditions`.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use windlass_api::core::V1Beta1Condition;

use crate::whole_seconds;

/// A condition as v1beta1 has it.
pub type Legacy = V1Beta1Condition;

/// The severity of False.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// It needs a change by a user.
    Error,
    /// It may resolve by itself.
    Warning,
    /// Work in progress.
    Info,
}

impl Severity {
    fn as_str(self) -> &'static str {
        match self {
            Self::Error => "Error",
            Self::Warning => "Warning",
            Self::Info => "Info",
        }
    }
}

/// A condition with status True.
pub fn truth(type_: &str, now: Timestamp) -> Legacy {
    make(type_, "True", None, None, "", now)
}

/// A condition with status False.
pub fn falsehood(type_: &str, reason: &str, severity: Severity, message: &str, now: Timestamp) -> Legacy {
    make(type_, "False", Some(reason), Some(severity), message, now)
}

/// A condition with status Unknown.
pub fn unknown(type_: &str, reason: &str, message: &str, now: Timestamp) -> Legacy {
    make(type_, "Unknown", Some(reason), None, message, now)
}

fn make(
    type_: &str,
    status: &str,
    reason: Option<&str>,
    severity: Option<Severity>,
    message: &str,
    now: Timestamp,
) -> Legacy {
    Legacy {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: reason.map(str::to_owned),
        severity: severity.map(|s| s.as_str().to_owned()),
        message: Some(message.to_owned()).filter(|m| !m.is_empty()),
        last_transition_time: Time(whole_seconds(now)),
    }
}

/// Adds or replaces a condition. The time changes if another field does. Ready comes first, others by name.
pub fn set(conditions: &mut Vec<Legacy>, mut new: Legacy) {
    match conditions.iter_mut().find(|c| c.type_ == new.type_) {
        Some(old) => {
            new.last_transition_time = if same_state(old, &new) {
                old.last_transition_time.clone()
            } else {
                new.last_transition_time
            };
            *old = new;
        }
        None => conditions.push(new),
    }
    conditions.sort_by(|a, b| (a.type_ != "Ready", &a.type_).cmp(&(b.type_ != "Ready", &b.type_)));
}

/// The condition of a type.
pub fn get<'a>(conditions: &'a [Legacy], type_: &str) -> Option<&'a Legacy> {
    conditions.iter().find(|c| c.type_ == type_)
}

/// True if the condition exists and is True.
pub fn is_true(conditions: &[Legacy], type_: &str) -> bool {
    get(conditions, type_).is_some_and(|c| c.status == "True")
}

/// Removes a condition.
pub fn remove(conditions: &mut Vec<Legacy>, type_: &str) {
    conditions.retain(|c| c.type_ != type_);
}

fn same_state(a: &Legacy, b: &Legacy) -> bool {
    a.status == b.status && a.reason == b.reason && a.severity == b.severity && a.message == b.message
}

/// Summarizes the given types in `Ready`. The worst condition that is not True determines it (False by severity, then Unknown).
/// It is True if all existing ones are True, and absent if none exists. With `steps`, the message counts the types that are done.
pub fn summary(conditions: &[Legacy], types: &[&str], steps: bool, now: Timestamp) -> Option<Legacy> {
    let present: Vec<&Legacy> = types.iter().filter_map(|t| get(conditions, t)).collect();
    let worst = present.iter().filter(|c| c.status != "True").min_by_key(|c| badness(c));
    let Some(worst) = worst else {
        return (!present.is_empty()).then(|| truth("Ready", now));
    };
    let mut ready = (*worst).clone();
    "Ready".clone_into(&mut ready.type_);
    ready.last_transition_time = Time(whole_seconds(now));
    if steps && ready.message.is_none() {
        let done = present.iter().filter(|c| c.status == "True").count();
        ready.message = Some(format!("{done} of {} completed", types.len()));
    }
    Some(ready)
}

fn badness(condition: &Legacy) -> u8 {
    match (condition.status.as_str(), condition.severity.as_deref()) {
        ("False", Some("Error")) => 0,
        ("False", Some("Warning")) => 1,
        ("False", _) => 2,
        _ => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn time_moves_with_any_change_and_ready_goes_first() {
        let mut list = Vec::new();
        set(&mut list, truth("BootstrapReady", at(1)));
        set(&mut list, falsehood("Ready", "A", Severity::Info, "x", at(1)));
        assert_eq!(list[0].type_, "Ready");
        set(&mut list, falsehood("Ready", "A", Severity::Info, "x", at(2)));
        assert_eq!(list[0].last_transition_time.0, at(1));
        set(&mut list, falsehood("Ready", "A", Severity::Info, "y", at(3)));
        assert_eq!(list[0].last_transition_time.0, at(3));
    }

    #[test]
    fn the_worst_speaks_for_all() {
        let list = [
            truth("A", at(1)),
            falsehood("B", "Waiting", Severity::Info, "", at(1)),
            falsehood("C", "Broken", Severity::Error, "it broke", at(1)),
        ];
        let ready = summary(&list, &["A", "B", "C"], true, at(5)).unwrap();
        assert_eq!(
            (ready.reason.as_deref(), ready.message.as_deref()),
            (Some("Broken"), Some("it broke"))
        );
        let ready = summary(&list, &["A", "B"], true, at(5)).unwrap();
        assert_eq!(
            (ready.reason.as_deref(), ready.message.as_deref()),
            (Some("Waiting"), Some("1 of 2 completed"))
        );
        assert_eq!(summary(&list, &["A"], true, at(5)).unwrap().status, "True");
        assert!(summary(&list, &["X"], true, at(5)).is_none());
    }
}
