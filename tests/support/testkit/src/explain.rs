//! Explains the state of an object when a test fails.

use std::fmt::Write as _;

use serde_json::Value;

/// Conditions that are good when they are false.
const NEGATIVE: [&str; 8] = [
    "Deleting",
    "Paused",
    "Remediating",
    "RollingOut",
    "ScalingDown",
    "ScalingUp",
    "Updating",
    "ExternallyRemediated",
];

/// One line about the object, and one for each condition that is not good.
pub(crate) fn lines(kind: &str, object: &Value) -> Vec<String> {
    let text = |pointer: &str| {
        object
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let mut head = format!("{kind}/{}", text("/metadata/name"));
    for (what, pointer) in [("version", "/spec/version"), ("phase", "/status/phase")] {
        let value = text(pointer);
        if !value.is_empty() {
            let _ = write!(head, " {what} {value}");
        }
    }
    if object.pointer("/metadata/deletionTimestamp").is_some() {
        let finalizers = &object["metadata"]["finalizers"];
        let _ = write!(head, " is being deleted, finalizers {finalizers}");
    }
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    let bad = conditions.into_iter().flatten().filter(|condition| {
        let kind = condition["type"].as_str().unwrap_or_default();
        condition["status"] != if NEGATIVE.contains(&kind) { "False" } else { "True" }
    });
    let mut lines = vec![head];
    lines.extend(bad.map(|condition| {
        let text = |name: &str| condition[name].as_str().unwrap_or_default().replace('\n', " ");
        format!(
            "  {}={} {}: {}",
            text("type"),
            text("status"),
            text("reason"),
            text("message")
        )
    }));
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_conditions_that_are_not_good_are_shown() {
        let object = json!({
            "metadata": {"name": "m", "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["x"]},
            "status": {"phase": "Deleting", "conditions": [
                {"type": "Ready", "status": "True", "reason": "Ready"},
                {"type": "Deleting", "status": "True", "reason": "WaitingForDrain", "message": "a\nb"},
                {"type": "Paused", "status": "False", "reason": "NotPaused"},
            ]},
        });
        assert_eq!(
            lines("Machine", &object),
            [
                r#"Machine/m phase Deleting is being deleted, finalizers ["x"]"#,
                "  Deleting=True WaitingForDrain: a b",
            ]
        );
    }
}
