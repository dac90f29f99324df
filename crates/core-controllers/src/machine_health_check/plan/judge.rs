//! Whether one Machine is healthy.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use windlass_api::core::{Cluster, Machine, MachineHealthCheck};
use windlass_api::k8s::Node;
use windlass_api::kind::Conditioned;
use windlass_api::meta::MetaExt as _;
use windlass_controller_runtime::Moment;
use windlass_meta::GoDuration;

use crate::machine_health_check::observed::Target;
use crate::shared::keys::{annotations, conditions, labels};
use crate::shared::machines;

/// Seconds that a Node may take to appear, when unset.
const NODE_STARTUP_TIMEOUT: i32 = 600;

/// How a Machine is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Health {
    /// It passes all checks.
    Good,
    /// It fails one.
    Bad { reason: &'static str, message: String },
    /// It does neither yet, or that is unknown.
    Unsettled,
}

/// Whether a state has lasted for so many seconds.
fn lasted(since: Timestamp, seconds: i32, now: &Moment) -> bool {
    now.elapsed(since, SignedDuration::from_secs(i64::from(seconds)))
}

fn in_words(seconds: i32) -> String {
    GoDuration::from_secs(i64::from(seconds)).to_string()
}

/// The Nodes of the checked Machines, by name.
type Nodes = BTreeMap<String, Arc<Node>>;

/// Whether the API server of the cluster was reached once, as its conditions tell. What `status.initialization` remembers is not enough:
/// a condition that is not True again means that the control plane cannot be judged now.
pub(super) fn is_initialized(cluster: &Cluster) -> bool {
    is_true(cluster, conditions::CONTROL_PLANE_INITIALIZED)
}

/// The conditions of the Cluster that a Machine is judged by: as long as one is not True, Machines are left alone.
pub(in crate::machine_health_check) fn gates(cluster: &Cluster) -> [bool; 2] {
    [
        is_true(cluster, conditions::INFRASTRUCTURE_READY),
        is_initialized(cluster),
    ]
}

fn is_true(cluster: &Cluster, type_: &str) -> bool {
    windlass_conditions::get(cluster.conditions(), type_).is_some_and(|have| have.status == "True")
}

/// Judges one Machine. `nodes` are those of the workload cluster; `None` before there can be any.
pub(super) fn judge(
    check: &MachineHealthCheck,
    cluster: &Cluster,
    target: &Target,
    nodes: Option<&Nodes>,
    now: &Moment,
) -> Health {
    let machine = &*target.machine;
    if machine.metadata.has_annotation(annotations::REMEDIATE_MACHINE) {
        return Health::Bad {
            reason: "HasRemediateAnnotation",
            message: format!(
                "Health check failed: marked for remediation via {} annotation",
                annotations::REMEDIATE_MACHINE
            ),
        };
    }
    // Until then its conditions tell how far the cluster is, not how the Machine is.
    let is_control_plane = machine.metadata.label(labels::CONTROL_PLANE).is_some();
    if !is_true(cluster, conditions::INFRASTRUCTURE_READY) || (!is_initialized(cluster) && !is_control_plane) {
        return Health::Unsettled;
    }
    let of_machine = unhealthy_machine(check, machine, now);
    let (reason, of_node) = match (target.node_name(), nodes) {
        (None, _) => ("NodeStartupTimeout", starting(check, cluster, machine, now)),
        (Some(_), None) => ("UnhealthyNode", Findings::pending()),
        (Some(name), Some(nodes)) => match nodes.get(name) {
            Some(node) => ("UnhealthyNode", unhealthy_node(check, node, now)),
            None if machine.metadata.is_deleting() => ("NodeDeleted", Findings::pending()),
            None => ("NodeDeleted", Findings::failed(format!("Node {name} has been deleted"))),
        },
    };
    let pending = of_machine.pending || of_node.pending || machine.metadata.is_deleting();
    let reason = if of_machine.failed.is_empty() {
        reason
    } else {
        "UnhealthyMachine"
    };
    let failed: Vec<String> = of_machine.failed.into_iter().chain(of_node.failed).collect();
    if !failed.is_empty() {
        return Health::Bad {
            reason,
            message: format!("Health check failed:\n  * {}", failed.join("\n  * ")),
        };
    }
    if pending { Health::Unsettled } else { Health::Good }
}

/// What is found about a Machine, or about its Node.
#[derive(Debug, Default)]
struct Findings {
    /// What has been bad for too long, in words.
    failed: Vec<String>,
    /// Something is bad, but not for long enough, or is not known.
    pending: bool,
}

impl Findings {
    fn pending() -> Self {
        Self {
            pending: true,
            ..Self::default()
        }
    }

    fn failed(why: String) -> Self {
        Self {
            failed: vec![why],
            ..Self::default()
        }
    }
}

fn unhealthy_node(check: &MachineHealthCheck, node: &Node, now: &Moment) -> Findings {
    let known = node
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_deref())
        .unwrap_or_default();
    let checks = check.spec.checks.as_ref();
    let mut found = Findings::default();
    for unhealthy in checks.into_iter().flat_map(|checks| &checks.unhealthy_node_conditions) {
        let (type_, status, timeout) = (&unhealthy.type_, &unhealthy.status, unhealthy.timeout_seconds);
        let mut alike = known
            .iter()
            .filter(|have| have.type_ == *type_ && have.status == *status);
        let Some(have) = alike.next() else { continue };
        let since = have.last_transition_time.as_ref().map_or(Timestamp::MIN, |time| time.0);
        let reason = have.reason.as_deref().unwrap_or_default();
        if lasted(since, timeout, now) {
            found.failed.push(reported(type_, "Node", status, reason, timeout));
        } else {
            found.pending = true;
        }
    }
    found
}

fn reported(type_: &str, on: &str, status: &str, reason: &str, timeout: i32) -> String {
    format!(
        "Condition {type_} on {on} is reporting status {status} with reason {reason} for more than {}",
        in_words(timeout)
    )
}

fn unhealthy_machine(check: &MachineHealthCheck, machine: &Machine, now: &Moment) -> Findings {
    let checks = check.spec.checks.as_ref();
    let mut found = Findings::default();
    for unhealthy in checks
        .into_iter()
        .flat_map(|checks| &checks.unhealthy_machine_conditions)
    {
        let (type_, status, timeout) = (&unhealthy.type_, &unhealthy.status, unhealthy.timeout_seconds);
        let have = machines::condition(machine, type_).filter(|have| have.status == *status);
        let Some(have) = have else { continue };
        if lasted(have.last_transition_time.0, timeout, now) {
            found
                .failed
                .push(reported(type_, "Machine", status, &have.reason, timeout));
        } else {
            found.pending = true;
        }
    }
    found
}

/// The Machine has no Node yet. The clock starts when it could have begun to start: at the latest of its creation, its infrastructure,
/// that of the cluster, and the first answer of the API server.
fn starting(check: &MachineHealthCheck, cluster: &Cluster, machine: &Machine, now: &Moment) -> Findings {
    let timeout = check
        .spec
        .checks
        .as_ref()
        .and_then(|checks| checks.node_startup_timeout_seconds);
    let timeout = timeout.unwrap_or(NODE_STARTUP_TIMEOUT);
    if timeout == 0 || machine.metadata.is_deleting() {
        return Findings::pending();
    }
    let begins = [
        windlass_conditions::get(cluster.conditions(), conditions::INFRASTRUCTURE_READY),
        windlass_conditions::get(cluster.conditions(), conditions::CONTROL_PLANE_INITIALIZED),
        machines::condition(machine, conditions::INFRASTRUCTURE_READY),
    ];
    let begins = begins.into_iter().flatten().filter(|have| have.status == "True");
    let since = begins.fold(machine.metadata.created(), |since, have| {
        since.max(have.last_transition_time.0)
    });
    if lasted(since, timeout, now) {
        Findings::failed(format!("Node failed to report startup in {}", in_words(timeout)))
    } else {
        Findings::pending()
    }
}
