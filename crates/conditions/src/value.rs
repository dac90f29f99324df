//! Conditions of objects without a known type: those of providers, of both contract versions.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::Value;

use crate::{Condition, NO_REASON_REPORTED};

/// A provider's conditions are malformed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed(String);

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Malformed {}

/// The conditions of an object: `status.v1beta2.conditions`, else `status.conditions`. Missing reasons are filled in; a missing
/// time is the beginning of 1970.
pub fn conditions_of(object: &Value) -> Result<Vec<Condition>, Malformed> {
    let status = &object["status"];
    let list = status["v1beta2"]["conditions"]
        .as_array()
        .or_else(|| status["conditions"].as_array());
    list.into_iter()
        .flatten()
        .filter(|item| item.is_object())
        .map(read)
        .collect()
}

/// The condition of a type.
pub fn condition_of(object: &Value, type_: &str) -> Result<Option<Condition>, Malformed> {
    Ok(conditions_of(object)?.into_iter().find(|c| c.type_ == type_))
}

fn read(item: &Value) -> Result<Condition, Malformed> {
    let text = |field: &str| item[field].as_str().unwrap_or_default().to_owned();
    let type_ = text("type");
    if type_.is_empty() {
        return Err(Malformed("type must be set for all conditions".to_owned()));
    }
    let status = text("status");
    if status.is_empty() {
        return Err(Malformed(format!("status must be set for the {type_} condition")));
    }
    if !["True", "False", "Unknown"].contains(&status.as_str()) {
        return Err(Malformed(format!(
            "status for the {type_} condition must be one of True, False, Unknown"
        )));
    }
    let reason = Some(text("reason")).filter(|r| !r.is_empty());
    if let Some(reason) = reason.as_deref().filter(|reason| !is_reason(reason)) {
        let shown: String = reason.chars().take(LONGEST_SHOWN).collect();
        return Err(Malformed(format!(
            "reason of the {type_} condition must be one word of letters, digits and the signs _ , : that begins with a letter: {shown}"
        )));
    }
    let time: Option<Timestamp> = match item["lastTransitionTime"].as_str() {
        Some(time) if !time.is_empty() => Some(time.parse().map_err(|_| {
            Malformed(format!(
                "lastTransitionTime of the {type_} condition is not a time: {time}"
            ))
        })?),
        _ => None,
    };
    Ok(Condition {
        status,
        reason: reason.unwrap_or_else(|| NO_REASON_REPORTED.to_owned()),
        message: cut(text("message")),
        last_transition_time: Time(time.unwrap_or(Timestamp::UNIX_EPOCH)),
        observed_generation: item["observedGeneration"].as_i64(),
        type_,
    })
}

/// The limits of a reason and a message, and of how much of an invalid reason is shown.
const LONGEST_REASON: usize = 1024;
const LONGEST_MESSAGE: usize = 32_768;
const LONGEST_SHOWN: usize = 64;

/// Whether API servers accept this as a reason: with an invalid one, the whole status would be refused.
fn is_reason(text: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.len() <= LONGEST_REASON
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.ends_with(word)
        && text.chars().all(|c| word(c) || c == ',' || c == ':')
}

/// A message shortened to the limit of API servers, with room for additional text.
fn cut(message: String) -> String {
    const ROOM: usize = 1024;
    if message.chars().count() <= LONGEST_MESSAGE - ROOM {
        return message;
    }
    message.chars().take(LONGEST_MESSAGE - ROOM).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn both_generations_are_read_and_gaps_filled() {
        let new = json!({"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "R", "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 2}]}});
        let c = condition_of(&new, "Ready").unwrap().unwrap();
        assert_eq!(
            (c.status.as_str(), c.reason.as_str(), c.observed_generation),
            ("True", "R", Some(2))
        );
        let old = json!({"status": {"conditions": [{"type": "Ready", "status": "False", "severity": "Error"}]}});
        assert_eq!(condition_of(&old, "Ready").unwrap().unwrap().reason, "NoReasonReported");
        let both = json!({"status": {"v1beta2": {"conditions": [{"type": "A", "status": "True"}]}, "conditions": [{"type": "B", "status": "True"}]}});
        assert_eq!(conditions_of(&both).unwrap().len(), 1);
        assert!(conditions_of(&json!({})).unwrap().is_empty());
    }

    #[test]
    fn malformed_conditions_say_what_is_wrong() {
        let check = |item: Value, expect: &str| {
            let object = json!({"status": {"conditions": [item]}});
            assert_eq!(conditions_of(&object).unwrap_err().to_string(), expect);
        };
        check(json!({"status": "True"}), "type must be set for all conditions");
        check(json!({"type": "A"}), "status must be set for the A condition");
        check(
            json!({"type": "A", "status": "Yes"}),
            "status for the A condition must be one of True, False, Unknown",
        );
        check(
            json!({"type": "A", "status": "True", "lastTransitionTime": "x"}),
            "lastTransitionTime of the A condition is not a time: x",
        );
        check(
            json!({"type": "A", "status": "True", "reason": "no quota!"}),
            "reason of the A condition must be one word of letters, digits and the signs _ , : that begins with a letter: no quota!",
        );
    }

    // EX-049: what another party wrote is shown as far as it may be shown.
    #[test]
    fn a_message_is_cut_to_what_api_servers_take() {
        let object = json!({"status": {"conditions": [
            {"type": "A", "status": "True", "reason": "a:B_1,c", "message": "ü".repeat(40_000)}]}});
        let read = condition_of(&object, "A").unwrap().unwrap();
        assert!(read.message.chars().count() <= 32_768);
        assert_eq!(read.reason, "a:B_1,c");
    }
}
