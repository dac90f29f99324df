//! MachineHealthChecks.

use serde_json::Value;
use windlass_api::labels;
use windlass_schema::FieldErrors;

use crate::common;
use crate::core::machine;
use crate::defaults;
use crate::field::Field;
use crate::rule::{Change, Verdict};
use crate::view::Unread;

/// How long a Node may take to start, in seconds, if the health check does not say.
const STARTUP_SECONDS: i64 = 600;

/// Sets the label with the cluster's name, and the time that a Node may take to start.
pub fn complete(_: &Change<'_>, check: &mut Value) -> Result<Verdict, Unread> {
    machine::label_cluster(check);
    defaults::default(check, "spec.checks", "nodeStartupTimeoutSeconds", STARTUP_SECONDS);
    Ok(Verdict::default())
}

/// Checks a MachineHealthCheck.
pub fn check(change: &Change<'_>) -> Result<Verdict, Unread> {
    let mut errors = FieldErrors::new();
    let spec = Field::of(change.new).child("spec");
    let selector = spec.child("selector");
    common::selector(&selector, &mut errors);
    if !selector.child("matchLabels").is_set() && !selector.child("matchExpressions").is_set() {
        errors.add(|| selector.required("selector must not be empty"));
    }
    let named = selector.child("matchLabels").entry(labels::CLUSTER_NAME);
    if !named.value().is_null() && named.text() != spec.child("clusterName").text() {
        errors
            .add(|| selector.invalid("cannot specify a cluster selector other than the one specified by ClusterName"));
    }
    common::same_cluster(change.old, change.new, &mut errors);
    common::health_check(&spec, &mut errors);
    Ok(errors.into())
}
