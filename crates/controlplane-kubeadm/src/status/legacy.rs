//! The older conditions and counters, for readers of older versions.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use windlass_api::conditions::NODE_READY;
use windlass_conditions::Status;

use super::Counts;
use crate::facts::{CpMachine, Facts};
use crate::finding::Finding;
use crate::names::{control_plane, machine};
use crate::plan::{Plan, Stage};

/// An older condition: with a severity when it does not hold.
#[derive(Clone, Debug, PartialEq)]
struct Old {
    kind: &'static str,
    status: Status,
    severity: &'static str,
    reason: String,
    message: String,
}

impl Old {
    fn yes(kind: &'static str) -> Self {
        Self {
            kind,
            status: Status::True,
            severity: "",
            reason: String::new(),
            message: String::new(),
        }
    }

    fn no(kind: &'static str, severity: &'static str, reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            kind,
            status: Status::False,
            severity,
            reason: reason.into(),
            message: message.into(),
        }
    }

    /// The condition to write; any change moves its time, as older readers expect.
    fn stamp(&self, existing: &[Value], now: Timestamp) -> Value {
        let mut condition = Map::new();
        let mut set = |key: &str, value: &str| {
            if !value.is_empty() {
                condition.insert(key.to_owned(), json!(value));
            }
        };
        set("type", self.kind);
        set("status", self.status.as_str());
        set("severity", self.severity);
        set("reason", &self.reason);
        set("message", &self.message);
        let old = existing.iter().find(|c| c["type"] == self.kind);
        let same = old.filter(|old| {
            ["status", "severity", "reason", "message"].iter().all(|key| {
                old[*key].as_str().unwrap_or_default()
                    == condition.get(*key).and_then(Value::as_str).unwrap_or_default()
            })
        });
        let since = match same {
            Some(old) => old["lastTransitionTime"].clone(),
            None => json!(windlass_conditions::whole_seconds(now).to_string()),
        };
        condition.insert("lastTransitionTime".to_owned(), since);
        Value::Object(condition)
    }
}

/// `status.deprecated.v1beta1`.
pub(super) fn status(facts: &Facts, plan: &Plan, findings: &[Finding], counts: &Counts, now: Timestamp) -> Value {
    let mut old = conditions(facts, plan, findings);
    old.sort_by_key(|c| c.kind);
    if let Some(ready) = summary(&old) {
        old.insert(0, ready);
    }
    let existing = &facts.control_plane.legacy_conditions;
    let conditions: Vec<Value> = old.iter().map(|c| c.stamp(existing, now)).collect();
    let replicas = facts.machines.len();
    let ready = ready_nodes(facts).min(replicas);
    json!({
        "conditions": conditions,
        "readyReplicas": ready,
        "unavailableReplicas": replicas - ready,
        "updatedReplicas": counts.up_to_date,
    })
}

/// The Machines whose Nodes are ready: as the workload cluster has them, else as the Machines reported them last.
fn ready_nodes(facts: &Facts) -> usize {
    let nodes = facts.reached().map(|r| &r.nodes);
    let Some(Ok(nodes)) = nodes else {
        let reported = |m: &&Arc<CpMachine>| m.condition(NODE_READY).is_some_and(|c| c.status == "True");
        return facts.machines.iter().filter(reported).count();
    };
    let ours = |name: &str| facts.machines.iter().any(|m| m.node.as_deref() == Some(name));
    nodes
        .iter()
        .filter(|n| ours(&n.name) && n.ready.as_deref() == Some("True"))
        .count()
}

fn conditions(facts: &Facts, plan: &Plan, findings: &[Finding]) -> Vec<Old> {
    let mut all = Vec::new();
    let find = |kind: &str| findings.iter().find(|f| f.kind == kind);
    if let Some(certificates) = find(control_plane::CERTIFICATES) {
        all.push(match certificates.status {
            Status::True => Old::yes("CertificatesAvailable"),
            _ => Old::no(
                "CertificatesAvailable",
                "Error",
                "CertificatesGenerationFailed",
                certificates.message.clone(),
            ),
        });
    }
    let deleting = matches!(plan.stage, Stage::Deleting(..));
    if plan.stage == Stage::Running || deleting {
        all.push(if facts.initialized() {
            Old::yes("Available")
        } else {
            Old::no("Available", "Info", "WaitingForKubeadmInit", "")
        });
    }
    all.extend(resized(facts, plan));
    let waits = facts.machines.len() < usize::try_from(facts.control_plane.replicas).unwrap_or_default();
    if !waits && !deleting && !facts.machines.is_empty() {
        all.push(Old::yes("MachinesCreated"));
    }
    all.extend(machines_ready(facts));
    all.extend(spec_up_to_date(facts, plan));
    all.extend(of_health(facts, plan));
    all
}

fn resized(facts: &Facts, plan: &Plan) -> Option<Old> {
    const KIND: &str = "Resized";
    let current = facts.machines.len();
    let wanted = usize::try_from(facts.control_plane.replicas).unwrap_or_default();
    if let Stage::Deleting(reason, _) = &plan.stage {
        let message = match *reason {
            "WaitingForWorkersDeletion" => "Waiting for worker nodes to be deleted first",
            _ => "",
        };
        return Some(Old::no(KIND, "Info", "Deleting", message));
    }
    match current.cmp(&wanted) {
        std::cmp::Ordering::Less => Some(Old::no(
            KIND,
            "Warning",
            "ScalingUp",
            format!("Scaling up control plane to {wanted} replicas (actual {current})"),
        )),
        std::cmp::Ordering::Greater => Some(Old::no(
            KIND,
            "Warning",
            "ScalingDown",
            format!("Scaling down control plane to {wanted} replicas (actual {current})"),
        )),
        std::cmp::Ordering::Equal => {
            let ready = facts
                .machines
                .iter()
                .all(|m| m.condition(machine::READY).is_some_and(|c| c.status == "True"));
            let before = facts
                .control_plane
                .legacy_conditions
                .iter()
                .any(|c| c["type"] == KIND && c["status"] == "True");
            (ready || before).then(|| Old::yes(KIND)).or_else(|| {
                // Complete only when the last Machine is ready, and unchanged until then.
                kept(facts, KIND)
            })
        }
    }
}

fn kept(facts: &Facts, kind: &'static str) -> Option<Old> {
    let old = facts
        .control_plane
        .legacy_conditions
        .iter()
        .find(|c| c["type"] == kind)?;
    let text = |key: &str| old[key].as_str().unwrap_or_default().to_owned();
    let severity = match old["severity"].as_str() {
        Some("Error") => "Error",
        Some("Warning") => "Warning",
        Some("Info") => "Info",
        _ => "",
    };
    Some(Old {
        kind,
        status: Status::parse(&text("status")),
        severity,
        reason: text("reason"),
        message: text("message"),
    })
}

fn machines_ready(facts: &Facts) -> Option<Old> {
    const KIND: &str = "MachinesReady";
    let reported: Vec<(&str, &Value)> = facts
        .machines
        .iter()
        .filter_map(|m| Some((m.name.as_str(), m.legacy_ready.as_ref()?)))
        .collect();
    if reported.is_empty() {
        return None;
    }
    let rank = |c: &Value| match c["severity"].as_str() {
        Some("Error") => 0,
        Some("Warning") => 1,
        _ => 2,
    };
    let failing = reported.iter().filter(|(_, c)| c["status"] == "False");
    let Some((name, worst)) = failing.min_by_key(|(name, c)| (rank(c), *name)) else {
        return Some(Old::yes(KIND));
    };
    let good = reported.iter().filter(|(_, c)| c["status"] == "True").count();
    let severity = ["Error", "Warning", "Info"][rank(worst)];
    let reason = worst["reason"].as_str().unwrap_or("Unknown");
    Some(Old::no(
        KIND,
        severity,
        format!("{reason} @ Machine/{name}"),
        format!("{good} of {} completed", reported.len()),
    ))
}

/// Only there from the first rollout on.
fn spec_up_to_date(facts: &Facts, plan: &Plan) -> Option<Old> {
    const KIND: &str = "MachinesSpecUpToDate";
    if plan.rolling_out > 0 {
        let rest = facts.machines.len() - plan.rolling_out;
        return Some(Old::no(
            KIND,
            "Warning",
            "RollingUpdateInProgress",
            format!(
                "Rolling {} replicas with outdated spec ({rest} replicas up to date)",
                plan.rolling_out
            ),
        ));
    }
    kept(facts, KIND).map(|old| match plan.health {
        // A deleting Machine may still be an outdated one.
        Some(_) if !facts.machines.iter().any(|m| m.deleting()) => Old::yes(KIND),
        _ => old,
    })
}

fn of_health(facts: &Facts, plan: &Plan) -> Vec<Old> {
    if !facts.initialized() {
        return Vec::new();
    }
    let Some(health) = &plan.health else {
        return Vec::new();
    };
    let mut pods = machine::COMPONENTS.to_vec();
    if facts.control_plane.managed_etcd {
        pods.push(machine::ETCD_POD);
    }
    let wanted = [
        (
            control_plane::COMPONENTS,
            pods,
            "control plane",
            "ControlPlaneComponentsUnhealthy",
        ),
        (
            control_plane::ETCD,
            vec![machine::ETCD_MEMBER],
            "etcd member",
            "EtcdClusterUnhealthy",
        ),
    ];
    wanted
        .into_iter()
        .map(|(kind, kinds, what, reason)| {
            let with = |severity: &str| -> Vec<&str> {
                health
                    .machines
                    .iter()
                    .filter(|v| {
                        kinds
                            .iter()
                            .filter_map(|k| v.finding(k))
                            .any(|f| f.status == Status::False && severity_of(f) == severity)
                    })
                    .map(|v| v.facts.name.as_str())
                    .collect()
            };
            let mut errors = Vec::new();
            if kind == control_plane::ETCD {
                errors.clone_from(&health.matching.errors);
            }
            let failing = with("Error");
            if !failing.is_empty() {
                errors.push(format!(
                    "Following Machines are reporting {what} errors: {}",
                    failing.join(", ")
                ));
            }
            if !errors.is_empty() {
                return Old::no(kind, "Error", reason, errors.join("; "));
            }
            let informing = with("Info");
            if !informing.is_empty() {
                let names = informing.join(", ");
                let message = format!("Following Machines are reporting {what} info: {names}");
                return Old::no(kind, "Info", reason, message);
            }
            Old::yes(kind)
        })
        .collect()
}

fn severity_of(finding: &Finding) -> &'static str {
    match &*finding.reason {
        "Deleting" | "Provisioning" => "Info",
        _ => "Error",
    }
}

/// The older `Ready`: the worst of the conditions it sums up.
fn summary(all: &[Old]) -> Option<Old> {
    const SOURCES: [&str; 6] = [
        "MachinesCreated",
        "MachinesSpecUpToDate",
        "Resized",
        "MachinesReady",
        "Available",
        "CertificatesAvailable",
    ];
    let sources: Vec<&Old> = SOURCES
        .iter()
        .filter_map(|kind| all.iter().find(|c| c.kind == *kind))
        .collect();
    let rank = |c: &Old| match (c.status, c.severity) {
        (Status::False, "Error") => 0,
        (Status::False, "Warning") => 1,
        (Status::False, _) => 2,
        (Status::True, _) => 3,
        (Status::Unknown, _) => 4,
    };
    let worst = sources.into_iter().min_by_key(|c| rank(c))?;
    Some(Old {
        kind: "Ready",
        ..worst.clone()
    })
}
