//! The values of fields in field selectors.

use serde_json::Value;
use windlass_objects::metadata::text;
use windlass_objects::selector::field_text;

fn or(object: &Value, field: &str, fallback: &str) -> String {
    let text = field_text(object, field);
    if text.is_empty() { fallback.to_owned() } else { text }
}

/// Fields of an event: `source` is the reporting component, from either of its two fields.
pub(crate) fn of_event(object: &Value, field: &str) -> String {
    match field {
        "source" => or(object, "source.component", &field_text(object, "reportingComponent")),
        _ => field_text(object, field),
    }
}

/// Fields of a node: unset booleans are false.
pub(crate) fn of_node(object: &Value, field: &str) -> String {
    match field {
        "spec.unschedulable" => or(object, field, "false"),
        _ => field_text(object, field),
    }
}

/// Fields of a pod: unset booleans are false, and its addresses are one text.
pub(crate) fn of_pod(object: &Value, field: &str) -> String {
    match field {
        "spec.hostNetwork" => or(object, field, "false"),
        "status.podIPs" => {
            let all = object.pointer("/status/podIPs").and_then(Value::as_array);
            let ips: Vec<&str> = all.into_iter().flatten().map(|ip| text(ip, "ip")).collect();
            ips.join(",")
        }
        _ => field_text(object, field),
    }
}

/// Fields of a kind with numeric fields: unset numbers are zero.
pub(crate) fn of_numbers(object: &Value, field: &str) -> String {
    or(object, field, "0")
}
