//! The Cluster's status about its topology: one condition, and the versions that an upgrade still goes through.

use jiff::Timestamp;
use serde_json::{Value, json};
use windlass_api::conditions::TOPOLOGY_RECONCILED;
use windlass_api::core::Cluster;
use windlass_api::kind::Conditioned as _;
use windlass_conditions::{Builder, Draft};
use windlass_controller_runtime::ReconcileError;
use windlass_topology::status;

use super::apply::Done;
use super::observe::Observed;
use super::plan::Plan;

pub(super) fn status(seen: &Observed, plan: &Plan, done: &Done, now: Timestamp) -> Option<Value> {
    let cluster = match seen {
        // As it is, it is the status of what was found.
        Observed::Unmanaged | Observed::Settled => return None,
        Observed::Deleting(cluster) => cluster,
        Observed::Managed(seen) => &seen.cluster,
    };
    let report = match &done.failed {
        Some(error) => Draft::no(status::FAILED, failure(error, plan)),
        None => plan.report.clone()?,
    };
    let mut out = json!({"conditions": conditions(cluster, &report, now)});
    let progress = plan.progress.as_ref();
    for (part, versions) in [
        ("controlPlane", progress.map(|progress| &progress.control_plane_plan)),
        ("workers", progress.map(|progress| &progress.workers_plan)),
    ] {
        let versions = match (versions, seen) {
            (Some(versions), _) => {
                let versions: Vec<Value> = versions.iter().map(|v| json!({"version": v})).collect();
                (!versions.is_empty()).then(|| versions.into())
            }
            // It is not known how far the upgrade is: what was found before stays.
            (None, Observed::Managed(seen)) => seen.value.pointer(&format!("/status/{part}/upgradePlan")).cloned(),
            (None, _) => None,
        };
        if let Some(versions) = versions {
            out[part] = json!({"upgradePlan": versions});
        }
    }
    Some(out)
}

/// Whether the Cluster has this status already.
pub(super) fn is_shown(cluster: &Value, status: &Value) -> bool {
    let present = &cluster["status"];
    let conditions = |of: &Value| of["conditions"].as_array().cloned().unwrap_or_default();
    let present_conditions = conditions(present);
    conditions(status).iter().all(|one| present_conditions.contains(one))
        && ["controlPlane", "workers"]
            .iter()
            .all(|part| present[part]["upgradePlan"] == status[part]["upgradePlan"])
}

/// What a step failed for, and the parts that had no steps.
fn failure(error: &ReconcileError, plan: &Plan) -> String {
    match &plan.blocked {
        Some(blocked) => format!("{error}\n  * {}", blocked.message),
        None => error.to_string(),
    }
}

fn conditions(cluster: &Cluster, report: &Draft, now: Timestamp) -> Value {
    let mut built = Builder::new(cluster.conditions(), cluster.metadata.generation, now);
    built.set(TOPOLOGY_RECONCILED, report.clone());
    json!(built.done())
}
