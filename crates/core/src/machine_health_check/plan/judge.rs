//! Whether one Machine is healthy.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use windlass_api::core::{Cluster, Machine, MachineHealthCheck};
use windlass_api::kind::Conditioned;
use windlass_api::meta::MetaExt as _;
use windlass_kit::Seen;
use windlass_meta::GoDuration;

use crate::machine_health_check::observed::Target;
use crate::shared::keys::{annotations, conditions, labels};
use crate::shared::machines;

/// Seconds that a Node may take to appear when nothing is said.
const NODE_STARTUP_TIMEOUT: i32 = 600;

/// How a Machine is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Health {
    /// It passes all checks.
    Good,
    /// It fails one.
    Bad { reason: &'static str, message: String },
    /// It does neither yet.
    Unsettled {
        /// After this time it fails, unless something changes.
        again: Option<Duration>,
    },
}

fn bad(reason: &'static str, why: &str) -> Health {
    Health::Bad {
        reason,
        message: format!("Health check failed: {why}"),
    }
}

/// Time left until `since + timeout`; `None` when that is over.
fn left(since: Timestamp, timeout: i32, now: Timestamp) -> Option<Duration> {
    let passed = now.duration_since(since);
    let left = SignedDuration::from_secs(i64::from(timeout)) - passed;
    Duration::try_from(left).ok().filter(|left| !left.is_zero())
}

fn in_words(seconds: i32) -> String {
    GoDuration::from_secs(i64::from(seconds)).to_string()
}

pub(super) fn judge(check: &MachineHealthCheck, cluster: &Cluster, target: &Target, now: Timestamp) -> Health {
    let machine = &*target.machine;
    if machine.metadata.has_annotation(annotations::REMEDIATE_MACHINE) {
        let key = annotations::REMEDIATE_MACHINE;
        return bad(
            "HasRemediateAnnotation",
            &format!("marked for remediation via {key} annotation"),
        );
    }
    let mut soonest: Option<Duration> = None;
    if let Some(found) = unhealthy_machine(check, machine, now, &mut soonest) {
        return found;
    }
    let initialization = cluster
        .status
        .as_ref()
        .and_then(|status| status.initialization.as_ref());
    let provisioned = initialization.and_then(|one| one.infrastructure_provisioned) == Some(true);
    let initialized = initialization.and_then(|one| one.control_plane_initialized) == Some(true);
    let is_control_plane = machine.metadata.label(labels::CONTROL_PLANE).is_some();
    if !provisioned || (!initialized && !is_control_plane) {
        return Health::Unsettled { again: soonest };
    }
    let node = match &target.node {
        None => return starting(check, cluster, machine, initialized, now, soonest),
        Some(Seen::NotFound | Seen::Failed(_)) if machine.metadata.is_deleting() => {
            return Health::Unsettled { again: None };
        }
        Some(Seen::NotFound | Seen::Failed(_)) => {
            let name = machine.status.as_ref().and_then(|status| status.node_ref.as_ref());
            let name = name.map_or("", |node| node.name.as_str());
            return bad("NodeDeleted", &format!("Node {name} has been deleted"));
        }
        Some(Seen::Found(node)) => node,
    };
    let checks = check.spec.checks.as_ref();
    let known = node
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_deref())
        .unwrap_or_default();
    for wanted in checks.into_iter().flat_map(|checks| &checks.unhealthy_node_conditions) {
        let Some(have) = known
            .iter()
            .find(|have| have.type_ == wanted.type_ && have.status == wanted.status)
        else {
            continue;
        };
        let since = have.last_transition_time.as_ref().map_or(Timestamp::MIN, |time| time.0);
        match left(since, wanted.timeout_seconds, now) {
            Some(left) => soonest = Some(soonest.map_or(left, |soonest| soonest.min(left))),
            None => {
                return bad(
                    "UnhealthyNode",
                    &reported(&wanted.type_, "Node", &wanted.status, wanted.timeout_seconds),
                );
            }
        }
    }
    if soonest.is_some() || machine.metadata.is_deleting() {
        return Health::Unsettled { again: soonest };
    }
    Health::Good
}

fn reported(type_: &str, on: &str, status: &str, timeout: i32) -> String {
    format!(
        "Condition {type_} on {on} is reporting status {status} for more than {}",
        in_words(timeout)
    )
}

fn unhealthy_machine(
    check: &MachineHealthCheck,
    machine: &Machine,
    now: Timestamp,
    soonest: &mut Option<Duration>,
) -> Option<Health> {
    let checks = check.spec.checks.as_ref();
    for wanted in checks
        .into_iter()
        .flat_map(|checks| &checks.unhealthy_machine_conditions)
    {
        let have = machines::condition(machine, &wanted.type_);
        let Some(have) = have.filter(|have| have.status == wanted.status) else {
            continue;
        };
        let Some(left) = left(have.last_transition_time.0, wanted.timeout_seconds, now) else {
            let why = reported(&wanted.type_, "Machine", &wanted.status, wanted.timeout_seconds);
            return Some(bad("UnhealthyMachine", &why));
        };
        *soonest = Some(soonest.map_or(left, |soonest| soonest.min(left)));
    }
    None
}

/// The Machine has no Node yet. The clock starts when it could have begun to start.
fn starting(
    check: &MachineHealthCheck,
    cluster: &Cluster,
    machine: &Machine,
    initialized: bool,
    now: Timestamp,
    soonest: Option<Duration>,
) -> Health {
    let timeout = check
        .spec
        .checks
        .as_ref()
        .and_then(|checks| checks.node_startup_timeout_seconds);
    let timeout = timeout.unwrap_or(NODE_STARTUP_TIMEOUT);
    if timeout == 0 || machine.metadata.is_deleting() {
        return Health::Unsettled { again: soonest };
    }
    let mut since = machine.metadata.created().min(now);
    let types = [
        (conditions::INFRASTRUCTURE_READY, true),
        (conditions::CONTROL_PLANE_INITIALIZED, initialized),
    ];
    for (type_, counts) in types {
        let have = windlass_conditions::get(cluster.conditions(), type_).filter(|have| counts && have.status == "True");
        since = have.map_or(since, |have| since.max(have.last_transition_time.0));
    }
    match left(since, timeout, now) {
        Some(left) => Health::Unsettled {
            again: Some(soonest.map_or(left, |soonest| soonest.min(left))),
        },
        None => bad(
            "NodeStartupTimeout",
            &format!("Node failed to report startup in {}", in_words(timeout)),
        ),
    }
}
