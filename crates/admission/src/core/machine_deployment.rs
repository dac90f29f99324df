//! MachineDeployments.

use serde_json::Value;
use windlass_api::labels;
use windlass_schema::FieldErrors;

use crate::common;
use crate::core::machine_set::{has_selector, select};
use crate::core::{machine, replicas};
use crate::defaults;
use crate::field::Field;
use crate::rule::{Change, Verdict};
use crate::view::Unread;

const ROLLING: &str = "RollingUpdate";

/// Sets the label with the cluster's name, replicas, the rollout strategy, selector and labels of the template, and the `v` of the
/// version.
pub fn complete(change: &Change<'_>, deployment: &mut Value) -> Result<Verdict, Unread> {
    machine::label_cluster(deployment);
    let errors = replicas::complete(change.old, deployment);
    let kind = Field::of(deployment).child("spec.rollout.strategy.type").text();
    if kind.is_empty() || kind == ROLLING {
        defaults::set(deployment, "spec.rollout.strategy", "type", ROLLING);
        let rolling = "spec.rollout.strategy.rollingUpdate";
        defaults::default(deployment, rolling, "maxSurge", 1);
        defaults::default(deployment, rolling, "maxUnavailable", 0);
    }
    if !has_selector(deployment) {
        let name = Field::of(deployment).child("metadata.name").text().to_owned();
        select(deployment, labels::MACHINE_DEPLOYMENT_NAME, &name);
    }
    let cluster = machine::cluster_of(deployment);
    select(deployment, labels::CLUSTER_NAME, &cluster);
    defaults::version(deployment, "/spec/template/spec/version");
    Ok(errors.into())
}

/// Checks a MachineDeployment.
pub fn check(change: &Change<'_>) -> Result<Verdict, Unread> {
    let mut errors = FieldErrors::new();
    common::name_is_label(change.new, "must be a valid label value:", &mut errors);
    let spec = Field::of(change.new).child("spec");
    common::bootstrap(&spec.child("template.spec"), &mut errors);
    let unselected = common::selector_of_template(&spec, &mut errors);
    errors.extend(unselected.map(|(labels, why)| labels.forbidden(why)));
    common::skipped_preflight_checks(change.new, &mut errors);
    common::same_cluster(change.old, change.new, &mut errors);
    common::cluster_of_template(&spec, &mut errors);
    common::rolling_update(&spec.child("rollout.strategy"), &mut errors);
    common::number_or_percentage(&spec.child("remediation.maxInFlight"), &mut errors);
    machine::check_template(change.new, &mut errors);
    let data = common::naming_data(Some(("machineSet", "name")));
    common::machine_naming(&spec.child("machineNaming"), &data, &mut errors);
    Ok(errors.into())
}
