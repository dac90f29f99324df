//! MachineDrainRules.

use windlass_schema::FieldErrors;

use crate::common;
use crate::field::Field;
use crate::rule::{Change, Verdict};
use crate::view::Unread;

/// Checks a MachineDrainRule.
pub fn check(change: &Change<'_>) -> Result<Verdict, Unread> {
    let mut errors = FieldErrors::new();
    let spec = Field::of(change.new).child("spec");
    let drain = spec.child("drain");
    let order = drain.child("order");
    if matches!(drain.child("behavior").text(), "Skip" | "WaitCompleted") && order.is_set() {
        let why = "order must not be set if drain behavior is \"Skip\" or \"WaitCompleted\"";
        errors.add(|| order.invalid(why));
    }
    for (list, labels_of) in [("machines", "clusterSelector"), ("pods", "namespaceSelector")] {
        for entry in spec.child(list).items() {
            common::selector(&entry.child("selector"), &mut errors);
            common::selector(&entry.child(labels_of), &mut errors);
        }
    }
    Ok(errors.into())
}
