//! Conditions that a MachineSet and a MachineDeployment derive from their Machines in the same way.

use std::sync::Arc;

use jiff::Timestamp;
use windlass_api::core::{Machine, MachineSet};
use windlass_api::kind::Conditioned as _;
use windlass_api::meta::MetaExt as _;
use windlass_conditions::Draft;
use windlass_conditions::{Aggregate, Reasons, Source, aggregate as aggregated};
use windlass_meta::Moment;

use crate::shared::keys::conditions;
use crate::shared::machines::{self, conditions_of, is_to_be_remediated, is_unhealthy};

/// One verdict about a condition that all Machines should have: the worst, with the Machines behind it.
fn aggregate(machines: &[Arc<Machine>], type_: &str, reasons: Reasons<'_>) -> Draft {
    let sources: Vec<Source<'_>> = machines
        .iter()
        .map(|machine| Source {
            kind: "Machine",
            name: machine.metadata.name(),
            control_plane: false,
            conditions: conditions_of(machine),
        })
        .collect();
    let how = Aggregate {
        reasons,
        ..Aggregate::new(type_, type_)
    };
    // Time and generation are added where the verdict is used.
    match aggregated(&sources, &how, Timestamp::UNIX_EPOCH, None) {
        Some(found) if found.status == "True" => Draft::yes(found.reason, found.message),
        Some(found) if found.status == "False" => Draft::no(found.reason, found.message),
        Some(found) => Draft::unknown(found.reason, found.message),
        None => Draft::yes("NoReplicas", ""),
    }
}

/// Whether all Machines are ready.
pub(crate) fn machines_ready(machines: &[Arc<Machine>]) -> Draft {
    aggregate(
        machines,
        conditions::READY,
        Reasons {
            info: "Ready",
            issue: "NotReady",
            unknown: "ReadyUnknown",
        },
    )
}

/// Whether all Machines are as their template says.
pub(crate) fn machines_up_to_date(machines: &[Arc<Machine>], now: &Moment) -> Draft {
    let known = machines::with_known_age(machines, now);
    aggregate(
        &known,
        conditions::UP_TO_DATE,
        Reasons {
            info: "UpToDate",
            issue: "NotUpToDate",
            unknown: "UpToDateUnknown",
        },
    )
}

/// The words between what a MachineSet is about to do and the lines about what keeps it from that.
const BLOCKED: &str = " is blocked because:\n";

/// Why a MachineSet makes no Machines, as its condition ScalingUp says it, one line each.
pub(crate) fn obstacles(set: &MachineSet) -> Vec<String> {
    let scaling = windlass_conditions::get(set.conditions(), conditions::SCALING_UP);
    let message = scaling
        .filter(|have| have.status == "True")
        .map(|have| have.message.as_str());
    let lines = message
        .and_then(|message| message.split_once(BLOCKED))
        .map(|(_, lines)| lines);
    let lines = lines.into_iter().flat_map(str::lines);
    lines.map(|line| line.trim_start_matches("* ").to_owned()).collect()
}

/// That the Cluster of an object does not exist.
pub(crate) fn no_cluster(name: &str) -> String {
    format!("Cluster {name} (spec.clusterName) does not exist")
}

/// Whether Machines are being replaced because they are unhealthy.
pub(crate) fn remediating(machines: &[Arc<Machine>], by: &str) -> Draft {
    let (to_be, others): (Vec<Arc<Machine>>, Vec<Arc<Machine>>) = machines
        .iter()
        .filter(|machine| is_unhealthy(machine))
        .cloned()
        .partition(|m| is_to_be_remediated(m));
    if to_be.is_empty() {
        let names: Vec<&str> = others.iter().map(|machine| machine.metadata.name()).collect();
        let message = match names.len() {
            0 => String::new(),
            1 => format!("Machine {} is not healthy (not to be remediated by {by})", names[0]),
            _ => format!(
                "Machines {} are not healthy (not to be remediated by {by})",
                windlass_conditions::listed(&names, 3)
            ),
        };
        return Draft::no("NotRemediating", message);
    }
    let reasons = Reasons {
        info: "Remediating",
        issue: "Remediating",
        unknown: "Remediating",
    };
    let message = aggregate(&to_be, conditions::OWNER_REMEDIATED, reasons).message;
    Draft::yes("Remediating", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(name: &str, ready: Option<(&str, &str)>) -> Arc<Machine> {
        let mut machine = Machine::default();
        machine.metadata.name = Some(name.to_owned());
        if let Some((status, message)) = ready {
            let condition = serde_json::json!([{ "type": "Ready", "status": status, "message": message, "reason": "R",
                "lastTransitionTime": "2026-01-01T00:00:00Z" }]);
            machine.status.get_or_insert_default().conditions = serde_json::from_value(condition).unwrap();
        }
        Arc::new(machine)
    }

    fn check(machines: &[Arc<Machine>], reason: &str, message: &str) {
        let verdict = machines_ready(machines);
        assert_eq!((&*verdict.reason, verdict.message.as_str()), (reason, message));
    }

    #[test]
    fn equal_messages_are_reported_once() {
        let bad = Some(("False", "* NodeHealthy: no Node\n* InfrastructureReady: no"));
        check(
            &[machine("b", bad), machine("a", bad), machine("c", Some(("True", "")))],
            "NotReady",
            "* Machines a, b:\n  * NodeHealthy: no Node\n  * InfrastructureReady: no",
        );
    }

    #[test]
    fn what_is_not_reported_is_unknown() {
        check(
            &[machine("a", None), machine("b", None)],
            "ReadyUnknown",
            "* Machines a, b: Condition Ready not yet reported",
        );
        check(&[], "NoReplicas", "");
    }

    #[test]
    fn known_problems_come_before_unknown_ones_and_long_lists_are_cut() {
        let all: Vec<_> = ["a", "b", "c", "d", "e"]
            .map(|name| machine(name, Some(("False", "x"))))
            .into();
        check(&all, "NotReady", "* Machines a, b, c, ... (2 more): x");
        let mixed = [machine("a", None), machine("b", Some(("False", "x")))];
        check(
            &mixed,
            "NotReady",
            "* Machine b: x\n* Machine a: Condition Ready not yet reported",
        );
    }
}
