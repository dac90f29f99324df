//! Creates, sets and reads single conditions.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::{Condition, sort};

/// The status of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// The status is unknown.
    Unknown,
}

impl Status {
    /// Parses the word of the API; any other word is unknown.
    pub fn parse(text: &str) -> Self {
        match text {
            "True" => Self::True,
            "False" => Self::False,
            _ => Self::Unknown,
        }
    }

    /// The word in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

impl From<bool> for Status {
    fn from(value: bool) -> Self {
        if value { Self::True } else { Self::False }
    }
}

/// A condition with the transition time `now`. [`set`] keeps the earlier time if the status is the same.
pub fn condition(
    type_: &str,
    status: Status,
    reason: &str,
    message: impl Into<String>,
    now: Timestamp,
    generation: Option<i64>,
) -> Condition {
    Condition {
        type_: type_.to_owned(),
        status: status.as_str().to_owned(),
        reason: reason.to_owned(),
        message: message.into(),
        last_transition_time: Time(whole_seconds(now)),
        observed_generation: generation,
    }
}

/// A time in whole seconds, as the API stores it. A comparison of finer times would find false differences.
pub fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

/// Adds or replaces a condition, keeping the order. The transition time changes only if the status does.
pub fn set(conditions: &mut Vec<Condition>, mut new: Condition) {
    new = carried(conditions, new);
    match conditions.iter_mut().find(|c| c.type_ == new.type_) {
        Some(old) => *old = new,
        None => conditions.push(new),
    }
    sort(conditions);
}

/// A condition with its previous transition time if the status is the same.
pub fn carried(previous: &[Condition], mut new: Condition) -> Condition {
    new.last_transition_time = match get(previous, &new.type_) {
        Some(old) if old.status == new.status => old.last_transition_time.clone(),
        _ => Time(whole_seconds(new.last_transition_time.0)),
    };
    new
}

/// Removes a condition.
pub fn remove(conditions: &mut Vec<Condition>, type_: &str) {
    conditions.retain(|c| c.type_ != type_);
}

/// The condition of a type.
pub fn get<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|c| c.type_ == type_)
}

/// The status of a condition, if it exists and is valid.
pub fn status(conditions: &[Condition], type_: &str) -> Option<Status> {
    match get(conditions, type_)?.status.as_str() {
        "True" => Some(Status::True),
        "False" => Some(Status::False),
        "Unknown" => Some(Status::Unknown),
        _ => None,
    }
}

/// True if the condition exists and is True.
pub fn is_true(conditions: &[Condition], type_: &str) -> bool {
    status(conditions, type_) == Some(Status::True)
}

/// True if the condition exists and is False.
pub fn is_false(conditions: &[Condition], type_: &str) -> bool {
    status(conditions, type_) == Some(Status::False)
}

/// True if the condition is Unknown or missing.
pub fn is_unknown(conditions: &[Condition], type_: &str) -> bool {
    get(conditions, type_).is_none_or(|c| c.status == "Unknown")
}

/// The reason of a condition; empty if it is missing.
pub fn reason<'a>(conditions: &'a [Condition], type_: &str) -> &'a str {
    get(conditions, type_).map_or("", |c| c.reason.as_str())
}

/// The message of a condition; empty if it is missing.
pub fn message<'a>(conditions: &'a [Condition], type_: &str) -> &'a str {
    get(conditions, type_).map_or("", |c| c.message.as_str())
}

/// True if two conditions differ only in their transition times.
pub fn has_same_state(a: &Condition, b: &Condition) -> bool {
    a.type_ == b.type_
        && a.status == b.status
        && a.reason == b.reason
        && a.message == b.message
        && a.observed_generation == b.observed_generation
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::new(second, 123_456_789).unwrap()
    }

    #[test]
    fn transition_time_moves_only_with_the_status() {
        let mut conditions = Vec::new();
        set(
            &mut conditions,
            condition("Ready", Status::False, "A", "", at(10), Some(1)),
        );
        assert_eq!(
            conditions[0].last_transition_time.0,
            Timestamp::from_second(10).unwrap()
        );
        set(
            &mut conditions,
            condition("Ready", Status::False, "B", "other", at(20), Some(2)),
        );
        assert_eq!(conditions[0].last_transition_time.0.as_second(), 10);
        assert_eq!(
            (conditions[0].reason.as_str(), conditions[0].observed_generation),
            ("B", Some(2))
        );
        set(
            &mut conditions,
            condition("Ready", Status::True, "C", "", at(30), Some(2)),
        );
        assert_eq!(conditions[0].last_transition_time.0.as_second(), 30);
        assert_eq!(conditions.len(), 1);
    }

    #[test]
    fn set_keeps_the_order() {
        let mut conditions = Vec::new();
        for type_ in ["Deleting", "Paused", "Ready", "Available"] {
            set(&mut conditions, condition(type_, Status::True, "R", "", at(1), None));
        }
        let types: Vec<_> = conditions.iter().map(|c| c.type_.as_str()).collect();
        assert_eq!(types, ["Available", "Ready", "Paused", "Deleting"]);
        remove(&mut conditions, "Ready");
        assert_eq!(conditions.len(), 3);
    }

    #[test]
    fn a_missing_condition_is_unknown() {
        let conditions = vec![condition("A", Status::True, "R", "m", at(1), None)];
        assert!(is_true(&conditions, "A") && !is_false(&conditions, "A") && !is_unknown(&conditions, "A"));
        assert!(!is_true(&conditions, "B") && !is_false(&conditions, "B") && is_unknown(&conditions, "B"));
        assert_eq!(
            (
                reason(&conditions, "A"),
                message(&conditions, "A"),
                reason(&conditions, "B")
            ),
            ("R", "m", "")
        );
    }
}
