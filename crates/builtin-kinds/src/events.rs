//! Conversion of events.k8s.io events, which are stored in the core form.

use serde_json::Value;

/// Fields of core events and their names in events.k8s.io.
const EVENT_FIELDS: &[(&str, &str)] = &[
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

fn rename(object: &mut Value, pairs: impl Iterator<Item = (&'static str, &'static str)>) {
    let Some(object) = object.as_object_mut() else {
        return;
    };
    for (from, to) in pairs {
        if let Some(value) = object.remove(from) {
            object.insert(to.to_owned(), value);
        }
    }
}

/// From events.k8s.io to the core form.
pub(crate) fn to_core(object: &mut Value) {
    rename(object, EVENT_FIELDS.iter().map(|(core, new)| (*new, *core)));
}

/// From the core form to events.k8s.io.
pub(crate) fn from_core(object: &mut Value) {
    rename(object, EVENT_FIELDS.iter().copied());
}
