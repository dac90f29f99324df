//! MachineSets.

use serde_json::Value;
use windlass_api::labels;
use windlass_meta::label_or_hash;
use windlass_schema::FieldErrors;

use crate::common;
use crate::core::{machine, replicas};
use crate::defaults;
use crate::field::Field;
use crate::rule::{Change, Verdict};
use crate::view::Unread;

/// Sets the label with the cluster's name, replicas, a selector if there is none, and the `v` of the version.
pub fn complete(change: &Change<'_>, set: &mut Value) -> Result<Verdict, Unread> {
    machine::label_cluster(set);
    let errors = replicas::complete(change.old, set);
    if !has_selector(set) {
        let name = label_or_hash(Field::of(set).child("metadata.name").text());
        select(set, labels::MACHINE_SET_NAME, &name);
    }
    defaults::version(set, "/spec/template/spec/version");
    Ok(errors.into())
}

pub(crate) fn has_selector(set: &Value) -> bool {
    let selector = Field::of(set).child("spec.selector");
    selector.child("matchLabels").is_set() || selector.child("matchExpressions").is_set()
}

/// Adds a label to the selector and to the template.
pub(crate) fn select(set: &mut Value, label: &str, value: &str) {
    defaults::set(set, "spec.selector.matchLabels", label, value);
    defaults::set(set, "spec.template.metadata.labels", label, value);
}

/// Checks a MachineSet.
pub fn check(change: &Change<'_>) -> Result<Verdict, Unread> {
    let mut errors = FieldErrors::new();
    let spec = Field::of(change.new).child("spec");
    common::bootstrap(&spec.child("template.spec"), &mut errors);
    let unselected = common::selector_of_template(&spec, &mut errors);
    errors.extend(unselected.map(|(labels, why)| labels.invalid(why)));
    common::skipped_preflight_checks(change.new, &mut errors);
    common::same_cluster(change.old, change.new, &mut errors);
    common::cluster_of_template(&spec, &mut errors);
    machine::check_template(change.new, &mut errors);
    let data = common::naming_data(Some(("machineSet", "name")));
    common::machine_naming(&spec.child("machineNaming"), &data, &mut errors);
    Ok(errors.into())
}
