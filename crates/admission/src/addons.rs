//! ClusterResourceSets and their bindings.

use serde_json::Value;
use windlass_api::addons::STRATEGY_APPLY_ONCE;
use windlass_schema::FieldErrors;

use crate::common;
use crate::defaults;
use crate::field::Field;
use crate::rule::{Change, Verdict};
use crate::view::Unread;

/// Sets the strategy of a ClusterResourceSet.
pub fn complete_set(_: &Change<'_>, set: &mut Value) -> Result<Verdict, Unread> {
    defaults::default(set, "spec", "strategy", STRATEGY_APPLY_ONCE);
    Ok(Verdict::default())
}

/// Checks a ClusterResourceSet: its selector selects by something, and neither it nor the strategy changes.
pub fn check_set(change: &Change<'_>) -> Result<Verdict, Unread> {
    let mut errors = FieldErrors::new();
    let spec = Field::of(change.new).child("spec");
    let selector = spec.child("clusterSelector");
    common::selector(&selector, &mut errors);
    if !selector.child("matchLabels").is_set() && !selector.child("matchExpressions").is_set() {
        errors.add(|| selector.invalid("selector must not be empty"));
    }
    if !change.old.is_null() {
        let old = Field::of(change.old).child("spec");
        let strategy = spec.child("strategy");
        if old.child("strategy").is_set() && old.child("strategy").text() != strategy.text() {
            errors.add(|| strategy.invalid("field is immutable"));
        }
        let parts = ["matchLabels", "matchExpressions"];
        let differs = |part: &&str| {
            let (old, new) = (old.child("clusterSelector").child(part), selector.child(part));
            (old.is_set() || new.is_set()) && old.value() != new.value()
        };
        if parts.iter().any(differs) {
            errors.add(|| selector.invalid("field is immutable"));
        }
    }
    Ok(errors.into())
}

/// Checks a ClusterResourceSetBinding: it stays about its Cluster.
pub fn check_binding(change: &Change<'_>) -> Result<Verdict, Unread> {
    let mut errors = FieldErrors::new();
    let name = |object| Field::of(object).child("spec.clusterName");
    let (old, new) = (name(change.old), name(change.new));
    if old.is_set() && old.text() != new.text() {
        errors.add(|| new.invalid("field is immutable"));
    }
    Ok(errors.into())
}
