//! The text of the fields that field selectors may name.

use serde_json::Value;
use windlass_objects::metadata::text;
use windlass_objects::selector::field_text;

fn or(object: &Value, field: &str, fallback: &str) -> String {
    let text = field_text(object, field);
    if text.is_empty() { fallback.to_owned() } else { text }
}

/// Of an event: `source` is the component that reports it, in either of its two places.
pub(crate) fn of_event(object: &Value, field: &str) -> String {
    match field {
        "source" => or(object, "source.component", &field_text(object, "reportingComponent")),
        _ => field_text(object, field),
    }
}

/// Of a node: unset booleans are false.
pub(crate) fn of_node(object: &Value, field: &str) -> String {
    match field {
        "spec.unschedulable" => or(object, field, "false"),
        _ => field_text(object, field),
    }
}

/// Of a pod: unset booleans are false, and its addresses are one text.
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

/// Of a kind whose selectable fields are numbers: unset ones are zero.
pub(crate) fn of_numbers(object: &Value, field: &str) -> String {
    or(object, field, "0")
}
