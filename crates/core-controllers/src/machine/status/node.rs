//! What the Node of a Machine means for the conditions NodeReady and NodeHealthy.

use k8s_openapi::api::core::v1::NodeCondition;
use windlass_api::{conditions, reasons};
use windlass_cluster_cache::Workload;
use windlass_conditions::{Draft, Status};
use windlass_controller_runtime::{Moment, Seen};

use crate::machine::facts::{control_plane_initialized, moved, provider_id};
use crate::machine::observe::Observed;
use crate::shared::machines::condition;

/// The message while no connection was ever seen.
const NOT_ESTABLISHED: &str = "Remote connection not established yet";

/// What to report: both conditions, or none when the last report stays valid.
pub(super) fn verdicts(seen: &Observed, now: &Moment) -> Option<(Draft, Draft)> {
    match common(seen, now) {
        Common::Keep => None,
        Common::Both(verdict) => Some((verdict.clone(), verdict)),
        Common::Look => {
            let node = seen.node()?;
            let conditions: Vec<NodeCondition> = node
                .status
                .as_ref()
                .and_then(|status| status.conditions.clone())
                .unwrap_or_default();
            Some((ready(&conditions), healthy(&conditions)))
        }
    }
}

enum Common {
    /// Nothing new is known: what was said stands.
    Keep,
    /// Both say the same, whatever the Node says.
    Both(Draft),
    /// The Node itself decides.
    Look,
}

fn both(status: Status, reason: &'static str, message: impl Into<String>) -> Common {
    Common::Both(Draft::new(status, reason, message))
}

/// What holds for both conditions before the Node itself is looked at.
fn common(seen: &Observed, now: &Moment) -> Common {
    if let Some(why) = moved(seen) {
        return both(Status::Unknown, reasons::INSPECTION_FAILED, why);
    }
    let Seen::Found(cluster) = &seen.cluster else {
        return both(
            Status::Unknown,
            reasons::INSPECTION_FAILED,
            "Waiting for the Cluster to exist",
        );
    };
    let status = cluster.status.as_ref();
    let provisioned = status
        .and_then(|s| s.initialization.as_ref())
        .and_then(|done| done.infrastructure_provisioned);
    if provisioned != Some(true) {
        let message = "Waiting for Cluster status.initialization.infrastructureProvisioned to be true";
        return both(Status::Unknown, reasons::INSPECTION_FAILED, message);
    }
    let Some(initialized) = control_plane_initialized(cluster) else {
        return both(
            Status::Unknown,
            reasons::INSPECTION_FAILED,
            "Waiting for Cluster control plane to be initialized",
        );
    };
    let reported = condition(&seen.machine, conditions::NODE_READY).is_some();
    match &seen.remote {
        Workload::NotTried(_) if reported => Common::Keep,
        Workload::NotTried(_) => both(Status::Unknown, reasons::CONNECTION_DOWN, NOT_ESTABLISHED),
        Workload::Down(outage) => {
            let silent_since = outage.last_success.unwrap_or(outage.since);
            let since = silent_since.max(initialized.last_transition_time.0);
            if reported && !now.elapsed(since, outage.grace.conditions) {
                return Common::Keep;
            }
            let last = outage.last_success;
            let message = last.map_or(NOT_ESTABLISHED.to_owned(), |last| {
                format!("Last successful probe at {}", last.strftime("%Y-%m-%dT%H:%M:%SZ"))
            });
            both(Status::Unknown, reasons::CONNECTION_DOWN, message)
        }
        Workload::Up(remote) if remote.node.is_some() => Common::Look,
        Workload::Up(_) => missing(seen),
    }
}

/// The workload cluster answers, and there is no Node.
fn missing(seen: &Observed) -> Common {
    let had = seen
        .machine
        .status
        .as_ref()
        .and_then(|status| status.node_ref.as_ref())
        .map(|node| &node.name);
    match (seen.deleting(), had) {
        (true, Some(name)) => both(
            Status::False,
            reasons::NODE_DELETED,
            format!("Node {name} has been deleted"),
        ),
        (true, None) => both(Status::Unknown, reasons::NODE_DOES_NOT_EXIST, "Node does not exist"),
        (false, Some(name)) => {
            let message = format!("Node {name} has been deleted while the Machine still exists");
            both(Status::False, reasons::NODE_DELETED, message)
        }
        (false, None) => {
            let waiting = match provider_id(seen) {
                Some(id) => format!("Waiting for a Node with spec.providerID {id} to exist"),
                None => format!(
                    "Waiting for {} to report spec.providerID",
                    seen.machine.spec.infrastructure_ref.kind
                ),
            };
            both(Status::Unknown, reasons::INSPECTION_FAILED, waiting)
        }
    }
}

fn ready(conditions: &[NodeCondition]) -> Draft {
    let Some(condition) = conditions.iter().find(|condition| condition.type_ == "Ready") else {
        let message = "* Node.Ready: Condition not yet reported";
        return Draft::unknown(reasons::NODE_READY_UNKNOWN, message);
    };
    let (status, reason) = match condition.status.as_str() {
        "True" => (Status::True, reasons::NODE_READY),
        "False" => (Status::False, reasons::NODE_NOT_READY),
        _ => (Status::Unknown, reasons::NODE_READY_UNKNOWN),
    };
    let words = condition
        .message
        .as_deref()
        .filter(|text| !text.is_empty() && status != Status::True);
    let message = words.map(|text| format!("* Node.Ready: {text}")).unwrap_or_default();
    Draft::new(status, reason, message)
}

/// The Node has to be ready and under no pressure; the worst of the four decides. What all of them say is said once.
fn healthy(conditions: &[NodeCondition]) -> Draft {
    let (mut bad, mut unknown) = (false, false);
    let (mut lines, mut texts) = (Vec::new(), Vec::new());
    for (type_, good) in [
        ("Ready", "True"),
        ("MemoryPressure", "False"),
        ("DiskPressure", "False"),
        ("PIDPressure", "False"),
    ] {
        let Some(condition) = conditions.iter().find(|condition| condition.type_ == type_) else {
            unknown = true;
            lines.push(format!("* Node.{type_}: Condition not yet reported"));
            continue;
        };
        if condition.status == good {
            continue;
        }
        let words = condition.message.clone().filter(|text| !text.is_empty());
        let text = words.unwrap_or_else(|| format!("Condition is {}", condition.status));
        lines.push(format!("* Node.{type_}: {text}"));
        texts.push(text);
        *(if condition.status == "Unknown" {
            &mut unknown
        } else {
            &mut bad
        }) = true;
    }
    let same = texts
        .first()
        .filter(|first| texts.len() > 1 && texts.iter().all(|text| text == *first));
    let message = same.map_or_else(|| lines.join("\n"), |text| format!("* Node.AllConditions: {text}"));
    let (status, reason) = if bad {
        (Status::False, reasons::NODE_NOT_HEALTHY)
    } else if unknown {
        (Status::Unknown, reasons::NODE_HEALTHY_UNKNOWN)
    } else {
        (Status::True, reasons::NODE_HEALTHY)
    };
    Draft::new(status, reason, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(pairs: &[(&str, &str)]) -> Vec<NodeCondition> {
        pairs
            .iter()
            .map(|(type_, status)| NodeCondition {
                type_: (*type_).to_owned(),
                status: (*status).to_owned(),
                ..NodeCondition::default()
            })
            .collect()
    }

    #[test]
    fn a_node_under_pressure_is_ready_but_not_healthy() {
        let conditions = node(&[
            ("Ready", "True"),
            ("MemoryPressure", "True"),
            ("DiskPressure", "False"),
            ("PIDPressure", "False"),
        ]);
        assert_eq!(ready(&conditions).status, Status::True);
        let verdict = healthy(&conditions);
        assert_eq!((verdict.status, &*verdict.reason), (Status::False, "NodeNotHealthy"));
        assert_eq!(verdict.message, "* Node.MemoryPressure: Condition is True");
    }

    #[test]
    fn what_all_conditions_say_is_said_once() {
        let mut all = node(&[
            ("Ready", "Unknown"),
            ("MemoryPressure", "Unknown"),
            ("DiskPressure", "Unknown"),
            ("PIDPressure", "Unknown"),
        ]);
        for condition in &mut all {
            condition.message = Some("Kubelet stopped posting node status.".to_owned());
        }
        let verdict = healthy(&all);
        assert_eq!(
            verdict.message,
            "* Node.AllConditions: Kubelet stopped posting node status."
        );
        all[3].message = None;
        assert_eq!(
            healthy(&all).message,
            "* Node.Ready: Kubelet stopped posting node status.\n\
             * Node.MemoryPressure: Kubelet stopped posting node status.\n\
             * Node.DiskPressure: Kubelet stopped posting node status.\n\
             * Node.PIDPressure: Condition is Unknown"
        );
    }

    #[test]
    fn a_silent_kubelet_is_unknown() {
        let verdict = healthy(&node(&[("Ready", "Unknown")]));
        assert_eq!(
            (verdict.status, &*verdict.reason),
            (Status::Unknown, "NodeHealthyUnknown")
        );
    }
}
