//! Machines.

use serde_json::Value;
use windlass_api::labels;
use windlass_schema::FieldErrors;

use crate::common;
use crate::defaults;
use crate::field::Field;
use crate::rule::{Change, Verdict};
use crate::view::Unread;

/// How long a Machine waits for the deletion of its Node, in seconds, if it does not say.
const NODE_DELETION_SECONDS: i64 = 10;

/// Sets the label with the cluster's name, the `v` of the version, and the time-out of the deletion of the Node.
pub fn complete(_: &Change<'_>, machine: &mut Value) -> Result<Verdict, Unread> {
    label_cluster(machine);
    defaults::version(machine, "/spec/version");
    default_node_deletion(machine, "spec.deletion");
    Ok(Verdict::default())
}

/// Sets the time-out of the deletion of Nodes in the part `deletion` of an object.
pub(crate) fn default_node_deletion(object: &mut Value, deletion: &str) {
    defaults::default(object, deletion, "nodeDeletionTimeoutSeconds", NODE_DELETION_SECONDS);
}

/// Sets the label with the name of the cluster of an object.
pub(crate) fn label_cluster(object: &mut Value) {
    let cluster = cluster_of(object);
    defaults::set(object, "metadata.labels", labels::CLUSTER_NAME, cluster);
}

pub(crate) fn cluster_of(object: &Value) -> String {
    Field::of(object).child("spec.clusterName").text().to_owned()
}

/// Checks a Machine.
pub fn check(change: &Change<'_>) -> Result<Verdict, Unread> {
    let mut errors = FieldErrors::new();
    let machine = Field::of(change.new);
    let spec = machine.child("spec");
    let is_of = |label: &str| !machine.child("metadata.labels").entry(label).value().is_null();
    // The Machines of a pool get their bootstrap data from the pool.
    if !is_of(labels::MACHINE_POOL_NAME) && !is_owned_by_pool(&machine) {
        common::bootstrap(&spec, &mut errors);
    }
    common::same_cluster(change.old, change.new, &mut errors);
    common::version(&spec.child("version"), "must be a valid semantic version", &mut errors);
    common::taints(&spec.child("taints"), !is_of(labels::CONTROL_PLANE), &mut errors);
    Ok(errors.into())
}

fn is_owned_by_pool(machine: &Field<'_>) -> bool {
    let owners = machine.child("metadata.ownerReferences");
    owners.items().any(|owner| owner.child("kind").text() == "MachinePool")
}

/// Checks the template of the Machines of a set.
pub(crate) fn check_template(set: &Value, errors: &mut FieldErrors) {
    let template = Field::of(set).child("spec.template");
    let spec = template.child("spec");
    common::version(&spec.child("version"), "must be a valid semantic version", errors);
    common::taints(&spec.child("taints"), true, errors);
    common::template_metadata(&template.child("metadata"), errors);
}
