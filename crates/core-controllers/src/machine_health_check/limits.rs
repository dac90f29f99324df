//! How many Machines may be unhealthy before that is taken for a problem that replacing Machines would make worse.

use windlass_api::core::MachineHealthCheck;

use crate::shared::numbers::{Round, resolve, written};

/// Whether unhealthy Machines may be replaced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limit {
    /// They may.
    pub allowed: bool,
    /// How many more may fail before they may not.
    pub left: i32,
    /// Why they may not.
    pub why: String,
}

/// What the check says about `total` Machines of which `healthy` are healthy; `Err` names a field that cannot be read.
pub(crate) fn limit(check: &MachineHealthCheck, total: i32, healthy: i32) -> Result<Limit, String> {
    let unhealthy = total - healthy;
    let trigger = check
        .spec
        .remediation
        .as_ref()
        .and_then(|remediation| remediation.trigger_if.as_ref());
    let counted = format!("(total: {total}, unhealthy: {unhealthy}");
    if let Some(range) = trigger.and_then(|trigger| trigger.unhealthy_in_range.as_deref()) {
        let (min, max) = parse_range(range).ok_or_else(|| {
            format!("spec.remediation.triggerIf.unhealthyInRange: {range:?} is not a range such as \"[3-5]\"")
        })?;
        let allowed = (min..=max).contains(&unhealthy);
        let why = format!(
            "Remediation is not allowed, the number of not started or unhealthy machines does not fall within the range {counted}, unhealthyInRange: {range})"
        );
        return Ok(Limit {
            allowed,
            left: (max - unhealthy).max(0),
            why,
        });
    }
    let most = trigger.and_then(|trigger| trigger.unhealthy_less_than_or_equal_to.as_ref());
    let text = most.map_or_else(|| "100%".to_owned(), written);
    let max = match most {
        None => total,
        Some(most) => resolve(most, total, Round::Down).ok_or_else(|| {
            format!(
                "spec.remediation.triggerIf.unhealthyLessThanOrEqualTo: {text:?} is neither a number nor a percentage"
            )
        })?,
    };
    let why = format!(
        "Remediation is not allowed, the number of not started or unhealthy machines exceeds unhealthyLessThanOrEqualTo {counted}, unhealthyLessThanOrEqualTo: {text})"
    );
    Ok(Limit {
        allowed: unhealthy <= max,
        left: (max - unhealthy).max(0),
        why,
    })
}

fn parse_range(range: &str) -> Option<(i32, i32)> {
    let (min, max) = range.strip_prefix('[')?.strip_suffix(']')?.split_once('-')?;
    let (min, max) = (min.parse().ok()?, max.parse().ok()?);
    (min <= max).then_some((min, max))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn check(trigger: &Value, counts: (i32, i32), want: (bool, i32)) {
        let mut check = MachineHealthCheck::default();
        check.spec.remediation = serde_json::from_value(json!({ "triggerIf": trigger })).unwrap();
        let found = limit(&check, counts.0, counts.1).unwrap();
        assert_eq!((found.allowed, found.left), want, "{}", found.why);
    }

    #[test]
    fn by_default_all_may_be_replaced() {
        let found = limit(&MachineHealthCheck::default(), 3, 0).unwrap();
        assert_eq!((found.allowed, found.left), (true, 0));
        assert_eq!(limit(&MachineHealthCheck::default(), 3, 3).unwrap().left, 3);
    }

    #[test]
    fn a_percentage_rounds_down() {
        check(&json!({ "unhealthyLessThanOrEqualTo": "40%" }), (4, 3), (true, 0));
        check(&json!({ "unhealthyLessThanOrEqualTo": "40%" }), (4, 2), (false, 0));
        check(&json!({ "unhealthyLessThanOrEqualTo": 2 }), (4, 3), (true, 1));
    }

    #[test]
    fn a_range_beats_a_number() {
        check(
            &json!({ "unhealthyInRange": "[2-3]", "unhealthyLessThanOrEqualTo": 0 }),
            (5, 3),
            (true, 1),
        );
        check(&json!({ "unhealthyInRange": "[2-3]" }), (5, 4), (false, 2));
        check(&json!({ "unhealthyInRange": "[2-3]" }), (5, 1), (false, 0));
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let mut check = MachineHealthCheck::default();
        let trigger = json!({ "triggerIf": { "unhealthyInRange": "[5-3]" } });
        check.spec.remediation = serde_json::from_value(trigger).unwrap();
        assert!(
            limit(&check, 1, 1)
                .unwrap_err()
                .starts_with("spec.remediation.triggerIf.unhealthyInRange")
        );
    }
}
