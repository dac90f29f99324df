//! MachinePools.

use serde_json::Value;
use windlass_schema::FieldErrors;

use crate::common;
use crate::core::{machine, replicas};
use crate::defaults;
use crate::field::Field;
use crate::rule::{Change, Verdict};
use crate::view::Unread;

/// Sets the label with the cluster's name, replicas, the `v` of the version, and the time-out of the deletion of Nodes.
pub fn complete(change: &Change<'_>, pool: &mut Value) -> Result<Verdict, Unread> {
    machine::label_cluster(pool);
    let errors = replicas::complete(change.old, pool);
    machine::default_node_deletion(pool, "spec.template.spec.deletion");
    defaults::version(pool, "/spec/template/spec/version");
    Ok(errors.into())
}

/// Checks a MachinePool.
pub fn check(change: &Change<'_>) -> Result<Verdict, Unread> {
    let mut errors = FieldErrors::new();
    let spec = Field::of(change.new).child("spec");
    let template = spec.child("template");
    common::bootstrap(&template.child("spec"), &mut errors);
    common::same_cluster(change.old, change.new, &mut errors);
    common::cluster_of_template(&spec, &mut errors);
    let version = template.child("spec.version");
    common::version(&version, "must be a valid semantic version", &mut errors);
    if template.child("spec.taints").items().next().is_some() {
        let taints = spec.child("taints");
        errors.add(|| taints.forbidden("taints feature for MachinePools is not yet implemented"));
    }
    common::template_metadata(&template.child("metadata"), &mut errors);
    Ok(errors.into())
}
